"""Positions as a person writes them down."""

from __future__ import annotations

import pytest

from generala_env.rules.card import BoxStatus
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import Turn
from generala_env.solver.position import PositionError, parse_position, position_text


def test_a_whole_position_is_read() -> None:
    state = parse_position(
        compile_variant("doble"),
        "me: 50, open fours poker, generala scored, doble_generala=struck; "
        "other: 120 points, open poker, generala struck; dice 6 3 3 5 3; throw 2; kept 3 3",
    )
    assert state.scores == (50, 120)
    assert state.card.open_boxes() == (3, 8)
    assert state.card.generala is BoxStatus.SCORED
    assert state.card.doble is BoxStatus.STRUCK
    assert state.players[1].card.open_boxes() == (8,)
    assert (state.current_player, state.first_player) == (0, 1)
    assert state.turn == Turn(2, (3, 3, 3, 5, 6), (3, 3))


def test_dice_may_be_written_together_and_the_turn_may_be_yet_to_begin() -> None:
    compiled = compile_variant("ruibal")
    sides = "me: 0, open all; other: 0, open all"
    assert parse_position(compiled, sides).turn == Turn()
    state = parse_position(compiled, f"{sides}; dice: 65331")
    assert state.turn == Turn(1, (1, 3, 3, 5, 6))
    assert (state.first_player, state.round) == (0, 1)


def test_what_the_rules_do_not_look_at_need_not_be_said() -> None:
    # Nothing in ruibal depends on what became of the Generala box.
    state = parse_position(
        compile_variant("ruibal"), "me: 9, open fours; other: 8, open none; dice 11123; throw 3"
    )
    assert state.card.generala is not BoxStatus.OPEN
    assert state.turn.kept
    taken = parse_position(
        compile_variant("clasica"),
        "me: 99, open fours, generala scored; other: 8, open ones, generala struck",
    )
    assert not taken.card.is_bonus_taken


@pytest.mark.parametrize(
    ("variant", "text"),
    [
        (
            "doble",
            "me: 50, open fours poker, generala scored, doble_generala struck; "
            "other: 120, open poker, generala struck, doble_generala struck; dice 33356; throw 2; kept 33",
        ),
        (
            "clasica",
            "me: 199, open fours, generala scored, bonus taken; other: 8, open none, generala struck",
        ),
        ("clasica", "me: 0, open all; other: 0, open all; dice 11234; throw 3; kept none"),
    ],
)
def test_a_position_is_written_as_it_is_read(variant: str, text: str) -> None:
    compiled = compile_variant(variant)
    state = parse_position(compiled, text)
    assert parse_position(compiled, position_text(compiled, state)) == state
    if "all" not in text:
        assert position_text(compiled, state) == text


@pytest.mark.parametrize(
    ("variant", "text", "message"),
    [
        ("ruibal", "", "me: missing"),
        ("ruibal", "me: 0, open all", "other: missing"),
        ("ruibal", "me: 0, open all; me: 0, open all", "me: given twice"),
        ("ruibal", "she: 0", "a part begins with me, other"),
        ("ruibal", "me: open all; other: 0, open all", "me: the points are missing"),
        ("ruibal", "me: 0; other: 0, open all", "me: the open boxes are missing"),
        ("ruibal", "me: 0, open; other: 0, open all", "me: 'open' needs boxes"),
        (
            "ruibal",
            "me: 0, open pokr; other: 0, open all",
            "'pokr' is not a box of ruibal; did you mean poker",
        ),
        ("ruibal", "me: 0, open doble_generala; other: 0, open all", "is not a box of ruibal"),
        ("ruibal", "me: -5, open all; other: 0, open all", "me: '-5' is not understood"),
        ("ruibal", "me: 0, open all, generala lost; other: 0, open all", "it can be scored or struck"),
        ("ruibal", "me: 0, open all, generala struck; other: 0, open all", "cannot be open and struck"),
        (
            "ruibal",
            "me: 5, open all; other: 0, open all",
            "me: 5 points cannot be; the closed boxes allow 0 to 0",
        ),
        ("ruibal", "me: 9, open none; other: 0, open none", "me: no box is open"),
        ("ruibal", "me: 9, open ones; other: 9, open ones twos", "other: 2 open boxes against 1"),
        ("ruibal", "me: 0, open all; other: 0, open all; dice 1 2 3", "dice: 3 dice instead of 5"),
        ("ruibal", "me: 0, open all; other: 0, open all; dice 1 2 3 4 7", "faces from 1 to 6"),
        (
            "ruibal",
            "me: 0, open all; other: 0, open all; dice 11234; throw 4",
            "throw: '4' is not from 1 to 3",
        ),
        ("ruibal", "me: 0, open all; other: 0, open all; throw 2", "throw: given without dice"),
        (
            "ruibal",
            "me: 0, open all; other: 0, open all; dice 11234; kept 1",
            "nothing is kept before the first",
        ),
        (
            "ruibal",
            "me: 0, open all; other: 0, open all; dice 11234; throw 2; kept 5",
            "kept: 5 is not among the dice",
        ),
        (
            "clasica",
            "me: 0, open all; other: 0, open all; dice 11234; throw 2",
            "kept: missing; under clasica it matters",
        ),
        (
            "doble_fija",
            "me: 0, open all; other: 0, open all; dice 11234; throw 2",
            "kept: missing; under doble_fija it matters",
        ),
        (
            "doble",
            "me: 9, open doble_generala; other: 8, open none, generala scored, doble_generala struck",
            "me: what became of generala",
        ),
        (
            "doble_obligada",
            "me: 9, open ones; other: 8, open none",
            "boxes are closed in the order ones, twos",
        ),
    ],
)
def test_a_position_that_cannot_be_is_refused_with_a_reason(variant: str, text: str, message: str) -> None:
    with pytest.raises(PositionError) as refused:
        parse_position(compile_variant(variant), text)
    assert message in str(refused.value)
