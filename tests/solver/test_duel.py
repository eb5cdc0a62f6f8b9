"""The exact two-player solver against a plain recursion over the readable engine."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from generala_env.rules.actions import Close, Keep, action_id
from generala_env.rules.boxes import Box
from generala_env.rules.card import BoxStatus, Card
from generala_env.rules.compiled import TurnBatch, compile_variant
from generala_env.rules.dice import KEEP_INDEX, NUM_THROWS, THROW_INDEX, THROW_PROBABILITIES, THROWS
from generala_env.rules.game import Turn
from generala_env.rules.variants import PRESETS, TieBreak, get_variant
from generala_env.solver.duel import DuelSolution, solve_duel
from generala_env.solver.playoff import playoff_of
from tests.solver.plain_duel import PlainDuel

PRECISION = 1e-6
PLAYOFF = "clasica"


@cache
def plain_of(name: str) -> PlainDuel:
    variant = get_variant(name)
    is_playoff = variant.tie_break is TieBreak.PLAYOFF
    return PlainDuel(variant, playoff_of(variant).first_player_value if is_playoff else float("nan"))


@cache
def cards_of(name: str, num_open: int) -> tuple[Card, ...]:
    compiled = compile_variant(name)
    return tuple(compiled.card(index) for index in np.flatnonzero(compiled.num_open == num_open).tolist())


def named(variant_name: str, *boxes: Box) -> int:
    return sum(1 << get_variant(variant_name).boxes.index(box) for box in boxes)


def allowed(solution: DuelSolution, mover: Card, other: Card, difference: int) -> int:
    """Bring a difference into the range that the cards allow."""
    ranges, compiled = solution.plan.ranges, solution.compiled
    one, two = (compiled.class_of_card[compiled.index_of(card)] for card in (mover, other))
    least, most = ranges.least[one] - ranges.most[two], ranges.most[one] - ranges.least[two]
    return int(min(max(difference, least), most))


def check(name: str, mover: Card, other: Card, differences: tuple[int, ...]) -> None:
    solution = solve_duel(name, (mover, other))
    for difference in {allowed(solution, mover, other, one) for one in differences}:
        expected = plain_of(name).value(mover, other, difference)
        assert solution.value(mover, other, difference) == pytest.approx(expected, abs=PRECISION), (
            name,
            mover,
            other,
            difference,
        )


@pytest.mark.parametrize("name", PRESETS)
def test_last_turns_agree_with_plain_recursion(name: str) -> None:
    # Ties, decided games and everything between; both the first and the second player of the round.
    draw = random.Random(7)
    ones, nones = cards_of(name, 1), cards_of(name, 0)
    check(name, draw.choice(ones), draw.choice(ones), (0, draw.randint(-40, 40)))
    for difference in (0, -20, -50, -60, -100):
        check(name, draw.choice(ones), draw.choice(nones), (difference,))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("status", [BoxStatus.SCORED, BoxStatus.STRUCK])
def test_the_fate_of_the_generala_box_counts(name: str, status: BoxStatus) -> None:
    ones = [card for card in cards_of(name, 1) if card.generala is status]
    if not ones:
        # Where the Generala box is the last one of a forced order, it is never closed before.
        assert get_variant(name).boxes[-1] is Box.GENERALA
        return
    others = [card for card in cards_of(name, 0) if card.generala is not status]
    draw = random.Random(8)
    check(name, draw.choice(ones), draw.choice(others), (0, -55, -5))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", PRESETS)
def test_longer_endgames_agree_with_plain_recursion(name: str, seed: int) -> None:
    draw = random.Random(seed)
    # Number boxes have six outcomes each: with two of them the plain solver would take hours.
    numbers = sum(1 << index for index, box in enumerate(get_variant(name).boxes) if index < 6)

    def card(num_open: int) -> Card:
        few = [
            one for one in cards_of(name, num_open) if (one.open_mask & numbers).bit_count() <= num_open - 1
        ]
        return draw.choice(few or list(cards_of(name, num_open)))

    check(name, card(2), card(1), (draw.randint(-60, 60),))
    two, other = card(2), card(2)
    if ((two.open_mask | other.open_mask) & numbers) == 0:
        check(name, two, other, (draw.randint(-60, 60), 0))


TWO_BOXES = {
    "ruibal": (((Box.POKER, Box.GENERALA), BoxStatus.OPEN), ((Box.ESCALERA, Box.FULL), BoxStatus.STRUCK)),
    "doble_fija": (
        ((Box.GENERALA, Box.DOBLE_GENERALA), BoxStatus.OPEN),
        ((Box.DOBLE_GENERALA, Box.POKER), BoxStatus.SCORED),
    ),
    PLAYOFF: (((Box.POKER, Box.ESCALERA), BoxStatus.SCORED), ((Box.GENERALA, Box.FULL), BoxStatus.OPEN)),
}


@pytest.mark.parametrize("name", TWO_BOXES)
def test_two_boxes_each_agree_with_plain_recursion(name: str) -> None:
    mover, other = (Card(named(name, *boxes), generala) for boxes, generala in TWO_BOXES[name])
    check(name, mover, other, (0,))


@pytest.mark.parametrize(
    "overrides",
    [
        {"base": "ruibal", "served_generala_wins": "never"},
        {
            "base": "ruibal",
            "kept_dice": "locked",
            "served_on": "any_full_throw",
            "tie_break": "most_generalas",
        },
        {"base": "doble", "served_generala_wins": "unless_struck", "full_takes_five": True},
        {"base": "clasica", "boxes": ["generala", "poker", "sixes"], "doble": "bonus(20)", "order": "forced"},
    ],
)
def test_invented_rules_agree_with_plain_recursion(overrides: dict[str, object]) -> None:
    variant = get_variant(overrides)
    compiled = compile_variant(variant)
    is_playoff = variant.tie_break is TieBreak.PLAYOFF
    plain = PlainDuel(variant, playoff_of(variant).first_player_value if is_playoff else float("nan"))
    draw = random.Random(5)
    ones = [compiled.card(index) for index in np.flatnonzero(compiled.num_open == 1).tolist()]
    mover, other = draw.choice(ones), draw.choice(ones)
    solution = solve_duel(variant, (mover, other))
    for difference in (0, 7):
        difference = allowed(solution, mover, other, difference)
        assert solution.value(mover, other, difference) == pytest.approx(
            plain.value(mover, other, difference), abs=PRECISION
        )


@pytest.mark.parametrize("name", ["ruibal", "doble_fija", PLAYOFF])
def test_every_action_agrees_with_plain_recursion(name: str) -> None:
    plain, draw = plain_of(name), random.Random(3)
    ones = cards_of(name, 1)
    mover, other = draw.choice(ones), draw.choice(ones)
    solution = solve_duel(name, (mover, other))
    difference = allowed(solution, mover, other, 5)
    turns = [Turn(1, draw.choice(THROWS)), Turn(2, (1, 2, 2, 5, 6), (2, 5)), Turn(2, (1, 1, 3, 3, 6))]
    turns.append(Turn(3, (4, 4, 4, 4, 6), (4, 4)))
    for turn in turns:
        state = plain.state(mover, other, difference, turn=turn)
        q_values = solution.q_values(state)
        legal = plain.game.legal_actions(state)
        assert np.flatnonzero(np.isfinite(q_values)).tolist() == [action_id(action) for action in legal]
        for action in legal:
            after = plain.game.apply(state, action)
            if isinstance(action, Keep):
                expected = plain.turn_value(after)
                assert solution.state_value(after) == pytest.approx(expected, abs=PRECISION)
            else:
                expected = plain.after(state, after)
            assert q_values[action_id(action)] == pytest.approx(expected, abs=PRECISION), (turn, action)
        assert solution.policy(state) == int(np.argmax(q_values))
        assert solution.state_value(state) == pytest.approx(plain.turn_value(state), abs=PRECISION)


@pytest.mark.parametrize(
    "name", [name for name in PRESETS if PRESETS[name].tie_break is TieBreak.PLAYOFF][:1]
)
def test_the_playoff_is_a_fixed_point_of_the_engine(name: str) -> None:
    # The map is a contraction, so a value that reproduces itself is the value.
    value = playoff_of(name).first_player_value
    assert 0.4 < value < 0.5
    assert PlainDuel(get_variant(name), value).playoff_turn() == pytest.approx(value, abs=1e-12)
    assert abs(PlainDuel(get_variant(name), 0.5).playoff_turn() - 0.5) > 1e-3


def test_closing_is_the_other_side_of_the_value_after_it() -> None:
    # At the end of a turn there is no chance: what one side has, the other has not.
    name = "ruibal"
    mover = Card(named(name, Box.SIXES, Box.POKER, Box.GENERALA))
    other = Card(named(name, Box.ONES, Box.FULL, Box.GENERALA))
    solution = solve_duel(name, (mover, other))
    plain, variant = plain_of(name), get_variant(name)
    for difference in (-30, 0, 12):
        for dice in ((1, 6, 6, 6, 6), (2, 2, 3, 3, 3), (5, 5, 5, 5, 5)):
            state = plain.state(mover, other, difference, turn=Turn(3, dice, dice[:1]))
            q_values = solution.q_values(state)
            for box in mover.open_boxes():
                after = plain.game.apply(state, Close(box))
                assert after.current_player == 1
                assert q_values[action_id(Close(box))] + solution.state_value(after) == pytest.approx(
                    1, abs=1e-7
                )
    assert variant.tie_break is TieBreak.DRAW


@pytest.mark.parametrize("name", PRESETS)
def test_values_are_probabilities_that_grow_with_the_lead(name: str) -> None:
    compiled = compile_variant(name)
    draw = random.Random(2)
    cards = cards_of(name, min(3, compiled.num_boxes))
    mover, other = draw.choice(cards), draw.choice(cards)
    solution = solve_duel(name, (mover, other))
    for number, layer in enumerate(solution.plan.layers):
        for pair in range(layer.num_pairs):
            values = solution.values[number][layer.index.offsets[pair] : layer.index.offsets[pair + 1]]
            assert values.min() >= 0
            assert values.max() <= 1
            assert (np.diff(values) >= -PRECISION).all()


@pytest.mark.parametrize("name", ["clasica_obligada", "doble_obligada"])
def test_values_are_the_mean_over_first_throws_of_the_best_action(name: str) -> None:
    # Values come from the vector kernel, actions from the scalar one of the one-player game.
    solution, compiled = solve_duel(name), compile_variant(name)
    generator = np.random.default_rng(0)
    throws = np.arange(NUM_THROWS)
    first = np.ones(NUM_THROWS, dtype=bool)
    for layer in solution.plan.layers[1:]:
        pair = int(generator.integers(layer.num_pairs))
        mover, other = (int(compiled.card_of_class[one[0]]) for one in layer.pairs(pair, pair + 1))
        difference = allowed(
            solution, compiled.card(mover), compiled.card(other), int(generator.integers(-30, 31))
        )
        batch = TurnBatch(
            np.full(NUM_THROWS, mover), throws, first.astype(np.int8), first, np.zeros(NUM_THROWS)
        )
        others, differences = np.full(NUM_THROWS, other), np.full(NUM_THROWS, difference)
        best = solution.q_values_batch(batch.card, others, differences, batch).max(axis=1)
        best[solution.is_won(batch.card, batch)] = 1.0
        mean = float(best @ THROW_PROBABILITIES)
        assert solution.value(mover, other, difference) == pytest.approx(mean, abs=PRECISION)


def worst_rounding(start: tuple[Card, Card] | None) -> float:
    single, double = (solve_duel("ruibal", start, dtype=kind) for kind in (np.float32, np.float64))
    return max(float(np.abs(one - two).max()) for one, two in zip(single.values, double.values, strict=True))


@pytest.mark.slow
def test_single_precision_is_precise_enough_in_endgames() -> None:
    card = Card(named("ruibal", Box.SIXES, Box.FULL, Box.POKER, Box.GENERALA, Box.ESCALERA))
    assert 0 < worst_rounding((card, card)) < PRECISION


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_single_precision_is_precise_enough_in_the_whole_game() -> None:
    assert 0 < worst_rounding(None) < 2 * PRECISION


def test_batches_agree_with_single_states() -> None:
    name, draw = "doble", random.Random(4)
    compiled = compile_variant(name)
    start = Card(named(name, Box.SIXES, Box.POKER, Box.DOBLE_GENERALA), BoxStatus.SCORED)
    other = Card(named(name, Box.FIVES, Box.GENERALA, Box.DOBLE_GENERALA))
    solution = solve_duel(name, (start, other))
    plain = plain_of(name)
    states = []
    for _ in range(200):
        dice = draw.choice(THROWS)
        throw = draw.randint(1, 3)
        kept = dice[: draw.randint(0, 4)] if throw > 1 else ()
        states.append(plain.state(start, other, draw.randint(-20, 20), turn=Turn(throw, dice, kept)))
    batch = compiled.turn_batch(*states)
    others = np.full(len(states), compiled.index_of(other))
    differences = np.array([state.scores[0] - state.scores[1] for state in states])
    values = solution.q_values_batch(batch.card, others, differences, batch)
    for row, state in enumerate(states):
        assert np.array_equal(values[row], solution.q_values(state))
    actions = solution.actions(batch.card, others, differences, batch)
    assert actions.tolist() == [solution.policy(state) for state in states]
    assert (batch.throw == [THROW_INDEX[state.turn.dice] for state in states]).all()
    assert (batch.kept == [KEEP_INDEX[state.turn.kept] for state in states]).all()


def test_cards_that_do_not_fit_together_are_refused() -> None:
    one, two, four = (Card((1 << size) - 1, BoxStatus.STRUCK) for size in (1, 2, 4))
    with pytest.raises(ValueError, match="1 open boxes and the other 2"):
        solve_duel("ruibal", (one, two))
    solution = solve_duel("ruibal", (two, two))
    with pytest.raises(ValueError, match="do not follow from the start"):
        solution.value(four, four, 0)
    with pytest.raises(ValueError, match="2 open boxes and the other 4"):
        solution.value(two, four, 0)
    with pytest.raises(ValueError, match="difference 999 is not from"):
        solution.value(two, two, 999)
    with pytest.raises(ValueError, match="only an endgame"):
        _ = solution.first_player_value


def test_a_whole_forced_game_is_solved_in_moments() -> None:
    for name in ("clasica_obligada", "doble_obligada"):
        solution = solve_duel(name)
        assert solution.num_card_pairs == sum(layer.num_pairs for layer in solution.plan.layers)
        assert solution.num_values == sum(len(values) for values in solution.values)
        assert solution.first_player_value == solution.value(0, 0, 0)
        assert 0.45 < solution.first_player_value < 0.55


def test_ruibal_has_the_published_number_of_pairs() -> None:
    from generala_env.solver.duel import DuelPlan

    assert DuelPlan(compile_variant("ruibal")).num_pairs == 352_716
