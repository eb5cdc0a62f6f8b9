"""What each choice is worth to the player to move, for hints and reviews."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent
from agents.errors import AgentError
from agents.games.record import AT_TABLE
from agents.players.seats import SeatAgent, SoloOptimalAgent
from agents.registry import make_agent
from generala_env.envs.table_observation import TableBatch, table_batch
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.game import GameState
from generala_env.solver.solo import SoloSolution, solve_solo


@dataclass(frozen=True)
class Choice:
    """One choice of a decision.

    Attributes:
        action: Its id.
        win: Probability of winning, draws counting as shares; ``None`` when playing alone.
        points: Expected points still to come; in a playoff those of the turn.
    """

    action: int
    win: float | None
    points: float


class Adviser:
    """Knows what every choice is worth: exact points, and the chance of winning.

    For two players the exactly solved game is used where it is in the store, otherwise, and
    for more players, the estimate of ``race``.

    Attributes:
        is_exact: Whether what choices are judged by is exact, once the first advice was given: points
            alone always are, the chance of winning where the game of two is solved.
    """

    def __init__(self, compiled: CompiledVariant, num_players: int, store: Path | None = None) -> None:
        """Bind the adviser to a table; solutions are made when the first advice is asked for."""
        self.compiled = compiled
        self.num_players = num_players
        self._store = store
        self._winning: SeatAgent | None = None
        self._points: SeatAgent | None = None
        self._alone: SoloSolution | None = None
        self.is_exact = num_players == 1

    def _prepare(self) -> None:
        if self._alone is not None or self._winning is not None:
            return
        if self.num_players == 1:
            self._alone = solve_solo(self.compiled, instant_win=AT_TABLE)
            return
        self._points = SoloOptimalAgent(self.compiled, self.num_players, AT_TABLE)
        winning: SeatAgent | Agent | None = None
        if self.num_players == 2:
            try:
                winning = make_agent("duel_optimal", self.compiled, num_players=2, store=self._store)
                self.is_exact = True
            except AgentError:
                winning = None
        if winning is None:
            winning = make_agent("race", self.compiled, num_players=self.num_players, instant_win=AT_TABLE)
        assert isinstance(winning, SeatAgent)
        self._winning = winning

    def choices(self, state: GameState, mask: NDArray[np.bool_]) -> list[Choice]:
        """Return the legal choices of a position, the best first."""
        self._prepare()
        actions = np.flatnonzero(mask).tolist()
        if self._alone is not None:
            points = self._alone.q_values_batch(self.compiled.turn_batch(state))[0]
            chosen = [Choice(action, None, float(points[action])) for action in actions]
        else:
            assert self._winning is not None
            assert self._points is not None
            batch: TableBatch = table_batch(self.compiled, state, state.current_player)
            win, points = self._winning.values(batch)[0], self._points.values(batch)[0]
            chosen = [Choice(action, float(win[action]), float(points[action])) for action in actions]
        return sorted(chosen, key=lambda choice: (-worth(choice), -choice.points, choice.action))

    def best_actions(self, state: GameState, turns: TurnBatch) -> NDArray[np.int64]:
        """Return what is best for the player to move if the turn came to stand otherwise.

        Args:
            state: A position with dice on the table, no playoff.
            turns: Other dice and throws of the same turn.

        Returns:
            (batch,) int64, legal.
        """
        self._prepare()
        if self._alone is not None:
            return self._alone.actions(turns)
        assert self._winning is not None
        table = table_batch(self.compiled, state, state.current_player)
        rows = np.zeros(len(turns.card), dtype=np.intp)
        batch = table.take(rows)._replace(turn=turns)
        return self._winning.act_on(batch, self.compiled.action_masks(turns))


def worth(choice: Choice) -> float:
    """Return what a choice is judged by: the chance of winning, or points when playing alone."""
    return choice.points if choice.win is None else choice.win
