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
from generala_env.rules.compiled import (
    DEFAULT_INSTANT_WIN,
    CardTables,
    CompiledVariant,
    InstantWin,
    TurnBatch,
)
from generala_env.rules.dice import (
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROWS_PER_TURN,
)
from generala_env.solver.policy_turns import (
    STATES_AT_ONCE,
    AskedPolicy,
    Decisions,
    Policy,
    cards_at_once,
    follow_policy,
    throw_dice,
)
from generala_env.solver.solo import ActionValues, SoloSolution, solve_solo
from generala_env.solver.turn import KEEPS_OF_THROW, class_after, points_of

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


class _Prices(NamedTuple):
    """What actions lead to and what that is worth; see ``ActionValues``."""

    tables: CardTables
    class_values: NDArray[np.float64]
    class_keep_values: NDArray[np.float64]


def _prices_of(values: ActionValues) -> _Prices:
    return _Prices(values.compiled.tables, values.class_values, values.class_keep_values)


@kernel()
def _price_actions(
    prices: _Prices,
    card: int,
    throw: int,
    throw_number: int,
    served: int,
    mask: NDArray[np.bool_],
    priced: NDArray[np.float64],
) -> int:
    """Write the value of every legal action, ``-inf`` elsewhere, and return the best one."""
    tables = prices.tables
    group = tables.class_of_card[card]
    best = -1
    for action in range(len(mask)):
        priced[action] = -np.inf
        if not mask[action]:
            continue
        if action < NUM_KEEP_ACTIONS:
            kept = KEEPS_OF_THROW[throw, action]
            priced[action] = prices.class_keep_values[group, throw_number - 1, kept]
        else:
            box = action - NUM_KEEP_ACTIONS
            after = class_after(tables, card, box, served, throw)
            priced[action] = points_of(tables, card, box, served, throw) + prices.class_values[after]
        if best < 0 or priced[action] > priced[best]:
            best = action
    return best


