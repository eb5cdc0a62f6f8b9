"""Agents for a table of two or more: those that look at the others, and anybody who plays alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.base import batched
from agents.errors import AgentError
from generala_env.envs.table_observation import TableBatch, TableLayout, table_layout
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CompiledVariant, InstantWin
from generala_env.rules.dice import KEEP_OF_MASK, NUM_PARTIAL_KEEPS, keyed_uniforms
from generala_env.rules.playoff import playoff_tables
from generala_env.solver.duel import DuelPlan, DuelSolution, open_duel, solve_duel
from generala_env.solver.playoff import (
    PlayoffTurn,
    playoff_of,
    playoff_turn_for_points,
    playoff_turn_for_winning,
    solve_playoff_turn,
)
from generala_env.solver.race import race_tables
from generala_env.solver.solo import solve_solo
from generala_env.solver.storage import StoreError


class SeatAgent(ABC):
    """An agent that sees the whole table and decides from the position itself.

    It has the batched ``act`` of ``Agent``; its observations are those of a ``TableLayout``.

    Attributes:
        name: How it is called in tables.
        layout: The layout of the observations it reads.
    """

    name: str
    layout: TableLayout

    def __init__(self, name: str, compiled: CompiledVariant, num_players: int) -> None:
        """Bind the agent to a table.

        Args:
            name: How it is called.
            compiled: The variant's tables.
            num_players: How many play.
        """
        self.name = name
        self.layout = table_layout(compiled, num_players)

    @property
    def compiled(self) -> CompiledVariant:
        """The tables of the variant it plays."""
        return self.layout.compiled

    @batched
    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation.

        Args:
            observations: (batch, layout.size) float32, or a single one; see ``batched``.
            action_masks: (batch, num_actions) bool, at least one true in each row.
            deterministic: Makes no difference: these agents do not sample.

        Returns:
            (batch,) int64, legal under the masks.
        """
        return self.act_on(self.layout.decode(observations), action_masks)

    def reset(self, seed: int | None = None) -> None:  # noqa: B027 - these agents draw nothing
        """Do nothing: these agents draw nothing."""

    def act_on(self, batch: TableBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choose an action in every position of a batch, the lowest id among equals.

        Args:
            batch: The positions, seen by the seat to move.
            action_masks: (batch, num_actions) bool.

        Returns:
            (batch,) int64, legal under the masks.
        """
        return np.asarray(np.where(action_masks, self.values(batch), -np.inf).argmax(axis=1))

    def values(self, batch: TableBatch) -> NDArray[np.float64]:
        """Return what every action is worth to the player to move, playoffs included.

        Returns:
            (batch, num_actions) float64; illegal actions may have any value, callers mask them.
        """
        values = np.full((len(batch.mover), self.compiled.num_actions), -np.inf)
        for rows, of in (
            (np.flatnonzero(~batch.is_playoff), self.q_values),
            (np.flatnonzero(batch.is_playoff), self._playoff_values),
        ):
            if len(rows):
                values[rows] = of(batch.take(rows))
        return values

    @abstractmethod
    def q_values(self, batch: TableBatch) -> NDArray[np.float64]:
        """Return what every action is worth outside playoffs, (batch, num_actions) float64.

        Illegal actions may have any value; callers mask them.
        """

    @abstractmethod
    def playoff_turn(self, best: int, num_best: int, num_after: int) -> PlayoffTurn:
        """Return how a playoff turn is played.

        Args:
            best: The most that anybody has made in this playoff so far; -1 if nobody has played.
            num_best: How many have made it.
            num_after: How many are still to play after this turn.
        """

    @abstractmethod
    def playoff_worth(self, points: int, best: int, num_best: int, num_after: int) -> float:
        """Return what ending a playoff turn with so many points is worth; see ``playoff_turn``."""

    def _playoff_values(self, batch: TableBatch) -> NDArray[np.float64]:
        """Return what every action of playoff turns is worth, (batch, num_actions) float64."""
        tables = playoff_tables(self.compiled.variant)
        values = np.full((len(batch.mover), self.compiled.num_actions), -np.inf)
        made = np.where(batch.made, batch.results, -1)
        best = made.max(axis=1)
        num_best = (batch.made & (made == best[:, None])).sum(axis=1)
        num_after = (batch.candidates & ~batch.made).sum(axis=1) - 1
        served = np.asarray(batch.turn.served, dtype=np.intp)
        for row in range(len(values)):
            where = (int(best[row]), int(num_best[row]), int(num_after[row]))
            throw, throw_number = int(batch.turn.throw[row]), int(batch.turn.throw_number[row])
            turn = self.playoff_turn(*where)
            if throw_number <= len(turn.keep_values):
                kept = KEEP_OF_MASK[throw, :NUM_KEEP_ACTIONS]
                values[row, :NUM_KEEP_ACTIONS] = turn.keep_values[throw_number - 1, kept]
            points = int(tables.points[served[row], throw])
            box = NUM_KEEP_ACTIONS + int(tables.box[served[row], throw])
            values[row, box] = self.playoff_worth(points, *where)
        return values


class SoloOptimalAgent(SeatAgent):
    """Plays for expected points alone, whatever the others have; playoff turns likewise."""

    def __init__(
        self, compiled: CompiledVariant, num_players: int, instant_win: InstantWin = DEFAULT_INSTANT_WIN
    ) -> None:
        """Bind the agent to a table; ``instant_win`` as in the one-player game."""
        super().__init__("solo_optimal", compiled, num_players)
        self.solution = solve_solo(compiled, instant_win=instant_win)

    def q_values(self, batch: TableBatch) -> NDArray[np.float64]:
        """Return expected points still to come."""
        return self.solution.q_values_batch(batch.turn, canonical=False)

    def playoff_turn(self, best: int, num_best: int, num_after: int) -> PlayoffTurn:
        """Return the turn played for expected points."""
        return playoff_turn_for_points(self.compiled)

    def playoff_worth(self, points: int, best: int, num_best: int, num_after: int) -> float:
        """Return the points."""
        return float(points)


class RaceAgent(SeatAgent):
    """Plays each turn for the probability of ending above the best of the others.

    Everybody's later turns, its own included, are taken to be played for points; see
    ``generala_env.solver.race``.
    """

    def __init__(
        self, compiled: CompiledVariant, num_players: int, instant_win: InstantWin = DEFAULT_INSTANT_WIN
    ) -> None:
        """Bind the agent to a table; ``instant_win`` as in the one-player game."""
        super().__init__("race", compiled, num_players)
        self.tables = race_tables(compiled, instant_win=instant_win)
        self._known = (np.empty((0, 2 * num_players), dtype=np.int64), np.empty((0, 2, NUM_PARTIAL_KEEPS)))

    def q_values(self, batch: TableBatch) -> NDArray[np.float64]:
        """Return probabilities of ending above the best of the others, ties counting half."""
        turn = batch.turn
        throw = np.asarray(turn.throw, dtype=np.intp)
        number = np.minimum(np.asarray(turn.throw_number, dtype=np.intp), 2) - 1
        closing = self.tables.closing_values(batch.cards, batch.scores, turn.served, throw)
        kept = KEEP_OF_MASK[throw, :NUM_KEEP_ACTIONS]
        keep_values, of = self._turn_values(batch)
        return np.concatenate([keep_values[of[:, None], number[:, None], kept], closing], axis=1)

    def _turn_values(self, batch: TableBatch) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return the keeps' values of distinct turns, and which turn each row is in.

        Solving a turn is dear and serves all its throws, so equal turns are solved once and
        those of the last call are remembered.
        """
        turns = np.concatenate([batch.cards, batch.scores], axis=1).astype(np.int64)
        _, first, of = np.unique(keyed_uniforms(0, *turns.T), return_index=True, return_inverse=True)
        of = of.reshape(-1)
        distinct = turns[first]
        if not np.array_equal(distinct[of], turns):
            # Two turns have one hash: it never happens, and must not go wrong.
            distinct, of = np.unique(turns, axis=0, return_inverse=True)
            of = of.reshape(-1)
        known_turns, known_values = self._known
        values = np.empty((len(distinct), 2, NUM_PARTIAL_KEEPS))
        known = {tuple(row): index for index, row in enumerate(known_turns.tolist())}
        where = np.array([known.get(tuple(row), -1) for row in distinct.tolist()], dtype=np.intp)
        is_known = where >= 0
        values[is_known] = known_values[where[is_known]]
        new = distinct[~is_known]
        num_players = batch.cards.shape[1]
        values[~is_known] = self.tables.turn_values(new[:, :num_players], new[:, num_players:])
        self._known = (distinct, values)
        return values, of

    def playoff_turn(self, best: int, num_best: int, num_after: int) -> PlayoffTurn:
        """Return the turn played for the probability of winning the playoff."""
        return playoff_turn_for_winning(self.compiled, best, num_best, num_after)

    def playoff_worth(self, points: int, best: int, num_best: int, num_after: int) -> float:
        """Return the probability of winning the playoff with so many points."""
        return float(self.playoff_turn(best, num_best, num_after).worth[points])


class DuelOptimalAgent(SeatAgent):
    """Plays the exactly solved two-player game: P(win) + P(draw) / 2, playoffs included."""

    def __init__(self, solution: DuelSolution) -> None:
        """Play by a solution of the whole game."""
        super().__init__("duel_optimal", solution.compiled, 2)
        self.solution = solution
        self._playoff_turns: dict[int, PlayoffTurn] = {}

    def q_values(self, batch: TableBatch) -> NDArray[np.float64]:
        """Return the value of every action to the player to move."""
        cards, scores = batch.cards, batch.scores
        difference = scores[:, 0] - scores[:, 1]
        return self.solution.q_values_batch(cards[:, 0], cards[:, 1], difference, batch.turn, canonical=False)

    def playoff_turn(self, best: int, num_best: int, num_after: int) -> PlayoffTurn:
        """Return the turn that wins the playoff most often, repeated ties included."""
        if best not in self._playoff_turns:
            playoff = playoff_of(self.compiled)
            self._playoff_turns[best] = solve_playoff_turn(self.compiled, playoff.worth(best), 1.0)
        return self._playoff_turns[best]

    def playoff_worth(self, points: int, best: int, num_best: int, num_after: int) -> float:
        """Return the probability of winning the playoff with so many points."""
        return float(self.playoff_turn(best, num_best, num_after).worth[points])


SOLVED_AT_ONCE: Final = 2_000_000
"""Games of at most so many values are solved when asked for: that takes moments."""


def duel_solution(compiled: CompiledVariant, store: Path) -> DuelSolution:
    """Return the stored solution, or that of a small game.

    Raises:
        AgentError: The game is not solved yet, or its tables are damaged.
    """
    try:
        solution = open_duel(compiled, store)
    except StoreError as error:
        raise AgentError(f"duel_optimal: {error}") from None
    if solution is None and DuelPlan(compiled).num_values <= SOLVED_AT_ONCE:
        solution = solve_duel(compiled)
    if solution is None:
        raise AgentError(
            f"duel_optimal: {compiled.variant.name} is not solved in {store}; "
            f"run scripts/solve.py --players 2 --variant {compiled.variant.name} first"
        )
    return solution
