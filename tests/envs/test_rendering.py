"""Rendering: everything a player needs is in the text, and no generator is touched."""

import gymnasium as gym
import numpy as np
import pytest

from generala_env.envs.board import is_kept, make_board, move_text, sheet_rows
from generala_env.envs.rendering import die_lines, render_text
from generala_env.rules import Box, get_variant
from generala_env.rules.actions import Close, Keep, action_id
from generala_env.rules.names import DiceSkin, Language, box_name, face_label, word
from generala_env.rules.variants import PRESETS
from tests.envs.positions import after


@pytest.mark.parametrize("face", range(1, 7))
def test_a_die_shows_as_many_pips_as_its_face(face: int) -> None:
    lines = die_lines(face)
    assert sum(line.count("●") for line in lines) == face
    assert {len(line) for line in lines} == {9}


@pytest.mark.parametrize("face", range(1, 7))
def test_a_poker_die_shows_its_label(face: int) -> None:
    assert die_lines(face, "poker")[2].strip("│ ") == face_label(face, "poker")


def test_of_equal_dice_as_many_are_marked_kept_as_were_kept() -> None:
    assert is_kept((2, 2, 2, 5, 6), (2, 2, 5)) == (True, True, False, True, False)


@pytest.mark.parametrize("variant", PRESETS)
@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("skin", DiceSkin)
def test_every_box_and_every_player_is_on_the_sheet(variant: str, language: str, skin: str) -> None:
    state = after(variant, (1, 1, 2, 3, 6), Close(0), num_players=3)
    text = render_text(get_variant(variant), state, language=language, dice=skin)
    for box in get_variant(variant).boxes:
        assert box_name(box, language, skin) in text
    for seat in (1, 2, 3):
        assert f"{word('player', language)} {seat}" in text
    assert word("throw", language) in text


def test_points_strikes_and_totals_are_written_where_they_belong() -> None:
    variant = get_variant("ruibal")
    state = after(
        "ruibal",
        (1, 1, 2, 3, 6),
        Close(0),
        (2, 3, 4, 4, 6),
        Close(variant.boxes.index(Box.POKER)),
    )
    rows = {name: entries for name, *entries in sheet_rows(variant, state)}
    assert rows["Ones"] == ["2", ""]
    assert rows["Four of a kind"] == ["", "—"]
    assert rows["total"] == ["2", "0"]


def test_kept_dice_are_marked_and_the_throw_is_counted() -> None:
    state = after("ruibal", (1, 1, 2, 3, 6), Keep(0b00011), (1, 1, 1, 4, 5))
    text = render_text(get_variant("ruibal"), state)
    assert text.count("kept") == 2
    assert "throw 2/3" in text
    assert "served" not in text


@pytest.mark.parametrize(
    ("dice", "pays_more"), [((1, 1, 2, 3, 6), False), ((1, 2, 3, 4, 5), True), ((2, 2, 3, 3, 3), True)]
)
def test_served_is_said_where_it_makes_a_box_pay_more(dice: tuple[int, ...], pays_more: bool) -> None:
    variant, state = get_variant("ruibal"), after("ruibal", dice)
    assert ("served" in render_text(variant, state)) is pays_more
    assert bool(make_board(variant, state).served) is pays_more


def test_a_move_is_told_with_all_that_it_pays() -> None:
    variant = get_variant("clasica")
    closed = (Close(variant.boxes.index(Box.GENERALA)), Close(variant.boxes.index(Box.ONES)))
    fives = (Keep(0b11110), (5, 5, 5, 5, 5))
    state = after(
        "clasica", (1, 5, 5, 5, 5), *fives, closed[0], (1, 1, 2, 3, 6), closed[1], (1, 5, 5, 5, 5), *fives
    )
    poker = action_id(Close(variant.boxes.index(Box.POKER)))
    assert move_text(variant, state, poker, language="es") == "anotar Póker (140)"
    assert move_text(variant, state, action_id(Close(1)), language="es") == "anotar Doses (100)"
    after_one = after("clasica", (1, 5, 5, 5, 5))
    assert move_text(variant, after_one, action_id(Close(1)), language="pt") == "riscar Dois"
    assert move_text(variant, after_one, action_id(Keep(0b11110)), dice="poker") == "keep K K K K"
    assert move_text(variant, after_one, action_id(Keep(0))) == "throw all five"


def test_a_win_on_the_spot_is_told() -> None:
    text = render_text(get_variant("ruibal"), after("ruibal", (4, 4, 4, 4, 4)), language="es")
    assert "fin de la partida" in text
    assert "Generala servida" in text
    assert "jugador 1" in text


def test_the_environment_draws_the_same_whether_rendered_or_not() -> None:
    trails = []
    for rendered in (False, True):
        env = gym.make("generala_env/Generala-v0", render_mode="ansi")
        observation, info = env.reset(seed=5)
        trail = [observation]
        for _ in range(20):
            if rendered:
                assert isinstance(env.render(), str)
            observation, _, _, _, info = env.step(np.flatnonzero(info["action_mask"])[0])
            trail.append(observation)
        trails.append(np.array(trail))
    assert np.array_equal(trails[0], trails[1])


@pytest.mark.parametrize("option", [{"language": "fr"}, {"dice": "wooden"}])
def test_an_unknown_language_or_skin_is_named(option: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(option.values()))):
        render_text(get_variant("ruibal"), after("ruibal", (1, 1, 2, 3, 6)), **option)
