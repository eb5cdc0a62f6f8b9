"""What optimal two-player games look like, and where playing for points goes wrong in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.players.seats import DuelOptimalAgent
from generala_env.envs.games import TableGames
from generala_env.rules.actions import action_text
from generala_env.rules.compiled import CompiledVariant
from generala_env.rules.dice import KEEPS, THROWS
from generala_env.rules.game import GameState, Phase, Player, Turn
from generala_env.solver.duel import DuelSolution
from generala_env.solver.position import position_text
from generala_env.solver.solo import SoloSolution, solve_solo

DIFFERS: Final = 1e-6
"""Losses of less than this are rounding, or equal moves."""

NUM_EXAMPLES: Final = 5

_GAMES_AT_ONCE: Final = 20_000

_LEADS: Final = (-10_000, -100, -50, -20, -5, 6, 21, 51, 101, 10_000)


class _Study:
    """Running sums over decisions."""

    def __init__(self, compiled: CompiledVariant) -> None:
        self.compiled = compiled
        self.decisions = self.differing = 0
        self.loss_by_round = np.zeros(compiled.num_boxes + 1)
        self.loss_by_lead = np.zeros(len(_LEADS) - 1)
        self.decisions_by_lead = np.zeros(len(_LEADS) - 1, dtype=np.int64)
        self.worst: dict[str, dict[str, Any]] = {}

    def add(
        self, games: TableGames, rows: NDArray[Any], q_values: NDArray[Any], points_action: NDArray[Any]
    ) -> None:
        best = q_values.max(axis=1)
        losses = best - q_values[np.arange(len(rows)), points_action]
        losses[losses < DIFFERS] = 0.0
        seats = games.current[rows]
        lead = games.score[rows, seats] - games.score[rows, 1 - seats]
        bucket = np.searchsorted(_LEADS, lead, side="right") - 1
        self.decisions += len(rows)
        self.differing += int((losses > 0).sum())
        np.add.at(self.loss_by_round, games.round[rows], losses)
        np.add.at(self.loss_by_lead, bucket, losses)
        np.add.at(self.decisions_by_lead, bucket, 1)
        floor = min((one["loses"] for one in self.worst.values()), default=0.0)
        for row in np.argsort(-losses)[:NUM_EXAMPLES].tolist():
            if losses[row] <= (floor if len(self.worst) >= NUM_EXAMPLES else 0.0):
                break
            self._keep(games, int(rows[row]), q_values[row], int(points_action[row]), float(losses[row]))

    def _keep(
        self, games: TableGames, row: int, q_values: NDArray[Any], points_action: int, loss: float
    ) -> None:
        seat = int(games.current[row])
        boxes = self.compiled.num_boxes
        cards = [self.compiled.card(int(games.card[row, one])) for one in (seat, 1 - seat)]
        players = tuple(
            Player(card, tuple(None if card.is_open(box) else 0 for box in range(boxes)), points)
            for card, points in zip(
                cards, (int(games.score[row, one]) for one in (seat, 1 - seat)), strict=True
            )
        )
        dice = THROWS[games.throw[row]]
        turn = Turn(int(games.throw_number[row]), dice, KEEPS[games.kept[row]])
        first = 0 if cards[0].num_open == cards[1].num_open else 1
        state = GameState(Phase.TURNS, players, 0, first, int(games.round[row]), turn)
        self.worst[position_text(self.compiled, state)] = {
            "best": action_text(int(q_values.argmax()), dice, self.compiled.variant.boxes),
            "for_points": action_text(points_action, dice, self.compiled.variant.boxes),
            "value": float(q_values.max()),
            "loses": loss,
        }
        if len(self.worst) > NUM_EXAMPLES:
            del self.worst[min(self.worst, key=lambda text: self.worst[text]["loses"])]


def study_duel(
    solution: DuelSolution, num_games: int, *, seed: int = 0, report: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Play the optimal pair against itself and look at every decision.

    At each decision the action that is best for points alone (``solve_solo`` with ``play_on``) is priced
    in the two-player game; what it loses against the best action is a probability of winning.

    Args:
        solution: The solved game.
        num_games: How many games to sample; the first seat starts all of them.
        seed: Seed of the dice.
        report: Called with the number of games done.

    Returns:
        JSON types: the sampled value with its standard error, how games ended, how often the two policies
        differ, what that costs by round and by lead, and the dearest decisions met.
    """
    compiled = solution.compiled
    agent = DuelOptimalAgent(solution)
    points = solve_solo(compiled, instant_win="play_on")
    study = _Study(compiled)
    results: list[NDArray[np.float64]] = []
    ended = {"instant_win": 0, "tied": 0}
    for start in range(0, num_games, _GAMES_AT_ONCE):
        numbers = np.arange(start, min(start + _GAMES_AT_ONCE, num_games))
        seeds = np.full(len(numbers), seed, dtype=np.uint64)
        games = TableGames(compiled, 2, seeds, numbers, first_player=0)
        while not games.is_over.all():
            _step(games, agent, points, study)
        results.append(games.won[:, 0] / games.won.sum(axis=1))
        ended["instant_win"] += int((games.is_instant_win & ~games.is_playoff).sum())
        ended["tied"] += int(games.was_tied.sum())
        report(len(numbers))
    shares = np.concatenate(results)
    return {
        "games": num_games,
        "first_player_sampled": float(shares.mean()),
        "standard_error": float(shares.std() / np.sqrt(num_games)),
        "instant_win_share": ended["instant_win"] / num_games,
        "tied_share": ended["tied"] / num_games,
        "decisions_per_game": study.decisions / num_games,
        "differing_share": study.differing / study.decisions,
        "loss_per_game": float(study.loss_by_round.sum() / num_games),
        "loss_by_round": (study.loss_by_round[1:] / num_games).tolist(),
        "loss_by_lead": [
            {"from": low, "to": high - 1, "decisions": int(count), "loss_per_decision": loss / max(1, count)}
            for low, high, count, loss in zip(
                _LEADS,
                _LEADS[1:],
                study.decisions_by_lead.tolist(),
                study.loss_by_lead.tolist(),
                strict=False,
            )
        ],
        "dearest": [
            {"position": text, **one}
            for text, one in sorted(study.worst.items(), key=lambda item: -item[1]["loses"])
        ],
    }


def _step(games: TableGames, agent: DuelOptimalAgent, points: SoloSolution, study: _Study) -> None:
    going = np.flatnonzero(~games.is_over)
    playoffs = going[games.is_playoff[going]]
    if len(playoffs):
        games.step(playoffs, agent.act_on(games.table_batch(playoffs), games.action_masks(playoffs)))
    rows = going[~np.isin(going, playoffs)]
    if not len(rows):
        return
    masks = games.action_masks(rows)
    q_values = np.where(masks, agent.q_values(games.table_batch(rows)), -np.inf)
    for_points = np.where(masks, points.q_values_batch(games.turn_batch(rows)), -np.inf).argmax(axis=1)
    study.add(games, rows, q_values, for_points)
    games.step(rows, q_values.argmax(axis=1))
