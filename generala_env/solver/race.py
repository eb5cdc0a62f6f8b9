"""A turn played for the probability of winning, everything after it for points.

The exact one-player policy fixes, for each card, the whole distribution of the points still
to come. Taking it for everybody's future, the probability of ending above the best of the
others is known for every way to close the present turn, and the turn itself is then solved
exactly for that probability (one step of policy improvement; see Sutton and Barto,
*Reinforcement Learning*, 2nd edition, section 4.2). It works for any number of players.

What it leaves out: the others' reaction to the score, and tie-breaks, which count one half.
A future served Generala is counted as beating every total.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, InstantWin
from generala_env.rules.dice import (
    IS_FIVE_EQUAL,
    KEEP_COUNTS,
    KEEP_OF_MASK,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    throw_probabilities_after,
)
from generala_env.rules.playoff import playoff_tables
from generala_env.solver.solo import SoloSolution, solve_solo
from generala_env.solver.turn import keep_union_table, solve_turn

_KEEPS_OF_THROW = np.ascontiguousarray(KEEP_OF_MASK[:, :NUM_KEEP_ACTIONS].astype(np.int64))
_FIVE_EQUAL = np.ascontiguousarray(IS_FIVE_EQUAL)
_COUNTS = np.ascontiguousarray(KEEP_COUNTS)


@lru_cache(maxsize=1)
def _throws_after_keeps() -> NDArray[np.float64]:
    """(210, 252) float64: probability of each throw after each keep of up to four dice."""
    return np.stack([throw_probabilities_after(keep) for keep in range(NUM_PARTIAL_KEEPS)])


@numba.njit(cache=True)
def _choose(
    throw: int,
    kept: int,
    is_locked: bool,
    keep_values: NDArray[np.float64],
    close_value: float,
) -> int:
    """Return the keep that the policy takes on a throw, or -1 where it closes a box."""
    best, chosen = -np.inf, -1
    for position in range(_KEEPS_OF_THROW.shape[1]):
        keep = _KEEPS_OF_THROW[throw, position]
        if is_locked and kept > 0 and keep > 0:
            contains = True
            for face in range(6):
                if _COUNTS[keep, face] < _COUNTS[kept, face]:
                    contains = False
            if not contains:
                continue
        if keep_values[keep] > best:
            best, chosen = keep_values[keep], keep
    # Among equals the policy takes the lowest action id, and keeps come before boxes.
    return chosen if best >= close_value else -1


@numba.njit(cache=True)
def _closing_masses(
    close_value: NDArray[np.float64],
    keep_values: NDArray[np.float64],
    is_served: NDArray[np.bool_],
    wins: bool,
    is_locked: bool,
    after_keep: NDArray[np.float64],
    masses: NDArray[np.float64],
) -> float:
    """Follow the policy through a turn.

    Args:
        close_value: (2, 252), value of closing the best box.
        keep_values: (2, 210), value of each keep after the first and the second throw.
        is_served: (3, 2) bool.
        wins: Whether a served throw of five equal dice wins at once.
        is_locked: Whether kept dice stay kept.
        after_keep: (210, 252), probabilities of throws.
        masses: (2, 252), written: how probable it is to close on each throw.

    Returns:
        The probability of an instant win in the turn.
    """
    won = 0.0
    masses[:] = 0.0
    held = np.zeros(NUM_PARTIAL_KEEPS)
    held[0] = 1.0
    for throw_number in range(3):
        following = np.zeros(NUM_PARTIAL_KEEPS)
        for kept in range(NUM_PARTIAL_KEEPS):
            if held[kept] == 0.0:
                continue
            served = is_served[throw_number, 1 if kept == 0 else 0]
            row = 1 if served else 0
            for throw in range(NUM_THROWS):
                mass = held[kept] * after_keep[kept, throw]
                if mass == 0.0:
                    continue
                if served and wins and _FIVE_EQUAL[throw]:
                    won += mass
                    continue
                chosen = -1
                if throw_number < 2:
                    chosen = _choose(
                        throw, kept, is_locked, keep_values[throw_number], close_value[row, throw]
                    )
                if chosen < 0:
                    masses[row, throw] += mass
                else:
                    following[chosen] += mass
        held = following
    return won


@numba.njit(cache=True)
def _distributions(
    class_card: NDArray[np.int32],
    successor: NDArray[np.int32],
    card_open: NDArray[np.uint16],
    card_status: NDArray[np.uint8],
    closable: NDArray[np.bool_],
    points: NDArray[np.int32],
    next_status: NDArray[np.uint8],
    is_served: NDArray[np.bool_],
    instant_win: NDArray[np.bool_],
    is_locked: bool,
    after_keep: NDArray[np.float64],
    class_values: NDArray[np.float64],
    class_keep_values: NDArray[np.float64],
    future: NDArray[np.float64],
    wins: NDArray[np.float64],
) -> None:
    """Fill ``future`` (K, L) and ``wins`` (K,) from the classes with no open box up."""
    close_value = np.empty((2, NUM_THROWS))
    close_box = np.empty((2, NUM_THROWS), dtype=np.int64)
    masses = np.empty((2, NUM_THROWS))
    for group in range(len(class_card) - 1, -1, -1):
        card = class_card[group]
        opened, status = card_open[card], card_status[card]
        if opened == 0:
            future[group, 0] = 1.0
            continue
        close_value[:] = -np.inf
        for box in range(closable.shape[1]):
            if not closable[card, box]:
                continue
            reached = successor[opened & ~(1 << box)]
            for served in range(2):
                for throw in range(NUM_THROWS):
                    value = (
                        points[status, box, served, throw]
                        + class_values[reached[next_status[status, box, served, throw]]]
                    )
                    if value > close_value[served, throw]:
                        close_value[served, throw] = value
                        close_box[served, throw] = box
        wins[group] = _closing_masses(
            close_value,
            class_keep_values[group],
            is_served,
            instant_win[card],
            is_locked,
            after_keep,
            masses,
        )
        for served in range(2):
            for throw in range(NUM_THROWS):
                mass = masses[served, throw]
                if mass == 0.0:
                    continue
                box = close_box[served, throw]
                after = successor[opened & ~(1 << box), next_status[status, box, served, throw]]
                paid = points[status, box, served, throw]
                wins[group] += mass * wins[after]
                for total in range(future.shape[1] - paid):
                    future[group, total + paid] += mass * future[after, total]


@numba.njit(cache=True)
def _win_by_total(
    groups: NDArray[np.int64],
    scores: NDArray[np.int64],
    cumulative: NDArray[np.float64],
    value: NDArray[np.float64],
) -> None:
    """Fill the probability that a final total ends above the best of the others, ties half.

    Args:
        groups: (others,) classes of the others' cards.
        scores: (others,) their points so far.
        cumulative: (K, L) cumulative distributions of points still to come.
        value: (T,), written.
    """
    length = cumulative.shape[1]
    below = 0.0
    for total in range(len(value)):
        reached = 1.0
        for other in range(len(groups)):
            room = total - scores[other]
            reached *= 0.0 if room < 0 else cumulative[groups[other], min(room, length - 1)]
        value[total] = 0.5 * (below + reached)
        below = reached


@numba.njit(cache=True)
def _win_after(
    group: int,
    score: int,
    future: NDArray[np.float64],
    wins: NDArray[np.float64],
    by_total: NDArray[np.float64],
) -> float:
    """Return the probability of winning from a card with that many points."""
    total = wins[group]
    for coming in range(min(future.shape[1], len(by_total) - score)):
        total += future[group, coming] * by_total[score + coming]
    return float(total)


@numba.njit(cache=True, parallel=True)
def _race_turns(
    own: NDArray[np.int64],
    score: NDArray[np.int64],
    others: NDArray[np.int64],
    other_scores: NDArray[np.int64],
    class_card: NDArray[np.int32],
    successor: NDArray[np.int32],
    card_open: NDArray[np.uint16],
    card_status: NDArray[np.uint8],
    closable: NDArray[np.bool_],
    points: NDArray[np.int32],
    next_status: NDArray[np.uint8],
    is_served: NDArray[np.bool_],
    instant_win: NDArray[np.bool_],
    is_locked: bool,
    union: NDArray[np.int16],
    future: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    wins: NDArray[np.float64],
    keep_values: NDArray[np.float64],
) -> None:
    """Solve turns for the probability of winning, one a row, in parallel.

    ``keep_values`` (rows, 2, 210) is written.
    """
    most = points.max()
    for row in numba.prange(len(own)):
        group = own[row]
        card = class_card[group]
        opened, status = card_open[card], card_status[card]
        by_total = np.empty(2 * future.shape[1])
        _win_by_total(others[row], other_scores[row], cumulative, by_total)
        best = np.full((2, NUM_THROWS), -np.inf)
        known = np.empty(most + 1)
        known_after = np.empty(most + 1, dtype=np.int64)
        for box in range(closable.shape[1]):
            if not closable[card, box]:
                continue
            known_after[:] = -1
            reached = successor[opened & ~(1 << box)]
            for served in range(2):
                for throw in range(NUM_THROWS):
                    after = reached[next_status[status, box, served, throw]]
                    paid = points[status, box, served, throw]
                    if known_after[paid] != after:
                        known_after[paid] = after
                        known[paid] = _win_after(after, score[row] + paid, future, wins, by_total)
                    if known[paid] > best[served, throw]:
                        best[served, throw] = known[paid]
        win_value = 1.0 if instant_win[card] else np.nan
        solve_turn(best, is_served, win_value, is_locked, union, keep_values[row])


@numba.njit(cache=True, parallel=True)
def _race_closings(
    own: NDArray[np.int64],
    score: NDArray[np.int64],
    others: NDArray[np.int64],
    other_scores: NDArray[np.int64],
    served: NDArray[np.int64],
    throw: NDArray[np.int64],
    class_card: NDArray[np.int32],
    successor: NDArray[np.int32],
    card_open: NDArray[np.uint16],
    card_status: NDArray[np.uint8],
    closable: NDArray[np.bool_],
    points: NDArray[np.int32],
    next_status: NDArray[np.uint8],
    future: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    wins: NDArray[np.float64],
    closing: NDArray[np.float64],
) -> None:
    """Price closing each box now, one position a row; ``closing`` (rows, B) is written."""
    for row in numba.prange(len(own)):
        card = class_card[own[row]]
        opened, status = card_open[card], card_status[card]
        by_total = np.empty(2 * future.shape[1])
        _win_by_total(others[row], other_scores[row], cumulative, by_total)
        for box in range(closable.shape[1]):
            closing[row, box] = -np.inf
            if closable[card, box]:
                after = successor[opened & ~(1 << box), next_status[status, box, served[row], throw[row]]]
                paid = points[status, box, served[row], throw[row]]
                closing[row, box] = _win_after(after, score[row] + paid, future, wins, by_total)


@dataclass(frozen=True, eq=False)
class RaceTables:
    """What the race needs of a variant.

    Attributes:
        solution: The exact one-player solution that everybody is taken to follow.
        future: (K, L) float64, probability of each number of points still to come, by class
            of cards; what is missing to 1 is the probability of an instant win.
        cumulative: (K, L) float64, ``future`` summed up.
        wins: (K,) float64, probability of an instant win still to come.
        successor: (2**B, S) int32, the class with those open boxes and status, or -1.
    """

    solution: SoloSolution
    future: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    wins: NDArray[np.float64]
    successor: NDArray[np.int32]

    @property
    def compiled(self) -> CompiledVariant:
        """The variant's tables."""
        return self.solution.compiled

    def _sides(
        self, cards: NDArray[np.integer], scores: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the mover's classes and points, then those of the others, for the kernels."""
        groups = self.compiled.card_class[np.asarray(cards, dtype=np.intp)].astype(np.int64)
        points = np.asarray(scores, dtype=np.int64)
        return (
            np.ascontiguousarray(groups[:, 0]),
            np.ascontiguousarray(points[:, 0]),
            np.ascontiguousarray(groups[:, 1:]),
            np.ascontiguousarray(points[:, 1:]),
        )

    def turn_values(self, cards: NDArray[np.integer], scores: NDArray[np.integer]) -> NDArray[np.float64]:
        """Solve the present turns of movers for the probability of winning.

        Args:
            cards: (batch, n) integer, cards of all players, the mover's first.
            scores: (batch, n) integer, their points.

        Returns:
            (batch, 2, 210) float64, the value of every keep after the first and second throw.
        """
        compiled = self.compiled
        keep_values = np.empty((len(cards), 2, NUM_PARTIAL_KEEPS))
        _race_turns(
            *self._sides(cards, scores),
            compiled.class_card,
            self.successor,
            compiled.card_open,
            compiled.card_status,
            compiled.closable,
            compiled.points,
            compiled.next_status,
            compiled.is_served,
            compiled.instant_win,
            compiled.variant.is_locked,
            keep_union_table(),
            self.future,
            self.cumulative,
            self.wins,
            keep_values,
        )
        return keep_values

    def closing_values(
        self,
        cards: NDArray[np.integer],
        scores: NDArray[np.integer],
        served: NDArray[Any],
        throw: NDArray[Any],
    ) -> NDArray[np.float64]:
        """Return the probability of winning after closing each box with the dice on the table.

        Args:
            cards: (batch, n) integer, cards of all players, the mover's first.
            scores: (batch, n) integer, their points.
            served: (batch,) bool, whether closing now counts as served.
            throw: (batch,) integer, index of the dice.

        Returns:
            (batch, B) float64, ``-inf`` where a box may not be closed.
        """
        compiled = self.compiled
        closing = np.empty((len(cards), compiled.num_boxes))
        _race_closings(
            *self._sides(cards, scores),
            np.ascontiguousarray(served, dtype=np.int64),
            np.ascontiguousarray(throw, dtype=np.int64),
            compiled.class_card,
            self.successor,
            compiled.card_open,
            compiled.card_status,
            compiled.closable,
            compiled.points,
            compiled.next_status,
            self.future,
            self.cumulative,
            self.wins,
            closing,
        )
        return closing


def race_tables(compiled: CompiledVariant, *, instant_win: InstantWin = "perfect") -> RaceTables:
    """Return the exact distribution of points to come of every card, under the one-player optimum.

    Args:
        compiled: The variant's tables.
        instant_win: How the one-player optimum values a served Generala that wins.

    Raises:
        ValueError: ``instant_win`` is not known.
    """
    return _race_tables(compiled, instant_win)


@lru_cache(maxsize=8)
def _race_tables(compiled: CompiledVariant, instant_win: InstantWin) -> RaceTables:
    solution = solve_solo(compiled, instant_win=instant_win)
    future = np.zeros((compiled.num_classes, compiled.perfect_score + 1))
    wins = np.zeros(compiled.num_classes)
    successor = np.where(compiled.card_index >= 0, compiled.card_class[compiled.card_index], -1)
    successor = successor.astype(np.int32)
    _distributions(
        compiled.class_card,
        successor,
        compiled.card_open,
        compiled.card_status,
        compiled.closable,
        compiled.points,
        compiled.next_status,
        compiled.is_served,
        compiled.instant_win & (compiled.card_open > 0),
        compiled.variant.is_locked,
        _throws_after_keeps(),
        solution.class_values,
        solution.class_keep_values,
        future,
        wins,
    )
    return RaceTables(solution, future, np.cumsum(future, axis=1), wins, successor)


@dataclass(frozen=True)
class PlayoffTurn:
    """A playoff turn solved for whatever its points are worth.

    Attributes:
        value: What the turn is worth.
        worth: (P,) float64, what each number of points is worth.
        keep_values: (2, 210) float64, value of every keep after the first and second throw.
        distribution: (P,) float64, probability of making each number of points; what is
            missing to 1 is the probability of an instant win.
    """

    value: float
    worth: NDArray[np.float64]
    keep_values: NDArray[np.float64]
    distribution: NDArray[np.float64]


def solve_playoff_turn(
    compiled: CompiledVariant, worth: NDArray[np.float64], win_value: float
) -> PlayoffTurn:
    """Solve a playoff turn exactly.

    Args:
        compiled: The variant's tables.
        worth: (P,) float64, what each number of points is worth; ``P`` is one more than the
            most a playoff turn can make.
        win_value: What an instant win is worth.
    """
    tables = playoff_tables(compiled.variant)
    closing = np.ascontiguousarray(worth[tables.points], dtype=np.float64)
    keep_values = np.empty((2, NUM_PARTIAL_KEEPS))
    wins = bool(compiled.instant_win[0])
    value = solve_turn(
        closing,
        compiled.is_served,
        win_value if wins else np.nan,
        compiled.variant.is_locked,
        keep_union_table(),
        keep_values,
    )
    masses = np.empty((2, NUM_THROWS))
    _closing_masses(
        closing,
        keep_values,
        compiled.is_served,
        wins,
        compiled.variant.is_locked,
        _throws_after_keeps(),
        masses,
    )
    counted = np.bincount(tables.points.ravel(), weights=masses.ravel(), minlength=len(worth))
    distribution: NDArray[np.float64] = counted.astype(np.float64)
    return PlayoffTurn(float(value), worth, keep_values, distribution)


@lru_cache(maxsize=16)
def playoff_turn_for_points(compiled: CompiledVariant) -> PlayoffTurn:
    """Return the playoff turn played for expected points; an instant win counts as the most."""
    most = int(playoff_tables(compiled.variant).points.max())
    return solve_playoff_turn(compiled, np.arange(most + 1, dtype=np.float64), float(most))


@lru_cache(maxsize=4096)
def playoff_turn_for_winning(
    compiled: CompiledVariant, best: int, num_best: int, num_after: int
) -> PlayoffTurn:
    """Return the playoff turn played for the probability of winning the playoff.

    Those who play later are taken to play for points; a tie is worth an equal share.

    Args:
        compiled: The variant's tables.
        best: The most that anybody has made in this playoff so far; -1 if nobody has played.
        num_best: How many have made it.
        num_after: How many are still to play after this turn.
    """
    most = int(playoff_tables(compiled.variant).points.max())
    others = playoff_turn_for_points(compiled).distribution
    below = np.concatenate([[0.0], np.cumsum(others)[:-1]])
    made = np.arange(most + 1)
    worth = np.zeros(most + 1)
    for level in range(num_after + 1):
        # ``level`` of those still to play make as many points, the others fewer.
        ways = comb(num_after, level) * others**level * below ** (num_after - level)
        worth += ways * np.where(made > best, 1.0 / (1 + level), 0.0)
        worth += ways * np.where(made == best, 1.0 / (1 + level + num_best), 0.0)
    return solve_playoff_turn(compiled, worth, 1.0)
