"""The two-player game where one or both players follow a fixed policy: best responses, exact matches.

A policy of the one-player game sees its own card and dice, so each of its turns ends in the same ways
whatever the score and the other player: with some probability in an instant win, otherwise with a box
closed for some points. These outcomes take the place of the best turn in the solver of the
two-player game. Against a fixed policy the other player's best turn is then its best response, and where both
policies are fixed the value is the exact result of a match between them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generala_env.compiling import kernel
from generala_env.rules.compiled import CompiledVariant, compile_variant
from generala_env.rules.variants import Variant
from generala_env.solver.duel import DuelSolution, LayerTask, solve_duel, solve_layer_here
from generala_env.solver.duel_kernels import (
    LayerIndex,
    Pairs,
    PointRanges,
    highest_difference,
    lowest_difference,
    pair_offset,
)
from generala_env.solver.policy_turns import Policy, TurnOutcomes, turn_outcomes
from generala_env.threads import in_shares, num_shares

_LEAST_PAIRS: Final = 64  # that are worth a thread


def _by_class(compiled: CompiledVariant, outcomes: TurnOutcomes) -> TurnOutcomes | None:
    """Return the outcomes by class of cards; ``None`` if cards of a class are played differently."""
    merged = []
    for card in range(compiled.num_cards):
        after, points, probability = outcomes.of(card)
        rows, where = np.unique(
            np.stack([compiled.class_of_card[after].astype(np.int64), points]), axis=1, return_inverse=True
        )
        merged.append((rows, np.bincount(where.reshape(-1), weights=probability, minlength=rows.shape[1])))
        first = compiled.card_of_class[compiled.class_of_card[card]]
        same_rows, same_shares = merged[first]
        if not (
            np.array_equal(rows, same_rows)
            and np.allclose(merged[-1][1], same_shares, rtol=0.0, atol=1e-12)
            and abs(outcomes.wins[card] - outcomes.wins[first]) < 1e-12
        ):
            return None
    chosen = [merged[card] for card in compiled.card_of_class.tolist()]
    start = np.concatenate([[0], np.cumsum([len(shares) for _, shares in chosen])])
    after, points = np.concatenate([rows for rows, _ in chosen], axis=1)
    return TurnOutcomes(
        outcomes.wins[compiled.card_of_class],
        start,
        after,
        points,
        np.concatenate([shares for _, shares in chosen]),
    )


@kernel()
def _follow_rows(
    share: int,
    num_shares: int,
    pairs: Pairs,
    ranges: PointRanges,
    index: LayerIndex,
    previous: NDArray[Any],
    outcomes: TurnOutcomes,
    values: NDArray[Any],
) -> None:
    """Write the values of a share of pairs of which the mover follows a policy; see ``solve_rows``."""
    for item in range(share, len(pairs.movers), num_shares):
        mover, other = pairs.movers[item], pairs.others[item]
        lowest = lowest_difference(ranges, mover, other)
        width = highest_difference(ranges, mover, other) - lowest + 1
        total = np.full(width, outcomes.wins[mover])
        for outcome in range(outcomes.start[mover], outcomes.start[mover + 1]):
            after, probability = outcomes.after[outcome], outcomes.probability[outcome]
            low = lowest_difference(ranges, other, after)
            high = highest_difference(ranges, other, after)
            start = pair_offset(index, other, after)
            reached = -(lowest + outcomes.points[outcome])
            for x in range(width):
                place = min(max(reached - x, low), high) - low
                total[x] += probability * (1.0 - previous[start + place])
        for x in range(width):
            values[pairs.starts[item] + x] = min(max(total[x], 0.0), 1.0)


def _solve_layer(
    outcomes: tuple[TurnOutcomes | None, TurnOutcomes | None],
    task: LayerTask,
    previous: NDArray[Any],
    values: NDArray[Any],
    report: Any,
) -> None:
    # With as many boxes open on both cards, the first player of the round is to move.
    followed = outcomes[task.number % 2]
    if followed is None:
        solve_layer_here(task, previous, values, report)
        return
    for number in range(task.num_tasks):
        first, last = task.bounds(number)
        pairs, run = task.pairs(number), values[first:last]
        follow = partial(
            _follow_rows,
            pairs=pairs,
            ranges=task.ranges,
            index=task.below,
            previous=previous,
            outcomes=followed,
            values=run,
        )
        in_shares(follow, num_shares(len(pairs.movers), _LEAST_PAIRS))
        report(last - first)


def solve_policies(
    variant: str | Variant | CompiledVariant,
    first: Policy | None = None,
    second: Policy | None = None,
    *,
    start: tuple[int, int] | None = None,
    dtype: type[Any] = np.float32,
    progress: bool = False,
) -> DuelSolution:
    """Solve the two-player game in which players may follow policies of the one-player game.

    Cards that the rules cannot tell apart are one to the solver unless a policy plays them
    differently; then every card stands for itself, and there are more values.

    Args:
        variant: A preset's name, a variant, or its tables.
        first: What the first player of each round follows; ``None`` for the best response to the other.
        second: Likewise the second player's; ``None`` for both is ``solve_duel``.
        start: Cards of the player to move and of the other, as indices; the empty ones if ``None``.
        dtype: The type of the values.
        progress: Show progress bars on standard error.

    Returns:
        P(win) + P(draw) / 2 of the player to move, as from ``solve_duel``. ``q_values`` prices the
        actions of both players with these values, so its best actions are the best response; a player that
        follows a policy does not take them. Playoffs are played optimally by both.

    Raises:
        ValueError: The variant is not known, or the cards do not fit together.
        AnswerError: An answer of a policy is not legal, is none, or is another when asked for again.
    """
    compiled = compile_variant(variant)
    by_card = [
        None
        if policy is None
        else turn_outcomes(compiled, policy, progress=f"{name} player" if progress else None)
        for name, policy in (("first", first), ("second", second))
    ]
    by_class = [None if one is None else _by_class(compiled, one) for one in by_card]
    if any(one is None and policy is not None for one, policy in zip(by_class, (first, second), strict=True)):
        alone = np.arange(compiled.num_cards, dtype=np.int32)
        compiled = replace(compiled, class_of_card=alone, card_of_class=alone)
        by_class = by_card
    return solve_duel(
        compiled,
        start,
        dtype=dtype,
        solve_layer=partial(_solve_layer, (by_class[0], by_class[1])),
        progress=progress,
    )
