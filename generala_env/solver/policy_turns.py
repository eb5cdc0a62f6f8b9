"""Following any policy through a turn: what it is asked, and where its play leads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from generala_env.compiling import kernel
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROWS_PER_TURN,
    throw_probabilities_after,
)

STATES_AT_ONCE: Final = 32_768
"""How many decisions a policy is asked about in one call, about."""

Policy = Callable[[TurnBatch, NDArray[np.bool_]], NDArray[Any]]
"""From decisions and their masks, (batch, num_actions) bool, to actions, (batch,) integer, or to
the probabilities of the actions, (batch, num_actions) float."""


class TurnThrows(NamedTuple):
    """The throws that a card can meet at one throw number, and how keeps lead to them.

    Attributes:
        throw: (P,) int64, the dice on the table.
        kept: (P,) int64, the dice locked; 0 where dice are free.
        served: (P,) int64, whether closing counts as served.
        start: (211,) int64, where each keep's entries start in the following two.
        reached: (4116,) int64, throws a keep leads to, as rows of the above.
        probability: (4116,) float64.
    """

    throw: NDArray[np.int64]
    kept: NDArray[np.int64]
    served: NDArray[np.int64]
    start: NDArray[np.int64]
    reached: NDArray[np.int64]
    probability: NDArray[np.float64]


@cache
def _transitions() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return every keep of up to four dice, each throw after it, and its probability; (4116,) each."""
    table = np.array([throw_probabilities_after(keep) for keep in range(NUM_PARTIAL_KEEPS)])
    keep, throw = np.nonzero(table)
    return keep, throw, table[keep, throw]


def throws_at(compiled: CompiledVariant, throw_number: int) -> TurnThrows:
    """Return the throws that a card can meet at a throw number, from 1."""
    keep, throw, probability = _transitions()
    served = compiled.is_served[throw_number - 1, (keep == EMPTY_KEEP).astype(np.intp)].astype(np.int64)
    # What tells two keeps apart once the dice have fallen: the locked dice, or only the service.
    locked = keep if compiled.variant.is_locked else np.zeros_like(keep)
    states, reached = np.unique(np.stack([served, locked, throw]), axis=1, return_inverse=True)
    start = np.searchsorted(keep, np.arange(NUM_PARTIAL_KEEPS + 1))
    return TurnThrows(
        states[2].copy(), states[1].copy(), states[0].copy(), start, reached.reshape(-1), probability
    )


@kernel()
def throw_dice(throws: TurnThrows, keep_mass: NDArray[np.float64], mass: NDArray[np.float64]) -> None:
    """Spread mass (cards, 210) on keeps over the throws after them, into (cards, P)."""
    for row in range(keep_mass.shape[0]):
        for keep in range(keep_mass.shape[1]):
            if keep_mass[row, keep] == 0.0:
                continue
            for entry in range(throws.start[keep], throws.start[keep + 1]):
                mass[row, throws.reached[entry]] += keep_mass[row, keep] * throws.probability[entry]


