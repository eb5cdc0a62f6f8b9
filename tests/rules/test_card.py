"""What a box pays, what the card remembers, who has won: by hand for every preset.

``CASES`` was written from the rules, not from the code. Each row is a situation; each column
after the box says what one preset makes of it:

- ``25``: the box pays 25 points;
- ``50S`` or ``0X``: the same, and the Generala or Doble box closed is now scored or struck;
- ``15+100``: the box pays 15 and the Doble bonus of 100 is taken;
- ``WIN``: the throw wins the game on the spot;
- ``-``: the situation does not exist (no such box, or the order of boxes excludes it).

``throw`` is the number of the throw, with a star when all five dice were in it again. ``own``
is the Generala box of the player before: open, scored, struck, or scored with the bonus
``taken``.
"""

from collections import Counter
from itertools import permutations
from typing import NamedTuple

import pytest

from generala_env.rules import (
    PRESETS,
    Box,
    BoxStatus,
    Card,
    Game,
    GameState,
    Phase,
    Variant,
    compile_variant,
)
from generala_env.rules.actions import Close
from generala_env.rules.boxes import Straight
from generala_env.rules.card import (
    box_points,
    closable_boxes,
    close_box,
    is_instant_win,
    is_served,
)
from generala_env.rules.dice import THROW_INDEX, THROWS, Dice, counts_of
from generala_env.rules.game import Player, Turn
from generala_env.rules.variants import Doble, DobleKind

COLUMNS = [
    "clasica",
    "ruibal",
    "doble",
    "doble_fija",
    "clasica_obligada",
    "clasica_fija",
    "doble_obligada",
    "doble_al_as",
]

