"""What an agent scores: exactly, or in sampled games with confidence intervals.

Three ways, from the best to the most general:

* ``exact_evaluation`` asks the agent about every decision that its play can meet: no sampling
  noise, and every point lost to optimal play is told decision by decision.
* ``play_games`` samples games. Of each game the *luck* of its dice is known: what every throw added or took
  in the value of optimal play. Its mean is 0 whatever the agent does, so it is a control variate: scores
  less a multiple of the luck have the same mean and vary less; see ``without_luck``. So it is done with
  chance events in AIVAT (N. Burch and others, "AIVAT: A New Variance Reduction Technique for Agent
  Evaluation in Imperfect Information Games", arXiv 1612.06915) and before it in DIVAT (M. Zinkevich and
  others, "Optimal Unbiased Estimators for Evaluating Agent Performance", 2006); values here are exact.
* Two agents with the same seed meet the same dice, so ``paired_difference`` compares them game by
  game.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tqdm import tqdm

from agents.base import Agent, ask_alone
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin, TurnBatch, instant_win_points
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    NUM_ORDERED_THROWS,
    THROWS_PER_TURN,
    keyed_uniforms,
    next_throw_table,
)
from generala_env.solver.evaluation import action_regrets
from generala_env.solver.solo import SoloSolution, solve_solo

EVALUATION_SEED: Final = 2_000_000
"""Default seed of evaluations; training seeds stay far below it."""

DEFAULT_GAMES: Final = 10_000

GAMES_AT_ONCE: Final = 8_192

FOLDS: Final = 10
"""Parts of the games; the luck of each is weighed as fits the others."""

FEWEST_FITTED: Final = 20
"""Fewer games than these tell too little of how much luck is in them."""


@dataclass(frozen=True)
class SampledGames:
    """Final results of games played alone.

    Attributes:
        scores: (games,) float64, final scores, what an instant win paid included.
        box_points: (games, B) float64, points of closing each box.
        struck: (games, B) bool, boxes closed with 0 points.
        instant_wins: (games,) bool.
        regrets: (games,) float64, points that the game's decisions lost to optimal play.
        optimal_score: What optimal play scores on average.
    """

    scores: NDArray[np.float64]
    box_points: NDArray[np.float64]
    struck: NDArray[np.bool_]
    instant_wins: NDArray[np.bool_]
    regrets: NDArray[np.float64]
    optimal_score: float

    @property
    def luck(self) -> NDArray[np.float64]:
        """(games,) float64: what the throws of each game added in optimal value, 0 on average."""
        return self.scores - (self.optimal_score - self.regrets)

    @property
    def adjusted_scores(self) -> NDArray[np.float64]:
        """(games,) float64: the scores without the luck of the dice, with the same mean on average."""
        return without_luck(self.scores, self.luck)

    @property
    def variance_ratio(self) -> float | None:
        """How many times less the luck-adjusted scores vary; ``None`` where they do not vary."""
        adjusted = float(self.adjusted_scores.var(ddof=1))
        # Rounding alone makes optimal play lose some 1e-14 points.
        return float(self.scores.var(ddof=1)) / adjusted if adjusted > 1e-18 else None


def without_luck(scores: NDArray[np.float64], luck: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the luck of the dice out of scores, as far as it is in them: a control variate, cross-fitted.

    The luck is the correction of AIVAT with the values of optimal play. An agent that plays differently
    turns only a part of it into points, so not all of it is taken away but
    ``b * luck`` with ``b = cov(scores, luck) / var(luck)``, the coefficient of least variance (S. Lavenberg
    and P. Welch, "A Perspective on the Use of Control Variables", 1981). Fitted on the games it is used
    on, it would bias the mean; here each fold's is fitted on the games of the others, so that, given it, a
    game's luck still has mean 0 and the mean of the result is that of the scores.

    Args:
        scores: (games,) float64, of independent games.
        luck: (games,) float64, with mean 0 each.

    Returns:
        (games,) float64; the scores as they are where there are too few games to fit anything.
    """
    if len(scores) < FEWEST_FITTED:
        return scores
    adjusted = np.empty_like(scores)
    fold = np.arange(len(scores)) % FOLDS
    for number in range(FOLDS):
        others, own = fold != number, fold == number
        centred = luck[others] - luck[others].mean()
        varies = float(centred @ centred)
        coefficient = float(centred @ scores[others]) / varies if varies > 0 else 0.0
        adjusted[own] = scores[own] - coefficient * luck[own]
    return adjusted


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
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
    deterministic: bool = True,
    progress: bool = False,
) -> SampledGames:
    """Play games alone, many at once, with dice keyed by (seed, game, turn, throw).

    Args:
        agent: Who plays.
        num_games: How many games.
        seed: Seed of the dice; two agents with the same seed meet the same dice.
        instant_win: How a served Generala that wins is treated.
        deterministic: Take the agent's best actions instead of sampling.
        progress: Show a progress bar.

    Raises:
        AnswerError: An answer of the agent is not legal, or is no action.
    """
    solution = solve_solo(agent.compiled, instant_win=instant_win)
    parts = []
    with tqdm(
        total=num_games, unit="game", desc=agent.name, disable=None if progress else True, leave=False
    ) as bar:
        for start in range(0, num_games, GAMES_AT_ONCE):
            games = np.arange(start, min(start + GAMES_AT_ONCE, num_games))
            parts.append(_play_block(agent, games, seed, solution, deterministic))
            bar.update(len(games))
    return SampledGames(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.box_points for part in parts]),
        np.concatenate([part.struck for part in parts]),
        np.concatenate([part.instant_wins for part in parts]),
        np.concatenate([part.regrets for part in parts]),
        solution.expected_score,
    )


