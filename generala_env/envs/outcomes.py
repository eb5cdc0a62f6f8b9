"""How a game at the table ends: places, and what they are worth to each seat."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.game import GameState
from generala_env.rules.variants import TieBreak, Variant


def standings(state: GameState) -> NDArray[np.int64]:
    """Return everybody's place at the end of a game, 0 for the winners; the others by points.

    Players level on points share a place; places count how many ended ahead.

    Returns:
        (num_players,) int64.
    """
    return np.asarray(places(np.array([state.scores]), winners_of(state)[None])[0])


def winners_of(state: GameState) -> NDArray[np.bool_]:
    """Return who has won, by seat; (num_players,) bool."""
    return np.isin(np.arange(len(state.players)), state.winners)


def places(scores: NDArray[Any], won: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return places from points and winners, both (games, num_players); see ``standings``."""
    ahead = won[:, None, :] & ~won[:, :, None]
    ahead |= (
        (won[:, None, :] == won[:, :, None]) & ~won[:, :, None] & (scores[:, None, :] > scores[:, :, None])
    )
    return np.asarray(ahead.sum(axis=2))


def how_ended(variant: Variant, state: GameState, *, was_tied: bool) -> str:
    """Return ``instant_win``, ``points``, ``draw`` or the name of the tie-break that decided."""
    if state.is_instant_win and not was_tied:
        return "instant_win"
    if not was_tied:
        return "points"
    return "draw" if len(state.winners) > 1 or variant.tie_break is TieBreak.DRAW else variant.tie_break.value


OUTCOME_REWARDS: Final[tuple[str, ...]] = ("outcome", "win_value", "points", "rank")
"""The ways to reward the end of a game; see ``outcome_rewards``."""


def check_reward(reward: str) -> None:
    """Check a ``reward`` option.

    Raises:
        ValueError: There is no such reward.
    """
    if reward not in OUTCOME_REWARDS:
        raise ValueError(f"reward: {reward!r} is not one of {', '.join(OUTCOME_REWARDS)}")


def outcome_rewards(reward: str, scores: NDArray[Any], won: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return what the end of a game pays each seat.

    ``win_value``: 1 shared among the winners, so 1, 1/2 or 0 for two players. ``outcome``: the
    same, but for two players 1, 0 or -1, which sums to zero. ``points``: the points on the
    sheet. ``rank``: the share of the other players who ended behind, ties counting half.

    Args:
        reward: One of ``OUTCOME_REWARDS``.
        scores: (games, num_players) integer.
        won: (games, num_players) bool.

    Returns:
        (games, num_players) float64.
    """
    if reward == "points":
        return np.asarray(scores, dtype=np.float64)
    if reward == "rank":
        place = places(scores, won)
        ahead = (place[:, None, :] < place[:, :, None]).sum(axis=2)
        level = (place[:, None, :] == place[:, :, None]).sum(axis=2) - 1
        return np.asarray(1.0 - (ahead + level / 2) / (scores.shape[1] - 1))
    share = won / won.sum(axis=1, keepdims=True)
    if reward == "outcome" and scores.shape[1] == 2:
        return np.asarray(2.0 * share - 1.0)
    return np.asarray(share)
