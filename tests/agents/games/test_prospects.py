"""How a turn goes on after a choice, against the readable engine followed throw by throw."""

from collections import Counter

import numpy as np
import pytest

from agents.games.advice import Adviser
from agents.games.prospects import prospect
from generala_env.envs.closing import payment, pays_for_service
from generala_env.rules.actions import Close, Keep, action_id, action_of
from generala_env.rules.compiled import compile_variant
from generala_env.rules.dice import canonical_mask
from generala_env.rules.game import Game, GameState
from generala_env.rules.variants import Variant, get_variant

SMALL = {"base": "ruibal", "boxes": "ones sixes full generala"}


def on_the_table(variant: Variant, dice: tuple[int, ...], num_players: int = 1) -> tuple[Game, GameState]:
    game = Game(variant, num_players, solo=num_players == 1)
    return game, game.apply_chance(game.initial_state(), dice)


def followed(
    game: Game, state: GameState, action: int, adviser: Adviser
) -> tuple[float, float, Counter[int]]:
    """Follow a choice by the engine's own chances: points, instant wins and boxes."""
    after = game.apply(state, action_of(action, game.variant.num_boxes))
    if not isinstance(action_of(action, game.variant.num_boxes), Keep):
        box = action - 31
        return float(sum(payment(game.variant, state, box))), 0.0, Counter({box: 1})
    points, wins, boxes = 0.0, 0.0, Counter[int]()
    for outcome, probability in game.chance_outcomes(after):
        reached = game.apply_chance(after, outcome)
        if game.is_over(reached):
            wins += probability
            continue
        mask = np.zeros(adviser.compiled.num_actions, dtype=bool)
        mask[[action_id(legal) for legal in game.legal_actions(reached)]] = True
        best = adviser.choices(reached, mask)[0].action
        more, won, closed = followed(game, reached, best, adviser)
        points += probability * more
        wins += probability * won
        for box, share in closed.items():
            boxes[box] += probability * share  # type: ignore[assignment]
    return points, wins, boxes


@pytest.mark.parametrize(
    ("spec", "num_players", "dice", "kept"),
    [
        (SMALL, 1, (1, 1, 6, 6, 6), (6, 6, 6)),
        (SMALL, 2, (1, 1, 1, 6, 6), (1, 1, 1)),
        ({**SMALL, "served_on": "any_full_throw", "kept_dice": "locked"}, 1, (2, 3, 4, 6, 6), (3, 4, 6, 6)),
    ],
)
def test_a_prospect_is_what_the_engine_says(
    spec: dict[str, str], num_players: int, dice: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    variant = get_variant(spec)
    game, state = on_the_table(variant, dice, num_players)
    adviser = Adviser(compile_variant(variant), num_players)
    action = action_id(Keep(canonical_mask(dice, kept)))
    found = prospect(state, action, adviser)
    assert found is not None
    points, wins, boxes = followed(game, state, action, adviser)
    assert found.points == pytest.approx(points)
    assert found.wins == pytest.approx(wins)
    assert {one.box: one.scored + one.struck for one in found.endings} == pytest.approx(dict(boxes))


def test_throwing_everything_again_may_win_where_any_full_throw_is_served() -> None:
    variant = get_variant({**SMALL, "served_on": "any_full_throw"})
    _, state = on_the_table(variant, (1, 2, 3, 4, 6))
    found = prospect(state, action_id(Keep(0)), Adviser(compile_variant(variant), 1))
    assert found is not None
    assert found.wins > 6 / 7776 - 1e-12
    assert found.wins + sum(one.scored + one.struck for one in found.endings) == pytest.approx(1.0)


def test_the_bonus_belongs_to_what_a_box_pays() -> None:
    variant = get_variant({"base": "clasica", "first_player": "seat"})
    game, state = on_the_table(variant, (1, 1, 2, 3, 4))
    generala = variant.boxes.index("generala")
    state = game.apply(state, Keep(0b00011))
    state = game.apply_chance(state, (1, 1, 1, 1, 1))
    state = game.apply(state, Close(generala))
    state = game.apply_chance(state, (1, 1, 1, 1, 2))
    state = game.apply(state, Keep(0b01111))
    state = game.apply_chance(state, (1, 1, 1, 1, 1))
    assert payment(variant, state, 0) == (5, 100)
    found = prospect(state, action_id(Close(0)), Adviser(compile_variant(variant), 1))
    assert found is not None
    assert found.points == 105


@pytest.mark.parametrize(
    ("dice", "is_worth"), [((1, 2, 3, 4, 5), True), ((2, 2, 3, 3, 3), True), ((1, 2, 2, 4, 6), False)]
)
def test_service_is_told_only_where_it_pays(dice: tuple[int, ...], is_worth: bool) -> None:
    variant = get_variant("ruibal")
    _, state = on_the_table(variant, dice)
    assert pays_for_service(variant, state) is is_worth
