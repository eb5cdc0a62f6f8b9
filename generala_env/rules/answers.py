"""What an agent answers, checked: legal actions, or an error that names agent, decision and action.

Whoever asks agents (environments, evaluations, matches, tables) does it through these, so that an agent
that ignores its masks is never given a score.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.actions import action_text
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.dice import KEEPS, THROWS
from generala_env.rules.game import IllegalActionError

ROUNDING: Final = 1e-6
"""A probability up to this on an illegal action is rounding, and is taken away."""


class AnswerError(IllegalActionError):
    """An agent's answer that breaks the contract: no action, none that is legal, or none it would repeat."""


def name_of(agent: object) -> str:
    """Return what an agent, or a function that decides, is called."""
    for attribute in ("name", "__name__"):
        name = getattr(agent, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(agent).__name__


def decision_text(compiled: CompiledVariant, batch: TurnBatch, row: int) -> str:
    """Return one decision of a batch in words: variant, dice, throw and open boxes."""
    opened = int(compiled.card_open[batch.card[row]])
    boxes = [box.value for index, box in enumerate(compiled.variant.boxes) if opened >> index & 1]
    parts = [
        compiled.variant.name,
        f"dice {' '.join(map(str, THROWS[int(batch.throw[row])]))}",
        f"throw {int(batch.throw_number[row])}",
        f"open {' '.join(boxes) or 'none'}",
        *compiled.card(int(batch.card[row])).remembered(),
    ]
    kept = KEEPS[int(batch.kept[row])]
    if compiled.variant.is_locked and kept:
        parts.append(f"locked {' '.join(map(str, kept))}")
    return ", ".join(parts)


def _named(compiled: CompiledVariant, throw: int, action: int) -> str:
    """Return an action with its id and in words, also one that does not exist."""
    if not 0 <= action < compiled.num_actions:
        return f"{action} (there is none of that number; they go to {compiled.num_actions - 1})"
    return f"{action} ({action_text(action, THROWS[throw], compiled.variant.boxes)})"


def _refusal(
    agent: object,
    compiled: CompiledVariant,
    batch: TurnBatch,
    masks: NDArray[np.bool_],
    row: int,
    action: int,
) -> AnswerError:
    return AnswerError(
        f"{name_of(agent)}: action {_named(compiled, int(batch.throw[row]), action)} is not legal in "
        f"{decision_text(compiled, batch, row)}; legal: {np.flatnonzero(masks[row]).tolist()}"
    )


def checked_actions(
    agent: object, answer: Any, compiled: CompiledVariant, batch: TurnBatch, masks: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return an agent's actions if there is a legal one for each decision.

    Args:
        agent: Who answered; it is named by its ``name``.
        answer: What it answered.
        compiled: The tables of the variant.
        batch: What it was asked.
        masks: (batch, num_actions) bool, what was legal.

    Returns:
        (batch,) int64.

    Raises:
        AnswerError: The answer is not made of integers of shape ``(batch,)``, or an action is not legal.
    """
    actions = np.asarray(answer)
    if actions.shape != (len(masks),) or not np.issubdtype(actions.dtype, np.integer):
        raise AnswerError(
            f"{name_of(agent)}: {actions.dtype} of shape {actions.shape} are not ({len(masks)},) actions, "
            "one integer for each decision"
        )
    within = (actions >= 0) & (actions < masks.shape[1])
    legal = within & masks[np.arange(len(masks)), np.where(within, actions, 0)]
    if not legal.all():
        row = int(legal.argmin())
        raise _refusal(agent, compiled, batch, masks, row, int(actions[row]))
    return actions.astype(np.int64, copy=False)


def checked_probabilities(
    agent: object, answer: Any, compiled: CompiledVariant, batch: TurnBatch, masks: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return an agent's probabilities, made to sum to 1 exactly, if they are such and on legal actions.

    Args:
        agent: Who answered; it is named by its ``name``.
        answer: What it answered.
        compiled: The tables of the variant.
        batch: What it was asked.
        masks: (batch, num_actions) bool, what was legal.

    Returns:
        (batch, num_actions) float64, rows summing to 1, zero where masked.

    Raises:
        AnswerError: The shape is wrong, the rows are no probabilities, or one is on an illegal action.
    """
    given = np.asarray(answer)
    if given.shape != masks.shape:
        raise AnswerError(f"{name_of(agent)}: probabilities of shape {given.shape} are not {masks.shape}")
    given = given.astype(np.float64)
    # Single precision and a soft-max over 40 actions stay far within this.
    if not (given >= 0).all() or not np.allclose(given.sum(axis=1), 1.0, atol=1e-3):
        raise AnswerError(
            f"{name_of(agent)}: its answer is not made of probabilities: rows must sum to 1, none below 0"
        )
    illegal = np.where(masks, 0.0, given)
    if (illegal > ROUNDING).any():
        row, action = divmod(int(illegal.argmax()), masks.shape[1])
        raise _refusal(agent, compiled, batch, masks, row, action)
    given = np.where(masks, given, 0.0)
    return np.asarray(given / given.sum(axis=1, keepdims=True))
