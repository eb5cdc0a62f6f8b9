"""Ratings: what they are where it is known, and that their intervals hold what they should."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from agents.evaluation.sampled import confidence_interval
from agents.matches.match import compare_agents
from agents.matches.ratings import ELO, Ratings, rate
from agents.registry import make_agent


def difference(ratings: Ratings, first: int = 0, second: int = 1) -> tuple[float, tuple[float, float]]:
    weights = np.zeros(len(ratings.values))
    weights[first], weights[second] = 1.0, -1.0
    interval = ratings.interval(weights)
    assert interval is not None
    return float(weights @ ratings.values), interval


def duel_places(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return places (deals, rotations, 2) of games in which the first took such shares."""
    return np.stack([(shares == 0).astype(int), (shares == 1).astype(int)], axis=2)


@pytest.mark.parametrize("share", [0.2, 0.497, 0.5, 0.517, 0.9])
def test_the_difference_of_two_is_the_logit_of_the_share_draws_as_halves(share: float) -> None:
    generator = np.random.default_rng(1)
    won = generator.choice([0.0, 0.5, 1.0], p=[0.9 * (1 - share), 0.1, 0.9 * share], size=(800, 2))
    found, (low, high) = difference(rate([((0, 1), duel_places(won))], 2))
    mean = won.mean()
    assert found == pytest.approx(ELO * special.logit(mean), abs=1e-8)
    # The winner of the table is never rated below the loser.
    assert np.sign(found) == np.sign(mean - 0.5)
    # The delta method from the interval of the share over deals.
    low_share, high_share = confidence_interval(won.mean(axis=1))
    expected = ELO * (high_share - low_share) / (mean * (1 - mean))
    assert high - low == pytest.approx(expected, rel=1e-9)


def test_order_of_games_is_of_no_account_and_copies_halve_the_interval() -> None:
    won = np.random.default_rng(2).choice([0.0, 0.5, 1.0], size=(400, 2))
    once = difference(rate([((0, 1), duel_places(won))], 2))
    backwards = difference(rate([((0, 1), duel_places(won[::-1]))], 2))
    assert np.hstack(backwards) == pytest.approx(np.hstack(once))
    fourfold = difference(rate([((0, 1), duel_places(np.tile(won, (4, 1))))], 2))
    assert fourfold[0] == pytest.approx(once[0])
    widths = [high - low for _, (low, high) in (once, fourfold)]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def orders(strengths: NDArray[np.float64], shape: tuple[int, int], seed: int) -> NDArray[np.int64]:
    """Draw places of players (deals, rotations, players) by Gumbel noise, as the model has it."""
    generator = np.random.default_rng(seed)
    noisy = strengths + generator.gumbel(size=(*shape, len(strengths)))
    return np.asarray((-noisy).argsort(axis=2).argsort(axis=2))


def test_strengths_are_found_again_at_tables_of_three() -> None:
    strengths = np.array([0.6, 0.1, -0.7])
    ratings = rate([((0, 1, 2), orders(strengths, (20_000, 3), 3))], 3)
    errors = np.sqrt(np.diag(np.asarray(ratings.covariance)))
    assert (np.abs(ratings.values - ELO * strengths) < 4 * errors).all()
    assert (errors < 3).all()


@pytest.mark.parametrize("is_shared", [False, True])
def test_intervals_cover_the_truth_19_times_of_20(is_shared: bool) -> None:
    """Also where the games of a deal are copies of each other, which a count of games would not see."""
    strengths = np.array([0.4, 0.0, -0.4])
    covered = []
    for seed in range(400):
        tables = []
        for number, (first, second) in enumerate(((0, 1), (0, 2), (1, 2))):
            places = orders(strengths[[first, second]], (60, 1 if is_shared else 2), 1000 * number + seed)
            tables.append(((first, second), np.repeat(places, 2, axis=1) if is_shared else places))
        _, (low, high) = difference(rate(tables, 3), 0, 2)
        covered.append(low <= ELO * 0.8 <= high)
    # Four standard errors of 400 draws.
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)


def test_four_seeds_agree_within_their_intervals_and_with_their_tables() -> None:
    agents = [make_agent(name, "ruibal", num_players=2) for name in ("turn_greedy", "tips")]
    found = []
    for seed in range(4):
        report = compare_agents(agents, 600, seed=seed)
        share = report["tables"][0]["agents"][0]["win_share"]["mean"]
        pair = report["pairs"][0]["rating_difference"]
        assert pair["rating"] == pytest.approx(ELO * special.logit(share), abs=1e-8)
        first, second = (row["rating"] for row in report["ratings"])
        assert first - second == pytest.approx(pair["rating"])
        found.append((pair["rating"], (pair["ci95"][1] - pair["ci95"][0]) / 2))
    for one, half in found:
        for other, other_half in found:
            assert abs(one - other) < 1.6 * np.hypot(half, other_half)


def test_who_never_lost_has_a_rating_and_no_interval() -> None:
    won = np.ones((50, 2))
    ratings = rate([((0, 1), duel_places(won))], 2)
    assert not ratings.is_bounded
    assert ratings.interval(np.array([1.0, -1.0])) is None
    assert ratings.values[0] - ratings.values[1] == pytest.approx(ELO * special.logit(100.5 / 101), abs=1e-6)
    # A circle of wins bounds everybody, though nobody lost to more than one.
    circle = [(members, duel_places(won[:, :1])) for members in ((0, 1), (1, 2), (2, 0))]
    assert rate(circle, 3).is_bounded
    assert rate(circle, 3).values == pytest.approx(0, abs=1e-9)


def test_level_players_at_larger_tables_share_their_orders() -> None:
    level = np.zeros((20, 3, 3), dtype=int)
    assert rate([((0, 1, 2), level)], 3).values == pytest.approx(0, abs=1e-9)
    places = np.tile([[[0, 1, 1]], [[2, 0, 0]]], (30, 1, 1))
    ratings = rate([((0, 1, 2), places)], 3)
    assert ratings.values[1] == pytest.approx(ratings.values[2], abs=1e-6)
