"""The compiled tables against the engine they were made from, card by card."""

from collections.abc import Iterable
from dataclasses import fields, replace

import numpy as np
import pytest

from generala_env.rules import (
    PRESETS,
    BoxStatus,
    Card,
    CompiledVariant,
    Game,
    GameState,
    Phase,
    TurnBatch,
    Variant,
    compile_variant,
)
from generala_env.rules.actions import Close, action_id
from generala_env.rules.card import closable_boxes, close_box, is_instant_win, is_served
from generala_env.rules.compiled import NO_STATUS
from generala_env.rules.dice import (
    IS_FIVE_EQUAL,
    KEEP_INDEX,
    KEEP_OF_MASK,
    KEEPS,
    NUM_PARTIAL_KEEPS,
    THROWS,
    counts_of,
    next_throw_table,
    select,
)
from generala_env.rules.game import Player, Turn

SMALL = ["clasica_obligada", "doble_obligada"]
LARGE = [name for name in PRESETS if name not in SMALL]
THROW_COUNTS = [counts_of(dice) for dice in THROWS]


def assert_agrees(compiled: CompiledVariant, cards: Iterable[int]) -> None:
    """Ask the engine about every box, throw and served of some cards."""
    variant = compiled.variant
    for index in cards:
        card = compiled.card(index)
        assert compiled.index_of(card) == index
        assert compiled.num_open[index] == card.num_open
        assert compiled.num_generalas[index] == card.num_generalas
        assert compiled.instant_win[index] == is_instant_win(variant, card, counts_of((2,) * 5), served=True)
        boxes = closable_boxes(variant, card)
        assert tuple(np.flatnonzero(compiled.closable[index])) == boxes
        for box in boxes:
            points, after = [], []
            for served in (False, True):
                for counts in THROW_COUNTS:
                    closing = close_box(variant, card, box, counts, served=served)
                    points.append(closing.points + closing.bonus)
                    after.append(compiled.index_of(closing.card))
            served_axis = np.repeat([0, 1], 252)
            throw_axis = np.tile(np.arange(252), 2)
            status = compiled.card_status[index]
            assert compiled.points[status, box, served_axis, throw_axis].tolist() == points
            assert compiled.next_card(np.array(index), box, served_axis, throw_axis).tolist() == after


@pytest.mark.parametrize("name", SMALL)
def test_every_card_agrees_with_the_engine(name: str) -> None:
    compiled = compile_variant(name)
    assert_agrees(compiled, range(compiled.num_cards))


@pytest.mark.parametrize("name", LARGE)
def test_a_sample_of_cards_agrees_with_the_engine(name: str) -> None:
    compiled = compile_variant(name)
    rng = np.random.default_rng(7)
    sample = rng.choice(compiled.num_cards, size=15, replace=False).tolist()
    assert_agrees(compiled, {0, compiled.num_cards - 1, *sample})


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_every_card_of_the_large_presets_agrees_with_the_engine(name: str) -> None:
    compiled = compile_variant(name)
    assert_agrees(compiled, range(compiled.num_cards))


# --- which cards there are --------------------------------------------------------------------

NUM_CARDS = {
    # 9 other boxes open or not, times the Generala box open, scored or struck.
    "ruibal": 2**9 * 3,
    # Also, once it is scored, the bonus taken or not; taking it closes one more box.
    "clasica": 2**9 * 3 + (2**9 - 1),
    "clasica_fija": 2**9 * 3 + (2**9 - 1),
    # Generala open or struck: the Doble box open or struck; scored: open, scored or struck.
    "doble": 2**9 * (2 + 2 + 3),
    "doble_al_as": 2**9 * (2 + 2 + 3),
    "doble_fija": 2**9 * (2 + 2 + 3),
    # One card before each of the boxes up to the Generala, then its two fates.
    "clasica_obligada": 10 + 2,
    # And the Doble box after them: scored only after a scored Generala.
    "doble_obligada": 10 + 2 + 3,
}

PERFECT_SCORES = {
    # 5 * (1 + ... + 6) = 105; served Escalera 25, Full 35, Póker 45; Generala; Doble.
    "ruibal": 105 + 25 + 35 + 45 + 60,
    "clasica": 105 + 25 + 35 + 45 + 50 + 100,
    "clasica_fija": 105 + 25 + 35 + 45 + 50 + 100,
    "doble": 105 + 25 + 35 + 45 + 50 + 100,
    "doble_al_as": 105 + 25 + 35 + 45 + 50 + 100,
    # A served Doble does not win here, since the Generala box is closed by then.
    "doble_fija": 105 + 25 + 35 + 45 + 50 + 105,
    # The Generala box comes last, so no box is left for the bonus.
    "clasica_obligada": 105 + 25 + 35 + 45 + 50,
    "doble_obligada": 105 + 25 + 35 + 45 + 50 + 100,
}


