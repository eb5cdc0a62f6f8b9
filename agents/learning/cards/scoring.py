"""What greedy play on a table of outputs scores, exactly, in a fraction of a second.

This judges a learner and teaches it nothing: unlike everything a learner reads, it knows how likely
the dice are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.learning.cards.kernels import _best, _is_won, _served, _successor
from agents.learning.cards.tables import AfterstateTables
from generala_env.compiling import kernel
from generala_env.rules.dice import NUM_PARTIAL_KEEPS, NUM_THROWS, throw_probabilities_after


@kernel(error_model="numpy", inline="always")
def _worth_of_throw(
    tables: AfterstateTables,
    values: NDArray[np.float32],
    closed: NDArray[np.float32],
    keep_worth: NDArray[np.float64],
    worth: NDArray[np.float64],
    card: int,
    throw: int,
    number: int,
    kept: int,
) -> float:
    """Return what the greedy action is truly worth; see ``_greedy_turns``."""
    served = _served(tables, number, kept)
    if _is_won(tables, card, throw, number, kept):
        value = tables.win_points
    else:
        _, keep, box = _best(tables, values, closed, card, throw, number, kept, served)
        if keep >= 0:
            value = keep_worth[number, keep]
        else:
            after = worth[_successor(tables, card, throw, served, box)]
            value = tables.points[tables.status[card], served, throw, box] + after
    return value


@kernel(error_model="numpy")
def _greedy_turns(
    tables: AfterstateTables,
    values: NDArray[np.float32],
    closed: NDArray[np.float32],
    law: NDArray[np.float64],
    worth: NDArray[np.float64],
) -> None:
    keep_worth = np.zeros((4, NUM_PARTIAL_KEEPS))
    met = np.empty((2, NUM_THROWS))
    for back in range(tables.num_rows):
        card = tables.num_rows - 1 - back
        for number in range(3, 0, -1):
            for kept in range(NUM_PARTIAL_KEEPS if number > 1 else 1):
                is_full = 1 if kept == 0 else 0
                # Where dice are free, only whether all were thrown tells keeps apart.
                is_known = kept > 1 and not tables.is_locked
                total = 0.0
                for throw in range(NUM_THROWS):
                    if not is_known and (law[kept, throw] > 0.0 or not tables.is_locked):
                        met[is_full, throw] = _worth_of_throw(
                            tables, values, closed, keep_worth, worth, card, throw, number, kept
                        )
                    if law[kept, throw] > 0.0:
                        total += law[kept, throw] * met[is_full, throw]
                keep_worth[number - 1, kept] = total
        worth[card] = keep_worth[0, 0]


def greedy_score(tables: AfterstateTables, values: NDArray[np.float32], closed: NDArray[np.float32]) -> float:
    """Return the exact mean score of always taking the best action by a table of outputs.

    Args:
        tables: The rules.
        values: (R, 421) float32, as points.
        closed: (K,) float32, as points.
    """
    law = np.array([throw_probabilities_after(keep) for keep in range(NUM_PARTIAL_KEEPS)])
    worth = np.zeros(len(tables.status))
    _greedy_turns(tables, values, closed, law, worth)
    return float(worth[0])
