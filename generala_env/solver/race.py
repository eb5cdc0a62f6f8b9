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
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.compiling import kernel
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CardTables, CompiledVariant, InstantWin
from generala_env.rules.dice import NUM_PARTIAL_KEEPS, NUM_THROWS
from generala_env.solver.solo import SoloSolution, solve_solo
from generala_env.solver.turn import (
    best_closings,
    class_after,
    closing_masses,
    keep_union_table,
    points_of,
    solve_turn,
    throws_after_keeps,
)
from generala_env.threads import in_shares, num_shares

_LEAST_TURNS: Final = 8  # that are worth a thread
_LEAST_CLOSINGS: Final = 64


@kernel()
def _distributions(
    tables: CardTables,
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
    for group in range(len(tables.card_of_class) - 1, -1, -1):
        card = tables.card_of_class[group]
        if tables.card_open[card] == 0:
            future[group, 0] = 1.0
            continue
        best_closings(tables, card, class_values, close_value, close_box)
        wins[group] = closing_masses(
            close_value, class_keep_values[group], tables, tables.instant_win[card], after_keep, masses
        )
        for served in range(2):
            for throw in range(NUM_THROWS):
                mass = masses[served, throw]
                if mass == 0.0:
                    continue
                box = close_box[served, throw]
                after = class_after(tables, card, box, served, throw)
                paid = points_of(tables, card, box, served, throw)
                wins[group] += mass * wins[after]
                for total in range(future.shape[1] - paid):
                    future[group, total + paid] += mass * future[after, total]


class Futures(NamedTuple):
    """What everybody is taken to make from here on, by class of cards.

    Attributes:
        distribution: (K, L) float64, probability of each number of points still to come; what is missing
            to 1 is the probability of an instant win.
        cumulative: (K, L) float64, ``distribution`` summed up.
        wins: (K,) float64, probability of an instant win still to come.
    """

    distribution: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    wins: NDArray[np.float64]


class Sides(NamedTuple):
    """Positions, one a row: classes of cards and points of the mover and of the others.

    Attributes:
        own: (rows,) int64, the mover's class.
        score: (rows,) int64, the mover's points.
        others: (rows, n - 1) int64, the classes of the others.
        other_scores: (rows, n - 1) int64, their points.
    """

    own: NDArray[np.int64]
    score: NDArray[np.int64]
    others: NDArray[np.int64]
    other_scores: NDArray[np.int64]


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


@kernel()
def _race_turns(
    share: int,
    num_shares: int,
    sides: Sides,
    tables: CardTables,
    futures: Futures,
    union: NDArray[np.int16],
    keep_values: NDArray[np.float64],
) -> None:
    """Solve a share of the turns, one a row, for the probability of winning.

    ``keep_values`` (rows, 2, 210) is written.
    """
    points, closable = tables.points, tables.closable
    future, wins = futures.distribution, futures.wins
    most = points.max()
    for row in range(share, len(sides.own), num_shares):
        card, score = tables.card_of_class[sides.own[row]], sides.score[row]
        opened, status = tables.card_open[card], tables.card_status[card]
        by_total = np.empty(2 * future.shape[1])
        _win_by_total(sides.others[row], sides.other_scores[row], futures.cumulative, by_total)
        best = np.full((2, NUM_THROWS), -np.inf)
        known = np.empty(most + 1)
        known_after = np.empty(most + 1, dtype=np.int64)
        for box in range(closable.shape[1]):
            if not closable[card, box]:
                continue
            # Unlike in ``best_closings``, what a closing is worth is dear and asked once.
            known_after[:] = -1
            reached = tables.successor[opened & ~(1 << box)]
            for served in range(2):
                for throw in range(NUM_THROWS):
                    after = reached[tables.next_status[status, box, served, throw]]
                    paid = points[status, box, served, throw]
                    if known_after[paid] != after:
                        known_after[paid] = after
                        known[paid] = _win_after(after, score + paid, future, wins, by_total)
                    if known[paid] > best[served, throw]:
                        best[served, throw] = known[paid]
        win_value = 1.0 if tables.instant_win[card] else np.nan
        solve_turn(best, tables, win_value, union, keep_values[row])


@kernel()
def _race_closings(
    share: int,
    num_shares: int,
    sides: Sides,
    served: NDArray[np.int64],
    throw: NDArray[np.int64],
    tables: CardTables,
    futures: Futures,
    closing: NDArray[np.float64],
) -> None:
    """Price closing each box now in a share of positions, one a row; ``closing`` (rows, B) is written."""
    future, wins = futures.distribution, futures.wins
    for row in range(share, len(sides.own), num_shares):
        card = tables.card_of_class[sides.own[row]]
        by_total = np.empty(2 * future.shape[1])
        _win_by_total(sides.others[row], sides.other_scores[row], futures.cumulative, by_total)
        for box in range(tables.closable.shape[1]):
            closing[row, box] = -np.inf
            if tables.closable[card, box]:
                after = class_after(tables, card, box, served[row], throw[row])
                score = sides.score[row] + points_of(tables, card, box, served[row], throw[row])
                closing[row, box] = _win_after(after, score, future, wins, by_total)


@dataclass(frozen=True, eq=False)
class RaceTables:
    """What the race needs of a variant.

    Attributes:
        solution: The exact one-player solution that everybody is taken to follow.
        futures: How probable each number of points still to come is.
    """

    solution: SoloSolution
    futures: Futures

    @property
    def compiled(self) -> CompiledVariant:
        """The variant's tables."""
        return self.solution.compiled

    def _sides(self, cards: NDArray[np.integer], scores: NDArray[np.integer]) -> Sides:
        """Return the positions as the kernels read them."""
        groups = self.compiled.class_of_card[np.asarray(cards, dtype=np.intp)].astype(np.int64)
        points = np.asarray(scores, dtype=np.int64)
        return Sides(
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
        keep_values = np.empty((len(cards), 2, NUM_PARTIAL_KEEPS))
        sides = self._sides(cards, scores)

        def solve(share: int, shares: int) -> None:
            _race_turns(
                share, shares, sides, self.compiled.tables, self.futures, keep_union_table(), keep_values
            )

        in_shares(solve, num_shares(len(cards), _LEAST_TURNS))
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
        closing = np.empty((len(cards), self.compiled.num_boxes))
        sides = self._sides(cards, scores)
        is_served = np.ascontiguousarray(served, dtype=np.int64)
        throws = np.ascontiguousarray(throw, dtype=np.int64)

        def price(share: int, shares: int) -> None:
            _race_closings(
                share, shares, sides, is_served, throws, self.compiled.tables, self.futures, closing
            )

        in_shares(price, num_shares(len(cards), _LEAST_CLOSINGS))
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
    _distributions(
        compiled.tables,
        throws_after_keeps(),
        solution.class_values,
        solution.class_keep_values,
        future,
        wins,
    )
    return RaceTables(solution, Futures(future, np.cumsum(future, axis=1), wins))