CASES = """
dice  throw own    box       clasica ruibal doble  fija   cl_obl cl_fij do_obl al_as

11123 1     open   ones      3       3      3      3      3      3      3      3
11123 3     open   ones      3       3      3      3      3      3      3      3
11123 1     open   twos      2       2      2      2      2      2      2      2
11123 1     open   threes    3       3      3      3      3      3      3      3
11123 1     open   fours     0       0      0      0      0      0      0      0
22456 2     open   twos      4       4      4      4      4      4      4      4
33312 2*    open   threes    9       9      9      9      9      9      9      9
14444 1     open   fours     16      16     16     16     16     16     16     16
55566 1     open   fives     15      15     15     15     15     15     15     15
66662 1     open   sixes     24      24     24     24     24     24     24     24
66666 2     open   sixes     30      30     30     30     30     30     30     30
22222 3     open   twos      10      10     10     10     10     10     10     10
22222 3     open   ones      0       0      0      0      0      0      0      0

12345 1     open   escalera  25      25     25     25     25     25     25     25
23456 1     open   escalera  25      25     25     25     25     25     25     25
12345 2     open   escalera  20      20     20     20     20     20     20     20
23456 3     open   escalera  20      20     20     20     20     20     20     20
12345 2*    open   escalera  25      20     20     20     25     25     20     20
23456 3*    open   escalera  25      20     20     20     25     25     20     20
13456 1     open   escalera  25      0      0      0      25     25     0      25
13456 2     open   escalera  20      0      0      0      20     20     0      20
13456 3*    open   escalera  25      0      0      0      25     25     0      20
12346 1     open   escalera  0       0      0      0      0      0      0      0
12356 2     open   escalera  0       0      0      0      0      0      0      0
12456 3     open   escalera  0       0      0      0      0      0      0      0
11345 1     open   escalera  0       0      0      0      0      0      0      0
23455 2*    open   escalera  0       0      0      0      0      0      0      0
33333 2     open   escalera  0       0      0      0      0      0      0      0

22333 1     open   full      35      35     35     35     35     35     35     35
22333 2     open   full      30      30     30     30     30     30     30     30
11166 3     open   full      30      30     30     30     30     30     30     30
22333 2*    open   full      35      30     30     30     35     35     30     30
55666 3*    open   full      35      30     30     30     35     35     30     30
22222 2     open   full      0       0      0      0      0      0      0      0
22223 1     open   full      0       0      0      0      0      0      0      0
22334 1     open   full      0       0      0      0      0      0      0      0
12333 3     open   full      0       0      0      0      0      0      0      0

14444 1     open   poker     45      45     45     45     45     45     45     45
44446 2     open   poker     40      40     40     40     40     40     40     40
11112 3     open   poker     40      40     40     40     40     40     40     40
44446 2*    open   poker     45      40     40     40     45     45     40     40
11112 3*    open   poker     45      40     40     40     45     45     40     40
44444 2     open   poker     40      40     40     40     40     40     40     40
44444 3*    open   poker     WIN     40     40     40     WIN    WIN    40     40
44555 1     open   poker     0       0      0      0      0      0      0      0
44456 2     open   poker     0       0      0      0      0      0      0      0

33333 1     open   generala  WIN     WIN    WIN    WIN    WIN    WIN    WIN    WIN
33333 1     open   threes    WIN     WIN    WIN    WIN    WIN    WIN    WIN    WIN
33333 2     open   generala  50S     60S    50S    50S    50S    50S    50S    50S
33333 3     open   generala  50S     60S    50S    50S    50S    50S    50S    50S
33333 2*    open   generala  WIN     60S    50S    50S    WIN    WIN    50S    50S
33333 3*    open   generala  WIN     60S    50S    50S    WIN    WIN    50S    50S
33334 1     open   generala  0X      0X     0X     0X     0X     0X     0X     0X
33334 3     open   generala  0X      0X     0X     0X     0X     0X     0X     0X
33333 2     open   threes    15      15     15     15     15     15     15     15
33333 2     open   doble     -       -      0X     0X     -      -      -      0X
33334 1     open   doble     -       -      0X     0X     -      -      -      0X

33333 1     scored threes    WIN     WIN    WIN    15     -      WIN    -      WIN
33333 1     scored poker     WIN     WIN    WIN    45     -      WIN    -      WIN
33333 1     scored full      WIN     WIN    WIN    0      -      WIN    -      WIN
33333 1     scored doble     -       -      WIN    105S   -      -      WIN    WIN
33333 2*    scored doble     -       -      100S   100S   -      -      100S   100S
33333 2     scored doble     -       -      100S   100S   -      -      100S   100S
33333 3     scored doble     -       -      100S   100S   -      -      100S   100S
33334 1     scored doble     -       -      0X     0X     -      -      0X     0X
33334 3     scored doble     -       -      0X     0X     -      -      0X     0X
33333 2     scored threes    15+100  15     15     15     -      15+100 -      15
33333 3     scored fours     0+100   0      0      0      -      0+100  -      0
33333 3     scored escalera  0+100   0      0      0      -      0+100  -      0
33333 2     scored full      0+100   0      0      0      -      0+100  -      0
33333 2     scored poker     40+100  40     40     40     -      40+100 -      40
33333 3*    scored threes    WIN     15     15     15     -      WIN    -      15
33334 2     scored threes    12      12     12     12     -      12     -      12
33334 1     scored poker     45      45     45     45     -      45     -      45
12345 2*    scored escalera  25      20     20     20     -      25     -      20

33333 2     taken  threes    15      -      -      -      -      15     -      -
33333 3     taken  full      0       -      -      -      -      0      -      -
33333 2     taken  poker     40      -      -      -      -      40     -      -
33333 1     taken  threes    WIN     -      -      -      -      WIN    -      -
33333 3*    taken  poker     WIN     -      -      -      -      WIN    -      -

33333 1     struck threes    15      WIN    WIN    15     -      15     -      WIN
33333 1     struck poker     45      WIN    WIN    45     -      45     -      WIN
33333 3*    struck poker     45      40     40     40     -      45     -      40
33333 2     struck threes    15      15     15     15     -      15     -      15
33333 2     struck full      0       0      0      0      -      0      -      0
33333 1     struck doble     -       -      WIN    0X     -      -      WIN    WIN
33333 2     struck doble     -       -      0X     0X     -      -      0X     0X
33333 3     struck doble     -       -      0X     0X     -      -      0X     0X
22333 1     struck full      35      35     35     35     -      35     -      35
"""

NAMES = {"doble": Box.DOBLE_GENERALA}
SPARE = (Box.ONES, Box.TWOS)
"""Boxes that may be closed beforehand to make a situation reachable."""


