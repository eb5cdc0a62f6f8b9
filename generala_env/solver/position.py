"""Positions of the two-player game as a person writes them down.

For example ``me: 120, open fours poker, generala scored; other: 131, open poker; dice 3 3 3 5 6;
throw 2``. The player to move is ``me``.
"""

from __future__ import annotations

import difflib
import re
from typing import Final, NamedTuple, NoReturn

from generala_env.rules.boxes import Box
from generala_env.rules.card import BoxStatus, Card
from generala_env.rules.compiled import CompiledVariant
from generala_env.rules.dice import FACES, NUM_DICE, THROWS_PER_TURN, Dice, is_subset
from generala_env.rules.game import GameState, Phase, Player, Turn
from generala_env.rules.variants import DobleKind

POSITION_HELP: Final = (
    "'me: POINTS, open BOX ...; other: POINTS, open BOX ...; dice D D D D D; throw N; kept D ...'. "
    "Boxes are named as on the card, or 'all' or 'none'. Add ', generala scored' or ', generala struck' "
    "for a closed Generala box, the same for doble_generala, and ', bonus taken'. Without dice the turn is "
    "yet to begin; throw is 1 unless given; kept are the dice set aside before throws 2 and 3."
)
"""The form of a position, for people."""


class PositionError(ValueError):
    """A position that cannot be read, or cannot arise."""


class Side(NamedTuple):
    """One player in a position."""

    points: int
    card: Card


def _fail(part: str, message: str) -> NoReturn:
    raise PositionError(f"position: {part}: {message}")


def _dice(part: str, text: str) -> Dice:
    words = re.findall(r"[^\s,]+", text)
    # 33356 is as clear as 3 3 3 5 6.
    faces = list("".join(words)) if all(word.isascii() and word.isdigit() for word in words) else words
    if any(face not in {str(known) for known in FACES} for face in faces):
        _fail(part, f"{text.strip()!r} is not a list of faces from {FACES[0]} to {FACES[-1]}")
    return tuple(sorted(int(face) for face in faces))


def _side(compiled: CompiledVariant, part: str, text: str) -> Side:
    boxes = [box.value for box in compiled.variant.boxes]
    points: int | None = None
    opened: set[str] | None = None
    fates: dict[str, BoxStatus] = {}
    is_bonus_taken = False
    for phrase in (phrase.strip() for phrase in text.split(",")):
        words = phrase.replace("=", " ").split()
        if not words:
            continue
        if words[0].isascii() and words[0].isdigit() and words[1:] in ([], ["points"]):
            points = int(words[0])
        elif words[0] == "open":
            names = words[1:]
            if names == ["all"]:
                names = boxes
            elif names == ["none"]:
                names = []
            elif not names:
                _fail(part, "'open' needs boxes, 'all' or 'none'")
            for name in names:
                if name not in boxes:
                    near = difflib.get_close_matches(name, boxes, n=1)
                    hint = f"did you mean {near[0]}?" if near else f"the boxes are {' '.join(boxes)}"
                    _fail(part, f"{name!r} is not a box of {compiled.variant.name}; {hint}")
            opened = set(names)
        elif len(words) == 2 and words[0] in (Box.GENERALA, Box.DOBLE_GENERALA) and words[0] in boxes:
            if words[1] not in ("scored", "struck"):
                _fail(part, f"{words[0]} is {words[1]!r}; it can be scored or struck")
            fates[words[0]] = BoxStatus[words[1].upper()]
        elif words == ["bonus", "taken"] and compiled.variant.doble.kind is DobleKind.BONUS:
            is_bonus_taken = True
        else:
            _fail(
                part, f"{phrase!r} is not understood; write POINTS, open BOX ..., generala scored or struck"
            )
    if points is None:
        _fail(part, "the points are missing; write for example '120, open fours'")
    if opened is None:
        _fail(part, "the open boxes are missing; write 'open' and their names, 'all' or 'none'")
    statuses: dict[str, BoxStatus] = {}
    for box in (Box.GENERALA, Box.DOBLE_GENERALA):
        if box in fates and box in opened:
            _fail(part, f"{box} cannot be open and {fates[box].name.lower()}")
        statuses[box] = fates.get(box, BoxStatus.OPEN)
    mask = sum(1 << index for index, name in enumerate(boxes) if name in opened)
    card = Card(mask, statuses[Box.GENERALA], statuses[Box.DOBLE_GENERALA], is_bonus_taken)
    return Side(points, _known(compiled, part, card, opened, fates))


def _known(
    compiled: CompiledVariant, part: str, card: Card, opened: set[str], fates: dict[str, BoxStatus]
) -> Card:
    """Return the card, or the one it must be where it does not say what became of a box."""
    unsaid = [
        box
        for box in (Box.GENERALA, Box.DOBLE_GENERALA)
        if box in compiled.variant.boxes and box not in opened and box not in fates
    ]
    candidates = []
    for generala in (BoxStatus.SCORED, BoxStatus.STRUCK) if Box.GENERALA in unsaid else (card.generala,):
        for doble in (BoxStatus.SCORED, BoxStatus.STRUCK) if Box.DOBLE_GENERALA in unsaid else (card.doble,):
            candidate = Card(card.open_mask, generala, doble, card.is_bonus_taken)
            try:
                compiled.index_of(candidate)
            except ValueError:
                continue
            candidates.append(candidate)
    if not candidates:
        order = ", ".join(compiled.variant.boxes) if compiled.variant.order == "forced" else ""
        _fail(
            part,
            f"no line of play leads to that card under {compiled.variant.name}"
            + (f", where boxes are closed in the order {order}" if order else ""),
        )
    if len({int(compiled.class_of_card[compiled.index_of(one)]) for one in candidates}) > 1:
        _fail(part, f"what became of {unsaid[0]}? write '{unsaid[0]} scored' or '{unsaid[0]} struck'")
    return candidates[0]


