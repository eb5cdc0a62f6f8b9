"""Following any policy through a turn: what it is asked, and where its play leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from generala_env.compiling import kernel
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.answers import (
    ROUNDING,
    AnswerError,
    checked_actions,
    checked_probabilities,
    decision_text,
    name_of,
)
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROWS_PER_TURN,
    throw_probabilities_after,
)
from generala_env.solver.turn import KEEPS_OF_THROW

STATES_AT_ONCE: Final = 32_768
"""How many decisions a policy is asked about in one call, about."""

REPEATED_AT_ONCE: Final = 64
"""How many decisions of every batch are asked about again."""

MOST_MOVED_BY_ROUNDING: Final = 0.02
"""The share of repeated answers that may be others in a batch of another size: near ties."""

SAME_PROBABILITY: Final = 1e-2
"""Probabilities as near as this are the same in batches of other sizes: low precision is not more exact."""

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


@lru_cache(maxsize=16)
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
def _throw_dice(throws: TurnThrows, keep_mass: NDArray[np.float64], mass: NDArray[np.float64]) -> None:
    for row in range(keep_mass.shape[0]):
        for keep in range(keep_mass.shape[1]):
            if keep_mass[row, keep] == 0.0:
                continue
            for entry in range(throws.start[keep], throws.start[keep + 1]):
                mass[row, throws.reached[entry]] += keep_mass[row, keep] * throws.probability[entry]


def throw_dice(throws: TurnThrows, keep_mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mass of keeps, (cards, 210), spread over the throws after them, (cards, P)."""
    mass = np.zeros((len(keep_mass), len(throws.throw)))
    _throw_dice(throws, keep_mass, mass)
    return mass