class Case(NamedTuple):
    """One cell of the table."""

    preset: str
    dice: Dice
    throw: int
    is_full_throw: bool
    own: str
    box: Box
    expected: str

    def card(self) -> Card:
        """Return a reachable card with the box open and the Generala box as asked."""
        variant = PRESETS[self.preset]
        boxes = list(variant.boxes)
        closed = set()
        if variant.order == "forced":
            closed = set(boxes[: boxes.index(self.box)])
        elif self.own != "open":
            closed = {Box.GENERALA}
            if self.own == "taken":
                closed.add(next(box for box in SPARE if box is not self.box))
        assert (Box.GENERALA in closed) == (self.own != "open")
        return Card(
            sum(1 << index for index, box in enumerate(boxes) if box not in closed),
            generala={"open": BoxStatus.OPEN, "struck": BoxStatus.STRUCK}.get(self.own, BoxStatus.SCORED),
            is_bonus_taken=self.own == "taken",
        )


def read_cases() -> list[Case]:
    cases = []
    for line in CASES.splitlines()[2:]:
        if not line.strip():
            continue
        dice, throw, own, box, *expected = line.split()
        assert len(expected) == len(COLUMNS), line
        for preset, cell in zip(COLUMNS, expected, strict=True):
            if cell != "-":
                faces = tuple(sorted(map(int, dice)))
                full = throw in ("1", "2*", "3*")
                kind = NAMES.get(box) or Box(box)
                cases.append(Case(preset, faces, int(throw[0]), full, own, kind, cell))
    return cases


def thrown(case: Case) -> tuple[Game, GameState]:
    """Return the engine's position once the dice of the case lie on the table."""
    variant = PRESETS[case.preset]
    game = Game(variant, 1, solo=True)
    player = Player(case.card(), (None,) * variant.num_boxes)
    kept = () if case.is_full_throw else case.dice[1:3]
    state = GameState(Phase.TURNS, (player,), first_player=0, turn=Turn(case.throw, (), kept))
    return game, game.apply_chance(state, case.dice)


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: "-".join(map(str, case)))
def test_case_by_hand(case: Case) -> None:
    variant = PRESETS[case.preset]
    game, state = thrown(case)
    if case.expected == "WIN":
        assert (state.phase, state.winners, state.is_instant_win) == (Phase.OVER, (0,), True)
        return
    assert state.phase is Phase.TURNS
    index = variant.boxes.index(case.box)
    after = game.apply(state, Close(index)).players[0]
    points, _, bonus = case.expected.rstrip("SX").partition("+")
    assert after.sheet[index] == int(points)
    assert after.bonus == int(bonus or 0)
    assert after.score == int(points) + int(bonus or 0)
    assert not after.card.is_open(index)
    before = case.card()
    assert after.card.is_bonus_taken == (before.is_bonus_taken or bool(bonus))
    marks = {"S": BoxStatus.SCORED, "X": BoxStatus.STRUCK}
    mark = marks.get(case.expected[-1])
    assert after.card.generala == (mark if case.box is Box.GENERALA else before.generala)
    assert after.card.doble == (mark if case.box is Box.DOBLE_GENERALA else before.doble)


@pytest.mark.parametrize("preset", COLUMNS)
def test_the_compiled_tables_agree_with_the_cases(preset: str) -> None:
    compiled = compile_variant(preset)
    for case in read_cases():
        if case.preset != preset:
            continue
        card = compiled.index_of(case.card())
        throw = THROW_INDEX[case.dice]
        served = int(compiled.is_served[case.throw - 1, int(case.is_full_throw)])
        wins = bool(served and len(set(case.dice)) == 1 and compiled.instant_win[card])
        assert wins == (case.expected == "WIN"), case
        if not wins:
            points, _, bonus = case.expected.rstrip("SX").partition("+")
            box = compiled.variant.boxes.index(case.box)
            status = compiled.card_status[card]
            assert compiled.closable[card, box], case
            assert compiled.points[status, box, served, throw] == int(points) + int(bonus or 0), case


def test_the_table_reaches_every_preset_and_box() -> None:
    cases = read_cases()
    assert sorted({case.preset for case in cases}) == sorted(PRESETS)
    for name, variant in PRESETS.items():
        assert {case.box for case in cases if case.preset == name} == set(variant.boxes)
    wins = {case.preset for case in cases if case.expected == "WIN"}
    assert wins == set(PRESETS)


# --- a second implementation of what a box pays, from the rules document ------------------