@pytest.mark.parametrize("name", PRESETS)
def test_counts_and_perfect_scores_by_hand(name: str) -> None:
    compiled = compile_variant(name)
    assert compiled.num_cards == NUM_CARDS[name]
    assert compiled.perfect_score == PERFECT_SCORES[name]
    assert compiled.card(0) == Card.empty(PRESETS[name])


def reachable(variant: Variant) -> set[Card]:
    """Find the reachable cards by playing every throw through the engine."""
    game = Game(variant, 1, solo=True)
    start = game.initial_state()
    found, todo = {start.card}, [start.card]
    while todo:
        card = todo.pop()
        for dice in THROWS:
            # A second throw after a keep, which is never served and so never wins.
            turn = Turn(2, dice, dice[:1])
            state = replace(start, players=(replace(start.players[0], card=card),), turn=turn)
            for box in closable_boxes(variant, card):
                after = game.apply(state, Close(box)).players[0].card
                if after not in found:
                    found.add(after)
                    todo.append(after)
    return found


@pytest.mark.parametrize(
    "variant",
    [
        PRESETS["clasica_obligada"],
        PRESETS["doble_obligada"],
        PRESETS["clasica"].override(boxes=["ones", "full", "generala"]),
        PRESETS["doble"].override(boxes=["doble_generala", "sixes", "generala"]),
        PRESETS["doble"].override(boxes=["doble_generala", "sixes", "generala"], order="forced"),
        PRESETS["ruibal"].override(boxes=["escalera"]),
    ],
    ids=lambda variant: variant.name,
)
def test_the_cards_are_the_reachable_ones(variant: Variant) -> None:
    compiled = compile_variant(variant)
    cards = [compiled.card(index) for index in range(compiled.num_cards)]
    assert len(set(cards)) == len(cards)
    assert set(cards) == reachable(variant)
    assert compiled.num_open.tolist() == sorted((card.num_open for card in cards), reverse=True)


def test_entries_that_no_card_uses_are_marked() -> None:
    compiled = compile_variant("clasica_obligada")
    used = np.zeros(compiled.next_status.shape[:2], dtype=bool)
    for card in range(compiled.num_cards):
        used[compiled.card_status[card], compiled.closable[card]] = True
    assert (compiled.next_status[used] != NO_STATUS).all()
    assert (compiled.next_status[~used] == NO_STATUS).all()


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("ruibal", Card(0b1111111111, generala=BoxStatus.SCORED)),
        ("ruibal", Card(0b0111111111)),
        ("ruibal", Card(0b0111111111, generala=BoxStatus.SCORED, is_bonus_taken=True)),
        ("ruibal", Card(1 << 10)),
        ("ruibal", Card(-1)),
        ("doble", Card(0, generala=BoxStatus.STRUCK, doble=BoxStatus.SCORED)),
        ("clasica", Card(0b0111111111, generala=BoxStatus.SCORED, is_bonus_taken=True)),
        ("clasica_obligada", Card(0b1111111101)),
    ],
)
def test_a_card_that_no_line_of_play_reaches_is_refused(name: str, card: Card) -> None:
    with pytest.raises(ValueError, match=f"is not reachable under {name}"):
        compile_variant(name).index_of(card)


def test_equal_rules_share_one_read_only_object() -> None:
    compiled = compile_variant("ruibal")
    assert compile_variant(PRESETS["ruibal"]) is compiled
    assert compile_variant(replace(PRESETS["ruibal"], name="another")) is compiled
    arrays = [getattr(compiled, item.name) for item in fields(compiled)]
    arrays = [array for array in arrays if isinstance(array, np.ndarray)]
    assert len(arrays) == 12
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array


@pytest.mark.parametrize("name", PRESETS)
def test_served_by_throw_and_by_whether_all_dice_were_thrown(name: str) -> None:
    compiled = compile_variant(name)
    for throw in (1, 2, 3):
        for full in (False, True):
            expected = is_served(PRESETS[name], throw, is_full_throw=full)
            assert compiled.is_served[throw - 1, int(full)] == expected


# --- masks -----------------------------------------------------------------------------------


def position(compiled: CompiledVariant, card: int, turn: Turn) -> GameState:
    player = Player(compiled.card(card), (None,) * compiled.num_boxes)
    return GameState(Phase.TURNS, (player,), first_player=0, turn=turn)


