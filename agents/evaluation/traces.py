"""Single games told decision by decision, with what each choice gave away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agents.base import Agent
from agents.evaluation.sampled import EVALUATION_SEED, walk_games
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin
from generala_env.solver.evaluation import action_regrets, best_actions
from generala_env.solver.solo import solve_solo


@dataclass(frozen=True)
class Decision:
    """One decision of a game, and what would have been right.

    Attributes:
        turn: Which turn, from 0.
        card: The index of the card before it.
        throw: The index of the dice in ``THROWS``.
        throw_number: 1 to 3.
        served: Whether closing counted as served.
        action: What was done.
        best_action: What was right.
        regret: Points lost by it.
        score: Points after it.
    """

    turn: int
    card: int
    throw: int
    throw_number: int
    served: bool
    action: int
    best_action: int
    regret: float
    score: float


@dataclass(frozen=True)
class GameTrace:
    """A game decision by decision.

    Attributes:
        decisions: In order.
        score: The final score.
        winning_throw: The throw that won at once, or -1.
    """

    decisions: tuple[Decision, ...]
    score: float
    winning_throw: int

    @property
    def is_instant_win(self) -> bool:
        """Whether a served Generala ended the game."""
        return self.winning_throw >= 0


def trace_game(
    agent: Agent,
    *,
    seed: int = EVALUATION_SEED,
    game: int = 0,
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
    deterministic: bool = True,
) -> GameTrace:
    """Play one game, the same that ``play_games`` plays under that number, and note each decision.

    Args:
        agent: Who plays.
        seed: Seed of the dice.
        game: The number of the game.
        instant_win: How a served Generala that wins is treated.
        deterministic: Take the agent's best actions instead of sampling.
    """
    decisions: list[Decision] = []
    score, winning_throw = 0.0, -1
    solution = solve_solo(agent.compiled, instant_win=instant_win)
    win_points = solution.instant_win_points
    steps = walk_games(
        agent, np.array([game]), seed, wins_at_once=win_points is not None, deterministic=deterministic
    )
    for step in steps:
        if len(step.winners):
            score += win_points or 0.0
            winning_throw = int(step.winning_throws[0])
            continue
        score += float(step.points[0])
        states = step.states
        decisions.append(
            Decision(
                turn=step.turn,
                card=int(states.card[0]),
                throw=int(states.throw[0]),
                throw_number=int(states.throw_number[0]),
                served=bool(states.served[0]),
                action=int(step.actions[0]),
                best_action=int(best_actions(solution, states, step.masks)[0]),
                regret=float(action_regrets(solution, states, step.masks, step.actions)[0]),
                score=score,
            )
        )
    return GameTrace(tuple(decisions), score, winning_throw)
