"""The exact value of a given policy of the one-player game, and where it loses points.

One forward sweep over the reachable cards, from the empty one on. On each card the policy is
asked about every decision it can meet there, throw by throw, so that the probability of every
decision is known; what a turn closes, and with how many points, carries the distribution of the
points so far to the next cards. Nothing is sampled.

Regret. With V* and Q* of optimal play and d the probability that the policy's own play meets a
decision,

    V*(start) - V_pi(start) = sum over s, a of d(s) pi(a|s) (V*(s) - Q*(s, a)),

the performance difference lemma (Kakade and Langford, "Approximately Optimal Approximate
Reinforcement Learning", ICML 2002, lemma 6.1) read from the optimal policy's side. Every term is
at least 0 and belongs to one decision, so the terms can be added up by throw, round, box or kind.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from generala_env.compiling import kernel
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CompiledVariant, InstantWin, TurnBatch
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROWS_PER_TURN,
)
from generala_env.solver.policy_turns import STATES_AT_ONCE, AskedPolicy, Policy, throw_dice, throws_at
from generala_env.solver.solo import ActionValues, SoloSolution, solve_solo

MISTAKE_KINDS: Final = ("wrong_keep", "closed_early", "wrong_box", "rolled_on")
"""Kept the wrong dice; closed a box where keeping was right; closed the wrong box; kept dice
where closing was right."""

DEFAULT_BLUNDERS: Final = 20

GRAVE_FREQUENCY: Final = 1e-4
"""A decision met in fewer games than this is no candidate for the gravest mistakes."""


@dataclass(frozen=True)
class Blunder:
    """A decision that costs the policy points.

    Attributes:
        card: The index of the card.
        throw: The index of the dice on the table in ``THROWS``.
        throw_number: Which throw of the turn, 1 to 3.
        served: Whether closing a box now counts as served.
        kept: The index in ``KEEPS`` of the locked dice; 0 where dice are free.
        action: What the policy does; of a random policy, the action that costs it most.
        best_action: What is right.
        regret: Points lost by it whenever it is done, V*(s) - Q*(s, a).
        frequency: How often it is done, in times per game.
    """

    card: int
    throw: int
    throw_number: int
    served: bool
    kept: int
    action: int
    best_action: int
    regret: float
    frequency: float

    @property
    def cost(self) -> float:
        """Points lost by it in an average game."""
        return self.regret * self.frequency


@dataclass(frozen=True, eq=False)
class ExactEvaluation:
    """What a policy scores, exactly, and where it loses points; ``B`` boxes, ``C`` cards.

    Points are expected points of a game, unless said otherwise; regret is measured against
    optimal play of the same game, and each of the tables of regret adds up to ``regret``.

    Attributes:
        compiled: The tables of the variant.
        instant_win_points: What an instant win pays; ``None`` when the game plays on.
        expected_score: The mean final score.
        std_score: The standard deviation of the final score.
        optimal_score: The mean final score of optimal play.
        scores: (N,) float64, ascending; the final scores that occur.
        score_probabilities: (N,) float64; how probable each is.
        box_points: (B,) float64; points of closing each box.
        box_scored: (B,) float64; probability that each box is closed with points.
        box_struck: (B,) float64; probability that each box is closed with 0 points. The rest
            is the probability that an instant win comes before.
        instant_win_probability: The probability of ending with an instant win.
        regret_by_throw: (3,) float64; by which throw lies on the table.
        regret_by_round: (B,) float64; by how many boxes were closed before.
        regret_by_kind: (4,) float64; by ``MISTAKE_KINDS``.
        mistakes_by_kind: (4,) float64; how often each kind happens in a game.
        regret_by_open: (B, 2) float64; for each box, lost while it was closed and while it was
            open. Each row adds up to ``regret``.
        regret_by_box: (B + 1, B) float64; by the box that the turn ended up closing (the last
            row: by an instant win) and by round.
        blunders: The decisions that cost most per game.
        gravest: The decisions that cost most when they happen, among those that happen in at
            least one game of 10,000.
        num_states: How many decisions the policy was asked about.
        card_visits: (C,) float64; the probability that play comes to each card.
        card_values: (C,) float64; points still to come on each card; NaN where play never comes.
    """

    compiled: CompiledVariant
    instant_win_points: float | None
    expected_score: float
    std_score: float
    optimal_score: float
    scores: NDArray[np.float64]
    score_probabilities: NDArray[np.float64]
    box_points: NDArray[np.float64]
    box_scored: NDArray[np.float64]
    box_struck: NDArray[np.float64]
    instant_win_probability: float
    regret_by_throw: NDArray[np.float64]
    regret_by_round: NDArray[np.float64]
    regret_by_kind: NDArray[np.float64]
    mistakes_by_kind: NDArray[np.float64]
    regret_by_open: NDArray[np.float64]
    regret_by_box: NDArray[np.float64]
    blunders: tuple[Blunder, ...]
    gravest: tuple[Blunder, ...]
    num_states: int
    card_visits: NDArray[np.float64]
    card_values: NDArray[np.float64]

    @property
    def optimality(self) -> float:
        """The expected score as a share of the optimal one."""
        return self.expected_score / self.optimal_score

    @property
    def regret(self) -> float:
        """Points lost to optimal play: the sum over all decisions."""
        return math.fsum(self.regret_by_throw)

    def quantile(self, probability: float) -> float:
        """Return the lowest score that at least this share of the games does not exceed."""
        reached = np.searchsorted(np.cumsum(self.score_probabilities), probability - 1e-12)
        return float(self.scores[min(int(reached), len(self.scores) - 1)])


class _Tables(NamedTuple):
    """What the compiled loops read; see ``CompiledVariant`` and ``ActionValues``."""

    card_open: NDArray[np.uint16]
    card_status: NDArray[np.uint8]
    card_index: NDArray[np.int32]
    card_class: NDArray[np.int32]
    points: NDArray[np.int32]
    next_status: NDArray[np.uint8]
    keep_of_mask: NDArray[np.int16]
    class_values: NDArray[np.float64]
    class_keep_values: NDArray[np.float64]


def _tables_of(values: ActionValues) -> _Tables:
    compiled = values.compiled
    return _Tables(
        compiled.card_open,
        compiled.card_status,
        compiled.card_index,
        compiled.card_class,
        compiled.points,
        compiled.next_status,
        KEEP_OF_MASK,
        values.class_values,
        values.class_keep_values,
    )


@kernel()
def _price_actions(
    tables: _Tables,
    card: int,
    throw: int,
    throw_number: int,
    served: int,
    mask: NDArray[np.bool_],
    priced: NDArray[np.float64],
) -> int:
    """Write the value of every legal action, ``-inf`` elsewhere, and return the best one."""
    group = tables.card_class[card]
    status = tables.card_status[card]
    best = -1
    for action in range(len(mask)):
        priced[action] = -np.inf
        if not mask[action]:
            continue
        if action < NUM_KEEP_ACTIONS:
            kept = tables.keep_of_mask[throw, action]
            priced[action] = tables.class_keep_values[group, throw_number - 1, kept]
        else:
            box = action - NUM_KEEP_ACTIONS
            after = tables.next_status[status, box, served, throw]
            card_after = tables.card_index[tables.card_open[card] & ~(1 << box), after]
            points = tables.points[status, box, served, throw]
            priced[action] = points + tables.class_values[tables.card_class[card_after]]
        if best < 0 or priced[action] > priced[best]:
            best = action
    return best


@kernel()
def _price_batch(
    tables: _Tables,
    card: NDArray[np.int64],
    throw: NDArray[np.int64],
    throw_number: NDArray[np.int64],
    served: NDArray[np.int64],
    masks: NDArray[np.bool_],
    actions: NDArray[np.int64],
    best_actions: NDArray[np.int64],
    lost: NDArray[np.float64],
) -> None:
    """Write the best action of every state, and the points that ``actions`` lose."""
    priced = np.empty(masks.shape[1])
    for row in range(len(card)):
        best = _price_actions(
            tables, card[row], throw[row], throw_number[row], served[row], masks[row], priced
        )
        best_actions[row] = best
        lost[row] = priced[best] - priced[actions[row]]


def action_regrets(
    values: ActionValues, batch: TurnBatch, action_masks: NDArray[np.bool_], actions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the points that actions lose to the best ones, V(s) - Q(s, a).

    Args:
        values: The values to measure with, such as the optimal ones.
        batch: The states.
        action_masks: (batch, num_actions) bool.
        actions: (batch,) int64, legal.

    Returns:
        (batch,) float64, at least 0.
    """
    return _priced(values, batch, action_masks, np.asarray(actions, dtype=np.int64))[1]