def parse_position(compiled: CompiledVariant, text: str) -> GameState:
    """Read a position.

    Args:
        compiled: The variant's tables.
        text: The position; see ``POSITION_HELP``.

    Returns:
        A state of a game of two in which seat 0 (``me``) is to move.

    Raises:
        PositionError: The text cannot be read; the message names the part and what would be right.
    """
    parts: dict[str, str] = {}
    for piece in (piece.strip() for piece in text.split(";")):
        if not piece:
            continue
        match = re.fullmatch(r"(\w+)\s*:?\s*(.*)", piece, re.DOTALL)
        name = match.group(1).lower() if match else piece
        if match is None or name not in ("me", "other", "dice", "throw", "kept"):
            _fail(
                repr(piece), "a part begins with me, other, dice, throw or kept; parts are separated by ';'"
            )
        if name in parts:
            _fail(name, "given twice")
        parts[name] = match.group(2)
    for name in ("me", "other"):
        if name not in parts:
            _fail(name, f"missing; the form is {POSITION_HELP}")
    sides = tuple(_side(compiled, name, parts[name]) for name in ("me", "other"))
    _check_sides(compiled, sides[0], sides[1])
    turn = _turn(compiled, parts)
    num_boxes = compiled.num_boxes
    players = tuple(
        Player(
            side.card, tuple(None if side.card.is_open(box) else 0 for box in range(num_boxes)), side.points
        )
        for side in sides
    )
    mine, theirs = (side.card.num_open for side in sides)
    return GameState(Phase.TURNS, players, 0, 0 if mine == theirs else 1, num_boxes - mine + 1, turn)


def position_text(compiled: CompiledVariant, state: GameState) -> str:
    """Write down a position of a game of two so that ``parse_position`` reads it back."""
    boxes = compiled.variant.boxes
    parts = []
    for name, seat in (("me", state.current_player), ("other", 1 - state.current_player)):
        player = state.players[seat]
        opened = " ".join(boxes[box] for box in player.card.open_boxes()) or "none"
        phrases = [str(player.score), f"open {opened}", *player.card.remembered()]
        parts.append(f"{name}: {', '.join(phrases)}")
    if state.turn.dice:
        parts.append(f"dice {''.join(map(str, state.turn.dice))}")
        parts.append(f"throw {state.turn.throw}")
        if state.turn.throw > 1:
            parts.append(f"kept {''.join(map(str, state.turn.kept)) or 'none'}")
    return "; ".join(parts)


def _check_sides(compiled: CompiledVariant, me: Side, other: Side) -> None:
    # Here, because it loads the compiled kernels, which most commands do not need.
    from generala_env.solver.duel_kernels import point_ranges

    if me.card.is_complete:
        _fail("me", "no box is open, so there is nothing to decide")
    if me.card.num_open - other.card.num_open not in (0, 1):
        _fail(
            "other",
            f"{other.card.num_open} open boxes against {me.card.num_open} of the player to move; there must "
            "be as many (the mover is first in the round) or one fewer (second)",
        )
    ranges = point_ranges(compiled)
    for name, side in (("me", me), ("other", other)):
        group = compiled.class_of_card[compiled.index_of(side.card)]
        least, most = int(ranges.least[group]), int(ranges.most[group])
        if not least <= side.points <= most:
            _fail(name, f"{side.points} points cannot be; the closed boxes allow {least} to {most}")


def _turn(compiled: CompiledVariant, parts: dict[str, str]) -> Turn:
    if "dice" not in parts:
        for name in ("throw", "kept"):
            if name in parts:
                _fail(name, "given without dice")
        return Turn()
    dice = _dice("dice", parts["dice"])
    if len(dice) != NUM_DICE:
        _fail("dice", f"{len(dice)} dice instead of {NUM_DICE}")
    number = parts.get("throw", "1").strip()
    if number not in {str(throw) for throw in range(1, THROWS_PER_TURN + 1)}:
        _fail("throw", f"{number!r} is not from 1 to {THROWS_PER_TURN}")
    throw = int(number)
    if "kept" not in parts:
        kept_matters = bool(compiled.is_served[throw - 1, 0] != compiled.is_served[throw - 1, 1])
        locks = compiled.variant.is_locked and 1 < throw < THROWS_PER_TURN
        if throw > 1 and (kept_matters or locks):
            _fail(
                "kept",
                f"missing; under {compiled.variant.name} it matters which dice were kept ('kept none')",
            )
        # Dice not all thrown: the first one stands for whatever was kept.
        return Turn(throw, dice, dice[:1] if throw > 1 else ())
    kept = () if parts["kept"].strip() == "none" else _dice("kept", parts["kept"])
    if throw == 1 and kept:
        _fail("kept", "nothing is kept before the first throw")
    if not is_subset(kept, dice) or len(kept) == NUM_DICE:
        _fail("kept", f"{' '.join(map(str, kept))} is not among the dice, or leaves none to throw")
    return Turn(throw, dice, kept)
