"""Many one-player environments stepped at once, by a compiled kernel over the variant's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import gymnasium as gym
import numba
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from generala_env.envs.observation import ObservationLayout, keep_rows, row_tables
from generala_env.envs.solo import ILLEGAL_ACTIONS, GeneralaEnv, IllegalAction
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_COUNTS,
    KEEP_INDEX,
    KEEP_OF_MASK,
    KEEP_SIZES,
    KEEPS,
    NUM_DICE,
    NUM_FACES,
    NUM_KEEPS,
    NUM_ORDERED_THROWS,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROW_COUNTS,
    THROW_DICE,
    THROWS,
    THROWS_PER_TURN,
    next_throw_table,
)
from generala_env.rules.game import GameState, IllegalActionError, Phase, Player, Turn
from generala_env.rules.variants import DEFAULT_VARIANT, Variant

# Columns of the state array.
CARD, THROW, THROW_NUMBER, SERVED, KEPT, IS_OVER, IS_WON, BONUS = range(8)
NUM_COLUMNS: Final = 8

_AUTORESET_CODE: Final = {AutoresetMode.NEXT_STEP: 0, AutoresetMode.SAME_STEP: 1, AutoresetMode.DISABLED: 2}
_NEXT_STEP, _SAME_STEP, _DISABLED = 0, 1, 2
_RAISE, _PENALTY, _TERMINATE = range(len(ILLEGAL_ACTIONS))

# PCG64 (M. E. O'Neill, "PCG: A family of simple fast space-efficient statistically good
# algorithms for random number generation", 2014; XSL-RR 128/64), as in numpy.random.PCG64.
_MULTIPLIER_HIGH: Final = np.uint64(0x2360ED051FC65DA4)
_MULTIPLIER_LOW: Final = np.uint64(0x4385DF649FCCF645)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_TO_UNIT: Final = 2.0**-53


class Tables(NamedTuple):
    """What the kernel reads: the compiled variant and the rows of observations and masks.

    Attributes:
        rolled: (5 * 7776,) int16, by how many dice are kept and by the roll, the multiset of the dice
            that fall. With ``union`` this says what ``next_throw_table`` does from a twelfth of its
            bytes, which stay in the caches of the processor.
        union: (210, 462) uint8, the throw made of the dice kept and those that fell.
        num_kept: (210,) int64, how many dice a keep holds, times 7776.
        keep_of_mask: (252, 32) int16, the keep that a mask selects from a throw.
        is_served: (3, 2) bool, by throw and by whether all dice were thrown.
        five_equal: (252,) bool.
        wins: (C,) bool, whether five equal dice, served, end the game at once.
        card_open: (C,) uint16.
        card_status: (C,) uint8.
        card_index: (2**B, S) int32.
        points: (S, B, 2, 252) int32.
        next_status: (S, B, 2, 252) uint8.
        bonus: (S, S) int32, the Doble bonus paid on going from a status to another.
        keep_rows: (contexts, 252, 31) int8, the keeps offered; context 0 offers none, context
            ``1 + k`` those that contain the locked dice ``k`` (1: all that the throw offers).
        close_rows: (C, B) int8, the boxes offered.
        turn_rows: (3 * 2 * 252, width) float32, blocks that depend on the turn.
        locked_rows: (210, width) float32, the block of locked dice.
        card_rows: (C, width) float32, blocks that depend on the card.
        pays_rows: (S * 2 * 252, B or 0) float32, what each box would pay.
        open_rows: (C, B or 0) float32, 1 where a box may be closed.
        dice_rows: (252, width) float32, blocks that depend on the dice alone.
    """

    rolled: NDArray[np.int16]
    union: NDArray[np.uint8]
    num_kept: NDArray[np.int64]
    keep_of_mask: NDArray[np.int16]
    is_served: NDArray[np.bool_]
    five_equal: NDArray[np.bool_]
    wins: NDArray[np.bool_]
    card_open: NDArray[np.uint16]
    card_status: NDArray[np.uint8]
    card_index: NDArray[np.int32]
    points: NDArray[np.int32]
    next_status: NDArray[np.uint8]
    bonus: NDArray[np.int32]
    keep_rows: NDArray[np.int8]
    close_rows: NDArray[np.int8]
    turn_rows: NDArray[np.float32]
    locked_rows: NDArray[np.float32]
    card_rows: NDArray[np.float32]
    pays_rows: NDArray[np.float32]
    open_rows: NDArray[np.float32]
    dice_rows: NDArray[np.float32]


class Batch(NamedTuple):
    """The state of ``n`` environments and what the kernel last wrote.

    Attributes:
        state: (n, 8) int32: card, throw, throw number, served, kept, over, won, Doble bonus.
        sheet: (n, B) int16, points in each box, -1 while it is open.
        score: (n,) float64, the sum of rewards of the episode.
        length: (n,) int32, steps of the episode.
        generator: (n, 4) uint64, PCG64: state and increment, each high word first.
        masks: (n, num_actions) int8.
        rewards: (n,) float64.
        terminated: (n,) bool.
        illegal: (n,) bool, an illegal action was taken and did not raise.
        final_state: (n, 8) int32, the last state of the episode that ended in this step, if
            environments are reset within the step.
        final_score: (n,) float64, the final score of the episode that ended in this step.
        final_length: (n,) int32, its length.
    """

    state: NDArray[np.int32]
    sheet: NDArray[np.int16]
    score: NDArray[np.float64]
    length: NDArray[np.int32]
    generator: NDArray[np.uint64]
    masks: NDArray[np.int8]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    illegal: NDArray[np.bool_]
    final_state: NDArray[np.int32]
    final_score: NDArray[np.float64]
    final_length: NDArray[np.int32]


@numba.njit(cache=True, inline="always")
def _multiply_high(left: Any, right: Any) -> Any:
    """Return the upper 64 bits of the product of two unsigned 64-bit numbers."""
    left_low, left_high = left & _LOW_HALF, left >> _HALF
    right_low, right_high = right & _LOW_HALF, right >> _HALF
    middle = left_high * right_low + ((left_low * right_low) >> _HALF)
    other = left_low * right_high + (middle & _LOW_HALF)
    return left_high * right_high + (middle >> _HALF) + (other >> _HALF)


@numba.njit(cache=True, inline="always")
def _roll(generators: Any, index: Any) -> Any:
    """Advance one PCG64 and return the roll that ``numpy.random.Generator.random`` would give."""
    high, low = generators[index, 0], generators[index, 1]
    new_high = _multiply_high(low, _MULTIPLIER_LOW) + high * _MULTIPLIER_LOW + low * _MULTIPLIER_HIGH
    new_low = low * _MULTIPLIER_LOW
    low = new_low + generators[index, 3]
    high = new_high + generators[index, 2] + np.uint64(low < new_low)
    generators[index, 0] = high
    generators[index, 1] = low
    word = high ^ low
    turn = high >> np.uint64(58)
    word = (word >> turn) | (word << ((np.uint64(64) - turn) & np.uint64(63)))
    return np.int64((word >> np.uint64(11)) * _TO_UNIT * NUM_ORDERED_THROWS)


# The helpers take arrays rather than the named tuples: taking an array out of a tuple counts a
# reference, which costs more than the step itself.


@numba.njit(cache=True)
def _write_observation(
    card: Any,
    throw: Any,
    throw_number: Any,
    served: Any,
    kept: Any,
    card_status: Any,
    turn_rows: Any,
    locked_rows: Any,
    card_rows: Any,
    pays_rows: Any,
    open_rows: Any,
    dice_rows: Any,
    observations: Any,
    index: Any,
) -> None:
    """Gather one observation; the blocks stand in the order of ``BLOCKS``."""
    # Unsigned indices are never counted from the end, so that whole rows move in vector instructions.
    index, kept, card, throw = np.uintp(index), np.uintp(kept), np.uintp(card), np.uintp(throw)
    row = np.uintp(served * NUM_THROWS) + throw
    turn_row = np.uintp((throw_number - 1) * 2 * NUM_THROWS) + row
    pays_row = np.uintp(card_status[card]) * np.uintp(2 * NUM_THROWS) + row
    at = np.uintp(0)
    for column in range(np.uintp(turn_rows.shape[1])):
        observations[index, column] = turn_rows[turn_row, column]
    at = np.uintp(turn_rows.shape[1])
    for column in range(np.uintp(locked_rows.shape[1])):
        observations[index, at + column] = locked_rows[kept, column]
    at += np.uintp(locked_rows.shape[1])
    for column in range(np.uintp(card_rows.shape[1])):
        observations[index, at + column] = card_rows[card, column]
    at += np.uintp(card_rows.shape[1])
    for column in range(np.uintp(pays_rows.shape[1])):
        observations[index, at + column] = pays_rows[pays_row, column] * open_rows[card, column]
    at += np.uintp(pays_rows.shape[1])
    for column in range(np.uintp(dice_rows.shape[1])):
        observations[index, at + column] = dice_rows[throw, column]


@numba.njit(cache=True)
def _write_mask(
    card: Any,
    throw: Any,
    throw_number: Any,
    kept: Any,
    is_over: Any,
    is_won: Any,
    keep_rows: Any,
    close_rows: Any,
    masks: Any,
    index: Any,
) -> None:
    """Gather one action mask: all zeros when over, one action when the first throw has won."""
    if is_over:
        for action in range(masks.shape[1]):
            masks[index, action] = 0
        return
    context = 0
    if throw_number < THROWS_PER_TURN:
        context = 1
        if keep_rows.shape[0] > 2:
            context += kept
    to, row, throw_row, which = np.uintp(index), np.uintp(card), np.uintp(throw), np.uintp(context)
    for action in range(np.uintp(NUM_KEEP_ACTIONS)):
        masks[to, action] = keep_rows[which, throw_row, action]
    for box in range(np.uintp(close_rows.shape[1])):
        masks[to, np.uintp(NUM_KEEP_ACTIONS) + box] = close_rows[row, box]
    if is_won:
        found = False
        for action in range(masks.shape[1]):
            if action < NUM_KEEP_ACTIONS or found:
                masks[index, action] = 0
            elif masks[index, action]:
                found = True


@numba.njit(cache=True, nogil=True)
def _step_range(
    start: Any,
    stop: Any,
    actions: Any,
    tables: Tables,
    batch: Batch,
    observations: Any,
    final_observations: Any,
    win_points: Any,
    illegal_mode: Any,
    illegal_reward: Any,
    autoreset: Any,
) -> None:
    """Step environments ``start`` to ``stop - 1``; illegal actions have been ruled out or are punished."""
    (
        rolled,
        union,
        num_kept,
        keep_of_mask,
        is_served,
        five_equal,
        wins,
        card_open,
        card_status,
        card_index,
        points,
        next_status,
        bonuses,
        keep_rows,
        close_rows,
        turn_rows,
        locked_rows,
        card_rows,
        pays_rows,
        open_rows,
        dice_rows,
    ) = tables
    (
        state,
        sheet,
        score,
        length,
        generator,
        masks,
        rewards,
        terminations,
        illegal,
        final_state,
        final_score,
        final_length,
    ) = batch
    for index in range(start, stop):
        card: Any = np.int64(state[index, CARD])
        throw = np.int64(state[index, THROW])
        throw_number = np.int64(state[index, THROW_NUMBER])
        served = np.int64(state[index, SERVED])
        kept = np.int64(state[index, KEPT])
        is_over = state[index, IS_OVER] != 0
        is_won = state[index, IS_WON] != 0
        reward = 0.0
        is_illegal = False
        begins = is_over  # Only in NEXT_STEP mode: the action is ignored, a new episode begins.
        throws = False
        if not begins:
            action = np.int64(actions[index])
            length[index] += 1
            if action < 0 or action >= masks.shape[1] or not masks[index, action]:
                is_illegal = True
                reward = illegal_reward
                is_over = bool(illegal_mode == _TERMINATE)
            elif is_won:
                reward = win_points
                is_over = True
            elif action < NUM_KEEP_ACTIONS:
                kept = np.int64(keep_of_mask[throw, action])
                throw_number += np.int64(1)
                throws = True
            else:
                box: Any = action - NUM_KEEP_ACTIONS
                before = np.int64(card_status[card])
                paid = points[before, box, served, throw]
                after = np.int64(next_status[before, box, served, throw])
                bonus = bonuses[before, after]
                sheet[index, box] = paid - bonus
                state[index, BONUS] += bonus
                card = np.int64(card_index[np.int64(card_open[card]) & ~(np.int64(1) << box), after])
                reward = np.float64(paid)
                throws = card_open[card] != 0
                if throws:
                    kept = np.int64(EMPTY_KEEP)
                    throw_number = np.int64(1)
                else:
                    is_over = True
            if throws:
                throw = np.int64(union[kept, rolled[num_kept[kept] + _roll(generator, index)]])
                served = np.int64(is_served[throw_number - 1, np.int64(kept == EMPTY_KEEP)])
                if served and five_equal[throw] and wins[card]:
                    is_won = True
                    is_over = True
                    reward += win_points
            if not is_illegal:
                score[index] += reward
            if is_over:
                final_score[index] = score[index]
                final_length[index] = length[index]
                if autoreset == _SAME_STEP:
                    _write_observation(
                        card,
                        throw,
                        throw_number,
                        served,
                        kept,
                        card_status,
                        turn_rows,
                        locked_rows,
                        card_rows,
                        pays_rows,
                        open_rows,
                        dice_rows,
                        final_observations,
                        index,
                    )
                    final_state[index, CARD] = card
                    final_state[index, THROW] = throw
                    final_state[index, THROW_NUMBER] = throw_number
                    final_state[index, SERVED] = served
                    final_state[index, KEPT] = kept
                    final_state[index, IS_OVER] = 1
                    final_state[index, IS_WON] = is_won
                    final_state[index, BONUS] = state[index, BONUS]
                    begins = True
        terminations[index] = is_over and (autoreset == _SAME_STEP or not begins)
        if begins:
            card = np.int64(0)
            kept = np.int64(EMPTY_KEEP)
            throw_number = np.int64(1)
            throw = np.int64(union[EMPTY_KEEP, rolled[_roll(generator, index)]])
            served = np.int64(is_served[0, 1])
            is_over = False
            is_won = served != 0 and five_equal[throw] and wins[card]
            state[index, BONUS] = 0
            for box in range(sheet.shape[1]):
                sheet[index, box] = -1
            score[index] = 0.0
            length[index] = 0
        state[index, CARD] = card
        state[index, THROW] = throw
        state[index, THROW_NUMBER] = throw_number
        state[index, SERVED] = served
        state[index, KEPT] = kept
        state[index, IS_OVER] = is_over
        state[index, IS_WON] = is_won
        rewards[index] = reward
        illegal[index] = is_illegal
        _write_observation(
            card,
            throw,
            throw_number,
            served,
            kept,
            card_status,
            turn_rows,
            locked_rows,
            card_rows,
            pays_rows,
            open_rows,
            dice_rows,
            observations,
            index,
        )
        _write_mask(card, throw, throw_number, kept, is_over, is_won, keep_rows, close_rows, masks, index)


@numba.njit(cache=True, parallel=True)
def _step_parallel(
    chunks: Any,
    actions: Any,
    tables: Tables,
    batch: Batch,
    observations: Any,
    final_observations: Any,
    win_points: Any,
    illegal_mode: Any,
    illegal_reward: Any,
    autoreset: Any,
) -> None:
    """Step all environments, one chunk for each thread."""
    num_envs = batch.state.shape[0]
    for chunk in numba.prange(chunks):
        _step_range(
            chunk * num_envs // chunks,
            (chunk + 1) * num_envs // chunks,
            actions,
            tables,
            batch,
            observations,
            final_observations,
            win_points,
            illegal_mode,
            illegal_reward,
            autoreset,
        )


@numba.njit(cache=True, nogil=True)
def _first_illegal(actions: Any, state: Any, masks: Any, skips_over: Any) -> Any:
    """Return the first environment whose action is not legal, or -1.

    Where ``skips_over``, environments that are over are about to be reset and take any action.
    """
    for index in range(actions.shape[0]):
        if skips_over and state[index, IS_OVER]:
            continue
        action = np.int64(actions[index])
        if action < 0 or action >= masks.shape[1] or not masks[index, action]:
            return index
    return -1


@numba.njit(cache=True, nogil=True)
def _reset_chosen(chosen: Any, tables: Tables, batch: Batch) -> None:
    """Begin new episodes in the chosen environments."""
    rolled, union, is_served = tables.rolled, tables.union, tables.is_served
    five_equal, wins = tables.five_equal, tables.wins
    state, generator = batch.state, batch.generator
    for index in np.flatnonzero(chosen):
        throw = union[EMPTY_KEEP, rolled[_roll(generator, index)]]
        state[index] = 0
        state[index, THROW] = throw
        state[index, THROW_NUMBER] = 1
        state[index, SERVED] = is_served[0, 1]
        state[index, IS_WON] = is_served[0, 1] and five_equal[throw] and wins[0]
        batch.sheet[index] = -1
        batch.score[index] = 0.0
        batch.length[index] = 0
        batch.terminated[index] = False


@numba.njit(cache=True, nogil=True)
def _write_all(state: Any, tables: Tables, observations: Any, masks: Any) -> None:
    """Write observations and masks of many states."""
    card_status, turn_rows, locked_rows = tables.card_status, tables.turn_rows, tables.locked_rows
    card_rows, pays_rows, open_rows = tables.card_rows, tables.pays_rows, tables.open_rows
    dice_rows, keep_rows, close_rows = tables.dice_rows, tables.keep_rows, tables.close_rows
    for index in range(state.shape[0]):
        card, throw = np.int64(state[index, CARD]), np.int64(state[index, THROW])
        throw_number, kept = np.int64(state[index, THROW_NUMBER]), np.int64(state[index, KEPT])
        _write_observation(
            card,
            throw,
            throw_number,
            np.int64(state[index, SERVED]),
            kept,
            card_status,
            turn_rows,
            locked_rows,
            card_rows,
            pays_rows,
            open_rows,
            dice_rows,
            observations,
            index,
        )
        _write_mask(
            card,
            throw,
            throw_number,
            kept,
            state[index, IS_OVER] != 0,
            state[index, IS_WON] != 0,
            keep_rows,
            close_rows,
            masks,
            index,
        )


@lru_cache(maxsize=1)
def _throw_tables() -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Return ``rolled`` and ``union``, taken from ``next_throw_table``.

    A roll's digits are read from the lowest on, as many as dice are thrown; so what falls beside
    ``n`` kept dice is known from what falls beside ``n`` ones, and equal dice make equal throws.
    """
    after = next_throw_table()
    rolled = np.zeros((NUM_DICE, NUM_ORDERED_THROWS), dtype=np.int16)
    union = np.zeros((NUM_PARTIAL_KEEPS, NUM_KEEPS), dtype=np.uint8)
    for size in range(NUM_DICE):
        counts = THROW_COUNTS[after[KEEP_INDEX[(1,) * size]]].copy()
        counts[:, 0] -= size
        codes = counts @ (NUM_DICE + 1) ** np.arange(NUM_FACES)
        kinds = {code: index for index, code in enumerate(_KEEP_CODES.tolist())}
        rolled[size] = [kinds[code] for code in codes.tolist()]
        for keep in np.flatnonzero(size == KEEP_SIZES).tolist():
            union[keep, rolled[size]] = after[keep]
    return rolled.ravel(), union


