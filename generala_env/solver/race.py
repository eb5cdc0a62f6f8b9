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
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from generala_env.compiling import kernel
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CompiledVariant, InstantWin
from generala_env.rules.dice import IS_FIVE_EQUAL, NUM_PARTIAL_KEEPS, NUM_THROWS
from generala_env.solver.solo import SoloSolution, solve_solo
from generala_env.solver.turn import closing_masses, keep_union_table, solve_turn, throws_after_keeps

_FIVE_EQUAL = np.ascontiguousarray(IS_FIVE_EQUAL)


@kernel()
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
        wins[group] = closing_masses(
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


@kernel()
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


@kernel()
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


@kernel(parallel=True)
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


@kernel(parallel=True)
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


def race_tables(compiled: CompiledVariant, *, instant_win: InstantWin = DEFAULT_INSTANT_WIN) -> RaceTables:
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
        throws_after_keeps(),
        solution.class_values,
        solution.class_keep_values,
        future,
        wins,
    )
    return RaceTables(solution, future, np.cumsum(future, axis=1), wins, successor)
