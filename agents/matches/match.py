"""Matches between agents: whole fields, every seat rotation, the same dice for each, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from agents.base import Agent, StateAgent, ask_alone
from agents.errors import AgentError
from agents.evaluation.sampled import EVALUATION_SEED, confidence_interval
from agents.matches.ratings import Ratings, rate
from agents.players.seats import SeatAgent
from generala_env.envs.dealing import FirstSeat
from generala_env.envs.games import TableGames
from generala_env.envs.opponents import ask
from generala_env.envs.outcomes import places
from generala_env.rules.answers import checked_actions
from generala_env.rules.compiled import CompiledVariant
from generala_env.rules.names import numbered
from generala_env.rules.variants import TieBreak

Player = Agent | SeatAgent
"""Anybody who can sit at a table."""

GAMES_AT_ONCE: Final = 20_000


@dataclass(frozen=True)
class MatchGames:
    """Finished games of one table. Axes: deals (D), rotations (R), agents (n).

    In rotation ``r`` agent ``a`` sits in seat ``(a - r) % n``. Rotations of a deal share its dice.

    Attributes:
        scores: (D, R, n) int64, points on the sheet.
        won: (D, R, n) bool, the winners.
        is_instant_win: (D, R) bool.
        was_tied: (D, R) bool, level on points when the last box was closed.
        had_playoff: (D, R) bool.
        starters: (D, R) int64, the agent that started.
    """

    scores: NDArray[np.int64]
    won: NDArray[np.bool_]
    is_instant_win: NDArray[np.bool_]
    was_tied: NDArray[np.bool_]
    had_playoff: NDArray[np.bool_]
    starters: NDArray[np.int64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """(D, R, n) float64: each game's 1 shared among its winners."""
        return np.asarray(self.won / self.won.sum(axis=2, keepdims=True))

    @property
    def places(self) -> NDArray[np.int64]:
        """(D, R, n) int64: how many ended ahead: 0 for winners, the others by points."""
        shape = self.scores.shape
        flat = places(self.scores.reshape(-1, shape[2]), self.won.reshape(-1, shape[2]))
        return flat.reshape(shape)


def seats_of_agents(num_players: int) -> NDArray[np.int64]:
    """Return the seat of each agent in each rotation, (rotations, agents) int64."""
    players = np.arange(num_players)
    return (players[None, :] - players[:, None]) % num_players


def play_match(
    agents: Sequence[Player],
    num_deals: int,
    *,
    seed: int = EVALUATION_SEED,
    first_player: FirstSeat = "variant",
    deterministic: bool = True,
    progress: tqdm[Any] | None = None,
) -> MatchGames:
    """Play every deal once in every seat rotation, all games at once.

    The dice follow from (seed, deal, stage, round, throw, seat) alone, so in each rotation the
    agents meet the dice that the others met before them.

    Args:
        agents: Who plays; as many as seats.
        num_deals: How many deals; there are ``len(agents)`` games for each.
        seed: Seed of the dice.
        first_player: Who starts: ``"variant"``, for its own rule, or a seat.
        deterministic: Take the agents' best actions instead of sampling.
        progress: A bar that is moved on by every finished game.

    Raises:
        AgentError: The agents play different rules.
        AnswerError: An agent answers with an action that is not legal.
        ValueError: The variant does not allow that many players.
    """
    compiled = agents[0].compiled
    for agent in agents[1:]:
        if agent.compiled.variant != compiled.variant:
            ours, theirs = compiled.variant, agent.compiled.variant
            raise AgentError(
                f"agents: {agents[0].name} plays {ours.name} ({ours.fingerprint}), "
                f"{agent.name} plays {theirs.name} ({theirs.fingerprint})"
            )
    num_players = len(agents)
    deals_at_once = max(1, GAMES_AT_ONCE // num_players)
    parts = []
    for start in range(0, num_deals, deals_at_once):
        deals = np.arange(start, min(start + deals_at_once, num_deals))
        parts.append(_play_block(agents, compiled, deals, seed, first_player, deterministic, progress))
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("scores", "won", "is_instant_win", "was_tied", "had_playoff", "starters")
    }
    return MatchGames(**joined)


