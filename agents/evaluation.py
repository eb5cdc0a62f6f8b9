"""What an agent scores: sampled games with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tqdm import tqdm

from agents.base import Agent
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import InstantWin, TurnBatch, instant_win_points
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    NUM_ORDERED_THROWS,
    THROWS_PER_TURN,
    keyed_uniforms,
    next_throw_table,
)
from generala_env.solver.solo import solve_solo

EVALUATION_SEED: Final = 2_000_000
"""Default seed of evaluations; training seeds stay far below it."""

DEFAULT_GAMES: Final = 10_000
GAMES_AT_ONCE: Final = 8_192


@dataclass(frozen=True)
class SampledGames:
    """Final results of games played alone.

    Attributes:
        scores: (games,) float64, final scores, what an instant win paid included.
        box_points: (games, B) float64, points of closing each box.
        struck: (games, B) bool, boxes closed with 0 points.
        instant_wins: (games,) bool.
        illegal_actions: How many actions of the agent were outside its mask.
    """

    scores: NDArray[np.float64]
    box_points: NDArray[np.float64]
    struck: NDArray[np.bool_]
    instant_wins: NDArray[np.bool_]
    illegal_actions: int


def confidence_interval(values: NDArray[np.float64], confidence: float = 0.95) -> tuple[float, float]:
    """Return the t interval of a mean; the mean twice where it cannot vary.

    Args:
        values: (n,) float64, independent results.
        confidence: Its coverage.
    """
    mean, error = float(values.mean()), float(stats.sem(values)) if len(values) > 1 else 0.0
    if not error > 0:
        return (mean, mean)
    low, high = stats.t.interval(confidence, len(values) - 1, loc=mean, scale=error)
    return (float(low), float(high))


def play_games(
    agent: Agent,
    num_games: int,
    *,
    seed: int = EVALUATION_SEED,
    instant_win: InstantWin = "perfect",
    deterministic: bool = True,
    progress: bool = False,
) -> SampledGames:
    """Play games alone, many at once, with dice keyed by (seed, game, turn, throw).

    An action outside the mask is counted and replaced by the lowest legal one.

    Args:
        agent: Who plays.
        num_games: How many games.
        seed: Seed of the dice; two agents with the same seed meet the same dice.
        instant_win: How a served Generala that wins is treated.
        deterministic: Take the agent's best actions instead of sampling.
        progress: Show a progress bar.
    """
    parts = []
    with tqdm(total=num_games, unit="game", desc=agent.name, disable=not progress, leave=False) as bar:
        for start in range(0, num_games, GAMES_AT_ONCE):
            games = np.arange(start, min(start + GAMES_AT_ONCE, num_games))
            parts.append(_play_block(agent, games, seed, instant_win, deterministic))
            bar.update(len(games))
    return SampledGames(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.box_points for part in parts]),
        np.concatenate([part.struck for part in parts]),
        np.concatenate([part.instant_wins for part in parts]),
        sum(part.illegal_actions for part in parts),
    )


def _play_block(
    agent: Agent, games: NDArray[Any], seed: int, instant_win: InstantWin, deterministic: bool
) -> SampledGames:
    compiled = agent.compiled
    win_points = instant_win_points(compiled, instant_win)
    card = np.zeros(len(games), dtype=np.int32)
    playing = np.ones(len(games), dtype=bool)
    win = np.zeros(len(games), dtype=bool)
    box_points = np.zeros((len(games), compiled.num_boxes))
    struck = np.zeros((len(games), compiled.num_boxes), dtype=bool)
    illegal = 0
    for turn in range(compiled.num_boxes):
        kept = np.full(len(games), EMPTY_KEEP)
        deciding = playing.copy()
        for throw_number in range(1, THROWS_PER_TURN + 1):
            rows = np.flatnonzero(deciding)
            if not len(rows):
                break
            rolls = (keyed_uniforms(seed, games[rows], turn, throw_number) * NUM_ORDERED_THROWS).astype(int)
            throw = next_throw_table()[kept[rows], rolls]
            served = compiled.is_served[throw_number - 1, (kept[rows] == EMPTY_KEEP).astype(int)]
            if win_points is not None:
                won = served & IS_FIVE_EQUAL[throw] & compiled.instant_win[card[rows]]
                win[rows[won]] = True
                playing[rows[won]] = deciding[rows[won]] = False
                rows, throw, served = rows[~won], throw[~won], served[~won]
                if not len(rows):
                    break
            batch = TurnBatch(card[rows], throw, np.full(len(rows), throw_number), served, kept[rows])
            masks = compiled.action_masks(batch)
            actions = agent.act(agent.layout.encode(batch), masks, deterministic=deterministic)
            allowed = masks[np.arange(len(rows)), actions]
            illegal += int((~allowed).sum())
            actions = np.where(allowed, actions, masks.argmax(axis=1))
            keeps = actions < NUM_KEEP_ACTIONS
            kept[rows[keeps]] = KEEP_OF_MASK[throw[keeps], actions[keeps]]
            closers, box = rows[~keeps], actions[~keeps] - NUM_KEEP_ACTIONS
            where = (box, served[~keeps].astype(int), throw[~keeps])
            paid = compiled.points[compiled.card_status[card[closers]], *where]
            box_points[closers, box] = paid
            struck[closers, box] = paid == 0
            card[closers] = compiled.next_card(card[closers], *where)
            deciding[closers] = False
    scores = box_points.sum(axis=1) + win * (0.0 if win_points is None else win_points)
    return SampledGames(scores, box_points, struck, win, illegal)


def evaluate_sampled(
    agent: Agent,
    num_games: int = DEFAULT_GAMES,
    *,
    seed: int = EVALUATION_SEED,
    instant_win: InstantWin = "perfect",
    deterministic: bool = True,
    progress: bool = False,
) -> dict[str, Any]:
    """Return an agent's mean score with its interval, and its share of the optimum, as JSON types.

    Raises:
        ValueError: ``num_games`` is below 2.
    """
    if num_games < 2:
        raise ValueError(f"games: {num_games} is too few for a confidence interval; give at least 2")
    compiled = agent.compiled
    games = play_games(
        agent, num_games, seed=seed, instant_win=instant_win, deterministic=deterministic, progress=progress
    )
    optimal = solve_solo(compiled, instant_win=instant_win).expected_score
    mean = float(games.scores.mean())
    boxes = [box.value for box in compiled.variant.boxes]
    return {
        "agent": agent.name,
        "variant": compiled.variant.name,
        "fingerprint": compiled.variant.fingerprint,
        "instant_win_points": instant_win_points(compiled, instant_win),
        "deterministic": deterministic,
        "seed": seed,
        "num_games": num_games,
        "mean_score": mean,
        "ci95": list(confidence_interval(games.scores)),
        "std_score": float(games.scores.std(ddof=1)),
        "optimal_score": optimal,
        "optimality": mean / optimal,
        "instant_win_share": float(games.instant_wins.mean()),
        "points_by_box": dict(zip(boxes, games.box_points.mean(axis=0).tolist(), strict=True)),
        "struck_by_box": dict(zip(boxes, games.struck.mean(axis=0).tolist(), strict=True)),
        "illegal_actions": games.illegal_actions,
    }