def oracle_points(variant: Variant, own: str, box: Box, dice: Dice, *, served: bool) -> int:
    """Score dice in any order, knowing nothing of how the engine does it."""
    groups = sorted(Counter(dice).values(), reverse=True)
    bonus = variant.served_bonus if served else 0
    match box.value:
        case "ones" | "twos" | "threes" | "fours" | "fives" | "sixes":
            face = ["ones", "twos", "threes", "fours", "fives", "sixes"].index(box.value) + 1
            return sum(die for die in dice if die == face)
        case "escalera":
            matches = any(set(dice) == set(straight) for straight in variant.straights)
            return variant.escalera_points + bonus if matches else 0
        case "full":
            matches = groups == [3, 2] or (groups == [5] and variant.full_takes_five)
            return variant.full_points + bonus if matches else 0
        case "poker":
            matches = groups == [4, 1] or (groups == [5] and variant.poker_takes_five)
            return variant.poker_points + bonus if matches else 0
        case "generala":
            return variant.generala_points if groups == [5] else 0
        case "doble_generala":
            if groups != [5] or own != "scored":
                return 0
            return variant.doble.served_points if served else variant.doble.points
        case other:
            raise AssertionError(other)


OWN = {"open": BoxStatus.OPEN, "scored": BoxStatus.SCORED, "struck": BoxStatus.STRUCK}