def _play_block(
    agents: Sequence[Player],
    compiled: CompiledVariant,
    deals: NDArray[np.int64],
    seed: int,
    first_player: FirstSeat,
    deterministic: bool,
    progress: tqdm[Any] | None,
) -> MatchGames:
    num_players = len(agents)
    numbers = np.repeat(deals, num_players)
    rotations = np.tile(np.arange(num_players), len(deals))
    seeds = np.full(len(numbers), seed % 2**64, dtype=np.uint64)
    games = TableGames(compiled, num_players, seeds, numbers, first_player=first_player)
    finished = 0
    while True:
        rows = np.flatnonzero(~games.is_over)
        if progress is not None:
            progress.update(len(numbers) - len(rows) - finished)
            finished = len(numbers) - len(rows)
        if not len(rows):
            break
        masks = games.action_masks(rows)
        actions = masks.argmax(axis=1)
        # Where a single action is legal there is nothing to ask.
        mover = np.where(masks.sum(axis=1) > 1, (games.current[rows] + rotations[rows]) % num_players, -1)
        for index, agent in enumerate(agents):
            asked = np.flatnonzero(mover == index)
            if not len(asked):
                continue
            actions[asked] = ask_player(agent, games, rows[asked], masks[asked], deterministic=deterministic)
        games.step(rows, actions)
    seats = seats_of_agents(num_players)[rotations]
    shape = (len(deals), num_players)
    row = np.arange(len(numbers))[:, None]
    return MatchGames(
        games.score[row, seats].reshape(*shape, num_players),
        games.won[row, seats].reshape(*shape, num_players),
        games.is_instant_win.reshape(shape),
        games.was_tied.reshape(shape),
        games.is_playoff.reshape(shape),
        ((games.first + rotations) % num_players).reshape(shape),
    )


def ask_player(
    agent: Player,
    games: TableGames,
    rows: NDArray[Any],
    masks: NDArray[np.bool_],
    *,
    deterministic: bool = True,
) -> NDArray[np.int64]:
    """Ask an agent that is to move in some games for its actions, (rows,) int64.

    Agents that decide from the position itself are given it; the others their observations.

    Raises:
        AnswerError: An answer is not legal, or is no action.
    """
    if isinstance(agent, StateAgent):
        return ask_alone(agent, games.turn_batch(rows), masks)
    if isinstance(agent, SeatAgent):
        batch = games.table_batch(rows)
        return checked_actions(agent, agent.act_on(batch, masks.copy()), agent.compiled, batch.turn, masks)
    return ask(agent, games.table_batch(rows), masks, deterministic=deterministic)


def _mean(values: NDArray[Any]) -> dict[str, Any]:
    """Return a mean over deals and its interval; rotations of a deal count as one observation."""
    by_deal = values.reshape(len(values), -1).mean(axis=1)
    return {"mean": float(by_deal.mean()), "ci95": list(confidence_interval(by_deal))}


def labels_of(agents: Sequence[Player]) -> list[str]:
    """Return the agents' names, numbered where a name comes more than once."""
    return numbered([agent.name for agent in agents], "#")


def _table_report(games: MatchGames, labels: Sequence[str], tie_break: TieBreak) -> dict[str, Any]:
    """Return the results of one table as JSON types."""
    shares = games.shares
    num_winners = games.won.sum(axis=2)
    agents = []
    for index, label in enumerate(labels):
        alone = games.won[:, :, index] & (num_winners == 1)
        shared = games.won[:, :, index] & (num_winners > 1)
        starts = games.starters == index
        agents.append(
            {
                "agent": label,
                "win_share": _mean(shares[:, :, index]),
                "wins": _mean(alone),
                "draws": _mean(shared),
                "score": _mean(games.scores[:, :, index]),
                "win_share_starting": float(shares[:, :, index][starts].mean()) if starts.any() else None,
                "instant_wins": float((games.is_instant_win & alone).mean()),
            }
        )
    is_draw = num_winners > 1
    decided_by = {
        "points": int((~games.was_tied & ~games.is_instant_win).sum()),
        "instant_win": int((games.is_instant_win & ~games.had_playoff).sum()),
        "draw": int(is_draw.sum()),
    }
    if tie_break is not TieBreak.DRAW:
        decided_by[tie_break.value] = int((games.was_tied & ~is_draw).sum())
    return {
        "seats": list(labels),
        "num_games": int(games.is_instant_win.size),
        "num_deals": len(games.scores),
        "agents": agents,
        "decided_by": decided_by,
    }