class Step(NamedTuple):
    """What one throw brought to games that are played side by side.

    Attributes:
        turn: Which turn, from 0.
        winners: (won,) int64, rows of the games that the throw won at once.
        winning_throws: (won,) int64, these throws.
        rows: (batch,) int64, rows of the games that decided.
        states: What they decided on.
        masks: (batch, num_actions) bool.
        actions: (batch,) int64, what was done.
        points: (batch,) float64, what closing paid; 0 where dice were kept.
    """

    turn: int
    winners: NDArray[np.intp]
    winning_throws: NDArray[np.intp]
    rows: NDArray[np.intp]
    states: TurnBatch
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    points: NDArray[np.float64]


def walk_games(
    agent: Agent, games: NDArray[Any], seed: int, *, wins_at_once: bool, deterministic: bool
) -> Iterator[Step]:
    """Play games side by side and yield every throw of theirs, with the decisions on it.

    Args:
        agent: Who plays.
        games: (games,) their numbers.
        seed: Seed of the dice.
        wins_at_once: Whether a served Generala that wins ends the game.
        deterministic: Take the agent's best actions.
    """
    compiled = agent.compiled
    card = np.zeros(len(games), dtype=np.int32)
    playing = np.ones(len(games), dtype=bool)
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
            won = served & IS_FIVE_EQUAL[throw] & compiled.instant_win[card[rows]] & wins_at_once
            winners, winning_throws = rows[won], throw[won]
            playing[winners] = deciding[winners] = False
            rows, throw, served = rows[~won], throw[~won], served[~won]
            states = TurnBatch(card[rows], throw, np.full(len(rows), throw_number), served, kept[rows])
            masks = compiled.action_masks(states)
            actions = np.zeros(0, dtype=np.int64)
            if len(rows):
                actions = ask_alone(agent, states, masks, deterministic=deterministic)
            closes = actions >= NUM_KEEP_ACTIONS
            closers, box = rows[closes], actions[closes] - NUM_KEEP_ACTIONS
            where = (box, served[closes].astype(int), throw[closes])
            points = np.zeros(len(rows))
            points[closes] = compiled.closing_points(card[closers], *where)
            yield Step(turn, winners, winning_throws, rows, states, masks, actions, points)
            kept[rows[~closes]] = KEEP_OF_MASK[throw[~closes], actions[~closes]]
            card[closers] = compiled.next_card(card[closers], *where)
            deciding[closers] = False


