"""One turn, solved over the lattice of keeps, against plain sums over all rolls."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from math import nan

import numpy as np
import pytest
from numpy.typing import NDArray

from generala_env.rules.compiled import CardTables, compile_variant
from generala_env.rules.dice import IS_FIVE_EQUAL, KEEPS, NUM_PARTIAL_KEEPS, THROWS, Dice
from generala_env.solver.turn import keep_union_table, solve_turn

FIRST_THROW = np.array([[True, True], [False, False], [False, False]])
ANY_FULL_THROW = np.array([[True, True], [False, True], [False, True]])


@cache
def probabilities() -> NDArray[np.float64]:
    """(210, 252): the chance of each throw after each keep, by listing the rolls."""
    table = np.zeros((NUM_PARTIAL_KEEPS, 252))
    index = {throw: place for place, throw in enumerate(THROWS)}
    for keep, kept in enumerate(KEEPS[:NUM_PARTIAL_KEEPS]):
        for roll in product(range(1, 7), repeat=5 - len(kept)):
            table[keep, index[tuple(sorted((*kept, *roll)))]] += 1
        table[keep] /= 6 ** (5 - len(kept))
    return table


@cache
def inside() -> NDArray[np.bool_]:
    """(210, 462): whether the first keep is contained in the second."""
    return np.array(
        [[not Counter(part) - Counter(whole) for whole in KEEPS] for part in KEEPS[:NUM_PARTIAL_KEEPS]]
    )


def turn_by_sums(
    closing: NDArray[np.float64], is_served: NDArray[np.bool_], win: float, *, is_locked: bool
) -> tuple[float, NDArray[np.float64]]:
    """Price a turn and its keeps with dense sums and maxima, one loop per rule."""
    chance, contains = probabilities(), inside()
    of_throw = contains[:, NUM_PARTIAL_KEEPS:]

    def after_throw(throw: int, keep: int, best_keep: NDArray[np.float64]) -> NDArray[np.float64]:
        """Value every throw that follows a keep, when the best keep then has that value."""
        served = is_served[throw - 1, int(keep == 0)]
        value = np.maximum(closing[int(served)], best_keep)
        if served and not np.isnan(win):
            value = np.where(IS_FIVE_EQUAL, win, value)
        return np.asarray(value)

    keeps = np.empty((2, NUM_PARTIAL_KEEPS))
    nothing = np.full(252, -np.inf)
    for keep in range(NUM_PARTIAL_KEEPS):
        keeps[1, keep] = chance[keep] @ after_throw(3, keep, nothing)
    for keep in range(NUM_PARTIAL_KEEPS):
        allowed = of_throw.copy()
        if is_locked:
            allowed &= contains[keep, :NUM_PARTIAL_KEEPS, None]
            allowed[0] = True
        best = np.where(allowed, keeps[1][:, None], -np.inf).max(axis=0)
        keeps[0, keep] = chance[keep] @ after_throw(2, keep, best)
    best = np.where(of_throw, keeps[0][:, None], -np.inf).max(axis=0)
    return float(chance[0] @ after_throw(1, 0, best)), keeps


def rules(is_served: NDArray[np.bool_], is_locked: bool = False) -> CardTables:
    """Tables of which a turn reads no more than these two."""
    is_served = is_served.copy()
    is_served.setflags(write=False)  # as those of a variant, or the kernel is compiled a second time
    return compile_variant("clasica_obligada").tables._replace(is_served=is_served, is_locked=is_locked)


def solve(
    closing: NDArray[np.float64], is_served: NDArray[np.bool_], win: float = nan, *, is_locked: bool = False
) -> tuple[float, NDArray[np.float64]]:
    keeps = np.empty((2, NUM_PARTIAL_KEEPS))
    value = solve_turn(closing, rules(is_served, is_locked), win, keep_union_table(), keeps)
    return value, keeps


def test_the_union_of_keeps() -> None:
    union = keep_union_table()
    assert union.shape == (210, 462)
    for first, one in enumerate(KEEPS[:NUM_PARTIAL_KEEPS]):
        for second, other in enumerate(KEEPS):
            together = tuple(sorted((*one, *other)))
            expected = KEEPS[union[first, second]] if union[first, second] >= 0 else None
            assert expected == (together if len(together) <= 5 else None)


@pytest.mark.parametrize("is_locked", [False, True], ids=["free", "locked"])
@pytest.mark.parametrize("is_served", [FIRST_THROW, ANY_FULL_THROW], ids=["first_throw", "any_full_throw"])
@pytest.mark.parametrize("win", [nan, 50.0, -3.0], ids=["no_win", "win", "bad_win"])
def test_random_closing_values_agree_with_sums_over_all_rolls(
    is_served: NDArray[np.bool_], win: float, is_locked: bool
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(3):
        closing = rng.exponential(20, size=(2, 252)) * (rng.random((2, 252)) < 0.5)
        expected, expected_keeps = turn_by_sums(closing, is_served, win, is_locked=is_locked)
        value, keeps = solve(closing, is_served, win, is_locked=is_locked)
        assert value == pytest.approx(expected, abs=1e-11)
        np.testing.assert_allclose(keeps, expected_keeps, rtol=0, atol=1e-11)


def test_five_equal_within_a_turn_played_only_for_it() -> None:
    """The rules give 0.0460286; the chain of how many dice are equal gives the fraction."""
    five_equal = np.tile(IS_FIVE_EQUAL.astype(np.float64), (2, 1))
    value, _ = solve(five_equal, FIRST_THROW)
    assert value == pytest.approx(0.0460286, abs=5e-8)

    @cache
    def chance(throws: int, equal: int) -> Fraction:
        """The chance from ``equal`` dice kept, with that many throws left."""
        if throws == 0 or equal == 5:
            return Fraction(equal == 5)
        total = Fraction(0)
        for roll in product(range(6), repeat=5 - equal):
            others = max((roll.count(face) for face in range(1, 6)), default=0)
            best = max(equal + roll.count(0), others)
            total += chance(throws - 1, best)
        return total / Fraction(6 ** (5 - equal))

    # The first throw keeps its largest group, which at least one die makes.
    exact = sum(
        Fraction(1, 7_776) * chance(2, max(roll.count(face) for face in range(6)))
        for roll in product(range(6), repeat=5)
    )
    assert value == pytest.approx(float(exact), abs=1e-15)


def test_locking_dice_never_helps_and_matters() -> None:
    rng = np.random.default_rng(9)
    closing = np.tile(rng.exponential(20, size=252), (2, 1))
    free, _ = solve(closing, FIRST_THROW)
    locked, _ = solve(closing, FIRST_THROW, is_locked=True)
    assert locked < free - 1e-3


def test_a_constant_is_worth_itself() -> None:
    for is_locked in (False, True):
        value, keeps = solve(np.full((2, 252), 7.0), ANY_FULL_THROW, is_locked=is_locked)
        assert value == pytest.approx(7.0, abs=1e-12)
        np.testing.assert_allclose(keeps, 7.0, atol=1e-12)


def yahtzee_boxes() -> list[Callable[[Dice], int]]:
    """Return the thirteen boxes of Yahtzee, without any bonus."""

    def of_a_kind(size: int) -> Callable[[Dice], int]:
        return lambda dice: sum(dice) if max(map(dice.count, dice)) >= size else 0

    def straight(length: int) -> Callable[[Dice], int]:
        runs = [set(range(low, low + length)) for low in range(1, 8 - length)]
        return lambda dice: (length - 1) * 10 if any(run <= set(dice) for run in runs) else 0

    def number(face: int) -> Callable[[Dice], int]:
        return lambda dice: face * dice.count(face)

    def full_house(dice: Dice) -> int:
        return 25 if sorted(Counter(dice).values()) == [2, 3] else 0

    def yahtzee(dice: Dice) -> int:
        return 50 if len(set(dice)) == 1 else 0

    boxes = [number(face) for face in range(1, 7)]
    return [*boxes, of_a_kind(3), of_a_kind(4), full_house, straight(4), straight(5), yahtzee, sum]


def test_solitaire_yahtzee_without_bonuses_has_its_published_value() -> None:
    points = np.array([[box(dice) for dice in THROWS] for box in yahtzee_boxes()], dtype=np.float64)
    tables = rules(np.zeros((3, 2), dtype=bool))
    values = np.zeros(2**13)
    keeps = np.empty((2, NUM_PARTIAL_KEEPS))
    union = keep_union_table()
    for opened in range(1, 2**13):
        boxes = [box for box in range(13) if opened >> box & 1]
        after = values[[opened ^ (1 << box) for box in boxes]]
        closing = (points[boxes] + after[:, None]).max(axis=0)
        values[opened] = solve_turn(np.stack([closing, closing]), tables, nan, union, keeps)
    assert values[-1] == pytest.approx(229.6385, abs=5e-5)
