"""The playoff of two tied players: one turn each with an empty card, repeated while tied.

The value ``x`` of the player who throws first is a fixed point: a second tie repeats the playoff in
the same order and is worth ``x`` again. The second player answers a turn of ``r`` points with
the turn that maximises P(more than r) + (1 - x) P(r); the first maximises against that answer.
The map from ``x`` to the value of the turn is a contraction, by the probability of a tie, so iterating it
converges to the one fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, TurnBatch, compile_variant
from generala_env.rules.dice import KEEP_OF_MASK, NUM_PARTIAL_KEEPS, NUM_THROWS
from generala_env.rules.playoff import playoff_tables
from generala_env.rules.variants import Variant
from generala_env.solver.turn import closing_masses, keep_union_table, solve_turn, throws_after_keeps

NOTHING_YET: Final = -1
"""The first player's result while that player has not finished."""

_PRECISION: Final = 1e-15

_MOST_ROUNDS: Final = 10_000


@dataclass(frozen=True, eq=False)
class Playoff:
    """The playoff of two players, solved.

    Attributes:
        compiled: The variant's tables.
        first_player_value: P(win) of the player who throws first, under optimal play.
        points: (2, 252) int64, what each throw is worth, unserved and served.
        box: (2, 252) int64, the box that pays it.
        results: (R,) int64, the different points, ascending.
        closing: (R + 1, 2, 252) float64, the value to the one who closes: of the second player
            after each result of the first, and in the last entry of the first player.
        keeps: (R + 1, 2, 210) float64, the value of every keep, likewise.
        turns: (R + 1,) float64, the value of the whole turn, likewise.
    """

    compiled: CompiledVariant
    first_player_value: float
    points: NDArray[np.int64]
    box: NDArray[np.int64]
    results: NDArray[np.int64]
    closing: NDArray[np.float64]
    keeps: NDArray[np.float64]
    turns: NDArray[np.float64]

    def _rows(self, first_result: NDArray[Any]) -> NDArray[np.intp]:
        first_result = np.asarray(first_result)
        rows = np.searchsorted(self.results, np.maximum(first_result, self.results[0]))
        known = rows < len(self.results)
        known[known] = self.results[rows[known]] == first_result[known]
        if not np.all(known | (first_result == NOTHING_YET)):
            wrong = first_result[~(known | (first_result == NOTHING_YET))][0]
            raise ValueError(f"no turn of a playoff is worth {wrong} points")
        return np.asarray(np.where(first_result == NOTHING_YET, len(self.results), rows), dtype=np.intp)

    def worth(self, first_result: int) -> NDArray[np.float64]:
        """Return what ending a turn with so many points is worth to the one who ends it.

        Args:
            first_result: What the first player made, or ``NOTHING_YET`` in the first turn.

        Returns:
            (most points + 1,) float64, by points; 0 where no turn makes that many.

        Raises:
            ValueError: No turn is worth that many points.
        """
        row = self._rows(np.array([first_result]))[0]
        values = np.zeros(int(self.results[-1]) + 1)
        values[self.points] = self.closing[row]
        return values

    def q_values_batch(
        self, first_result: NDArray[Any], batch: TurnBatch, *, canonical: bool = True
    ) -> NDArray[np.float64]:
        """Return P(win) after every action of playoff turns.

        Args:
            first_result: (batch,) integer, what the first player made, or ``NOTHING_YET``.
            batch: The states; the cards do not matter.
            canonical: Value each kept multiset once, at its lowest mask.

        Returns:
            (batch, num_actions) float64, ``-inf`` where the action is not legal.

        Raises:
            ValueError: A result is not one that a turn can have.
        """
        rows = self._rows(first_result)
        throw = np.asarray(batch.throw, dtype=np.intp)
        served = np.asarray(batch.served, dtype=np.intp)
        later = np.minimum(np.asarray(batch.throw_number, dtype=np.intp), 2) - 1
        kept = KEEP_OF_MASK[throw, :NUM_KEEP_ACTIONS].astype(np.intp)
        values = np.full((len(rows), self.compiled.num_actions), -np.inf)
        legal = self.compiled.keep_masks(batch, canonical=canonical)
        values[:, :NUM_KEEP_ACTIONS] = np.where(
            legal, self.keeps[rows[:, None], later[:, None], kept], -np.inf
        )
        close = NUM_KEEP_ACTIONS + self.box[served, throw]
        values[np.arange(len(rows)), close] = self.closing[rows, served, throw]
        return values

    def actions(self, first_result: NDArray[Any], batch: TurnBatch) -> NDArray[np.int64]:
        """Return the optimal action of every state, the lowest id among equals; (batch,) int64."""
        return np.asarray(np.argmax(self.q_values_batch(first_result, batch), axis=1))


def playoff_of(variant: str | Variant | CompiledVariant) -> Playoff:
    """Solve the playoff of two players under a variant's rules."""
    return _solve(compile_variant(variant))


@lru_cache(maxsize=16)
def _solve(compiled: CompiledVariant) -> Playoff:
    variant = compiled.variant
    tables = playoff_tables(variant)
    points = tables.points.astype(np.int64)
    results = np.unique(points)
    win = 1.0 if compiled.instant_win[0] else np.nan
    closing = np.zeros((len(results) + 1, 2, NUM_THROWS))
    keeps = np.zeros((len(results) + 1, 2, NUM_PARTIAL_KEEPS))
    turns = np.zeros(len(results) + 1)
    place = np.searchsorted(results, points)

    def solve_row(row: int) -> None:
        turns[row] = solve_turn(closing[row], compiled.tables, win, keep_union_table(), keeps[row])

    value, change = 0.5, np.inf
    for _ in range(_MOST_ROUNDS):
        for row, result in enumerate(results):
            closing[row] = np.where(points > result, 1.0, np.where(points == result, 1.0 - value, 0.0))
            solve_row(row)
        closing[-1] = (1.0 - turns[:-1])[place]
        solve_row(len(results))
        change = abs(turns[-1] - value)
        value = float(turns[-1])
        if change < _PRECISION:
            break
    else:
        raise RuntimeError(f"the playoff of {variant.name} has not converged: last change {change}")
    return Playoff(compiled, value, points, tables.box.astype(np.int64), results, closing, keeps, turns)


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
    win_value = win_value if wins else np.nan
    value = solve_turn(closing, compiled.tables, win_value, keep_union_table(), keep_values)
    masses = np.empty((2, NUM_THROWS))
    closing_masses(closing, keep_values, compiled.tables, wins, throws_after_keeps(), masses)
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
