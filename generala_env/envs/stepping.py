"""The compiled kernel that steps many one-player games over the variant's tables."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

from generala_env.compiling import kernel
from generala_env.envs.kernel_tables import KEEP_ROW, KernelTables
from generala_env.envs.positions import Position
from generala_env.envs.solo import ILLEGAL_ACTIONS
from generala_env.rules.actions import NUM_KEEP_ACTIONS, num_actions
from generala_env.rules.compiled import TurnBatch
from generala_env.rules.dice import (
    EMPTY_KEEP,
    NUM_DICE,
    NUM_ORDERED_THROWS,
    NUM_THROWS,
    THROWS_PER_TURN,
)
from generala_env.threads import in_shares

# Columns of the state array: the fields of a ``Position``.
NUM_COLUMNS: Final = len(Position._fields)
CARD, THROW, THROW_NUMBER, SERVED, KEPT, IS_OVER, IS_WON, BONUS = range(NUM_COLUMNS)

# When an episode begins anew, and what an illegal action does.
NEXT_STEP, SAME_STEP, DISABLED = range(3)
RAISE, _, _TERMINATE = range(len(ILLEGAL_ACTIONS))

# Rows of the arrays of a description.
REWARDS, SCORES, FINAL_SCORES = range(3)
TERMINATED, TRUNCATED, PRESENT, ALL_THROWN, ENDED, WON = range(6)

# PCG64 (M. E. O'Neill, "PCG: A family of simple fast space-efficient statistically good
# algorithms for random number generation", 2014; XSL-RR 128/64), as in numpy.random.PCG64.
_MULTIPLIER_HIGH: Final = np.uint64(0x2360ED051FC65DA4)
_MULTIPLIER_LOW: Final = np.uint64(0x4385DF649FCCF645)
_TO_UNIT: Final = 2.0**-53

_NONE: Final = 2**31 - 1  # no environment


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


def empty_batch(num_envs: int, num_boxes: int) -> Batch:
    """Return the arrays of environments that are yet to be reset."""
    batch = Batch(
        state=np.zeros((num_envs, NUM_COLUMNS), dtype=np.int32),
        sheet=np.full((num_envs, num_boxes), -1, dtype=np.int16),
        score=np.zeros(num_envs),
        length=np.zeros(num_envs, dtype=np.int32),
        generator=np.zeros((num_envs, 4), dtype=np.uint64),
        masks=np.zeros((num_envs, num_actions(num_boxes)), dtype=np.int8),
        rewards=np.zeros(num_envs),
        terminated=np.zeros(num_envs, dtype=bool),
        illegal=np.zeros(num_envs, dtype=bool),
        final_state=np.zeros((num_envs, NUM_COLUMNS), dtype=np.int32),
        final_score=np.zeros(num_envs),
        final_length=np.zeros(num_envs, dtype=np.int32),
    )
    batch.state[:, THROW_NUMBER] = 1
    return batch


def _upper_half_of_product(context: Any, left: Any, right: Any) -> Any:  # noqa: ARG001 - numba asks for them
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        wide = ir.IntType(128)
        factors = [builder.zext(argument, wide) for argument in arguments]
        product = builder.lshr(builder.mul(*factors), ir.Constant(wide, 64))
        return builder.trunc(product, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


_multiply_high: Any = intrinsic(_upper_half_of_product)
"""The upper 64 bits of the product of two unsigned 64-bit numbers."""


class Description(NamedTuple):
    """What a step of ``n`` environments writes for its caller to keep; of none where nobody asks.

    Few arrays, because each one handed to compiled code costs as much as stepping ten environments.

    Attributes:
        numbers: (3, n) float64: the rewards, the scores, and the final scores, 0 where no episode ended.
        flags: (6, n) bool: whether an episode terminated, was truncated (none is), is described (all
            are), lies on a throw of all dice, ended (as the first, to be handed on apart), was won at once.
        throw: (n,) int32, its number.
        dice: (n, 5) int8.
        open_boxes: (n, B) bool.
        masks: (n, num_actions) int8.
    """

    numbers: NDArray[np.float64]
    flags: NDArray[np.bool_]
    throw: NDArray[np.int32]
    dice: NDArray[np.int8]
    open_boxes: NDArray[np.bool_]
    masks: NDArray[np.int8]


_TYPES: Final[dict[type, dict[str, Any]]] = {
    KernelTables: {
        "rolled": types.int16[::1],
        "union": types.uint8[:, ::1],
        "num_kept": types.int64[::1],
        "keep_of_mask": types.int16[:, ::1],
        "is_served": types.bool_[:, ::1],
        "five_equal": types.bool_[::1],
        "wins": types.bool_[::1],
        "card_open": types.uint16[::1],
        "card_status": types.uint8[::1],
        "card_index": types.int32[:, ::1],
        "points": types.int32[:, :, :, ::1],
        "next_status": types.uint8[:, :, :, ::1],
        "bonus": types.int32[:, ::1],
        "keep_rows": types.int8[:, ::1],
        "close_rows": types.int8[:, ::1],
        "turn_rows": types.float32[:, ::1],
        "locked_rows": types.float32[:, ::1],
        "card_rows": types.float32[:, ::1],
        "pays_rows": types.float32[:, ::1],
        "open_rows": types.float32[:, ::1],
        "dice_rows": types.float32[:, ::1],
        "throw_dice": types.int8[:, ::1],
        "card_open_boxes": types.bool_[:, ::1],
    },
    Batch: {
        "state": types.int32[:, ::1],
        "sheet": types.int16[:, ::1],
        "score": types.float64[::1],
        "length": types.int32[::1],
        "generator": types.uint64[:, ::1],
        "masks": types.int8[:, ::1],
        "rewards": types.float64[::1],
        "terminated": types.bool_[::1],
        "illegal": types.bool_[::1],
        "final_state": types.int32[:, ::1],
        "final_score": types.float64[::1],
        "final_length": types.int32[::1],
    },
}
"""How the kernel sees the fields, in their order."""

_WORDS: Final = 5  # of an array in a bundle: its address and up to four lengths


def bundle(arrays: KernelTables | Batch) -> NDArray[np.int64]:
    """Return where arrays lie in memory, so that a call need not hand them over one by one.

    Args:
        arrays: They must outlive every use of what is returned, and not be replaced or moved.

    Returns:
        (fields, 5) int64: address and lengths, as ``_open_tables`` and ``_open_batch`` read them.

    Raises:
        TypeError: An array is not laid out as the kernel reads it, or is not to be written.
    """
    words = np.zeros((len(arrays), _WORDS), dtype=np.int64)
    for row, (name, expected) in zip(words, _TYPES[type(arrays)].items(), strict=True):
        array: NDArray[Any] = getattr(arrays, name)
        flags = array.flags
        if (array.dtype, array.ndim) != (as_dtype(expected.dtype), expected.ndim) or not flags.c_contiguous:
            raise TypeError(
                f"{name}: {array.dtype} {array.shape} with strides {array.strides}, not {expected}"
            )
        if not flags.aligned or (isinstance(arrays, Batch) and not flags.writeable):
            raise TypeError(f"{name}: the kernel cannot write into an array that is not aligned and writable")
        row[: 1 + array.ndim] = array.ctypes.data, *array.shape
    return words


def _opener(kind: type[KernelTables] | type[Batch]) -> Any:
    """Return what makes the arrays of a kind out of the ``bundle`` of them, in compiled code."""
    if tuple(_TYPES[kind]) != kind._fields:
        raise TypeError(f"{kind.__name__}: the fields {kind._fields} are not those of _TYPES")
    array_types = list(_TYPES[kind].values())
    made = types.NamedTuple(array_types, kind)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (words_type,), (words,) = signature.args, arguments
        first = make_array(words_type)(context, builder, words).data
        arrays = []
        for position, array_type in enumerate(array_types):
            address, *shape = (
                builder.load(builder.gep(first, [context.get_constant(types.intp, position * _WORDS + word)]))
                for word in range(1 + array_type.ndim)
            )
            array = make_array(array_type)(context, builder)
            size = context.get_abi_sizeof(array.data.type.pointee)
            itemsize = context.get_constant(types.intp, size)
            strides = [itemsize]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            data = builder.inttoptr(address, array.data.type)
            populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
            arrays.append(array._getvalue())
        return context.make_tuple(builder, made, arrays)

    def open_bundle(context: Any, words: Any) -> Any:  # noqa: ARG001
        return made(words), generate

    return intrinsic(open_bundle)


_open_tables, _open_batch = _opener(KernelTables), _opener(Batch)


@kernel(is_inner=True, inline="always")
def _natural(number: Any) -> Any:
    """Return a number that is not negative, and known as such: an index then needs no look at its sign."""
    return np.int64(np.uint32(number))


@kernel(is_inner=True, inline="always")
def _thrown(union: Any, rolled: Any, num_kept: Any, generators: Any, index: Any, kept: Any) -> Any:
    """Return the throw made by rolling the dice that are not kept."""
    fallen = _natural(rolled[_natural(num_kept[kept] + _roll(generators, index))])
    return _natural(union[kept, fallen])


@kernel(is_inner=True, inline="always")
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


def _vector_instruction(number: Any, lanes: int, num_sources: int) -> Any:
    """Return a function that writes the product of numbers side by side with one vector instruction.

    Args:
        number: Their LLVM type.
        lanes: How many.
        num_sources: 1 to copy, 2 to multiply (floating numbers only).

    Returns:
        What takes the address to write to and those to read from, as integers. Nothing is checked.
    """
    vector = ir.VectorType(number, lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        to, *sources = [builder.inttoptr(argument, vector.as_pointer()) for argument in arguments]
        values = [builder.load(source, align=1) for source in sources]
        builder.store(values[0] if num_sources == 1 else builder.fmul(*values), to, align=1)
        return context.get_dummy_value()

    def copy(context: Any, to: Any, source: Any) -> Any:  # noqa: ARG001
        return types.void(types.intp, types.intp), generate

    def multiply(context: Any, to: Any, source: Any, factor: Any) -> Any:  # noqa: ARG001
        return types.void(types.intp, types.intp, types.intp), generate

    return intrinsic(copy if num_sources == 1 else multiply)


_copy_32_bytes, _copy_16_bytes, _copy_8_bytes, _copy_4_bytes, _copy_byte = (
    _vector_instruction(ir.IntType(8), size, 1) for size in (32, 16, 8, 4, 1)
)
_multiply_8, _multiply_4, _multiply_1 = (_vector_instruction(ir.FloatType(), lanes, 2) for lanes in (8, 4, 1))


@kernel(is_inner=True, forceinline=True)
def _copy(to: Any, source: Any, size: Any) -> None:
    """Copy bytes between addresses; the last instruction copies some of them for the second time.

    LLVM turns a loop over the ten or so numbers of a row into one number at a time, and that is what a
    step would spend most on.
    """
    if size >= 32:
        for at in range(0, size - 32, 32):
            _copy_32_bytes(to + at, source + at)
        _copy_32_bytes(to + size - 32, source + size - 32)
    elif size >= 16:
        _copy_16_bytes(to, source)
        _copy_16_bytes(to + size - 16, source + size - 16)
    elif size >= 8:
        _copy_8_bytes(to, source)
        _copy_8_bytes(to + size - 8, source + size - 8)
    elif size >= 4:
        _copy_4_bytes(to, source)
        _copy_4_bytes(to + size - 4, source + size - 4)
    else:
        for at in range(size):
            _copy_byte(to + at, source + at)


@kernel(is_inner=True, forceinline=True)
def _multiply(to: Any, source: Any, factor: Any, size: Any) -> None:
    """Write the products of two rows of float32 at addresses, as ``_copy`` copies."""
    if size >= 32:
        for at in range(0, size - 32, 32):
            _multiply_8(to + at, source + at, factor + at)
        _multiply_8(to + size - 32, source + size - 32, factor + size - 32)
    elif size >= 16:
        _multiply_4(to, source, factor)
        _multiply_4(to + size - 16, source + size - 16, factor + size - 16)
    else:
        for at in range(0, size, 4):
            _multiply_1(to + at, source + at, factor + at)


class _Rows(NamedTuple):
    """Where the rows of the tables lie in memory, and how many bytes each has.

    Numbers rather than arrays: handing on an array counts a reference, which costs more than the copy.
    """

    turn: int
    turn_size: int
    locked: int
    locked_size: int
    card: int
    card_size: int
    pays: int
    open: int
    pays_size: int
    dice: int
    dice_size: int
    keep: int
    close: int
    close_size: int
    is_locked: bool


@kernel(is_inner=True)
def _rows(tables: KernelTables) -> _Rows:
    number = tables.turn_rows.itemsize
    return _Rows(
        tables.turn_rows.ctypes.data,
        tables.turn_rows.shape[1] * number,
        tables.locked_rows.ctypes.data,
        tables.locked_rows.shape[1] * number,
        tables.card_rows.ctypes.data,
        tables.card_rows.shape[1] * number,
        tables.pays_rows.ctypes.data,
        tables.open_rows.ctypes.data,
        tables.pays_rows.shape[1] * number,
        tables.dice_rows.ctypes.data,
        tables.dice_rows.shape[1] * number,
        tables.keep_rows.ctypes.data,
        tables.close_rows.ctypes.data,
        tables.close_rows.shape[1],
        tables.keep_rows.shape[0] > 2 * NUM_THROWS,
    )


@kernel(is_inner=True, forceinline=True)
def _write_observation(
    to: Any, rows: _Rows, card: Any, status: Any, throw: Any, throw_number: Any, served: Any, kept: Any
) -> None:
    """Gather one observation at an address; the blocks stand in the order of ``BLOCKS``."""
    row = served * NUM_THROWS + throw
    _copy(to, rows.turn + ((throw_number - 1) * 2 * NUM_THROWS + row) * rows.turn_size, rows.turn_size)
    to += rows.turn_size
    _copy(to, rows.locked + kept * rows.locked_size, rows.locked_size)
    to += rows.locked_size
    _copy(to, rows.card + card * rows.card_size, rows.card_size)
    to += rows.card_size
    pays = rows.pays + (status * 2 * NUM_THROWS + row) * rows.pays_size
    _multiply(to, pays, rows.open + card * rows.pays_size, rows.pays_size)
    to += rows.pays_size
    _copy(to, rows.dice + throw * rows.dice_size, rows.dice_size)


@kernel(is_inner=True, forceinline=True)
def _write_mask(to: Any, rows: _Rows, card: Any, throw: Any, throw_number: Any, kept: Any) -> None:
    """Gather the action mask of a game that goes on, at an address."""
    context = 0
    if throw_number < THROWS_PER_TURN:
        context = 1
        if rows.is_locked:
            context += kept
    # A byte more than the keeps: the boxes overwrite it.
    _copy_32_bytes(to, rows.keep + (context * NUM_THROWS + throw) * KEEP_ROW)
    _copy(to + NUM_KEEP_ACTIONS, rows.close + card * rows.close_size, rows.close_size)


@kernel(is_inner=True)
def _restrict_mask(masks: Any, index: Any, is_over: Any) -> None:
    """Offer nothing in a game that is over, and one action in one that the first throw has won."""
    found = is_over
    for action in range(masks.shape[1]):
        if action < NUM_KEEP_ACTIONS or found:
            masks[index, action] = 0
        elif masks[index, action]:
            found = True


@kernel(is_inner=True, inline="always")
def _close_box(tables: Any, batch: Any, index: Any, box: Any, card: Any, served: Any, throw: Any) -> Any:
    """Write a box of the sheet; return what was paid and the card afterwards."""
    before = _natural(tables.card_status[card])
    paid = tables.points[before, box, served, throw]
    after = _natural(tables.next_status[before, box, served, throw])
    bonus = tables.bonus[before, after]
    batch.sheet[index, box] = paid - bonus
    batch.state[index, BONUS] += bonus
    opened = _natural(tables.card_open[card]) & ~(np.int64(1) << box)
    return paid, _natural(tables.card_index[opened, after])


@kernel(is_inner=True, inline="always")
def _begin(batch: Any, index: Any) -> None:
    """Empty the sheet and the counts of an environment."""
    batch.state[index, BONUS] = 0
    for box in range(batch.sheet.shape[1]):
        batch.sheet[index, box] = -1
    batch.score[index] = 0.0
    batch.length[index] = 0


@kernel(is_inner=True, inline="always")
def _store(
    to: Any,
    index: Any,
    card: Any,
    throw: Any,
    throw_number: Any,
    served: Any,
    kept: Any,
    is_over: Any,
    is_won: Any,
) -> None:
    """Write a position, all but its bonus, into a row of states."""
    to[index, CARD] = card
    to[index, THROW] = throw
    to[index, THROW_NUMBER] = throw_number
    to[index, SERVED] = served
    to[index, KEPT] = kept
    to[index, IS_OVER] = is_over
    to[index, IS_WON] = is_won


@kernel(is_inner=True, inline="always")
def _describe(start: Any, stop: Any, batch: Any, tables: Any, description: Any, autoreset: Any) -> None:
    """Write what a step of environments ``start`` to ``stop - 1`` did for its caller to keep."""
    numbers, flags, throw_numbers, dice, open_boxes, masks = description
    state, last, num_actions = batch.state, batch.state, masks.shape[1]
    terminated, final_score = batch.terminated, batch.final_score
    if autoreset == SAME_STEP:
        last = batch.final_state
    count = stop - start
    _copy(numbers[REWARDS].ctypes.data + 8 * start, batch.rewards.ctypes.data + 8 * start, 8 * count)
    _copy(numbers[SCORES].ctypes.data + 8 * start, batch.score.ctypes.data + 8 * start, 8 * count)
    for row in (TERMINATED, ENDED):
        _copy(flags[row].ctypes.data + start, batch.terminated.ctypes.data + start, count)
    first = num_actions * start
    _copy(masks.ctypes.data + first, batch.masks.ctypes.data + first, num_actions * count)
    dice_at, dice_from = dice.ctypes.data, tables.throw_dice.ctypes.data
    open_at, open_from = open_boxes.ctypes.data, tables.card_open_boxes.ctypes.data
    num_boxes = open_boxes.shape[1]
    for number in range(start, stop):
        index = _natural(number)
        card, throw = _natural(state[index, CARD]), _natural(state[index, THROW])
        _copy(dice_at + index * NUM_DICE, dice_from + throw * NUM_DICE, NUM_DICE)
        _copy(open_at + index * num_boxes, open_from + card * num_boxes, num_boxes)
        has_ended = terminated[index]
        throw_numbers[index] = state[index, THROW_NUMBER]
        numbers[FINAL_SCORES, index] = final_score[index] if has_ended else 0.0
        flags[TRUNCATED, index] = False
        flags[PRESENT, index] = True
        flags[ALL_THROWN, index] = state[index, SERVED] != 0
        flags[WON, index] = has_ended and last[index, IS_WON] != 0


@kernel()
def _step_range(
    start: Any,
    stop: Any,
    actions: Any,
    tables_at: Any,
    batch_at: Any,
    observations: Any,
    final_observations: Any,
    description: Any,
    win_points: Any,
    illegal_mode: Any,
    illegal_reward: Any,
    autoreset: Any,
) -> Any:
    """Step environments ``start`` to ``stop - 1``; return how many episodes ended.

    Illegal actions have been ruled out or are punished.
    """
    tables, batch = _open_tables(tables_at), _open_batch(batch_at)
    rolled, union, num_kept = tables.rolled, tables.union, tables.num_kept
    is_served, five_equal, wins = tables.is_served, tables.five_equal, tables.wins
    state, generator, masks = batch.state, batch.generator, batch.masks
    rows = _rows(tables)
    observations_at, final_at = observations.ctypes.data, final_observations.ctypes.data
    observation_size = observations.shape[1] * observations.itemsize
    masks_at, num_actions = masks.ctypes.data, masks.shape[1]
    num_ended = 0
    for number in range(start, stop):
        index = _natural(number)
        card: Any = _natural(state[index, CARD])
        throw = _natural(state[index, THROW])
        throw_number = _natural(state[index, THROW_NUMBER])
        served = _natural(state[index, SERVED])
        kept = _natural(state[index, KEPT])
        is_over = state[index, IS_OVER] != 0
        is_won = state[index, IS_WON] != 0
        reward = 0.0
        is_illegal = False
        begins = is_over  # Only in NEXT_STEP mode: the action is ignored, a new episode begins.
        throws = False
        if not begins:
            action = np.int64(actions[index])
            batch.length[index] += 1
            if action < 0 or action >= num_actions or not masks[index, action]:
                is_illegal = True
                reward = illegal_reward
                is_over = bool(illegal_mode == _TERMINATE)
            elif is_won:
                reward = win_points
                is_over = True
            elif action < NUM_KEEP_ACTIONS:
                kept = _natural(tables.keep_of_mask[throw, action])
                throw_number += np.int64(1)
                throws = True
            else:
                box = _natural(action - NUM_KEEP_ACTIONS)
                paid, card = _close_box(tables, batch, index, box, card, served, throw)
                reward = np.float64(paid)
                throws = tables.card_open[card] != 0
                if throws:
                    kept = np.int64(EMPTY_KEEP)
                    throw_number = np.int64(1)
                else:
                    is_over = True
            if throws:
                throw = _thrown(union, rolled, num_kept, generator, index, kept)
                served = _natural(is_served[_natural(throw_number - 1), _natural(kept == EMPTY_KEEP)])
                if served and five_equal[throw] and wins[card]:
                    is_won = True
                    is_over = True
                    reward += win_points
            if not is_illegal:
                batch.score[index] += reward
            if is_over:
                batch.final_score[index] = batch.score[index]
                batch.final_length[index] = batch.length[index]
                if autoreset == SAME_STEP:
                    status = _natural(tables.card_status[card])
                    to = final_at + index * observation_size
                    _write_observation(to, rows, card, status, throw, throw_number, served, kept)
                    final_state = batch.final_state
                    _store(final_state, index, card, throw, throw_number, served, kept, True, is_won)
                    final_state[index, BONUS] = state[index, BONUS]
                    begins = True
        has_ended = is_over and (autoreset == SAME_STEP or not begins)
        batch.terminated[index] = has_ended
        num_ended += has_ended
        if begins:
            card = np.int64(0)
            kept = np.int64(EMPTY_KEEP)
            throw_number = np.int64(1)
            throw = _thrown(union, rolled, num_kept, generator, index, np.int64(EMPTY_KEEP))
            served = np.int64(is_served[0, 1])
            is_over = False
            is_won = served != 0 and five_equal[throw] and wins[card]
            _begin(batch, index)
        _store(state, index, card, throw, throw_number, served, kept, is_over, is_won)
        batch.rewards[index] = reward
        batch.illegal[index] = is_illegal
        status = _natural(tables.card_status[card])
        to = observations_at + index * observation_size
        _write_observation(to, rows, card, status, throw, throw_number, served, kept)
        _write_mask(masks_at + index * num_actions, rows, card, throw, throw_number, kept)
        if is_over or is_won:
            _restrict_mask(masks, index, is_over)
        if has_ended and autoreset == NEXT_STEP:
            # The next action will be ignored, so any will do; a distribution needs one that may be drawn.
            masks[index] = 1
    if len(description[2]) > 0:
        _describe(start, stop, batch, tables, description, autoreset)
    return num_ended


@kernel()
def _first_illegal(start: Any, stop: Any, actions: Any, batch_at: Any, skips_over: Any) -> Any:
    """Return the first environment from ``start`` to ``stop - 1`` whose action is not legal, or ``_NONE``.

    Where ``skips_over``, environments that are over are about to be reset and take any action.
    """
    batch = _open_batch(batch_at)
    state, masks = batch.state, batch.masks
    for number in range(start, stop):
        index = _natural(number)
        action = np.int64(actions[index])
        if action < 0 or action >= masks.shape[1] or not masks[index, action]:
            if skips_over and state[index, IS_OVER]:
                continue
            return index
    return _NONE


@kernel()
def step(
    actions: Any,
    tables_at: Any,
    batch_at: Any,
    observations: Any,
    final_observations: Any,
    numbers: Any,
    flags: Any,
    throw: Any,
    dice: Any,
    open_boxes: Any,
    masks: Any,
    win_points: Any,
    illegal_mode: Any,
    illegal_reward: Any,
    autoreset: Any,
) -> Any:
    """Step all environments, or none if an action is to raise.

    Args:
        actions: (n,) int64.
        tables_at: The ``bundle`` of ``KernelTables``.
        batch_at: The ``bundle`` of a ``Batch`` of ``n`` environments.
        observations: (n, size) float32, to be written.
        final_observations: (n, size) float32, written where an episode ends and is reset.
        numbers: This and the next five: the arrays of a ``Description``, to be written.
        flags: See there.
        throw: See there.
        dice: See there.
        open_boxes: See there.
        masks: See there.
        win_points: What a served Generala that wins pays.
        illegal_mode: ``RAISE`` or another of ``ILLEGAL_ACTIONS``.
        illegal_reward: The reward of an illegal action that does not raise.
        autoreset: ``NEXT_STEP``, ``SAME_STEP`` or ``DISABLED``.

    Returns:
        The first environment whose action raises, or -1; and how many episodes ended.
    """
    illegal_at, num_ended = _NONE, 0
    if illegal_mode == RAISE:
        illegal_at = _first_illegal(0, len(actions), actions, batch_at, autoreset == NEXT_STEP)
    if illegal_at == _NONE:
        num_ended = _step_range(
            0,
            len(actions),
            actions,
            tables_at,
            batch_at,
            observations,
            final_observations,
            (numbers, flags, throw, dice, open_boxes, masks),
            win_points,
            illegal_mode,
            illegal_reward,
            autoreset,
        )
    return -1 if illegal_at == _NONE else illegal_at, num_ended


def step_in_shares(
    shares: int,
    actions: NDArray[np.int64],
    tables_at: Any,
    batch_at: Any,
    observations: NDArray[np.float32],
    final_observations: NDArray[np.float32],
    description: Description,
    win_points: float,
    illegal_mode: int,
    illegal_reward: float,
    autoreset: int,
) -> tuple[int, int]:
    """Do what ``step`` does with as many threads as there are shares, each with a run of environments."""
    bounds = [len(actions) * share // shares for share in range(shares + 1)]

    def look(share: int, _: int) -> int:
        # Each thread looks at what it wrote itself: for another's, the cores would have to talk.
        start, stop = bounds[share], bounds[share + 1]
        return int(_first_illegal(start, stop, actions, batch_at, autoreset == NEXT_STEP))

    def step_run(share: int, _: int) -> int:
        return int(
            _step_range(
                bounds[share],
                bounds[share + 1],
                actions,
                tables_at,
                batch_at,
                observations,
                final_observations,
                tuple(description),
                win_points,
                illegal_mode,
                illegal_reward,
                autoreset,
            )
        )

    if illegal_mode == RAISE:
        illegal_at = min(in_shares(look, shares))
        if illegal_at != _NONE:
            return illegal_at, 0
    return -1, sum(in_shares(step_run, shares))


@kernel()
def reset_chosen(chosen: Any, tables_at: Any, batch_at: Any) -> None:
    """Begin new episodes in the chosen environments; tables and batch are given as for ``step``."""
    tables, batch = _open_tables(tables_at), _open_batch(batch_at)
    rolled, union, num_kept, is_served = tables.rolled, tables.union, tables.num_kept, tables.is_served
    five_equal, wins = tables.five_equal, tables.wins
    state, generator = batch.state, batch.generator
    for index in range(len(chosen)):
        if not chosen[index]:
            continue
        throw = _thrown(union, rolled, num_kept, generator, index, np.int64(EMPTY_KEEP))
        for column in range(NUM_COLUMNS):
            state[index, column] = 0
        state[index, THROW] = throw
        state[index, THROW_NUMBER] = 1
        state[index, SERVED] = is_served[0, 1]
        state[index, IS_WON] = is_served[0, 1] and five_equal[throw] and wins[0]
        _begin(batch, index)
        batch.terminated[index] = False


@kernel()
def write_all(state: Any, tables: KernelTables, observations: Any, masks: Any) -> None:
    """Write observations and masks of many states."""
    rows, card_status = _rows(tables), tables.card_status
    observations_at, masks_at, num_actions = observations.ctypes.data, masks.ctypes.data, masks.shape[1]
    observation_size = observations.shape[1] * observations.itemsize
    for index in range(state.shape[0]):
        card, throw = np.int64(state[index, CARD]), np.int64(state[index, THROW])
        throw_number, kept = np.int64(state[index, THROW_NUMBER]), np.int64(state[index, KEPT])
        served, status = np.int64(state[index, SERVED]), np.int64(card_status[card])
        to = observations_at + index * observation_size
        _write_observation(to, rows, card, status, throw, throw_number, served, kept)
        _write_mask(masks_at + index * num_actions, rows, card, throw, throw_number, kept)
        if state[index, IS_OVER] or state[index, IS_WON]:
            _restrict_mask(masks, index, state[index, IS_OVER] != 0)


def encode(batch: TurnBatch, tables: KernelTables) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
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


def encode_states(
    state: NDArray[np.int32], tables: KernelTables
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return observations and masks of rows of ``Batch.state``.

    Returns:
        (batch, size) float32 and (batch, num_actions) bool.
    """
    observations = np.empty((len(state), _observation_size(tables)), dtype=np.float32)
    masks = np.empty((len(state), NUM_KEEP_ACTIONS + tables.close_rows.shape[1]), dtype=np.int8)
    write_all(state, tables, observations, masks)
    return observations, masks.view(np.bool_)


def _observation_size(tables: KernelTables) -> int:
    rows = (tables.turn_rows, tables.locked_rows, tables.card_rows, tables.pays_rows, tables.dice_rows)
    return sum(table.shape[1] for table in rows)


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