_KEEP_CODES: Final = KEEP_COUNTS @ (NUM_DICE + 1) ** np.arange(NUM_FACES)


def make_tables(
    compiled: CompiledVariant,
    layout: ObservationLayout,
    *,
    canonical_keeps: bool = True,
    wins_at_once: bool = True,
) -> Tables:
    """Return the tables that the kernel steps and encodes from.

    Args:
        compiled: The variant.
        layout: The blocks of the observations.
        canonical_keeps: Offer one id per kept multiset.
        wins_at_once: Whether a served Generala that wins ends the game.
    """
    rolled, union = _throw_tables()
    has_bonus = np.array([status.is_bonus_taken for status in compiled.statuses])
    bonus = np.where(~has_bonus[:, None] & has_bonus, compiled.variant.doble.points, 0)
    rows = row_tables(layout)
    return Tables(
        rolled=rolled,
        union=union,
        num_kept=KEEP_SIZES[:NUM_PARTIAL_KEEPS].astype(np.int64) * NUM_ORDERED_THROWS,
        keep_of_mask=KEEP_OF_MASK,
        is_served=compiled.is_served,
        five_equal=IS_FIVE_EQUAL,
        wins=compiled.instant_win & wins_at_once,
        card_open=compiled.card_open,
        card_status=compiled.card_status,
        card_index=compiled.card_index,
        points=compiled.points,
        next_status=compiled.next_status,
        bonus=bonus.astype(np.int32),
        keep_rows=keep_rows(compiled, canonical_keeps),
        close_rows=compiled.closable.astype(np.int8),
        turn_rows=rows.turn,
        locked_rows=rows.locked,
        card_rows=rows.card,
        pays_rows=rows.pays,
        open_rows=rows.closable,
        dice_rows=rows.dice,
    )