@pytest.mark.parametrize("name", PRESETS)
def test_masks_are_the_legal_actions_of_the_engine_over_all_throws(name: str) -> None:
    compiled = compile_variant(name)
    game = Game(PRESETS[name], 1, solo=True)
    rng = np.random.default_rng(3)
    states: list[GameState] = []
    for throw, dice in enumerate(THROWS):
        card = int(rng.integers(compiled.num_cards))
        while not compiled.num_open[card]:
            card = int(rng.integers(compiled.num_cards))
        for number in (1, 2, 3):
            keeps = set(KEEP_OF_MASK[throw, :31].tolist()) if number > 1 else {0}
            if not compiled.variant.is_locked or number == 3:
                keeps = {0, max(keeps)}  # what was kept makes no difference here
            turns = [Turn(number, dice, KEEPS[keep]) for keep in sorted(keeps)]
            states.extend(position(compiled, card, turn) for turn in turns)
    batch = compiled.turn_batch(*states)
    for canonical in (True, False):
        masks = compiled.action_masks(batch, canonical=canonical)
        assert masks.shape == (len(states), compiled.num_actions)
        assert masks.any(axis=1).all()
        step = 1 if canonical else 7
        for state, mask in list(zip(states, masks, strict=True))[::step]:
            legal = [action_id(action) for action in game.legal_actions(state, canonical=canonical)]
            assert np.flatnonzero(mask).tolist() == legal


def test_a_batch_describes_the_current_players() -> None:
    compiled = compile_variant("clasica")
    game = Game(PRESETS["clasica"], 2)
    full = position(compiled, 5, Turn(2, (1, 2, 3, 4, 5), ()))
    part = position(compiled, 9, Turn(3, (1, 1, 2, 6, 6), (1, 6)))
    batch = compiled.turn_batch(full, part)
    assert batch.card.tolist() == [5, 9]
    assert [THROWS[index] for index in batch.throw] == [(1, 2, 3, 4, 5), (1, 1, 2, 6, 6)]
    assert batch.throw_number.tolist() == [2, 3]
    assert batch.served.tolist() == [True, False] == [game.is_served(full), game.is_served(part)]
    assert [KEEPS[index] for index in batch.kept] == [(), (1, 6)]


def test_a_state_without_a_decision_has_no_batch() -> None:
    compiled = compile_variant("clasica")
    with pytest.raises(ValueError, match="no dice on the table: nothing is to be decided"):
        compiled.turn_batch(position(compiled, 0, Turn()))
    done = position(compiled, compiled.num_cards - 1, Turn(2, (1, 2, 3, 4, 5), (1,)))
    with pytest.raises(ValueError, match=r"the card is complete \(phase turns\)"):
        compiled.turn_batch(done)
    with pytest.raises(ValueError, match=r"the card is complete \(phase playoff\)"):
        compiled.turn_batch(replace(done, phase=Phase.PLAYOFF))


# --- classes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variant",
    [
        *PRESETS.values(),
        # The fate of the Generala makes no difference to the next box, only to the one after.
        PRESETS["doble_obligada"].override(boxes=["generala", "ones", "doble_generala"]),
    ],
    ids=lambda variant: variant.name,
)
def test_classes_are_the_coarsest_bisimulation(variant: Variant) -> None:
    """Cards of one class agree on everything, and cards of different classes differ somewhere.

    By induction over the number of open boxes, the second half makes the classes the
    coarsest that there can be: successors in different classes really are different.
    """
    compiled = compile_variant(variant)
    groups, leaders = compiled.class_of_card, compiled.card_of_class
    assert groups[leaders].tolist() == list(range(compiled.num_classes))
    assert leaders.tolist() == sorted(leaders.tolist())
    leader = leaders[groups]
    to_come = compiled.num_open > 0
    np.testing.assert_array_equal(compiled.card_open, compiled.card_open[leader])
    np.testing.assert_array_equal(compiled.closable, compiled.closable[leader])
    np.testing.assert_array_equal(compiled.instant_win[to_come], compiled.instant_win[leader][to_come])
    if compiled.variant.tie_break == "most_generalas":
        np.testing.assert_array_equal(compiled.num_generalas, compiled.num_generalas[leader])
    signatures = [
        (
            int(compiled.card_open[card]),
            bool(compiled.instant_win[card] and compiled.num_open[card]),
            int(compiled.num_generalas[card]) * (compiled.variant.tie_break == "most_generalas"),
        )
        for card in leaders.tolist()
    ]
    outcomes: list[list[bytes]] = [[] for _ in signatures]
    served, throw = np.arange(2)[None, :, None], np.arange(252)[None, None, :]
    for box in range(compiled.num_boxes):
        cards = np.flatnonzero(compiled.closable[:, box])
        points = compiled.points[compiled.card_status[cards], box]
        after = groups[compiled.next_card(cards[:, None, None], box, served, throw)]
        row_of = {card: row for row, card in enumerate(cards.tolist())}
        rows = np.array([row_of[card] for card in leader[cards].tolist()], dtype=np.intp)
        np.testing.assert_array_equal(points, points[rows])
        np.testing.assert_array_equal(after, after[rows])
        for card, row in row_of.items():
            if leaders[groups[card]] == card:
                outcomes[groups[card]].append(points[row].tobytes() + after[row].tobytes())
    distinct = {(*fixed, *parts) for fixed, parts in zip(signatures, outcomes, strict=True)}
    assert len(distinct) == compiled.num_classes