class AskedPolicy:
    """A policy while it is asked: its answers are checked, and some are asked for again.

    What is computed from a policy holds only for one that is a function of the decision. So of every batch
    a few decisions, in another order, are asked about twice more: the same call must give the same answer,
    and the answer must be the one that the whole batch got.
    """

    def __init__(self, policy: Policy, compiled: CompiledVariant) -> None:
        """Watch a policy.

        Args:
            policy: Who decides; called by its ``name`` or ``__name__`` where it is refused.
            compiled: The tables of the variant.
        """
        self.policy = policy
        self.compiled = compiled
        self._order = np.random.default_rng(0)
        self._num_repeated = 0
        self._num_moved = 0

    def answer(
        self, batch: TurnBatch, masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Ask about a batch of decisions.

        Args:
            batch: The decisions.
            masks: (batch, num_actions) bool.

        Returns:
            Actions (batch,) or probabilities (batch, num_actions), the other of them empty.

        Raises:
            AnswerError: An answer has a wrong shape, is no probability, is not legal, or is another when it
                is asked for again.
        """
        answer = self._checked(batch, masks)
        self._repeat(batch, masks, answer)
        if answer.ndim == 1:
            return answer, np.empty((len(masks), 0))
        return np.empty(0, dtype=np.int64), answer

    def _checked(self, batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[Any]:
        answer = np.asarray(self.policy(batch, masks.copy()))
        if answer.ndim == 1:
            return checked_actions(self.policy, answer, self.compiled, batch, masks)
        return checked_probabilities(self.policy, answer, self.compiled, batch, masks)

    def _repeat(self, batch: TurnBatch, masks: NDArray[np.bool_], answer: NDArray[Any]) -> None:
        rows = self._order.permutation(len(masks))[:REPEATED_AT_ONCE]
        part = TurnBatch(*(column[rows] for column in batch))
        first, second = (self._checked(part, masks[rows]) for _ in range(2))
        changed = _differ(first, second, ROUNDING)
        if changed.any():
            raise self._refusal(part, int(changed.argmax()), "asked twice in the same way")
        moved = _differ(answer[rows], first, SAME_PROBABILITY)
        self._num_repeated += len(rows)
        self._num_moved += int(moved.sum())
        # Sums in single precision depend on the size of a batch, so that a near tie may fall either way.
        if self._num_moved > MOST_MOVED_BY_ROUNDING * (self._num_repeated + 4 * REPEATED_AT_ONCE):
            raise self._refusal(part, int(moved.argmax()), "asked in another batch")

    def _refusal(self, batch: TurnBatch, row: int, how: str) -> AnswerError:
        return AnswerError(
            f"{name_of(self.policy)}: its answer must depend on nothing but the decision, and {how} it gave "
            f"another one in {decision_text(self.compiled, batch, row)}; an agent that draws its actions is "
            "evaluated by its action_probabilities (always_samples, or deterministic=False)"
        )


def _differ(first: NDArray[Any], second: NDArray[Any], within: float) -> NDArray[np.bool_]:
    """Return which rows of two answers are not the same, probabilities within so much, (batch,) bool."""
    if first.shape != second.shape:
        return np.ones(len(first), dtype=bool)
    if first.ndim == 1:
        return np.asarray(first != second)
    return np.asarray(np.abs(first - second).max(axis=1) > within)


class Decisions(NamedTuple):
    """All decisions at one throw number that a policy meets on some cards; ``n`` rows.

    Attributes:
        throws: The throws there are, ``P`` of them.
        won: (cards, P) float64, the probability of throws that win at once, so that nothing is decided.
        is_won: (cards, P) bool, which throws those are.
        batch: The decisions.
        local: (n,) int64, the place of each card among the cards.
        place: (n,) int64, the place of each throw in ``throws``.
        masks: (n, num_actions) bool, the legal actions.
        mass: (n,) float64, the probability of each decision within a turn on its card.
        actions: (n,) int64, what the policy does; empty if it gives probabilities.
        probabilities: (n, num_actions) float64, or (n, 0).
    """

    throws: TurnThrows
    won: NDArray[np.float64]
    is_won: NDArray[np.bool_]
    batch: TurnBatch
    local: NDArray[np.int64]
    place: NDArray[np.int64]
    masks: NDArray[np.bool_]
    mass: NDArray[np.float64]
    actions: NDArray[np.int64]
    probabilities: NDArray[np.float64]


@kernel()
def _move(decisions: Decisions, keep_mass: NDArray[np.float64], closing: NDArray[np.float64]) -> None:
    """Move the mass of each row to the keeps (cards, 210) and closings (cards, B, 2, 252) it chooses."""
    batch, local, probabilities = decisions.batch, decisions.local, decisions.probabilities
    is_random = probabilities.shape[1] > 0
    num_actions = NUM_KEEP_ACTIONS + closing.shape[1]
    for row in range(len(local)):
        throw, served = batch.throw[row], np.int64(batch.served[row])
        first, last = (0, num_actions) if is_random else (decisions.actions[row], decisions.actions[row] + 1)
        for action in range(first, last):
            moved = decisions.mass[row] * (probabilities[row, action] if is_random else 1.0)
            if action < NUM_KEEP_ACTIONS:
                keep_mass[local[row], KEEPS_OF_THROW[throw, action]] += moved
            else:
                closing[local[row], action - NUM_KEEP_ACTIONS, served, throw] += moved


def follow_policy(
    asked: AskedPolicy,
    cards: NDArray[np.int64],
    closing: NDArray[np.float64],
    *,
    wins_at_once: bool = True,
) -> Iterator[Decisions]:
    """Follow a policy through a turn on each of some cards, throw by throw.

    Args:
        asked: The policy: asked about every decision that it can meet in the turn.
        cards: (cards,) their indices.
        closing: (cards, B, 2, 252) float64, added to: how probable it is to close each box, unserved and
            served, with each throw. Complete when all decisions have been taken.
        wins_at_once: Whether a served Generala that wins ends the turn.

    Yields:
        What was asked and answered at each throw number; no more once every turn has ended.

    Raises:
        AnswerError: An answer of the policy is not legal, or is none; see ``AskedPolicy.answer``.
    """
    compiled = asked.compiled
    keep_mass = np.zeros((len(cards), NUM_PARTIAL_KEEPS))
    keep_mass[:, EMPTY_KEEP] = 1.0
    for number in range(1, THROWS_PER_TURN + 1):
        throws = throws_at(compiled, number)
        mass = throw_dice(throws, keep_mass)
        keep_mass = np.zeros_like(keep_mass)
        wins = (throws.served == 1) & IS_FIVE_EQUAL[throws.throw] & wins_at_once
        is_won = compiled.instant_win[cards][:, None] & wins
        won = mass * is_won
        mass[is_won] = 0.0
        local, place = np.nonzero(mass)
        if not len(local):  # Other throws stand beside one that wins: so nothing was won either.
            return
        batch = TurnBatch(
            cards[local],
            throws.throw[place],
            np.full(len(local), number),
            throws.served[place].astype(np.bool_),
            throws.kept[place],
        )
        masks = compiled.action_masks(batch)
        actions, probabilities = asked.answer(batch, masks)
        decisions = Decisions(
            throws,
            won,
            is_won,
            batch,
            local,
            place,
            masks,
            mass[local, place],
            actions,
            probabilities,
        )
        _move(decisions, keep_mass, closing)
        yield decisions


def cards_at_once(compiled: CompiledVariant, states_at_once: int) -> int:
    """Return on how many cards to follow a policy so that it is asked about so many decisions in a call."""
    most = max(len(throws_at(compiled, number).throw) for number in range(1, THROWS_PER_TURN + 1))
    return max(1, states_at_once // most)


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
        AnswerError: An answer of the policy is not legal, or is none; see ``AskedPolicy.answer``.
    """
    asked = AskedPolicy(policy, compiled)
    cards = np.flatnonzero(compiled.num_open > 0)
    at_once = cards_at_once(compiled, states_at_once)
    wins = np.zeros(compiled.num_cards)
    found: list[NDArray[np.int64]] = []
    shares: list[NDArray[np.float64]] = []
    with tqdm(
        total=len(cards), unit="card", desc=progress, disable=True if progress is None else None, leave=False
    ) as bar:
        for first in range(0, len(cards), at_once):
            chunk = cards[first : first + at_once]
            closing = np.zeros((len(chunk), compiled.num_boxes, 2, NUM_THROWS))
            for decisions in follow_policy(asked, chunk, closing):
                wins[chunk] += decisions.won.sum(axis=1)
            local, box, served, throw = np.nonzero(closing)
            where = (chunk[local], box, served, throw)
            points = compiled.closing_points(*where).astype(np.int64)
            after = compiled.next_card(*where).astype(np.int64)
            rows, row = np.unique(np.stack([chunk[local], after, points]), axis=1, return_inverse=True)
            found.append(rows)
            weights = closing[local, box, served, throw]
            shares.append(np.bincount(row.reshape(-1), weights=weights).astype(np.float64))
            bar.update(len(chunk))
    card, after, points = np.concatenate(found, axis=1)
    start = np.searchsorted(card, np.arange(compiled.num_cards + 1))
    return TurnOutcomes(wins, start, after, points, np.concatenate(shares))