def compare_agents(
    agents: Sequence[Player],
    num_games: int,
    *,
    num_seats: int | None = None,
    seed: int = EVALUATION_SEED,
    first_player: FirstSeat = "variant",
    deterministic: bool = True,
    progress: bool = False,
) -> dict[str, Any]:
    """Play a field of agents against each other and report it as JSON types.

    Every choice of ``num_seats`` agents plays one table over the same deals. Intervals are over
    deals: whatever is compared is compared on equal dice.

    Args:
        agents: The field, two or more.
        num_games: Games of each table, rounded up to whole rotations.
        num_seats: Players of each table; all agents at one table if ``None``.
        seed: Seed of the dice.
        first_player: Who starts.
        deterministic: Take the agents' best actions instead of sampling.
        progress: Show a progress bar.

    Raises:
        AgentError: The agents play different rules.
        AnswerError: An agent answers with an action that is not legal.
        ValueError: There are too few agents or games, or too many for the variant.
    """
    num_seats = len(agents) if num_seats is None else num_seats
    if len(agents) < 2 or not 2 <= num_seats <= len(agents):
        raise ValueError(f"seats: {num_seats} seats cannot be filled from {len(agents)} agents")
    num_deals = -(-num_games // num_seats)
    if num_deals < 2:
        raise ValueError(f"games: {num_games} is too few for an interval; give at least {2 * num_seats}")
    labels = labels_of(agents)
    variant = agents[0].compiled.variant
    tables: list[tuple[tuple[int, ...], MatchGames]] = []
    members_of = list(combinations(range(len(agents)), num_seats))
    total = len(members_of) * num_deals * num_seats
    with tqdm(total=total, unit="game", disable=None if progress else True, leave=False, delay=1) as bar:
        for members in members_of:
            bar.set_description(" ".join(labels[index] for index in members))
            games = play_match(
                [agents[index] for index in members],
                num_deals,
                seed=seed,
                first_player=first_player,
                deterministic=deterministic,
                progress=bar,
            )
            tables.append((members, games))
    ratings = rate([(members, games.places) for members, games in tables], len(agents))
    one_of = np.eye(len(agents))
    return {
        "variant": variant.name,
        "fingerprint": variant.fingerprint,
        "seed": seed,
        "deterministic": deterministic,
        "num_seats": num_seats,
        "agents": labels,
        "tables": [
            _table_report(games, [labels[index] for index in members], variant.tie_break)
            for members, games in tables
        ],
        "pairs": _pairs(tables, labels, ratings),
        "ratings": [
            _rating(ratings, weights) | {"agent": label}
            for label, weights in zip(labels, one_of, strict=True)
        ],
    }


def _rating(ratings: Ratings, weights: NDArray[np.float64]) -> dict[str, Any]:
    """Return a weighted sum of ratings and its interval as JSON types; without one if there is none."""
    interval = ratings.interval(weights)
    return {"rating": float(weights @ ratings.values), "ci95": None if interval is None else list(interval)}


def _pairs(
    tables: Sequence[tuple[tuple[int, ...], MatchGames]], labels: Sequence[str], ratings: Ratings
) -> list[dict[str, Any]]:
    """Compare every pair at the tables where both sat: who ended ahead, and by how many points."""
    pairs = []
    one_of = np.eye(len(labels))
    for first, second in combinations(range(len(labels)), 2):
        ahead, margins = [], []
        for members, games in tables:
            if first in members and second in members:
                one, other = members.index(first), members.index(second)
                place = games.places
                ahead.append(0.5 + 0.5 * np.sign(place[:, :, other] - place[:, :, one]))
                margins.append(games.scores[:, :, one] - games.scores[:, :, other])
        pairs.append(
            {
                "agents": [labels[first], labels[second]],
                "ahead": _mean(np.concatenate(ahead, axis=1)),
                "score_difference": _mean(np.concatenate(margins, axis=1)),
                "rating_difference": _rating(ratings, one_of[first] - one_of[second]),
            }
        )
    return pairs