@pytest.mark.parametrize(
    ("name", "num_classes"),
    [
        # A served Generala always wins: once the box is closed, scored or struck is all one.
        ("ruibal", 2**9 * 2),
        # Taken matters until the last box is closed; scored, struck and taken all end alike.
        ("clasica", 2**9 * 4 - 1 - 2),
        # Tie-breaks look at the Generala and the Doble box to the end.
        ("doble_fija", None),
    ],
)
def test_numbers_of_classes_by_hand(name: str, num_classes: int | None) -> None:
    compiled = compile_variant(name)
    assert compiled.num_classes == (num_classes or compiled.num_cards)


# --- a million random steps --------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_random_masked_steps_keep_every_invariant(name: str) -> None:
    """125,000 steps of each of the eight presets: a million in all."""
    compiled = compile_variant(name)
    games, steps = 2_500, 50
    rng = np.random.default_rng(11)
    card = np.zeros(games, dtype=np.intp)
    throw = next_throw_table()[0, rng.integers(7_776, size=games)].astype(np.intp)
    number, kept, score = (np.full(games, value, dtype=np.intp) for value in (1, 0, 0))
    closed = np.zeros((games, compiled.num_boxes), dtype=bool)
    finished = 0
    for _ in range(steps):
        served = compiled.is_served[number - 1, (kept == 0).astype(np.intp)]
        won = served & IS_FIVE_EQUAL[throw] & compiled.instant_win[card]
        masks = compiled.action_masks(TurnBatch(card, throw, number, served, kept))
        assert masks.any(axis=1).all()
        np.testing.assert_array_equal(masks[:, 31:] & closed, False)
        action = np.argmax(rng.random(masks.shape) * masks, axis=1)
        keeps = (action < 31) & ~won
        closes = (action >= 31) & ~won
        assert (number[keeps] < 3).all()
        # Close a box.
        rows = np.flatnonzero(closes)
        box, flag = action[rows] - 31, served[rows].astype(np.intp)
        points = compiled.points[compiled.card_status[card[rows]], box, flag, throw[rows]]
        assert (points >= 0).all()
        after = compiled.next_card(card[rows], box, flag, throw[rows])
        assert (after > card[rows]).all()
        assert (compiled.num_open[after] == compiled.num_open[card[rows]] - 1).all()
        closed[rows, box] = True
        score[rows] += points
        card[rows] = after
        assert (score <= compiled.perfect_score).all()
        np.testing.assert_array_equal(closed.sum(axis=1), compiled.num_boxes - compiled.num_open[card])
        # Keep some dice.
        rows = np.flatnonzero(keeps)
        chosen = KEEP_OF_MASK[throw[rows], action[rows]].astype(np.intp)
        assert (chosen < NUM_PARTIAL_KEEPS).all()
        kept[rows] = chosen
        number[rows] += 1
        fresh = np.flatnonzero(~keeps)
        kept[fresh] = 0
        number[fresh] = 1
        # Begin again where the game is over.
        over = won | (compiled.num_open[card] == 0)
        assert closed[over & ~won].all()
        finished += int(over.sum())
        card[over] = score[over] = 0
        closed[over] = False
        throw = next_throw_table()[kept, rng.integers(7_776, size=games)].astype(np.intp)
    assert finished > games


def test_the_masks_of_locked_dice_are_those_of_free_dice_on_the_first_throw() -> None:
    free, locked = compile_variant("clasica"), compile_variant("clasica_fija")
    throws = np.arange(252)
    zeros = np.zeros(252, dtype=np.intp)
    batch = TurnBatch(zeros, throws, zeros + 1, zeros == 0, zeros + KEEP_INDEX[(6, 6)])
    np.testing.assert_array_equal(free.action_masks(batch), locked.action_masks(batch))
    second = batch._replace(throw_number=zeros + 2)
    masks = locked.keep_masks(second, canonical=False)
    for throw, dice in enumerate(THROWS):
        legal = [mask for mask in range(31) if select(dice, mask).count(6) >= 2 or mask == 0]
        assert np.flatnonzero(masks[throw]).tolist() == legal