def _play_block(
    agent: Agent, games: NDArray[Any], seed: int, solution: SoloSolution, deterministic: bool
) -> SampledGames:
    """Play games side by side and add up what they brought; see ``walk_games``.

    Args:
        agent: Who plays.
        games: (games,) their numbers.
        seed: Seed of the dice.
        solution: Optimal play, to measure regret with.
        deterministic: Take the agent's best actions.
    """
    win_points = solution.instant_win_points
    win = np.zeros(len(games), dtype=bool)
    box_points = np.zeros((len(games), agent.compiled.num_boxes))
    struck = np.zeros((len(games), agent.compiled.num_boxes), dtype=bool)
    regrets = np.zeros(len(games))
    wins_at_once = win_points is not None
    for step in walk_games(agent, games, seed, wins_at_once=wins_at_once, deterministic=deterministic):
        win[step.winners] = True
        if len(step.rows):
            regrets[step.rows] += action_regrets(solution, step.states, step.masks, step.actions)
        closes = step.actions >= NUM_KEEP_ACTIONS
        closed = (step.rows[closes], step.actions[closes] - NUM_KEEP_ACTIONS)
        box_points[closed] = step.points[closes]
        struck[closed] = step.points[closes] == 0
    scores = box_points.sum(axis=1) + win * (0.0 if win_points is None else win_points)
    return SampledGames(scores, box_points, struck, win, regrets, solution.expected_score)


def evaluate_sampled(
    agent: Agent,
    num_games: int = DEFAULT_GAMES,
    *,
    seed: int = EVALUATION_SEED,
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
    deterministic: bool = True,
    progress: bool = False,
) -> dict[str, Any]:
    """Return an agent's luck-adjusted mean score, its interval and share of the optimum, as JSON types.

    Raises:
        ValueError: ``num_games`` is below 2.
    """
    if num_games < 2:
        raise ValueError(f"games: {num_games} is too few for a confidence interval; give at least 2")
    games = play_games(
        agent, num_games, seed=seed, instant_win=instant_win, deterministic=deterministic, progress=progress
    )
    return sampled_summary(agent, games, seed=seed, instant_win=instant_win, deterministic=deterministic)


def sampled_summary(
    agent: Agent,
    games: SampledGames,
    *,
    seed: int,
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
    deterministic: bool = True,
) -> dict[str, Any]:
    """Return sampled games as JSON types: the luck-adjusted mean first, then the plain one.

    Args:
        agent: Who played.
        games: Two games or more.
        seed: Seed of the dice.
        instant_win: How a served Generala that wins was treated.
        deterministic: Whether the agent took its best actions.
    """
    compiled = agent.compiled
    optimal = games.optimal_score
    adjusted = games.adjusted_scores
    mean = float(adjusted.mean())
    boxes = [box.value for box in compiled.variant.boxes]
    return {
        "agent": agent.name,
        "variant": compiled.variant.name,
        "fingerprint": compiled.variant.fingerprint,
        "instant_win_points": instant_win_points(compiled, instant_win),
        "deterministic": deterministic,
        "exact": False,
        "seed": seed,
        "num_games": len(games.scores),
        "mean_score": mean,
        "ci95": list(confidence_interval(adjusted)),
        "optimal_score": optimal,
        "optimality": mean / optimal,
        "plain_mean_score": float(games.scores.mean()),
        "plain_ci95": list(confidence_interval(games.scores)),
        "variance_ratio": games.variance_ratio,
        "std_score": float(games.scores.std(ddof=1)),
        "instant_win_share": float(games.instant_wins.mean()),
        "points_by_box": dict(zip(boxes, games.box_points.mean(axis=0).tolist(), strict=True)),
        "struck_by_box": dict(zip(boxes, games.struck.mean(axis=0).tolist(), strict=True)),
        # An illegal answer is an error, so that there is none in what has an evaluation.
        "illegal_actions": 0,
    }


@dataclass(frozen=True)
class PairedDifference:
    """How many points one agent scores more than another with the same dice.

    Attributes:
        mean: The mean difference, first less second.
        ci95: Its t interval over games.
        variance_ratio: How many times less the differences vary than those of unpaired games
            would; ``None`` where they do not vary.
    """

    mean: float
    ci95: tuple[float, float]
    variance_ratio: float | None


def paired_difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> PairedDifference:
    """Compare scores of games that were played with the same dice, game by game.

    Args:
        first: (games,) float64, scores of one agent.
        second: (games,) float64, scores of another with the same seed.

    Raises:
        ValueError: The numbers of games differ.
    """
    if first.shape != second.shape:
        raise ValueError(f"scores: {len(first)} and {len(second)} games cannot be paired")
    differences = first - second
    varies = float(differences.var(ddof=1))
    unpaired = float(first.var(ddof=1) + second.var(ddof=1))
    return PairedDifference(
        float(differences.mean()), confidence_interval(differences), unpaired / varies if varies > 0 else None
    )