@kernel()
def _price_batch(
    prices: _Prices,
    batch: TurnBatch,
    masks: NDArray[np.bool_],
    actions: NDArray[np.int64],
    best_actions: NDArray[np.int64],
    lost: NDArray[np.float64],
) -> None:
    """Write the best action of every state, and the points that ``actions`` lose."""
    priced = np.empty(masks.shape[1])
    for row in range(len(batch.card)):
        best = _price_actions(
            prices,
            batch.card[row],
            batch.throw[row],
            batch.throw_number[row],
            batch.served[row],
            masks[row],
            priced,
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
        _prices_of(values),
        TurnBatch(*(np.asarray(column, dtype=np.int64) for column in batch)),
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
def _note_regret(
    prices: _Prices,
    decisions: Decisions,
    visits: NDArray[np.float64],
    carried: NDArray[np.float64],
    keep_carried: NDArray[np.float64],
    lost: _Lost,
    worst: _Worst,
) -> None:
    """Note what the policy loses in every row, and carry it on to what the turn ends up closing.

    Args:
        prices: What actions lead to and what they are worth.
        decisions: What was asked and answered.
        visits: (C,) the probability that play comes to each card.
        carried: (n,) the regret of earlier decisions of the turn, times the row's mass.
        keep_carried: (cards, 210), added to; as ``carried``.
        lost: Added to.
        worst: Written.
    """
    batch, masks, probabilities = decisions.batch, decisions.masks, decisions.probabilities
    num_actions = masks.shape[1]
    is_random = probabilities.shape[1] > 0
    priced = np.empty(num_actions)
    for row in range(len(batch.card)):
        card, throw, mass = batch.card[row], batch.throw[row], decisions.mass[row]
        throw_number, served = batch.throw_number[row], int(batch.served[row])
        best = _price_actions(prices, card, throw, throw_number, served, masks[row], priced)
        worst.action[row] = best
        worst.best_action[row] = best
        worst.regret[row] = 0.0
        worst.probability[row] = 0.0
        state_loss = 0.0
        first, last = (0, num_actions) if is_random else (decisions.actions[row], decisions.actions[row] + 1)
        for action in range(first, last):
            chosen = probabilities[row, action] if is_random else 1.0
            if chosen == 0.0:
                continue
            regret = priced[best] - priced[action]
            is_keep = action < NUM_KEEP_ACTIONS
            going_on = (carried[row] + mass * regret) * chosen
            if is_keep:
                keep_carried[decisions.local[row], KEEPS_OF_THROW[throw, action]] += going_on
            else:
                lost.by_box[action - NUM_KEEP_ACTIONS] += visits[card] * going_on
            if regret > 0.0:
                weight = visits[card] * mass * chosen
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
            for box in range(lost.by_open.shape[0]):
                lost.by_open[box, prices.tables.card_open[card] >> box & 1] += state_loss


class _Outcomes(NamedTuple):
    """The different ends of turns, ``N`` of them.

    Attributes:
        card: (N,) int64, a card.
        after: (N,) int64, the card after it.
        points: (N,) int64, the points on the way.
        probability: (N,) float64.
    """

    card: NDArray[Any]
    after: NDArray[Any]
    points: NDArray[Any]
    probability: NDArray[Any]


class _Boxes(NamedTuple):
    """Accumulators by box; see ``ExactEvaluation``."""

    points: NDArray[np.float64]
    scored: NDArray[np.float64]
    struck: NDArray[np.float64]


@kernel()
def _move_on(
    tables: CardTables,
    cards: NDArray[np.int64],
    closing: NDArray[np.float64],
    visits: NDArray[np.float64],
    so_far: NDArray[np.float64],
    highest: int,
    gained: NDArray[np.float64],
    boxes: _Boxes,
    outcomes: _Outcomes,
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
        boxes: Added to.
        outcomes: Written, from the first row on.

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
                    boxes.points[box] += joint * points
                    if points > 0:
                        boxes.scored[box] += joint
                    else:
                        boxes.struck[box] += joint
                    for total in range(highest + 1):
                        so_far[card_after, total + points] += so_far[card, total] * probability
                    outcomes.card[num_outcomes] = card
                    outcomes.after[num_outcomes] = card_after
                    outcomes.points[num_outcomes] = points
                    outcomes.probability[num_outcomes] = probability
                    num_outcomes += 1
    return num_outcomes


@kernel()
def _induce_backward(outcomes: _Outcomes, values: NDArray[np.float64]) -> None:
    """Add to (C,) ``values`` what each outcome brings, the last card first."""
    for row in range(len(outcomes.card) - 1, -1, -1):
        following = outcomes.points[row] + values[outcomes.after[row]]
        values[outcomes.card[row]] += outcomes.probability[row] * following


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
        self.prices = _prices_of(solution)
        num_boxes, num_cards = compiled.num_boxes, compiled.num_cards
        self.visits = np.zeros(num_cards)
        self.visits[0] = 1.0
        # Widened as points come in: without an instant win, more than ``perfect_score`` can be made.
        self.so_far = np.zeros((num_cards, 1))
        self.so_far[0, 0] = 1.0
        self.won = np.zeros(1)
        self.win_probability = np.zeros(num_cards)
        self.boxes = _Boxes(np.zeros(num_boxes), np.zeros(num_boxes), np.zeros(num_boxes))
        self.regret_by_throw = np.zeros((num_boxes, THROWS_PER_TURN))
        self.regret_by_kind = np.zeros((num_boxes, len(MISTAKE_KINDS)))
        self.mistakes = np.zeros((num_boxes, len(MISTAKE_KINDS)))
        self.regret_by_open = np.zeros((num_boxes, num_boxes, 2))
        self.regret_by_box = np.zeros((num_boxes, num_boxes + 1))
        self.outcomes: list[_Outcomes] = []
        self.blunders = _Leaders(num_blunders)
        self.gravest = _Leaders(num_blunders)
        self.num_states = 0

    def play_chunk(self, cards: NDArray[np.int64], round_index: int) -> None:
        """Play a turn on each of the cards, which have equally many open boxes."""
        closing = np.zeros((len(cards), self.compiled.num_boxes, 2, NUM_THROWS))
        keep_carried = np.zeros((len(cards), NUM_PARTIAL_KEEPS))
        lost = _Lost(
            self.regret_by_throw[round_index],
            self.regret_by_kind[round_index],
            self.mistakes[round_index],
            self.regret_by_open[round_index],
            self.regret_by_box[round_index],
        )
        wins_at_once = self.solution.instant_win_points is not None
        for decisions in follow_policy(self.policy, cards, closing, wins_at_once=wins_at_once):
            carried = throw_dice(decisions.throws, keep_carried)
            keep_carried = np.zeros_like(keep_carried)
            if wins_at_once:
                self._win(cards, decisions.won)
                lost.by_box[-1] += (self.visits[cards] @ (carried * decisions.is_won)).sum()
            count = len(decisions.local)
            self.num_states += count
            worst = _Worst(
                np.empty(count, dtype=np.int64),
                np.empty(count, dtype=np.int64),
                np.empty(count),
                np.empty(count),
            )
            row_carried = carried[decisions.local, decisions.place]
            _note_regret(self.prices, decisions, self.visits, row_carried, keep_carried, lost, worst)
            frequency = self.visits[decisions.batch.card] * decisions.mass * worst.probability
            self._note_blunders(decisions.batch, worst, frequency)
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
        written = _Outcomes(
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(room),
        )
        num_outcomes = _move_on(
            self.compiled.tables,
            cards,
            closing,
            self.visits,
            self.so_far,
            highest,
            np.zeros((len(self.compiled.statuses), most + 1)),
            self.boxes,
            written,
        )
        self.outcomes.append(_Outcomes(*(column[:num_outcomes].copy() for column in written)))

    def card_values(self) -> NDArray[np.float64]:
        """Return the value of each card under the policy, by backward induction; (C,)."""
        win_points = self.solution.instant_win_points
        values = self.win_probability * (0.0 if win_points is None else win_points)
        outcomes = _Outcomes(*(np.concatenate(column) for column in zip(*self.outcomes, strict=True)))
        _induce_backward(outcomes, values)
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
    num_at_once = cards_at_once(compiled, states_at_once)
    num_turns = int((compiled.num_open > 0).sum())
    with tqdm(
        total=num_turns, unit="card", desc=progress, disable=True if progress is None else None, leave=False
    ) as bar:
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
        box_points=sweep.boxes.points,
        box_scored=sweep.boxes.scored,
        box_struck=sweep.boxes.struck,
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
