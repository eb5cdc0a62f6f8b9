"""Five dice as tables: throws, keeps, probabilities and the maps between them.

A *throw* is five dice in ascending order (252 of them). A *keep* is a multiset of
zero to five dice (462 of them), ordered by size and then lexicographically; the last
252 keeps are the throws themselves, so throw ``t`` is keep ``NUM_PARTIAL_KEEPS + t``.
A *keep mask* is five bits over the ascending dice of a throw, bit 0 the lowest die.
All tables are read-only arrays.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Dice = tuple[int, ...]
"""Faces in ascending order."""

Counts = tuple[int, int, int, int, int, int]
"""How many dice show each face, ones first."""

NUM_DICE: Final = 5
NUM_FACES: Final = 6
FACES: Final = tuple(range(1, NUM_FACES + 1))
THROWS_PER_TURN: Final = 3
NUM_ORDERED_THROWS: Final = NUM_FACES**NUM_DICE
"""7,776: outcomes of five distinguishable dice."""
NUM_KEEP_MASKS: Final = 2**NUM_DICE


def counts_of(dice: Dice) -> Counts:
    """Count the faces of any number of dice, in any order."""
    return (dice.count(1), dice.count(2), dice.count(3), dice.count(4), dice.count(5), dice.count(6))


_T = TypeVar("_T", bound=np.generic)


def _frozen(array: NDArray[_T]) -> NDArray[_T]:
    array.setflags(write=False)
    return array


KEEPS: Final[tuple[Dice, ...]] = tuple(
    dice for size in range(NUM_DICE + 1) for dice in combinations_with_replacement(FACES, size)
)
KEEP_INDEX: Final[dict[Dice, int]] = {dice: index for index, dice in enumerate(KEEPS)}
NUM_KEEPS: Final = len(KEEPS)

THROWS: Final[tuple[Dice, ...]] = tuple(combinations_with_replacement(FACES, NUM_DICE))
THROW_INDEX: Final[dict[Dice, int]] = {dice: index for index, dice in enumerate(THROWS)}
NUM_THROWS: Final = len(THROWS)
NUM_PARTIAL_KEEPS: Final = NUM_KEEPS - NUM_THROWS
"""210: keeps of zero to four dice, the ones a player may choose."""
EMPTY_KEEP: Final = 0

THROW_DICE: Final = _frozen(np.array(THROWS, dtype=np.int8))
"""(252, 5) int8: ascending faces."""
THROW_COUNTS: Final = _frozen(np.array([counts_of(dice) for dice in THROWS], dtype=np.int8))
"""(252, 6) int8: dice per face."""
KEEP_COUNTS: Final = _frozen(np.array([counts_of(dice) for dice in KEEPS], dtype=np.int8))
"""(462, 6) int8: dice per face."""
KEEP_SIZES: Final = _frozen(np.array([len(dice) for dice in KEEPS], dtype=np.int8))
"""(462,) int8: number of dice."""
THROW_WEIGHTS: Final = _frozen(
    np.array(
        [factorial(NUM_DICE) // prod(map(factorial, Counter(dice).values())) for dice in THROWS],
        dtype=np.int64,
    )
)
"""(252,) int64: ordered outcomes out of 7,776."""
THROW_PROBABILITIES: Final = _frozen(THROW_WEIGHTS / NUM_ORDERED_THROWS)
"""(252,) float64: probability of each throw of five dice."""
IS_FIVE_EQUAL: Final = _frozen(np.array([dice[0] == dice[-1] for dice in THROWS]))
"""(252,) bool."""

KEEP_ADD: Final = _frozen(
    np.array(
        [[KEEP_INDEX.get(tuple(sorted((*dice, face))), -1) for face in FACES] for dice in KEEPS],
        dtype=np.int16,
    )
)
"""(462, 6) int16: the keep with one more die of that face; -1 beyond five dice."""


def _without(dice: Dice, face: int) -> int:
    if face not in dice:
        return -1
    position = dice.index(face)
    return KEEP_INDEX[dice[:position] + dice[position + 1 :]]


KEEP_REMOVE: Final = _frozen(
    np.array([[_without(dice, face) for face in FACES] for dice in KEEPS], dtype=np.int16)
)
"""(462, 6) int16: the keep with one die of that face fewer; -1 where there is none."""


COUNT_RADIX: Final = _frozen((NUM_DICE + 1) ** np.arange(NUM_FACES))
"""(6,) int64: counts times this is the *code* of a multiset, a number below 6**6."""


@cache
def keep_of_code() -> NDArray[np.int16]:
    """Return the keep with each code, -1 where the counts are more than five dice.

    Returns:
        (46656,) int16, read-only.
    """
    table = np.full((NUM_DICE + 1) ** NUM_FACES, -1, dtype=np.int16)
    table[KEEP_COUNTS @ COUNT_RADIX] = np.arange(NUM_KEEPS)
    return _frozen(table)


def select(dice: Dice, mask: int) -> Dice:
    """Return the dice whose bits are set in ``mask``, in ascending order."""
    return tuple(die for bit, die in enumerate(dice) if mask >> bit & 1)


KEEP_OF_MASK: Final = _frozen(
    np.array(
        [[KEEP_INDEX[select(dice, mask)] for mask in range(NUM_KEEP_MASKS)] for dice in THROWS],
        dtype=np.int16,
    )
)
"""(252, 32) int16: the keep that a mask selects from a throw."""
IS_CANONICAL_MASK: Final = _frozen(
    np.array([[row.tolist().index(keep) == mask for mask, keep in enumerate(row)] for row in KEEP_OF_MASK])
)
"""(252, 32) bool: the lowest of the masks that select the same keep."""


def is_subset(part: Dice, whole: Dice) -> bool:
    """Tell whether the multiset ``part`` is contained in ``whole``."""
    return all(part.count(face) <= whole.count(face) for face in set(part))


def canonical_mask(dice: Dice, kept: Dice) -> int:
    """Return the lowest mask that selects the multiset ``kept`` from ascending ``dice``.

    Raises:
        ValueError: ``kept`` is not contained in ``dice``.
    """
    mask = 0
    for face in set(kept):
        if kept.count(face) > dice.count(face):
            raise ValueError(f"cannot keep {kept} of the dice {dice}")
        first = dice.index(face)
        for offset in range(kept.count(face)):
            mask |= 1 << (first + offset)
    return mask


@cache
def next_throw_table() -> NDArray[np.uint8]:
    """Return the throw that follows a keep, for each ordered roll of five dice.

    Entry ``[keep, roll]`` rethrows the dice not kept: ``roll`` is a number below 7,776
    whose base-6 digits, lowest first, are the faces (less one) of the dice in the order
    they fall; a keep of ``n`` dice reads the first ``5 - n``. A uniform ``roll`` thus
    gives every throw its exact probability, and equal rolls mean equal dice.

    Returns:
        (210, 7776) uint8, read-only.
    """
    rolls = np.arange(NUM_ORDERED_THROWS)
    digits = [rolls // NUM_FACES**position % NUM_FACES for position in range(NUM_DICE)]
    table = np.empty((NUM_PARTIAL_KEEPS, NUM_ORDERED_THROWS), dtype=np.uint8)
    for keep in range(NUM_PARTIAL_KEEPS):
        reached = np.full(NUM_ORDERED_THROWS, keep)
        for digit in digits[: NUM_DICE - int(KEEP_SIZES[keep])]:
            reached = KEEP_ADD[reached, digit]
        table[keep] = reached - NUM_PARTIAL_KEEPS
    return _frozen(table)


@cache
def throw_probabilities_after(keep: int) -> NDArray[np.float64]:
    """Return the probability of every throw after keeping ``keep``.

    Args:
        keep: Index into ``KEEPS``; a keep of five dice leads to itself.

    Returns:
        (252,) float64, read-only, summing to 1.
    """
    probabilities = np.zeros(NUM_KEEPS)
    probabilities[keep] = 1.0
    for index in range(keep, NUM_PARTIAL_KEEPS):
        if probabilities[index]:
            np.add.at(probabilities, KEEP_ADD[index], probabilities[index] / NUM_FACES)
    return _frozen(probabilities[NUM_PARTIAL_KEEPS:].copy())


def roll_of(uniform: float, sides: int = NUM_ORDERED_THROWS) -> int:
    """Turn a uniform draw from [0, 1) into a roll, the index of ``next_throw_table``.

    Args:
        uniform: The draw.
        sides: How many equally likely results there are; five dice have 7,776.

    Raises:
        ValueError: The draw is not from [0, 1).
    """
    if not 0.0 <= uniform < 1.0:
        raise ValueError(f"uniform: {uniform!r} is not from 0 up to, but not including, 1")
    return int(uniform * sides)


_GOLDEN_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words by the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def keyed_uniforms(seed: int, *keys: NDArray[np.integer] | int) -> NDArray[np.float64]:
    """Return one uniform draw from [0, 1) for each key, the same for equal keys.

    With keys (game, turn, throw) and ``roll_of``, agents that play the same game meet the
    same dice, die by die, whatever they do: common random numbers.

    Args:
        seed: Any integer; only its low 64 bits count.
        keys: Non-negative integers or arrays that broadcast together.
    """
    state = _mixed(np.asarray(seed % 2**64, dtype=np.uint64).reshape(1) + _GOLDEN_GAMMA)
    for key in keys:
        words = np.atleast_1d(np.asarray(key, dtype=np.uint64))
        state = _mixed((state + _GOLDEN_GAMMA) ^ _mixed(words + _GOLDEN_GAMMA))
    return np.asarray((state >> np.uint64(11)) * 2.0**-53)
