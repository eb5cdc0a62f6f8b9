"""Ratings of a field by maximum likelihood: Bradley and Terry's model, Plackett and Luce's for more than two.

Players do not change while they are rated, so all games count alike and at once: no order of games, no
prior, no learning rate. With strengths theta, the players of a game are placed in the order a, b, c, ... with
probability

    e^a / (e^a + e^b + e^c + ...) * e^b / (e^b + e^c + ...) * ...

(R. Luce, "Individual Choice Behavior", 1959; R. Plackett, "The Analysis of Permutations", 1975), which for
two is the model of R. Bradley and M. Terry, "Rank Analysis of Incomplete Block Designs" (1952): there the
difference of two strengths is the logit of the share of wins. Players who are level share all orders of
theirs equally: a draw of two is half a win for each.

Rotations and tables of one deal share their dice, so deals, not games, are what is independent: the
covariance is the sandwich of P. Huber, "The behavior of maximum likelihood estimates under nonstandard
conditions" (1967), with the deals as its clusters. (``choix``, which fits the same model, takes neither half
wins nor clusters.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special, stats

ELO: Final = 400 / math.log(10)
"""Points of rating of one unit of strength: 400 points are odds of 10 to 1, as in chess."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of a field; their mean is 0.

    Attributes:
        values: (agents,) float64, points of rating.
        covariance: (agents, agents) float64; ``None`` where ratings have no bounds of their own.
        num_deals: How many deals they are from.
    """

    values: NDArray[np.float64]
    covariance: NDArray[np.float64] | None
    num_deals: int

    @property
    def is_bounded(self) -> bool:
        """Whether the likelihood has a maximum: nobody, and no group, was ahead of all others each time.

        Otherwise ratings of any size would fit better and better; ``values`` then count one more game,
        drawn, for every pair that met, so the differences are at least about as large as they say.
        """
        return self.covariance is not None

    def interval(self, weights: NDArray[np.float64], confidence: float = 0.95) -> tuple[float, float] | None:
        """Return the t interval over deals of a weighted sum of ratings, or ``None`` if there is none.

        Args:
            weights: (agents,) float64: a single 1 for a rating, 1 and -1 for a difference.
            confidence: Its coverage.
        """
        if self.covariance is None:
            return None
        variance = float(weights @ self.covariance @ weights)
        error = math.sqrt(max(variance, 0.0))
        half = float(stats.t.ppf((1 + confidence) / 2, self.num_deals - 1)) * error
        middle = float(weights @ self.values)
        return (middle - half, middle + half)


@dataclass(frozen=True)
class _Orders:
    """How often the members of one table were placed in each order.

    Attributes:
        orders: (orders, members) int64, the agents from the first place to the last.
        weights: (deals, orders) float64, games of each deal; those with level players are shared.
    """

    orders: NDArray[np.int64]
    weights: NDArray[np.float64]


def _orders_of(members: Sequence[int], places: NDArray[np.int64]) -> _Orders:
    orders = np.array(list(permutations(range(len(members)))))
    in_order = (np.diff(places[:, :, order], axis=2) for order in orders)
    fits = np.stack([np.all(steps >= 0, axis=2) for steps in in_order], axis=2)
    weights = (fits / fits.sum(axis=2, keepdims=True)).sum(axis=1)
    return _Orders(np.asarray(members)[orders], weights)


def _terms(
    order: NDArray[np.int64], strengths: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the log likelihood of an order, its gradient (agents,), and minus its Hessian."""
    log_likelihood, gradient = 0.0, np.zeros(len(strengths))
    information = np.zeros((len(strengths), len(strengths)))
    for place in range(len(order) - 1):
        remaining = order[place:]
        shares = special.softmax(strengths[remaining])
        log_likelihood += float(special.log_softmax(strengths[remaining])[0])
        gradient[order[place]] += 1.0
        gradient[remaining] -= shares
        information[np.ix_(remaining, remaining)] += np.diag(shares) - np.outer(shares, shares)
    return log_likelihood, gradient, information


def _has_maximum(tables: Sequence[_Orders], num_agents: int) -> bool:
    """Tell whether the likelihood has a maximum.

    It has where in every split of the field in two somebody of each part was once ahead of somebody of the
    other (L. Ford, "Solution of a Ranking Problem from Binary Comparisons", 1957; D. Hunter, "MM algorithms
    for generalized Bradley-Terry models", 2004, for more than two): where *was ahead of* connects all to all.
    """
    ahead = np.zeros((num_agents, num_agents), dtype=bool)
    for table in tables:
        for order in table.orders[table.weights.sum(axis=0) > 0]:
            for place, one in enumerate(order):
                ahead[one, order[place + 1 :]] = True
    num_parts, _ = sparse.csgraph.connected_components(sparse.csr_array(ahead), connection="strong")
    return int(num_parts) == 1


def rate(tables: Sequence[tuple[Sequence[int], NDArray[np.int64]]], num_agents: int) -> Ratings:
    """Rate a field by the places of its games.

    Args:
        tables: The indices of the agents of each table, and the places of its games, (deals, rotations,
            members) int64: 0 for the first, the same number for players who are level. A deal is the
            same at all tables.
        num_agents: How many agents there are; they must be connected by tables.
    """
    placed = [_orders_of(members, places) for members, places in tables]
    num_deals = len(placed[0].weights)
    counts = [table.weights.sum(axis=0) for table in placed]
    is_bounded = _has_maximum(placed, num_agents)
    if not is_bounded:
        counts = [count + 1 / len(count) for count in counts]
    total = sum(float(count.sum()) for count in counts)

    def of_field(strengths: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return minus the mean log likelihood, its gradient and its Hessian."""
        value, gradient = 0.0, np.zeros(num_agents)
        information = np.zeros((num_agents, num_agents))
        for table, count in zip(placed, counts, strict=True):
            for order, weight in zip(table.orders, count.tolist(), strict=True):
                parts = _terms(order, strengths)
                value -= weight * parts[0] / total
                gradient -= weight * parts[1] / total
                information += weight * parts[2] / total
        return value, gradient, information

    # Only differences matter: the first strength is 0 while they are fitted, their mean afterwards.
    def whole(free: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([[0.0], free])

    found = optimize.minimize(  # type: ignore[call-overload] # its stubs know no functions of plain arrays
        lambda free: of_field(whole(free))[0],
        np.zeros(num_agents - 1),
        jac=lambda free: of_field(whole(free))[1][1:],
        hess=lambda free: of_field(whole(free))[2][1:, 1:],
        method="trust-exact",
        tol=1e-9,
    )
    strengths = whole(found.x)
    _, gradient, information = of_field(strengths)
    # One step of Newton's method from there is exact to rounding.
    strengths[1:] -= np.linalg.solve(information[1:, 1:], gradient[1:])
    centred = np.eye(num_agents) - 1 / num_agents
    values = ELO * centred @ strengths
    if not is_bounded:
        return Ratings(values, None, num_deals)
    scores = sum(
        table.weights @ np.stack([_terms(order, strengths)[1] for order in table.orders]) for table in placed
    )
    outer = np.linalg.solve(total * information[1:, 1:], np.asarray(scores)[:, 1:].T)
    free = outer @ outer.T * num_deals / (num_deals - 1)
    covariance = np.zeros((num_agents, num_agents))
    covariance[1:, 1:] = free
    return Ratings(values, ELO**2 * centred @ covariance @ centred, num_deals)