def best_actions(
    values: ActionValues, batch: TurnBatch, action_masks: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the action of highest value in every state, the lowest id among equals; (batch,) int64."""
    return _priced(values, batch, action_masks, np.zeros(len(batch.card), dtype=np.int64))[0]


def _priced(
    values: ActionValues, batch: TurnBatch, action_masks: NDArray[np.bool_], actions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    best = np.empty(len(batch.card), dtype=np.int64)
    lost = np.empty(len(batch.card))
    _price_batch(
        _tables_of(values),
        np.asarray(batch.card, dtype=np.int64),
        np.asarray(batch.throw, dtype=np.int64),
        np.asarray(batch.throw_number, dtype=np.int64),
        np.asarray(batch.served, dtype=np.int64),
        np.asarray(action_masks, dtype=np.bool_),
        actions,
        best,
        lost,
    )
    return best, lost


class _Lost(NamedTuple):
    """Accumulators of one round's regret; see ``ExactEvaluation``."""

    by_throw: NDArray[np.float64]
    by_kind: NDArray[np.float64]
    mistakes: NDArray[np.float64]
    by_open: NDArray[np.float64]
    by_box: NDArray[np.float64]


class _Worst(NamedTuple):
    """The costliest action of each row."""

    action: NDArray[np.int64]
    best_action: NDArray[np.int64]
    regret: NDArray[np.float64]
    probability: NDArray[np.float64]


@kernel()
def _decide(
    tables: _Tables,
    card: NDArray[np.int64],
    local: NDArray[np.int64],
    throw: NDArray[np.int64],
    throw_number: int,
    served: NDArray[np.int64],
    visits: NDArray[np.float64],
    mass: NDArray[np.float64],
    carried: NDArray[np.float64],
    masks: NDArray[np.bool_],
    actions: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    keep_mass: NDArray[np.float64],
    keep_carried: NDArray[np.float64],
    closing: NDArray[np.float64],
    lost: _Lost,
    worst: _Worst,
) -> None:
    """Play the policy in every row: move mass to keeps and closings, and note the regret.

    Args:
        tables: What actions lead to and what they are worth.
        card: (n,) the cards.
        local: (n,) their place among the cards of this chunk.
        throw: (n,) the dice.
        throw_number: 1 to 3.
        served: (n,) whether closing counts as served.
        visits: (n,) the probability that play comes to the card.
        mass: (n,) the probability of the row within a turn on its card.
        carried: (n,) the regret of earlier decisions of the turn, times the row's mass.
        masks: (n, A) bool.
        actions: (n,) the policy's actions; read if ``probabilities`` has no columns.
        probabilities: (n, A) or (n, 0).
        keep_mass: (cards, 210), added to.
        keep_carried: (cards, 210), added to; as ``carried``.
        closing: (cards, B, 2, 252), added to; mass of closing by served and throw.
        lost: Added to.
        worst: Written.
    """
    num_actions = masks.shape[1]
    num_boxes = num_actions - NUM_KEEP_ACTIONS
    is_random = probabilities.shape[1] > 0
    priced = np.empty(num_actions)
    for row in range(len(card)):
        best = _price_actions(tables, card[row], throw[row], throw_number, served[row], masks[row], priced)
        worst.action[row] = best
        worst.best_action[row] = best
        worst.regret[row] = 0.0
        worst.probability[row] = 0.0
        state_loss = 0.0
        first, last = (0, num_actions) if is_random else (actions[row], actions[row] + 1)
        for action in range(first, last):
            chosen = probabilities[row, action] if is_random else 1.0
            if chosen == 0.0:
                continue
            regret = priced[best] - priced[action]
            is_keep = action < NUM_KEEP_ACTIONS
            going_on = (carried[row] + mass[row] * regret) * chosen
            if is_keep:
                kept = tables.keep_of_mask[throw[row], action]
                keep_mass[local[row], kept] += mass[row] * chosen
                keep_carried[local[row], kept] += going_on
            else:
                box = action - NUM_KEEP_ACTIONS
                closing[local[row], box, served[row], throw[row]] += mass[row] * chosen
                lost.by_box[box] += visits[row] * going_on
            if regret > 0.0:
                weight = visits[row] * mass[row] * chosen
                kind = (0 if is_keep else 1) if best < NUM_KEEP_ACTIONS else (3 if is_keep else 2)
                lost.by_kind[kind] += weight * regret
                lost.mistakes[kind] += weight
                state_loss += weight * regret
                if chosen * regret > worst.probability[row] * worst.regret[row]:
                    worst.action[row] = action
                    worst.regret[row] = regret
                    worst.probability[row] = chosen
        if state_loss > 0.0:
            lost.by_throw[throw_number - 1] += state_loss
            for box in range(num_boxes):
                lost.by_open[box, tables.card_open[card[row]] >> box & 1] += state_loss


@kernel()
def _move_on(
    tables: _Tables,
    cards: NDArray[np.int64],
    closing: NDArray[np.float64],
    visits: NDArray[np.float64],
    so_far: NDArray[np.float64],
    highest: int,
    gained: NDArray[np.float64],
    box_points: NDArray[np.float64],
    box_scored: NDArray[np.float64],
    box_struck: NDArray[np.float64],
    outcome_card: NDArray[np.int64],
    outcome_after: NDArray[np.int64],
    outcome_points: NDArray[np.int64],
    outcome_probability: NDArray[np.float64],
) -> int:
    """Carry the distribution of points over the closings of a chunk's cards.

    Args:
        tables: What closings lead to.
        cards: (n,) the cards of the chunk.
        closing: (n, B, 2, 252) probability of each closing within a turn on the card.
        visits: (C,) added to.
        so_far: (C, points + 1), added to; the probability of each card with so many points.
        highest: The most points so far on any of the cards.
        gained: (S, points of a closing + 1) scratch, zero.
        box_points: (B,) added to, as the next two.
        box_scored: (B,).
        box_struck: (B,).
        outcome_card: (room,) written: a card,
        outcome_after: (room,) the card after it,
        outcome_points: (room,) the points on the way,
        outcome_probability: (room,) and the probability.

    Returns:
        How many outcomes were written.
    """
    num_outcomes = 0
    for row in range(len(cards)):
        card = cards[row]
        status = tables.card_status[card]
        for box in range(closing.shape[1]):
            for served in range(2):
                for throw in range(NUM_THROWS):
                    probability = closing[row, box, served, throw]
                    if probability > 0.0:
                        after = tables.next_status[status, box, served, throw]
                        gained[after, tables.points[status, box, served, throw]] += probability
            for after in range(gained.shape[0]):
                for points in range(gained.shape[1]):
                    probability = gained[after, points]
                    if probability == 0.0:
                        continue
                    gained[after, points] = 0.0
                    card_after = tables.card_index[tables.card_open[card] & ~(1 << box), after]
                    joint = visits[card] * probability
                    visits[card_after] += joint
                    box_points[box] += joint * points
                    if points > 0:
                        box_scored[box] += joint
                    else:
                        box_struck[box] += joint
                    for total in range(highest + 1):
                        so_far[card_after, total + points] += so_far[card, total] * probability
                    outcome_card[num_outcomes] = card
                    outcome_after[num_outcomes] = card_after
                    outcome_points[num_outcomes] = points
                    outcome_probability[num_outcomes] = probability
                    num_outcomes += 1
    return num_outcomes


@kernel()
def _induce_backward(
    card: NDArray[np.int64],
    after: NDArray[np.int64],
    points: NDArray[np.int64],
    probability: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Add to (C,) ``values`` what each outcome brings, the last card first."""
    for outcome in range(len(card) - 1, -1, -1):
        values[card[outcome]] += probability[outcome] * (points[outcome] + values[after[outcome]])


class _Leaders:
    """The blunders that rank highest under a key."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._heap: list[tuple[float, int, Blunder]] = []
        self._count = 0

    def floor(self) -> float:
        """The key below which nothing enters."""
        return self._heap[0][0] if len(self._heap) >= self.size else 0.0

    def add(self, key: float, blunder: Blunder) -> None:
        self._count += 1
        heapq.heappush(self._heap, (key, -self._count, blunder))
        if len(self._heap) > self.size:
            heapq.heappop(self._heap)

    def sorted(self) -> tuple[Blunder, ...]:
        return tuple(item[2] for item in sorted(self._heap, reverse=True))


class _Sweep:
    """The forward sweep: everything that is added to on the way."""

    def __init__(
        self, compiled: CompiledVariant, policy: Policy, solution: SoloSolution, num_blunders: int
    ) -> None:
        self.compiled = compiled
        self.policy = AskedPolicy(policy, compiled)
        self.solution = solution
        self.tables = _tables_of(solution)
        self.throws = [throws_at(compiled, number) for number in range(1, THROWS_PER_TURN + 1)]
        num_boxes, num_cards = compiled.num_boxes, compiled.num_cards
        self.visits = np.zeros(num_cards)
        self.visits[0] = 1.0
        # Widened as points come in: without an instant win, more than ``perfect_score`` can be made.
        self.so_far = np.zeros((num_cards, 1))
        self.so_far[0, 0] = 1.0
        self.won = np.zeros(1)
        self.win_probability = np.zeros(num_cards)
        self.box_points = np.zeros(num_boxes)
        self.box_scored = np.zeros(num_boxes)
        self.box_struck = np.zeros(num_boxes)
        self.regret_by_throw = np.zeros((num_boxes, THROWS_PER_TURN))
        self.regret_by_kind = np.zeros((num_boxes, len(MISTAKE_KINDS)))
        self.mistakes = np.zeros((num_boxes, len(MISTAKE_KINDS)))
        self.regret_by_open = np.zeros((num_boxes, num_boxes, 2))
        self.regret_by_box = np.zeros((num_boxes, num_boxes + 1))
        self.outcomes: list[tuple[NDArray[Any], ...]] = []
        self.blunders = _Leaders(num_blunders)
        self.gravest = _Leaders(num_blunders)
        self.num_states = 0

    def play_chunk(self, cards: NDArray[np.int64], round_index: int) -> None:
        """Play a turn on each of the cards, which have equally many open boxes."""
        compiled, tables = self.compiled, self.tables
        closing = np.zeros((len(cards), compiled.num_boxes, 2, NUM_THROWS))
        keep_mass = np.zeros((len(cards), NUM_PARTIAL_KEEPS))
        keep_mass[:, EMPTY_KEEP] = 1.0
        keep_carried = np.zeros_like(keep_mass)
        lost = _Lost(
            self.regret_by_throw[round_index],
            self.regret_by_kind[round_index],
            self.mistakes[round_index],
            self.regret_by_open[round_index],
            self.regret_by_box[round_index],
        )
        for throw_number, throws in enumerate(self.throws, start=1):
            mass = np.zeros((len(cards), len(throws.throw)))
            carried = np.zeros_like(mass)
            throw_dice(throws, keep_mass, mass)
            throw_dice(throws, keep_carried, carried)
            keep_mass = np.zeros_like(keep_mass)
            keep_carried = np.zeros_like(keep_mass)
            if self.solution.instant_win_points is not None:
                wins = (throws.served == 1) & IS_FIVE_EQUAL[throws.throw]
                wins = compiled.instant_win[cards][:, None] & wins
                self._win(cards, mass * wins)
                lost.by_box[-1] += (self.visits[cards] @ (carried * wins)).sum()
                mass[wins] = 0.0
            local, place = np.nonzero(mass)
            if not len(local):
                break
            batch = TurnBatch(
                cards[local],
                throws.throw[place],
                np.full(len(local), throw_number),
                throws.served[place].astype(np.bool_),
                throws.kept[place],
            )
            masks = compiled.action_masks(batch)
            actions, probabilities = self.policy.answer(batch, masks)
            self.num_states += len(masks)
            worst = _Worst(
                np.empty(len(local), dtype=np.int64),
                np.empty(len(local), dtype=np.int64),
                np.empty(len(local)),
                np.empty(len(local)),
            )
            row_mass = mass[local, place]
            _decide(
                tables,
                batch.card,
                local,
                batch.throw,
                throw_number,
                throws.served[place],
                self.visits[batch.card],
                row_mass,
                carried[local, place],
                masks,
                actions,
                probabilities,
                keep_mass,
                keep_carried,
                closing,
                lost,
                worst,
            )
            self._note_blunders(batch, worst, self.visits[batch.card] * row_mass * worst.probability)
        self._close(cards, closing)

    def _win(self, cards: NDArray[np.int64], mass: NDArray[np.float64]) -> None:
        share = mass.sum(axis=1)
        self.win_probability[cards] += share
        self.won += share @ self.so_far[cards]

    def _note_blunders(self, batch: TurnBatch, worst: _Worst, frequency: NDArray[np.float64]) -> None:
        for leaders, keys in (
            (self.blunders, worst.regret * frequency),
            (self.gravest, np.where(frequency >= GRAVE_FREQUENCY, worst.regret, 0.0)),
        ):
            num_best = min(leaders.size, len(keys))
            for row in np.argpartition(-keys, num_best - 1)[:num_best].tolist():
                if keys[row] > max(leaders.floor(), 1e-12):
                    leaders.add(
                        float(keys[row]),
                        Blunder(
                            card=int(batch.card[row]),
                            throw=int(batch.throw[row]),
                            throw_number=int(batch.throw_number[row]),
                            served=bool(batch.served[row]),
                            kept=int(batch.kept[row]),
                            action=int(worst.action[row]),
                            best_action=int(worst.best_action[row]),
                            regret=float(worst.regret[row]),
                            frequency=float(frequency[row]),
                        ),
                    )

    def _close(self, cards: NDArray[np.int64], closing: NDArray[np.float64]) -> None:
        most = int(self.compiled.points.max())
        highest = int(np.flatnonzero(self.so_far[cards].any(axis=0))[-1])
        missing = highest + most + 1 - self.so_far.shape[1]
        if missing > 0:
            self.so_far = np.pad(self.so_far, ((0, 0), (0, missing)))
            self.won = np.pad(self.won, (0, missing))
        room = len(cards) * self.compiled.num_boxes * len(self.compiled.statuses) * (most + 1)
        room = min(room, int(np.count_nonzero(closing)))
        written = (
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(room),
        )
        num_outcomes = _move_on(
            self.tables,
            cards,
            closing,
            self.visits,
            self.so_far,
            highest,
            np.zeros((len(self.compiled.statuses), most + 1)),
            self.box_points,
            self.box_scored,
            self.box_struck,
            *written,
        )
        self.outcomes.append(tuple(column[:num_outcomes].copy() for column in written))

    def card_values(self) -> NDArray[np.float64]:
        """Return the value of each card under the policy, by backward induction; (C,)."""
        win_points = self.solution.instant_win_points
        values = self.win_probability * (0.0 if win_points is None else win_points)
        columns = [np.concatenate(column) for column in zip(*self.outcomes, strict=True)]
        _induce_backward(columns[0], columns[1], columns[2], columns[3], values)
        values[self.visits == 0] = np.nan
        return values

    def score_distribution(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the final scores that occur, ascending, and their probabilities."""
        points = np.arange(self.so_far.shape[1], dtype=np.float64)
        finished = self.so_far[self.compiled.num_open == 0].sum(axis=0)
        win_points = self.solution.instant_win_points
        scores = np.concatenate([points, points + (0.0 if win_points is None else win_points)])
        probabilities = np.concatenate([finished, self.won])
        distinct, where = np.unique(scores, return_inverse=True)
        summed = np.bincount(where.reshape(-1), weights=probabilities, minlength=len(distinct))
        occurs = summed > 0
        return distinct[occurs], np.asarray(summed[occurs], dtype=np.float64)


def evaluate_policy(
    compiled: CompiledVariant,
    policy: Policy,
    *,
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
    num_blunders: int = DEFAULT_BLUNDERS,
    states_at_once: int = STATES_AT_ONCE,
    progress: str | None = None,
) -> ExactEvaluation:
    """Evaluate a policy of the one-player game exactly.

    The policy is asked about every decision that its own play can meet; its answer must depend on
    nothing but the decision, and of every batch some are asked about again, see ``AskedPolicy``.

    Args:
        compiled: The tables of the variant.
        policy: Answers batches of decisions with actions or with probabilities.
        instant_win: How a served Generala that wins is treated.
        num_blunders: How many of the worst decisions to list.
        states_at_once: About how many decisions to ask about in one call.
        progress: The label of a progress bar; ``None`` shows none.

    Raises:
        AnswerError: An answer of the policy is not legal, is none, or is another when asked for again.
    """
    solution = solve_solo(compiled, instant_win=instant_win)
    sweep = _Sweep(compiled, policy, solution, num_blunders)
    most_states = max(len(throws.throw) for throws in sweep.throws)
    num_at_once = max(1, states_at_once // most_states)
    num_turns = int((compiled.num_open > 0).sum())
    with tqdm(total=num_turns, unit="card", desc=progress, disable=progress is None, leave=False) as bar:
        for num_open in range(compiled.num_boxes, 0, -1):
            layer = np.flatnonzero(compiled.num_open == num_open)
            reached = layer[sweep.visits[layer] > 0]
            bar.update(len(layer) - len(reached))
            for start in range(0, len(reached), num_at_once):
                chunk = reached[start : start + num_at_once]
                sweep.play_chunk(chunk, compiled.num_boxes - num_open)
                bar.update(len(chunk))
    scores, probabilities = sweep.score_distribution()
    values = sweep.card_values()
    mean = float(values[0])
    return ExactEvaluation(
        compiled=compiled,
        instant_win_points=solution.instant_win_points,
        expected_score=mean,
        std_score=math.sqrt(float(probabilities @ (scores - mean) ** 2)),
        optimal_score=solution.expected_score,
        scores=scores,
        score_probabilities=probabilities,
        box_points=sweep.box_points,
        box_scored=sweep.box_scored,
        box_struck=sweep.box_struck,
        instant_win_probability=float(sweep.won.sum()),
        regret_by_throw=sweep.regret_by_throw.sum(axis=0),
        regret_by_round=sweep.regret_by_throw.sum(axis=1),
        regret_by_kind=sweep.regret_by_kind.sum(axis=0),
        mistakes_by_kind=sweep.mistakes.sum(axis=0),
        regret_by_open=sweep.regret_by_open.sum(axis=0),
        regret_by_box=sweep.regret_by_box.T.copy(),
        blunders=sweep.blunders.sorted(),
        gravest=sweep.gravest.sorted(),
        num_states=sweep.num_states,
        card_visits=sweep.visits,
        card_values=values,
    )


@lru_cache(maxsize=4)
def evaluate_optimal(
    compiled: CompiledVariant, instant_win: InstantWin = DEFAULT_INSTANT_WIN
) -> ExactEvaluation:
    """Evaluate optimal play exactly: the distribution to hold a policy's against."""
    solution = solve_solo(compiled, instant_win=instant_win)
    return evaluate_policy(
        compiled, lambda batch, masks: best_actions(solution, batch, masks), instant_win=instant_win
    )
