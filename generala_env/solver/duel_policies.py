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
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, TurnBatch, compile_variant
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROWS_PER_TURN,
)
from generala_env.rules.variants import Variant
from generala_env.solver.duel import DuelSolution, LayerTask, solve_duel, solve_layer_here
from generala_env.solver.duel_kernels import (
    Cards,
    LayerIndex,
    highest_difference,
    lowest_difference,
    pair_offset,
)
from generala_env.solver.evaluation import STATES_AT_ONCE, Policy, answer_of, throw_dice, throws_at


class TurnOutcomes(NamedTuple):
    """How the turns of a policy end, by card.

    Attributes:
        wins: (C,) float64, the probability of an instant win within the turn.
        start: (C + 1,) int64, where the outcomes of each card start in the following.
        after: (N,) int64, the card after the turn; ascending, and then by points, within a card.
        points: (N,) int64, what the closed box paid.
        probability: (N,) float64.
    """

    wins: NDArray[np.float64]
    start: NDArray[np.int64]
    after: NDArray[np.int64]
    points: NDArray[np.int64]
    probability: NDArray[np.float64]

    def of(self, card: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return cards after the turn, points and probabilities of one card."""
        where = slice(self.start[card], self.start[card + 1])
        return self.after[where], self.points[where], self.probability[where]


@numba.njit(cache=True)
def _follow(
    local: NDArray[np.int64],
    throw: NDArray[np.int64],
    served: NDArray[np.int64],
    mass: NDArray[np.float64],
    actions: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    keep_of_mask: NDArray[np.int16],
    keep_mass: NDArray[np.float64],
    closing: NDArray[np.float64],
) -> None:
    """Move the mass of each row to the keeps (cards, 210) and closings (cards, B, 2, 252) it chooses."""
    is_random = probabilities.shape[1] > 0
    num_actions = NUM_KEEP_ACTIONS + closing.shape[1]
    for row in range(len(local)):
        first, last = (0, num_actions) if is_random else (actions[row], actions[row] + 1)
        for action in range(first, last):
            moved = mass[row] * (probabilities[row, action] if is_random else 1.0)
            if action < NUM_KEEP_ACTIONS:
                keep_mass[local[row], keep_of_mask[throw[row], action]] += moved
            else:
                closing[local[row], action - NUM_KEEP_ACTIONS, served[row], throw[row]] += moved


def turn_outcomes(
    compiled: CompiledVariant,
    policy: Policy,
    *,
    states_at_once: int = STATES_AT_ONCE,
    progress: str | None = None,
) -> TurnOutcomes:
    """Follow a policy through a turn on every card.

    Args:
        compiled: The tables of the variant.
        policy: Asked once about every decision that it can meet on any card; its answer must depend on
            nothing but the decision.
        states_at_once: About how many decisions to ask about in one call.
        progress: The label of a progress bar; ``None`` shows none.

    Raises:
        ValueError: The policy's answers have a wrong shape, or are no probabilities.
    """
    throws = [throws_at(compiled, number) for number in range(1, THROWS_PER_TURN + 1)]
    cards = np.flatnonzero(compiled.num_open > 0)
    at_once = max(1, states_at_once // max(len(one.throw) for one in throws))
    wins = np.zeros(compiled.num_cards)
    found: list[NDArray[np.int64]] = []
    shares: list[NDArray[np.float64]] = []
    with tqdm(total=len(cards), unit="card", desc=progress, disable=progress is None, leave=False) as bar:
        for first in range(0, len(cards), at_once):
            chunk = cards[first : first + at_once]
            closing = np.zeros((len(chunk), compiled.num_boxes, 2, NUM_THROWS))
            keep_mass = np.zeros((len(chunk), NUM_PARTIAL_KEEPS))
            keep_mass[:, EMPTY_KEEP] = 1.0
            for number, at in enumerate(throws, start=1):
                mass = np.zeros((len(chunk), len(at.throw)))
                throw_dice(at, keep_mass, mass)
                keep_mass = np.zeros_like(keep_mass)
                is_won = compiled.instant_win[chunk][:, None] & ((at.served == 1) & IS_FIVE_EQUAL[at.throw])
                wins[chunk] += (mass * is_won).sum(axis=1)
                mass[is_won] = 0.0
                local, place = np.nonzero(mass)
                if not len(local):
                    break
                batch = TurnBatch(
                    chunk[local],
                    at.throw[place],
                    np.full(len(local), number),
                    at.served[place].astype(np.bool_),
                    at.kept[place],
                )
                actions, probabilities, _ = answer_of(policy, batch, compiled.action_masks(batch))
                _follow(
                    local,
                    batch.throw,
                    at.served[place],
                    mass[local, place],
                    actions,
                    probabilities,
                    KEEP_OF_MASK,
                    keep_mass,
                    closing,
                )
            local, box, served, throw = np.nonzero(closing)
            status = compiled.card_status[chunk[local]]
            points = compiled.points[status, box, served, throw].astype(np.int64)
            after = compiled.next_card(chunk[local], box, served, throw).astype(np.int64)
            rows, where = np.unique(np.stack([chunk[local], after, points]), axis=1, return_inverse=True)
            found.append(rows)
            weights = closing[local, box, served, throw]
            shares.append(np.bincount(where.reshape(-1), weights=weights).astype(np.float64))
            bar.update(len(chunk))
    card, after, points = np.concatenate(found, axis=1)
    start = np.searchsorted(card, np.arange(compiled.num_cards + 1))
    return TurnOutcomes(wins, start, after, points, np.concatenate(shares))


def _by_class(compiled: CompiledVariant, outcomes: TurnOutcomes) -> TurnOutcomes | None:
    """Return the outcomes by class of cards; ``None`` if cards of a class are played differently."""
    merged = []
    for card in range(compiled.num_cards):
        after, points, probability = outcomes.of(card)
        rows, where = np.unique(
            np.stack([compiled.card_class[after].astype(np.int64), points]), axis=1, return_inverse=True
        )
        merged.append((rows, np.bincount(where.reshape(-1), weights=probability, minlength=rows.shape[1])))
        first = compiled.class_card[compiled.card_class[card]]
        same_rows, same_shares = merged[first]
        if not (
            np.array_equal(rows, same_rows)
            and np.allclose(merged[-1][1], same_shares, rtol=0.0, atol=1e-12)
            and abs(outcomes.wins[card] - outcomes.wins[first]) < 1e-12
        ):
            return None
    chosen = [merged[card] for card in compiled.class_card.tolist()]
    start = np.concatenate([[0], np.cumsum([len(shares) for _, shares in chosen])])
    after, points = np.concatenate([rows for rows, _ in chosen], axis=1)
    return TurnOutcomes(
        outcomes.wins[compiled.class_card],
        start,
        after,
        points,
        np.concatenate([shares for _, shares in chosen]),
    )


@numba.njit(parallel=True, cache=True)
def _follow_rows(
    movers: NDArray[np.int64],
    others: NDArray[np.int64],
    starts: NDArray[np.int64],
    cards: Cards,
    index: LayerIndex,
    previous: NDArray[Any],
    outcomes: TurnOutcomes,
    num_shares: int,
    values: NDArray[Any],
) -> None:
    """Write the values of pairs of which the mover follows a policy; see ``solve_rows``."""
    for share in numba.prange(num_shares):
        for item in range(share, len(movers), num_shares):
            mover, other = movers[item], others[item]
            lowest = lowest_difference(cards, mover, other)
            width = highest_difference(cards, mover, other) - lowest + 1
            total = np.full(width, outcomes.wins[mover])
            for outcome in range(outcomes.start[mover], outcomes.start[mover + 1]):
                after, probability = outcomes.after[outcome], outcomes.probability[outcome]
                low = lowest_difference(cards, other, after)
                high = highest_difference(cards, other, after)
                start = pair_offset(index, other, after)
                reached = -(lowest + outcomes.points[outcome])
                for x in range(width):
                    place = min(max(reached - x, low), high) - low
                    total[x] += probability * (1.0 - previous[start + place])
            for x in range(width):
                values[starts[item] + x] = min(max(total[x], 0.0), 1.0)


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
        _follow_rows(
            *task.pairs(number),
            task.cards,
            task.below,
            previous,
            followed,
            numba.get_num_threads(),
            values[first:last],
        )
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
        ValueError: The variant is not known, the cards do not fit together, or a policy's answers have a
            wrong shape or are no probabilities.
    """
    compiled = variant if isinstance(variant, CompiledVariant) else compile_variant(variant)
    by_card = [
        None
        if policy is None
        else turn_outcomes(compiled, policy, progress=f"{name} player" if progress else None)
        for name, policy in (("first", first), ("second", second))
    ]
    by_class = [None if one is None else _by_class(compiled, one) for one in by_card]
    if any(one is None and policy is not None for one, policy in zip(by_class, (first, second), strict=True)):
        alone = np.arange(compiled.num_cards, dtype=np.int32)
        compiled = replace(compiled, card_class=alone, class_card=alone)
        by_class = by_card
    return solve_duel(
        compiled,
        start,
        dtype=dtype,
        solve_layer=partial(_solve_layer, (by_class[0], by_class[1])),
        progress=progress,
    )
