"""The dice tables against plain enumeration of ordered rolls, and the counts of rules.md."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from generala_env.rules import dice
from generala_env.rules.dice import (
    IS_CANONICAL_MASK,
    IS_FIVE_EQUAL,
    KEEP_ADD,
    KEEP_COUNTS,
    KEEP_INDEX,
    KEEP_OF_MASK,
    KEEP_REMOVE,
    KEEP_SIZES,
    KEEPS,
    NUM_PARTIAL_KEEPS,
    THROW_COUNTS,
    THROW_DICE,
    THROW_INDEX,
    THROW_PROBABILITIES,
    THROW_WEIGHTS,
    THROWS,
    Dice,
    canonical_mask,
    counts_of,
    is_subset,
    next_throw_table,
    roll_of,
    select,
    throw_probabilities_after,
)

ALL_ROLLS = [tuple(sorted(roll)) for roll in product(range(1, 7), repeat=5)]


def rolls_after(kept: Dice) -> Counter[Dice]:
    """Count the throws that follow a keep over all ordered rolls of the other dice."""
    others = product(range(1, 7), repeat=5 - len(kept))
    return Counter(tuple(sorted((*kept, *roll))) for roll in others)


def test_counts_of_the_rules_document() -> None:
    assert len(THROWS) == len(set(THROWS)) == len(set(ALL_ROLLS)) == 252
    assert len(KEEPS) == len(set(KEEPS)) == 462
    assert NUM_PARTIAL_KEEPS == 462 - 252
    distinct = [len({select(throw, mask) for mask in range(32)}) for throw in THROWS]
    assert sum(distinct) == 4_368
    assert (min(distinct), max(distinct)) == (6, 32)
    assert sum(distinct) / len(THROWS) == pytest.approx(17.3, abs=0.05)
    assert IS_CANONICAL_MASK.sum() == 4_368
    assert IS_CANONICAL_MASK.sum(axis=1).tolist() == distinct


def test_throw_weights_count_the_ordered_rolls() -> None:
    counted = Counter(ALL_ROLLS)
    assert THROW_WEIGHTS.tolist() == [counted[throw] for throw in THROWS]
    assert THROW_WEIGHTS.sum() == 7_776
    np.testing.assert_allclose(THROW_PROBABILITIES, THROW_WEIGHTS / 7_776, rtol=1e-15)


def test_five_equal_has_probability_six_in_7776() -> None:
    assert THROW_WEIGHTS[IS_FIVE_EQUAL].sum() == 6
    assert [throw for throw, equal in zip(THROWS, IS_FIVE_EQUAL, strict=True) if equal] == [
        (face,) * 5 for face in range(1, 7)
    ]


def test_throws_are_ascending_and_are_the_last_keeps() -> None:
    assert all(throw == tuple(sorted(throw)) for throw in THROWS)
    assert KEEPS[NUM_PARTIAL_KEEPS:] == THROWS
    assert [len(keep) for keep in KEEPS] == sorted(KEEP_SIZES.tolist())
    assert THROW_DICE.tolist() == [list(throw) for throw in THROWS]
    for index, keep in enumerate(KEEPS):
        assert KEEP_INDEX[keep] == index
        assert KEEP_COUNTS[index].tolist() == [keep.count(face) for face in range(1, 7)]
    for index, throw in enumerate(THROWS):
        assert THROW_INDEX[throw] == index
        assert THROW_COUNTS[index].tolist() == KEEP_COUNTS[NUM_PARTIAL_KEEPS + index].tolist()


def test_keep_add_and_remove_are_inverse() -> None:
    for index, keep in enumerate(KEEPS):
        for face in range(1, 7):
            added, removed = int(KEEP_ADD[index, face - 1]), int(KEEP_REMOVE[index, face - 1])
            if len(keep) == 5:
                assert added == -1
            else:
                assert KEEPS[added] == tuple(sorted((*keep, face)))
                assert KEEP_REMOVE[added, face - 1] == index
            if face not in keep:
                assert removed == -1
            else:
                assert KEEP_ADD[removed, face - 1] == index


def test_a_mask_selects_the_dice_whose_bits_are_set() -> None:
    assert select((1, 2, 3, 4, 5), 0b00001) == (1,)
    assert select((1, 2, 3, 4, 5), 0b10000) == (5,)
    assert select((1, 2, 3, 4, 5), 0b10110) == (2, 3, 5)
    assert select((2, 2, 6, 6, 6), 0b01010) == (2, 6)
    for index, throw in enumerate(THROWS):
        for mask in range(32):
            chosen = tuple(throw[bit] for bit in range(5) if f"{mask:05b}"[4 - bit] == "1")
            assert KEEPS[KEEP_OF_MASK[index, mask]] == chosen


def test_the_canonical_mask_is_the_lowest_of_its_multiset() -> None:
    for index, throw in enumerate(THROWS):
        lowest: dict[Dice, int] = {}
        for mask in range(32):
            lowest.setdefault(select(throw, mask), mask)
        assert np.flatnonzero(IS_CANONICAL_MASK[index]).tolist() == sorted(lowest.values())
        assert {kept: canonical_mask(throw, kept) for kept in lowest} == lowest


def test_the_canonical_mask_refuses_dice_that_are_not_there() -> None:
    with pytest.raises(ValueError, match=r"cannot keep \(6, 6\) of the dice \(1, 2, 3, 4, 6\)"):
        canonical_mask((1, 2, 3, 4, 6), (6, 6))


def test_is_subset_counts_multiplicities() -> None:
    assert is_subset((), (1, 2, 3, 4, 5))
    assert is_subset((2, 2), (1, 2, 2, 3, 3))
    assert not is_subset((2, 2), (1, 2, 3, 3, 3))
    assert not is_subset((6,), (1, 2, 3, 4, 5))
    assert is_subset((1, 1, 1, 1, 1), (1, 1, 1, 1, 1))


@pytest.mark.parametrize("order", list(permutations((1, 3, 3, 5, 6)))[::17])
def test_counts_do_not_depend_on_the_order_of_the_dice(order: Dice) -> None:
    assert counts_of(order) == (1, 0, 2, 0, 1, 1)


def test_every_roll_of_the_next_throw_table_is_exact_for_every_keep() -> None:
    table = next_throw_table()
    assert table.shape == (NUM_PARTIAL_KEEPS, 7_776)
    for keep in range(NUM_PARTIAL_KEEPS):
        expected = rolls_after(KEEPS[keep])
        repeats = 6 ** len(KEEPS[keep])
        found = np.bincount(table[keep], minlength=252)
        assert found.tolist() == [expected[throw] * repeats for throw in THROWS]


def test_equal_rolls_mean_equal_dice() -> None:
    """A keep of n dice throws the first 5 - n dice of the roll, whatever is kept."""
    table = next_throw_table()
    rng = np.random.default_rng(0)
    for roll in rng.integers(7_776, size=50).tolist():
        faces = [roll // 6**position % 6 + 1 for position in range(5)]
        for keep in range(0, NUM_PARTIAL_KEEPS, 7):
            kept = KEEPS[keep]
            assert THROWS[table[keep, roll]] == tuple(sorted((*kept, *faces[: 5 - len(kept)])))


@pytest.mark.parametrize("size", range(6))
def test_throw_probabilities_after_a_keep_are_exact(size: int) -> None:
    for keep in [index for index, kept in enumerate(KEEPS) if len(kept) == size][::3]:
        expected = rolls_after(KEEPS[keep])
        total = 6 ** (5 - size)
        probabilities = throw_probabilities_after(keep)
        exact = [float(Fraction(expected[throw], total)) for throw in THROWS]
        np.testing.assert_allclose(probabilities, exact, rtol=1e-13, atol=0)
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-13)


def test_roll_of_splits_the_unit_interval_evenly() -> None:
    assert [roll_of(roll / 7_776 + 1e-9) for roll in range(7_776)] == list(range(7_776))
    assert roll_of(0.0) == 0
    assert roll_of(np.nextafter(1.0, 0.0)) == 7_775
    for sides in range(1, 1_001):
        assert roll_of(np.nextafter(1.0, 0.0), sides) == sides - 1


@pytest.mark.parametrize("uniform", [1.0, -1e-12, -0.5, 7.0, float("nan"), float("inf")])
def test_a_draw_outside_the_unit_interval_is_refused(uniform: float) -> None:
    with pytest.raises(ValueError, match=r"^uniform: .* is not from 0 up to, but not including, 1$"):
        roll_of(uniform)


def test_the_tables_cannot_be_written() -> None:
    tables = [value for value in vars(dice).values() if isinstance(value, np.ndarray)]
    tables += [next_throw_table(), throw_probabilities_after(0), throw_probabilities_after(300)]
    assert len(tables) > 12
    for table in tables:
        with pytest.raises(ValueError, match="read-only"):
            table[...] = table