VARIANTS = [
    *PRESETS.values(),
    PRESETS["doble"].override(
        full_takes_five=True,
        poker_takes_five=False,
        served_bonus=7,
        escalera_points=21,
        full_points=31,
        poker_points=41,
        generala_points=61,
        doble="box(90, 95)",
        straights=[13456, 12346],
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_throw_in_every_box_pays_what_a_second_implementation_says(variant: Variant) -> None:
    for own, status in OWN.items():
        card = Card(Card.empty(variant).open_mask, generala=status)
        for box in variant.boxes:
            for dice in THROWS:
                for served in (False, True):
                    expected = oracle_points(variant, own, box, dice, served=served)
                    found = box_points(variant, card, box, counts_of(dice), served=served)
                    assert found == expected, (own, box, dice, served)


@pytest.mark.parametrize("dice", [(1, 3, 4, 5, 6), (2, 2, 3, 3, 3), (1, 4, 4, 4, 4), (5, 5, 5, 5, 6)])
def test_scores_do_not_depend_on_the_order_of_the_dice(dice: Dice) -> None:
    variant = PRESETS["doble_al_as"]
    card = Card.empty(variant)
    for box in variant.boxes:
        orders = permutations(dice)
        paid = {box_points(variant, card, box, counts_of(order), served=True) for order in orders}
        assert len(paid) == 1, box


def test_three_four_five_six_one_is_found_in_ascending_dice() -> None:
    """Dice lie in ascending order, so al as arrives as 1, 3, 4, 5, 6."""
    for straight in ((3, 4, 5, 6, 1), (1, 3, 4, 5, 6), (6, 5, 4, 3, 1)):
        variant = PRESETS["ruibal"].override(straights=[straight])
        expected: Straight = (1, 3, 4, 5, 6)
        assert variant.straights == (expected,)
        counts = counts_of((1, 3, 4, 5, 6))
        assert box_points(variant, Card.empty(variant), Box.ESCALERA, counts, served=False) == 20
        counts = counts_of((1, 2, 3, 4, 5))
        assert box_points(variant, Card.empty(variant), Box.ESCALERA, counts, served=False) == 0


# --- the card ------------------------------------------------------------------------------


def test_the_empty_card() -> None:
    card = Card.empty(PRESETS["doble"])
    assert card.num_open == 11
    assert card.open_boxes() == tuple(range(11))
    assert not card.is_complete
    assert card.num_generalas == 0


def test_the_number_of_generalas_counts_boxes_closed_with_points() -> None:
    for generala in BoxStatus:
        for doble in BoxStatus:
            card = Card(0, generala, doble)
            assert card.num_generalas == [generala, doble].count(BoxStatus.SCORED)


def test_an_order_that_is_free_offers_every_open_box_and_a_forced_one_the_next() -> None:
    card = Card(0b1010010110)
    assert closable_boxes(PRESETS["clasica"], card) == (1, 2, 4, 7, 9)
    assert closable_boxes(PRESETS["clasica_obligada"], card) == (1,)
    assert closable_boxes(PRESETS["clasica"], Card(0)) == ()
    assert closable_boxes(PRESETS["clasica_obligada"], Card(0)) == ()


@pytest.mark.parametrize("box", [-1, 0, 3, 10])
def test_a_box_that_may_not_be_closed_is_refused(box: int) -> None:
    card = Card(0b1010010110)
    with pytest.raises(ValueError, match=rf"box {box} cannot be closed now; closable: \(1, 2, 4, 7, 9\)"):
        close_box(PRESETS["clasica"], card, box, counts_of((1, 2, 3, 4, 5)), served=False)


def test_a_struck_generala_never_lets_the_doble_box_pay() -> None:
    variant = PRESETS["doble"]
    fives = counts_of((5,) * 5)
    generala, doble = variant.boxes.index(Box.GENERALA), variant.boxes.index(Box.DOBLE_GENERALA)
    struck = close_box(variant, Card.empty(variant), generala, fives, served=False, strike=True)
    assert (struck.points, struck.card.generala) == (0, BoxStatus.STRUCK)
    closing = close_box(variant, struck.card, doble, fives, served=False)
    assert (closing.points, closing.card.doble) == (0, BoxStatus.STRUCK)
    scored = close_box(variant, Card.empty(variant), generala, fives, served=False)
    closing = close_box(variant, scored.card, doble, fives, served=False)
    assert (closing.points, closing.card.doble, closing.card.num_generalas) == (100, BoxStatus.SCORED, 2)


def test_a_deliberate_strike_of_any_fitting_box_pays_nothing() -> None:
    variant = PRESETS["doble"]
    card = Card(Card.empty(variant).open_mask & ~(1 << 9), generala=BoxStatus.SCORED)
    fives = counts_of((5,) * 5)
    for box in card.open_boxes():
        closing = close_box(variant, card, box, fives, served=True, strike=True)
        assert (closing.points, closing.bonus) == (0, 0)
        assert closing.card.open_mask == card.open_mask & ~(1 << box)
        kind = variant.boxes[box]
        expected = BoxStatus.STRUCK if kind is Box.DOBLE_GENERALA else BoxStatus.OPEN
        assert closing.card.doble is expected


def test_the_doble_bonus_is_paid_once_and_on_a_struck_box_too() -> None:
    variant = PRESETS["clasica"]
    fives, ones = counts_of((5,) * 5), counts_of((1,) * 5)
    card = Card.empty(variant)
    first = close_box(variant, card, variant.boxes.index(Box.GENERALA), fives, served=False)
    assert (first.points, first.bonus, first.card.is_bonus_taken) == (50, 0, False)
    second = close_box(variant, first.card, variant.boxes.index(Box.FULL), ones, served=False)
    assert (second.points, second.bonus, second.card.is_bonus_taken) == (0, 100, True)
    third = close_box(variant, second.card, variant.boxes.index(Box.ONES), ones, served=False)
    assert (third.points, third.bonus, third.card.is_bonus_taken) == (5, 0, True)
    struck = close_box(variant, first.card, variant.boxes.index(Box.ONES), ones, served=False, strike=True)
    assert (struck.points, struck.bonus, struck.card.is_bonus_taken) == (0, 100, True)


def test_the_first_throw_is_always_served_and_rethrown_dice_by_the_variant() -> None:
    for variant in PRESETS.values():
        any_full = variant.name.startswith("clasica")
        for throw in (1, 2, 3):
            assert is_served(variant, throw, is_full_throw=True) == (throw == 1 or any_full)
        for throw in (2, 3):
            assert not is_served(variant, throw, is_full_throw=False)


@pytest.mark.parametrize("throw", [0, 4, -1])
def test_there_are_three_throws(throw: int) -> None:
    with pytest.raises(ValueError, match=f"throw {throw} is not from 1 to 3"):
        is_served(PRESETS["ruibal"], throw, is_full_throw=True)


@pytest.mark.parametrize(
    ("rule", "wins_with"),
    [
        ("always", {"open", "scored", "struck"}),
        ("unless_struck", {"open", "scored"}),
        ("if_open", {"open"}),
        ("never", set()),
    ],
)
def test_a_served_generala_wins_by_the_own_generala_box(rule: str, wins_with: set[str]) -> None:
    variant = PRESETS["doble"].override(served_generala_wins=rule)
    for own, status in OWN.items():
        card = Card(1, generala=status)
        for dice in THROWS:
            counts = counts_of(dice)
            expected = own in wins_with and len(set(dice)) == 1
            assert is_instant_win(variant, card, counts, served=True) == expected
            assert not is_instant_win(variant, card, counts, served=False)


def test_the_doble_is_a_value_that_its_text_gives_back() -> None:
    for doble in (Doble(), Doble(DobleKind.BONUS, 100), Doble(DobleKind.BOX, 100, 105)):
        assert Doble.parse(str(doble)) == doble
