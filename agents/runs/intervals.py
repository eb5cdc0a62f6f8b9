"""What a few training runs can say of their method: means over seeds, with intervals that hold for few.

A run is one draw from its method's distribution of results. Agarwal et al. ("Deep Reinforcement
Learning at the Edge of the Statistical Precipice", NeurIPS 2021) ask for interval estimates beside
every mean. Their stratified bootstrap draws runs of many tasks; of a single task they say that it "is
less useful when N is small, as bootstrapping assumes that re-sampling from the data approximates sampling
from the true distribution" (section 4), and of three runs that "bootstrap CIs underestimate the
true 95% CIs" (figure 6). A game is a single task. Of three normal runs, the bootstrap's 95 %
interval of the mean holds it in 76 % of the cases, and is little but the lowest and the highest
run. So the intervals here are not bootstrapped:

* of a mean, Student's t;
* of an interquartile mean, the t interval of a trimmed mean (Tukey and McLaughlin, Sankhya A 25, 1963);
* of the probability of improvement, the score interval of Newcombe (Statistics in Medicine 25, 2006,
  part 2, method 5), which does not shrink to a point where all runs of one method are ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

DEFAULT_CONFIDENCE: Final = 0.95

LEAST_RUNS: Final = 3
"""Fewer runs than this get no interval: a t interval of two is as wide as 12.7 standard errors."""

FEW_RUNS: Final = 10
"""From this number of runs on, Agarwal et al. find intervals over runs good; fewer get a word of caution."""

TRIMMED: Final = 0.25
"""What the interquartile mean cuts off at each end."""


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval; ``None`` for both ends where the runs are too few for one."""

    value: float
    low: float | None
    high: float | None


def num_trimmed(num_runs: int) -> int:
    """Return how many runs the interquartile mean cuts off at each end; none of fewer than four."""
    return int(TRIMMED * num_runs)


def interquartile_mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the middle half of values, (runs,) float64; of fewer than four, of all."""
    return float(stats.trim_mean(values, TRIMMED))


def mean_interval(
    values: NDArray[np.float64], *, trimmed: bool = False, confidence: float = DEFAULT_CONFIDENCE
) -> Estimate:
    """Return a mean over runs with its t interval.

    The standard error of a trimmed mean is that of the values with what was cut off put in the
    place of the nearest that was not (winsorized), over the share that was kept.

    Args:
        values: (runs,) float64.
        trimmed: The interquartile mean instead of the mean.
        confidence: How often intervals made so hold the true value, if runs vary normally.
    """
    num_runs = len(values)
    cut = num_trimmed(num_runs) if trimmed else 0
    value = interquartile_mean(values) if trimmed else float(values.mean())
    if num_runs < LEAST_RUNS:
        return Estimate(value, None, None)
    ordered = np.sort(values)
    clipped = np.clip(values, ordered[cut], ordered[num_runs - 1 - cut])
    error = float(stats.sem(clipped)) * num_runs / (num_runs - 2 * cut)
    half = float(stats.t.ppf(0.5 + confidence / 2, num_runs - 2 * cut - 1)) * error
    return Estimate(value, value - half, value + half)


def mean_band(
    values: NDArray[np.float64], *, confidence: float = DEFAULT_CONFIDENCE
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the t interval of the mean at every point of curves; ``None`` of too few runs.

    Args:
        values: (runs, points) float64.
        confidence: As in ``mean_interval``.

    Returns:
        The low and the high ends, (points,) float64 each.
    """
    num_runs = len(values)
    if num_runs < LEAST_RUNS:
        return None
    half = stats.t.ppf(0.5 + confidence / 2, num_runs - 1) * stats.sem(values, axis=0)
    middle = values.mean(axis=0)
    return middle - half, middle + half


def probability_of_improvement(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Estimate:
    """Return how probably a run of ``first`` scores more than one of ``second``, ties counting half.

    This is the Mann-Whitney statistic as a share of all pairs. Its interval holds all
    probabilities p whose distance to the share is at most z standard errors, the error being that
    at p, with k = (m + n) / 2 - 1:

        V(p) = p (1 - p) / (m n) * (1 + k (1 - p) / (2 - p) + k p / (1 + p)).

    Args:
        first: (m,) float64.
        second: (n,) float64.
        confidence: How often intervals made so hold the true probability.
    """
    higher = np.sign(first[:, None] - second[None, :])
    share = float((0.5 + 0.5 * higher).mean())
    m, n = len(first), len(second)
    if min(m, n) < LEAST_RUNS:
        return Estimate(share, None, None)
    factor = float(stats.norm.ppf(0.5 + confidence / 2)) ** 2
    weight = (m + n) / 2 - 1

    def excess(p: float) -> float:
        spread = p * (1 - p) / (m * n) * (1 + weight * (1 - p) / (2 - p) + weight * p / (1 + p))
        return (p - share) ** 2 - factor * spread

    # At the share itself, and next to it where it is 0 or 1, the excess is below 0.
    inside = min(max(share, 1e-9), 1 - 1e-9)
    low = 0.0 if share == 0 else float(optimize.brentq(excess, 0.0, inside))
    high = 1.0 if share == 1 else float(optimize.brentq(excess, inside, 1.0))
    return Estimate(share, low, high)


def caution(num_runs: int) -> str | None:
    """Return what is to be said of so few runs of a method, or ``None`` where they are enough."""
    if num_runs < LEAST_RUNS:
        runs = "1 run" if num_runs == 1 else f"{num_runs} runs"
        return f"{runs}: too few for an interval; it takes {LEAST_RUNS}, and {FEW_RUNS} to be relied on"
    if num_runs < FEW_RUNS:
        return (
            f"{num_runs} runs: the interval is honest only if runs vary normally, which so few cannot "
            f"show; Agarwal et al. (2021) find {FEW_RUNS} runs enough, and 3 too few to bootstrap"
        )
    return None
