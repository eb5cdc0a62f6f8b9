"""Actions, and the one place where their integer ids are computed.

Ids ``0..30`` keep the dice whose bit is set in the id, of the five in ascending order (bit
0 is the lowest die); id ``31 + i`` closes box ``i`` of the variant. Keeping all five dice is
not an action. A deliberate strike of dice that fit is known to the engine only: it has no id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from generala_env.rules.boxes import Box
from generala_env.rules.dice import NUM_KEEP_MASKS, Dice, select

NUM_KEEP_ACTIONS: Final = NUM_KEEP_MASKS - 1
"""31: the ids below this one keep dice, those from it on close boxes."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Set aside the dice whose bits are set, and throw the others.

    Attributes:
        mask: Bit ``i`` keeps the ``i``-th die in ascending order; 0 to 30.
    """

    mask: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close a box with the dice on the table.

    Attributes:
        box: The index of the box in the variant.
        strike: Take 0 points even if the dice fit.
    """

    box: int
    strike: bool = False


Action = Keep | Close


def num_actions(num_boxes: int) -> int:
    """Return the size of the action space of a card with that many boxes."""
    return NUM_KEEP_ACTIONS + num_boxes


def action_id(action: Action) -> int:
    """Return the id of an action.

    Raises:
        ValueError: The action has no id: it is a deliberate strike, it keeps all five dice,
            or its box is not an index.
    """
    if isinstance(action, Keep):
        # Keeping all five would be mask 31, which is the id of closing the first box.
        if not 0 <= action.mask < NUM_KEEP_ACTIONS:
            raise ValueError(f"{action} has no action id: masks are from 0 to {NUM_KEEP_ACTIONS - 1}")
        return action.mask
    if action.box < 0:
        raise ValueError(f"{action} has no action id: boxes are counted from 0")
    if action.strike:
        raise ValueError(f"{action} is a deliberate strike, which has no action id")
    return NUM_KEEP_ACTIONS + action.box


def action_of(identifier: int, num_boxes: int) -> Action:
    """Return the action with that id.

    Raises:
        ValueError: There is no such id.
    """
    if not 0 <= identifier < num_actions(num_boxes):
        raise ValueError(f"action {identifier} is not from 0 to {num_actions(num_boxes) - 1}")
    if identifier < NUM_KEEP_ACTIONS:
        return Keep(identifier)
    return Close(identifier - NUM_KEEP_ACTIONS)


def action_text(identifier: int, dice: Dice, boxes: Sequence[Box], points: int | None = None) -> str:
    """Return an action in the identifiers of the code, as files and tables for programs have it.

    What a person is shown, in a language and with a dice skin, is in ``generala_env.envs.board``.

    Args:
        identifier: The action id.
        dice: The five dice on the table, ascending.
        boxes: The boxes of the variant.
        points: What closing the box pays, where that is to be told: none is a strike.

    Returns:
        ``keep 5 5``, ``keep nothing``, ``close full``, ``close full for 30`` or ``strike full``.

    Raises:
        ValueError: There is no such id.
    """
    action = action_of(identifier, len(boxes))
    if isinstance(action, Keep):
        return f"keep {' '.join(map(str, select(dice, action.mask))) or 'nothing'}"
    box = boxes[action.box].value
    if points is None:
        return f"close {box}"
    return f"close {box} for {points}" if points else f"strike {box}"