def encode(batch: TurnBatch, tables: Tables) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return observations and masks of many states, as ``ObservationLayout.encode`` would.

    Args:
        batch: The states; none of them over.
        tables: What to gather from.

    Returns:
        (batch, size) float32 and (batch, num_actions) bool.
    """
    state = np.zeros((len(batch.card), NUM_COLUMNS), dtype=np.int32)
    state[:, CARD] = batch.card
    state[:, THROW] = batch.throw
    state[:, THROW_NUMBER] = batch.throw_number
    state[:, SERVED] = batch.served
    state[:, KEPT] = batch.kept
    return encode_states(state, tables)


def encode_states(state: NDArray[np.int32], tables: Tables) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return observations and masks of rows of ``Batch.state``.

    Returns:
        (batch, size) float32 and (batch, num_actions) bool.
    """
    observations = np.empty((len(state), _observation_size(tables)), dtype=np.float32)
    masks = np.empty((len(state), NUM_KEEP_ACTIONS + tables.close_rows.shape[1]), dtype=np.int8)
    _write_all(state, tables, observations, masks)
    return observations, masks.view(np.bool_)


def _observation_size(tables: Tables) -> int:
    rows = (tables.turn_rows, tables.locked_rows, tables.card_rows, tables.pays_rows, tables.dice_rows)
    return sum(table.shape[1] for table in rows)


class GeneralaVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.integer[Any]], NDArray[Any]]):
    """Fill many Generala cards at once, each alone; see ``GeneralaEnv`` for the game.

    Sub-environment ``i`` reset with seed ``s`` plays, for the same actions, the very episode
    that the single environment plays with seed ``s``: each has a PCG64 of its own, seeded
    by NumPy and advanced in the kernel.

    ``action_masks()`` returns bool ``(num_envs, n_actions)``; ``info["action_mask"]`` is an
    int8 copy. The other entries of ``info`` are arrays: ``dice`` (num_envs, 5),
    ``throw``, ``served``, ``score`` (num_envs,), ``open_boxes`` (num_envs, boxes) bool; where
    an episode ended ``instant_win`` and ``final_score``; each with its ``_``-mask. In
    SAME_STEP mode those of the finished episode are in ``final_info``, and ``final_obs`` holds
    its last observation.

    Actions must be integers of shape ``(num_envs,)``. With ``illegal_action="raise"`` an
    illegal one raises before any environment has moved.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - the base class declares it like this
        **GeneralaEnv.metadata,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        variant: str | Mapping[str, Any] | Variant = DEFAULT_VARIANT,
        *,
        instant_win: Literal["perfect", "play_on"] | float = "perfect",
        illegal_action: IllegalAction = "raise",
        illegal_reward: float = -1.0,
        canonical_keeps: bool = True,
        observation_blocks: Sequence[str] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        num_threads: int = 1,
        render_mode: str | None = None,
        dice: str = "standard",
        language: str = "en",
    ) -> None:
        """Make the environments.

        Args:
            num_envs: How many.
            variant: As for ``GeneralaEnv``, like every option not named here.
            instant_win: What a served Generala that wins does.
            illegal_action: What an illegal action does.
            illegal_reward: The reward of an illegal action that does not raise.
            canonical_keeps: Offer one id per kept multiset.
            observation_blocks: Names of the blocks in the observation.
            autoreset_mode: Whether environments are reset in the step after the one that ended
                the episode, in the same step, or by the caller with
                ``reset(options={"reset_mask": ...})``.
            num_threads: Threads that share the step. More than one pays from about a thousand
                environments on, and only while the cores are idle.
            render_mode: ``"ansi"`` or ``None``.
            dice: Which dice are shown to people.
            language: Language shown to people.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        super().__init__()
        if num_envs < 1:
            raise ValueError(f"num_envs: {num_envs} is not at least 1")
        if num_threads < 1:
            raise ValueError(f"num_threads: {num_threads} is not at least 1")
        # One single environment checks the options and lends its spaces.
        self._prototype = GeneralaEnv(
            variant,
            instant_win=instant_win,
            illegal_action=illegal_action,
            illegal_reward=illegal_reward,
            canonical_keeps=canonical_keeps,
            observation_blocks=observation_blocks,
            render_mode=render_mode,
            dice=dice,
            language=language,
        )
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.num_envs = num_envs
        self.num_threads = num_threads
        self.variant = self._prototype.variant
        self.compiled = self._prototype.compiled
        self.layout = self._prototype.layout
        self.instant_win = instant_win
        self.instant_win_points = self._prototype.instant_win_points
        self.illegal_action = illegal_action
        self.illegal_reward = self._prototype.illegal_reward
        self.canonical_keeps = canonical_keeps
        self.render_mode = render_mode
        self.dice = dice
        self.language = language
        self.single_observation_space = self._prototype.observation_space
        self.single_action_space = self._prototype.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.tables = make_tables(
            self.compiled,
            self.layout,
            canonical_keeps=canonical_keeps,
            wins_at_once=self.instant_win_points is not None,
        )
        self._win_points = 0.0 if self.instant_win_points is None else self.instant_win_points
        self._illegal_mode = ILLEGAL_ACTIONS.index(illegal_action)
        self._autoreset_code = _AUTORESET_CODE[self.autoreset_mode]
        self._is_seeded = np.zeros(num_envs, dtype=bool)
        self._is_begun = np.zeros(num_envs, dtype=bool)
        self._batch = Batch(
            state=np.zeros((num_envs, NUM_COLUMNS), dtype=np.int32),
            sheet=np.full((num_envs, self.compiled.num_boxes), -1, dtype=np.int16),
            score=np.zeros(num_envs),
            length=np.zeros(num_envs, dtype=np.int32),
            generator=np.zeros((num_envs, 4), dtype=np.uint64),
            masks=np.zeros((num_envs, self.compiled.num_actions), dtype=np.int8),
            rewards=np.zeros(num_envs),
            terminated=np.zeros(num_envs, dtype=bool),
            illegal=np.zeros(num_envs, dtype=bool),
            final_state=np.zeros((num_envs, NUM_COLUMNS), dtype=np.int32),
            final_score=np.zeros(num_envs),
            final_length=np.zeros(num_envs, dtype=np.int32),
        )
        self._batch.state[:, THROW_NUMBER] = 1
        self._final_observations = np.zeros((num_envs, self.layout.size), dtype=np.float32)
        self._actions = np.zeros(num_envs, dtype=np.int64)
        boxes = np.arange(self.compiled.num_boxes)
        self._open_boxes = (self.compiled.card_open[:, None] >> boxes & 1).astype(bool)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now; (num_envs, n_actions) bool."""
        return self._batch.masks.view(np.bool_).copy()

    @property
    def batch(self) -> Batch:
        """The arrays that the kernel works on; to be read, not written."""
        return self._batch

    @property
    def final_observations(self) -> NDArray[np.float32]:
        """(num_envs, size) float32: last observations, valid where an episode ended in a SAME_STEP."""
        return self._final_observations

    def turn_batch(self) -> TurnBatch:
        """Return the states of all environments as the solvers read them."""
        state = self._batch.state
        return TurnBatch(
            state[:, CARD].copy(),
            state[:, THROW].copy(),
            state[:, THROW_NUMBER].copy(),
            state[:, SERVED].astype(bool),
            state[:, KEPT].copy(),
        )

    def state(self, index: int) -> GameState:
        """Return the position of one environment as the engine knows it."""
        row = self._batch.state[index].tolist()
        card = self.compiled.card(row[CARD])
        sheet = tuple(None if points < 0 else points for points in self._batch.sheet[index].tolist())
        is_over = bool(row[IS_OVER] or row[IS_WON])
        return GameState(
            Phase.OVER if is_over else Phase.TURNS,
            (Player(card, sheet, row[BONUS]),),
            first_player=0,
            round=min(self.compiled.num_boxes - card.num_open + 1, self.compiled.num_boxes),
            turn=Turn(row[THROW_NUMBER], THROWS[row[THROW]], KEEPS[row[KEPT]]),
            winners=(0,) if is_over else (),
            is_instant_win=bool(row[IS_WON]),
        )

    # --- reset --------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start new cards and make their first throws.

        Args:
            seed: An integer ``s`` seeds environment ``i`` with ``s + i``; a sequence seeds each
                with its own; ``None``, for all or for one, goes on with the present generator.
            options: ``{"reset_mask": (num_envs,) bool}`` resets only some.

        Raises:
            ValueError: The seeds or the mask do not fit the number of environments.
        """
        chosen = self._reset_mask(options)
        self._seed(seed, chosen)
        self._is_begun |= chosen
        _reset_chosen(chosen, self.tables, self._batch)
        observations = self.observe()
        return observations, self._info(chosen, after_step=False)

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, dtype=bool)
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(
                f"options['reset_mask']: {mask!r} is not a bool array of shape ({self.num_envs},) with a true"
            )
        return mask

    def _seed(self, seed: int | Sequence[int | None] | None, chosen: NDArray[np.bool_]) -> None:
        seeds: Sequence[int | None]
        if seed is None:
            seeds = [None] * self.num_envs
        elif isinstance(seed, int | np.integer):
            seeds = [int(seed) + index for index in range(self.num_envs)]
        else:
            seeds = seed
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: {len(seeds)} seeds for {self.num_envs} environments")
        for index in np.flatnonzero(chosen).tolist():
            own = seeds[index]
            if own is None and self._is_seeded[index]:
                continue
            if own is not None and own < 0:
                raise gym.error.Error(f"seed: {own} is not a non-negative integer")
            self._batch.generator[index] = pcg64_words(np.random.PCG64(np.random.SeedSequence(own)))
            self._is_seeded[index] = True

    def observe(self) -> NDArray[np.float32]:
        """Return the observations of the present states; (num_envs, size) float32."""
        observations = np.empty((self.num_envs, self.layout.size), dtype=np.float32)
        _write_all(self._batch.state, self.tables, observations, self._batch.masks)
        return observations

    # --- step ---------------------------------------------------------------------------

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Take one action in every environment.

        Raises:
            IllegalActionError: An action is not legal and ``illegal_action`` is ``"raise"``; nothing
                has changed.
            gymnasium.error.ResetNeeded: An environment is over (DISABLED), or was never reset.
            ValueError: The actions are not integers of shape ``(num_envs,)``.
        """
        observations = self.advance(actions)
        batch = self._batch
        info = self._info(np.ones(self.num_envs, dtype=bool), after_step=True)
        return (
            observations,
            batch.rewards.copy(),
            batch.terminated.copy(),
            np.zeros(self.num_envs, dtype=bool),
            info,
        )

    def advance(self, actions: NDArray[Any]) -> NDArray[np.float32]:
        """Step without making ``info``: rewards, ends and masks are then in ``batch``.

        Returns:
            (num_envs, size) float32, a new array.

        Raises:
            See ``step``.
        """
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions: {actions.dtype} {actions.shape} is not integers of shape ({self.num_envs},)"
            )
        actions = self._actions = np.ascontiguousarray(actions, dtype=np.int64)
        batch = self._batch
        if not self._is_begun.all():
            raise gym.error.ResetNeeded("the episodes are not begun: call reset()")
        if self._autoreset_code == _DISABLED and batch.terminated.any():
            over = np.flatnonzero(batch.terminated).tolist()
            raise gym.error.ResetNeeded(f"the episodes of environments {over} are over: call reset()")
        if self._illegal_mode == _RAISE:
            index = _first_illegal(actions, batch.state, batch.masks, self._autoreset_code == _NEXT_STEP)
            if index >= 0:
                legal = np.flatnonzero(batch.masks[index]).tolist()
                raise IllegalActionError(
                    f"action {actions[index]} of environment {index} is not legal here; legal: {legal}"
                )
        observations = np.empty((self.num_envs, self.layout.size), dtype=np.float32)
        arguments = (
            actions,
            self.tables,
            batch,
            observations,
            self._final_observations,
            self._win_points,
            self._illegal_mode,
            self.illegal_reward,
            self._autoreset_code,
        )
        if self.num_threads == 1:
            _step_range(0, self.num_envs, *arguments)
        else:
            _step_parallel(self.num_threads, *arguments)
        return observations

    # --- info ---------------------------------------------------------------------------

    def _info(self, present: NDArray[np.bool_], *, after_step: bool) -> dict[str, Any]:
        """Return what the single environment's ``info`` says, as arrays."""
        batch = self._batch
        info: dict[str, Any] = {}
        ended = batch.terminated if after_step and batch.terminated.any() else None
        illegal = batch.illegal if after_step and self._illegal_mode != _RAISE else None
        if ended is not None and self._autoreset_code == _SAME_STEP:
            self._add_final(info, ended.copy(), illegal)
            illegal = None if illegal is None else illegal & ~ended
            ended = None
        self._describe(info, batch.state, batch.score, present)
        info["action_mask"], info["_action_mask"] = batch.masks.copy(), present
        if ended is not None:
            self._add_end(info, batch.state, ended.copy())
        if illegal is not None and illegal.any():
            self._add_illegal(info, illegal.copy())
        return info

    def _describe(
        self,
        info: dict[str, Any],
        state: NDArray[np.int32],
        score: NDArray[np.float64],
        present: NDArray[np.bool_],
    ) -> None:
        values = {
            "dice": THROW_DICE.take(state[:, THROW], axis=0),
            "throw": state[:, THROW_NUMBER].copy(),
            "served": state[:, SERVED].astype(bool),
            "open_boxes": self._open_boxes.take(state[:, CARD], axis=0),
            "score": score.copy(),
        }
        for name, value in values.items():
            info[name], info[f"_{name}"] = value, present

    def _add_end(self, info: dict[str, Any], state: NDArray[np.int32], ended: NDArray[np.bool_]) -> None:
        info["instant_win"], info["_instant_win"] = state[:, IS_WON].astype(bool) & ended, ended
        info["final_score"], info["_final_score"] = np.where(ended, self._batch.final_score, 0.0), ended

    def _add_illegal(self, info: dict[str, Any], illegal: NDArray[np.bool_]) -> None:
        info["illegal_action"], info["_illegal_action"] = np.where(illegal, self._actions, 0), illegal

    def _add_final(
        self, info: dict[str, Any], ended: NDArray[np.bool_], illegal: NDArray[np.bool_] | None
    ) -> None:
        """Add the last observation and ``info`` of the episodes that ended within this step."""
        observations = np.full(self.num_envs, None, dtype=object)
        where = np.flatnonzero(ended)
        for index, observation in zip(where.tolist(), self._final_observations[where], strict=True):
            observations[index] = observation
        final: dict[str, Any] = {}
        self._describe(final, self._batch.final_state, self._batch.final_score, ended)
        final["action_mask"], final["_action_mask"] = np.zeros_like(self._batch.masks), ended
        self._add_end(final, self._batch.final_state, ended)
        if illegal is not None and (illegal & ended).any():
            self._add_illegal(final, illegal & ended)
        info["final_obs"], info["_final_obs"] = observations, ended
        info["final_info"], info["_final_info"] = final, ended

    # --- resuming and showing -----------------------------------------------------------

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return everything that decides how the episodes go on, generators included.

        Returns:
            Copies of the arrays of ``batch``, and which environments are seeded and begun.
        """
        arrays = {name: array.copy() for name, array in self._batch._asdict().items()}
        return {**arrays, "is_seeded": self._is_seeded.copy(), "is_begun": self._is_begun.copy()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what ``get_state`` returned.

        Raises:
            ValueError: An array is missing, unknown, or of another shape or type; nothing has
                changed.
        """
        own = {**self._batch._asdict(), "is_seeded": self._is_seeded, "is_begun": self._is_begun}
        if set(state) != set(own):
            raise ValueError(f"state: the arrays {sorted(state)} are not {sorted(own)}")
        for name, array in own.items():
            given = np.asarray(state[name])
            if given.shape != array.shape or given.dtype != array.dtype:
                raise ValueError(
                    f"state: {name} is {given.dtype} {given.shape} instead of {array.dtype} {array.shape}"
                )
        for name, array in own.items():
            array[...] = state[name]

    def render(self) -> tuple[str, ...] | None:
        """Return dice and score sheet of each environment as text when ``render_mode`` is ``"ansi"``."""
        if self.render_mode is None:
            gym.logger.warn("render() without a render_mode: make the environments with render_mode='ansi'")
            return None
        from generala_env.envs.rendering import render_text

        return tuple(
            render_text(self.variant, self.state(index), language=self.language, dice=self.dice)
            for index in range(self.num_envs)
        )


def pcg64_words(generator: np.random.PCG64) -> NDArray[np.uint64]:
    """Return the state and the increment of a PCG64 as 64-bit words, high words first.

    Returns:
        (4,) uint64.
    """
    words = generator.state["state"]
    low = (1 << 64) - 1
    return np.array(
        [word for value in (words["state"], words["inc"]) for word in (value >> 64, value & low)],
        dtype=np.uint64,
    )
