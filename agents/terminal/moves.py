"""What a person typed, understood as a move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.terminal.words import text
from generala_env.rules.actions import Close, Keep, action_id
from generala_env.rules.dice import NUM_DICE, THROWS_PER_TURN, Dice, canonical_mask
from generala_env.rules.game import GameState
from generala_env.rules.names import box_name, face_label
from generala_env.rules.variants import Variant


class NotUnderstood(ValueError):  # noqa: N818 - it is shown to the person who typed
    """What was typed is no move; the message says why, in the person's language."""


def parse_dice(typed: str, skin: str) -> Dice | None:
    """Read faces: ``4 4 4``, ``444``, or ``K K 10`` on poker dice; ``None`` if they are none."""
    labels = {face_label(face, skin).upper(): face for face in range(1, 7)}
    left = typed.upper().replace(",", " ")
    faces = []
    while left := left.lstrip():
        # The longest label first, since 10 begins with a character of its own.
        label = next(
            (label for label in sorted(labels, key=len, reverse=True) if left.startswith(label)), None
        )
        if label is None:
            return None
        faces.append(labels[label])
        left = left[len(label) :]
    return tuple(sorted(faces)) if faces else None


def parse_move(
    typed: str, variant: Variant, state: GameState, mask: NDArray[np.bool_], language: str, skin: str
) -> int:
    """Read a move and return its action id.

    Args:
        typed: What was typed.
        variant: The rules.
        state: The position.
        mask: (num_actions,) bool, what is legal.
        language: Of names and of messages.
        skin: Of the dice.

    Raises:
        NotUnderstood: It is no move, or not one of these.
    """
    dice = state.turn.dice
    typed = typed.strip()
    box = _parse_box(typed, variant, language, skin)
    if box is not None:
        action = action_id(Close(box)) if box < variant.num_boxes else -1
        if action < 0 or not mask[action]:
            raise NotUnderstood(text("not_open", language))
        return action
    kept = _parse_keep(typed, dice, skin)
    if kept is None:
        raise NotUnderstood(text("not_understood", language, text=typed))
    try:
        keep_mask = canonical_mask(dice, kept)
    except ValueError:
        raise NotUnderstood(text("no_such_dice", language)) from None
    if len(kept) == NUM_DICE:
        raise NotUnderstood(text("all_five", language))
    if state.turn.throw == THROWS_PER_TURN:
        raise NotUnderstood(text("no_more_throws", language))
    if not mask[keep_mask]:
        raise NotUnderstood(text("locked_dice", language))
    return action_id(Keep(keep_mask))


def _parse_keep(typed: str, dice: Dice, skin: str) -> Dice | None:
    if typed == "-":
        return ()
    if typed.startswith("#"):
        places = [character for character in typed[1:] if not character.isspace() and character != ","]
        if not places or not all(place in "12345" for place in places) or len(set(places)) < len(places):
            return None
        return tuple(sorted(dice[int(place) - 1] for place in places))
    return parse_dice(typed, skin)


def _parse_box(typed: str, variant: Variant, language: str, skin: str) -> int | None:
    lowered = typed.lower()
    if lowered[:1] == "c" and lowered[1:].strip().isdecimal():
        number = int(lowered[1:])
        return number - 1 if number else variant.num_boxes
    if len(lowered) < 2 or parse_dice(typed, skin) is not None:
        return None
    matches = [
        index
        for index, box in enumerate(variant.boxes)
        if box.value == lowered or box_name(box, language, skin).lower() == lowered
    ]
    matches = matches or [
        index
        for index, box in enumerate(variant.boxes)
        if box_name(box, language, skin).lower().startswith(lowered)
    ]
    return matches[0] if len(matches) == 1 else None