def answer_of(
    policy: Policy, batch: TurnBatch, masks: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Ask a policy about a batch of decisions.

    Returns:
        Actions (batch,) or probabilities (batch, num_actions), the other of them empty, and how many
        answers were not legal; the lowest legal action takes their place.

    Raises:
        ValueError: The answers have a wrong shape, or are no probabilities.
    """
    answer = np.asarray(policy(batch, masks))
    rows = np.arange(len(masks))
    lowest = masks.argmax(axis=1)
    if answer.ndim == 1:
        if answer.shape != rows.shape or not np.issubdtype(answer.dtype, np.integer):
            raise ValueError(f"policy: {answer.dtype} of shape {answer.shape} are not ({len(rows)},) actions")
        within = (answer >= 0) & (answer < masks.shape[1])
        legal = within & masks[rows, np.where(within, answer, 0)]
        actions = np.where(legal, answer, lowest).astype(np.int64)
        return actions, np.empty((len(rows), 0)), int((~legal).sum())
    if answer.shape != masks.shape:
        raise ValueError(f"policy: probabilities of shape {answer.shape} are not {masks.shape}")
    answer = answer.astype(np.float64)
    total = answer.sum(axis=1, keepdims=True)
    # Single precision and a soft-max over 40 actions stay far within this.
    if not (answer >= 0).all() or not np.allclose(total, 1.0, atol=1e-3):
        raise ValueError("policy: its answer is not made of probabilities: rows must sum to 1")
    answer /= total
    illegal = np.where(masks, 0.0, answer).sum(axis=1)
    answer = np.where(masks, answer, 0.0)
    answer[rows, lowest] += illegal
    return np.empty(0, dtype=np.int64), answer, int((illegal > 0).sum())


class TurnOutcomes(NamedTuple):
    """How the turns of a policy end, by card.

    Attributes:
        wins: (C,) float64, the probability of an instant win within the turn.
        start: (C + 1,) int64, where the outcomes of each card start in the following.
        after: (N,) int64, the card after the turn; ascending, and then by points, within a card.
        points: (N,) int64, what the closed box paid.
        probability: (N,) float64.
    """

    wins: NDArray[np.float64]
    start: NDArray[np.int64]
    after: NDArray[np.int64]
    points: NDArray[np.int64]
    probability: NDArray[np.float64]

    def of(self, card: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return cards after the turn, points and probabilities of one card."""
        where = slice(self.start[card], self.start[card + 1])
        return self.after[where], self.points[where], self.probability[where]


@kernel()
def _follow(
    local: NDArray[np.int64],
    throw: NDArray[np.int64],
    served: NDArray[np.int64],
    mass: NDArray[np.float64],
    actions: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    keep_of_mask: NDArray[np.int16],
    keep_mass: NDArray[np.float64],
    closing: NDArray[np.float64],
) -> None:
    """Move the mass of each row to the keeps (cards, 210) and closings (cards, B, 2, 252) it chooses."""
    is_random = probabilities.shape[1] > 0
    num_actions = NUM_KEEP_ACTIONS + closing.shape[1]
    for row in range(len(local)):
        first, last = (0, num_actions) if is_random else (actions[row], actions[row] + 1)
        for action in range(first, last):
            moved = mass[row] * (probabilities[row, action] if is_random else 1.0)
            if action < NUM_KEEP_ACTIONS:
                keep_mass[local[row], keep_of_mask[throw[row], action]] += moved
            else:
                closing[local[row], action - NUM_KEEP_ACTIONS, served[row], throw[row]] += moved


def turn_outcomes(
    compiled: CompiledVariant,
    policy: Policy,
    *,
    states_at_once: int = STATES_AT_ONCE,
    progress: str | None = None,
) -> TurnOutcomes:
    """Follow a policy through a turn on every card.

    Args:
        compiled: The tables of the variant.
        policy: Asked once about every decision that it can meet on any card; its answer must depend on
            nothing but the decision.
        states_at_once: About how many decisions to ask about in one call.
        progress: The label of a progress bar; ``None`` shows none.

    Raises:
        ValueError: The policy's answers have a wrong shape, or are no probabilities.
    """
    throws = [throws_at(compiled, number) for number in range(1, THROWS_PER_TURN + 1)]
    cards = np.flatnonzero(compiled.num_open > 0)
    at_once = max(1, states_at_once // max(len(one.throw) for one in throws))
    wins = np.zeros(compiled.num_cards)
    found: list[NDArray[np.int64]] = []
    shares: list[NDArray[np.float64]] = []
    with tqdm(total=len(cards), unit="card", desc=progress, disable=progress is None, leave=False) as bar:
        for first in range(0, len(cards), at_once):
            chunk = cards[first : first + at_once]
            closing = np.zeros((len(chunk), compiled.num_boxes, 2, NUM_THROWS))
            keep_mass = np.zeros((len(chunk), NUM_PARTIAL_KEEPS))
            keep_mass[:, EMPTY_KEEP] = 1.0
            for number, at in enumerate(throws, start=1):
                mass = np.zeros((len(chunk), len(at.throw)))
                throw_dice(at, keep_mass, mass)
                keep_mass = np.zeros_like(keep_mass)
                is_won = compiled.instant_win[chunk][:, None] & ((at.served == 1) & IS_FIVE_EQUAL[at.throw])
                wins[chunk] += (mass * is_won).sum(axis=1)
                mass[is_won] = 0.0
                local, place = np.nonzero(mass)
                if not len(local):
                    break
                batch = TurnBatch(
                    chunk[local],
                    at.throw[place],
                    np.full(len(local), number),
                    at.served[place].astype(np.bool_),
                    at.kept[place],
                )
                actions, probabilities, _ = answer_of(policy, batch, compiled.action_masks(batch))
                _follow(
                    local,
                    batch.throw,
                    at.served[place],
                    mass[local, place],
                    actions,
                    probabilities,
                    KEEP_OF_MASK,
                    keep_mass,
                    closing,
                )
            local, box, served, throw = np.nonzero(closing)
            status = compiled.card_status[chunk[local]]
            points = compiled.points[status, box, served, throw].astype(np.int64)
            after = compiled.next_card(chunk[local], box, served, throw).astype(np.int64)
            rows, where = np.unique(np.stack([chunk[local], after, points]), axis=1, return_inverse=True)
            found.append(rows)
            weights = closing[local, box, served, throw]
            shares.append(np.bincount(where.reshape(-1), weights=weights).astype(np.float64))
            bar.update(len(chunk))
    card, after, points = np.concatenate(found, axis=1)
    start = np.searchsorted(card, np.arange(compiled.num_cards + 1))
    return TurnOutcomes(wins, start, after, points, np.concatenate(shares))
