"""Single games told decision by decision, with what each choice gave away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent
from agents.evaluation.sampled import EVALUATION_SEED, _play_block
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin, TurnBatch
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
    winning: list[int] = []
    solution = solve_solo(agent.compiled, instant_win=instant_win)

    def note(turn: int, batch: TurnBatch, masks: NDArray[np.bool_], actions: NDArray[np.int64]) -> None:
        best = int(best_actions(solution, batch, masks)[0])
        lost = float(action_regrets(solution, batch, masks, actions)[0])
        gained = 0.0
        if actions[0] >= NUM_KEEP_ACTIONS:
            status = agent.compiled.card_status[batch.card[0]]
            box = actions[0] - NUM_KEEP_ACTIONS
            gained = float(agent.compiled.points[status, box, int(batch.served[0]), batch.throw[0]])
        score = gained + (decisions[-1].score if decisions else 0.0)
        decisions.append(
            Decision(
                turn=turn,
                card=int(batch.card[0]),
                throw=int(batch.throw[0]),
                throw_number=int(batch.throw_number[0]),
                served=bool(batch.served[0]),
                action=int(actions[0]),
                best_action=best,
                regret=lost,
                score=score,
            )
        )

    played = _play_block(
        agent, np.array([game]), seed, solution, deterministic, note=note, note_win=winning.append
    )
    return GameTrace(tuple(decisions), float(played.scores[0]), winning[0] if winning else -1)
