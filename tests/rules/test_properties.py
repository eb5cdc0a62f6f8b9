"""Whole games and random rule sets: what must hold whatever is thrown and chosen."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from generala_env.rules.actions import Close, Keep, action_id, action_of
from generala_env.rules.card import box_points, closable_boxes, close_box, is_instant_win
from generala_env.rules.dice import THROWS, counts_of
from generala_env.rules.variants import (
    FirstPlayer,
    KeptDice,
    Order,
    ServedGeneralaWins,
    ServedOn,
    TieBreak,
)

POINTS = st.integers(1, 200)


@st.composite
def variants(draw: st.DrawFn, max_boxes: int = 5) -> Variant:
    """Draw any rule set with a few boxes, in any order."""
    boxes = draw(st.lists(st.sampled_from(Box), unique=True, min_size=1, max_size=max_boxes))
    if Box.DOBLE_GENERALA in boxes and Box.GENERALA not in boxes:
        boxes[0 if boxes[0] is not Box.DOBLE_GENERALA else -1] = Box.GENERALA
    has_generala, has_doble = Box.GENERALA in boxes, Box.DOBLE_GENERALA in boxes
    if has_doble:
        doble = f"box({draw(POINTS)}, {draw(POINTS)})"
    else:
        doble = f"bonus({draw(POINTS)})" if has_generala and draw(st.booleans()) else "none"
    wins = list(ServedGeneralaWins) if has_generala else [ServedGeneralaWins.ALWAYS, ServedGeneralaWins.NEVER]
    straights = st.sets(st.sampled_from(list(combinations(range(1, 7), 5))), min_size=1)
    return PRESETS["ruibal"].override(
        name="drawn",
        boxes=boxes,
        doble=doble,
        generala_points=draw(POINTS),
        escalera_points=draw(POINTS),
        full_points=draw(POINTS),
        poker_points=draw(POINTS),
        served_bonus=draw(st.integers(0, 50)),
        straights=draw(straights),
        served_on=draw(st.sampled_from(ServedOn)),
        served_generala_wins=draw(st.sampled_from(wins)),
        kept_dice=draw(st.sampled_from(KeptDice)),
        order=draw(st.sampled_from(Order)),
        poker_takes_five=draw(st.booleans()),
        full_takes_five=draw(st.booleans()),
        tie_break=draw(st.sampled_from(TieBreak)),
        first_player=draw(st.sampled_from(FirstPlayer)),
        min_players=1,
        max_players=None,
    )


def walk(game: Game, rng: np.random.Generator, perfect: int) -> GameState:
    """Play a game at random and check everything that can be checked on the way.

    One throw in ten is drawn from its list of outcomes instead, with five equal dice more
    often than they are due, so that the rules about them come into play.
    """
    variant, num_players = game.variant, game.num_players
    state = game.initial_state()
    num_closed = [0] * num_players
    num_throws = 0
    while not game.is_over(state):
        before = hash(state)
        assert all(0 <= score <= perfect for score in state.scores)
        if state.phase is Phase.TURNS:
            assert state.first_player is not None
            order = game.playing_order(state)
            assert order[0] == state.first_player
            # Everybody has had as many turns as the round says, in playing order.
            place = order.index(state.current_player)
            expected = [state.round - (order.index(seat) >= place) for seat in range(num_players)]
            assert num_closed == expected
            for seat, player in enumerate(state.players):
                assert player.card.num_open == variant.num_boxes - num_closed[seat]
                is_blank = [points is None for points in player.sheet]
                assert is_blank == [player.card.is_open(box) for box in range(variant.num_boxes)]
                assert player.bonus == (variant.doble.points if player.card.is_bonus_taken else 0)
        if game.is_chance(state):
            assert game.legal_actions(state) == ()
            outcome = game.sample_chance(state, float(rng.random()))
            if rng.random() < 0.1:
                outcomes = dict(game.chance_outcomes(state))
                assert outcome in outcomes
                assert all(probability > 0 for probability in outcomes.values())
                assert sum(outcomes.values()) == pytest.approx(1.0, abs=1e-12)
                choices = [drawn for drawn in outcomes if isinstance(drawn, int) or len(set(drawn)) == 1]
                outcome = choices[rng.integers(len(choices))] if choices else outcome
            following = game.apply_chance(state, outcome)
            if state.phase is not Phase.FIRST_PLAYER:
                num_throws += 1
                assert following.turn.throw == state.turn.throw == num_throws <= 3
                assert isinstance(outcome, tuple)
                assert following.turn.dice == outcome == tuple(sorted(outcome))
                assert not Counter(state.turn.kept) - Counter(outcome)
        else:
            legal = game.legal_actions(state)
            ids = [action_id(action) for action in legal]
            assert ids
            assert ids == sorted(ids)
            assert [action_of(identifier, variant.num_boxes) for identifier in ids] == list(legal)
            action = legal[rng.integers(len(legal))]
            if isinstance(action, Close) and state.phase is Phase.TURNS and rng.random() < 0.2:
                action = Close(action.box, strike=True)
            following = game.apply(state, action)
            if isinstance(action, Keep):
                assert following.turn.throw == state.turn.throw + 1
                assert following.scores == state.scores
            else:
                num_throws = 0
                if state.phase is Phase.TURNS:
                    num_closed[state.current_player] += 1
                gained = np.subtract(following.scores, state.scores)
                assert (gained >= 0).all()
                assert np.delete(gained, state.current_player).sum() == 0
        assert hash(state) == before
        state = following
    assert state.phase is Phase.OVER
    assert state.winners == tuple(sorted(set(state.winners)))
    assert state.winners
    assert all(0 <= score <= perfect for score in state.scores)
    if state.is_instant_win:
        assert state.winners == (state.current_player,)
        assert len(set(state.turn.dice)) == 1
        assert variant.served_generala_wins is not ServedGeneralaWins.NEVER
    else:
        assert num_closed == [variant.num_boxes] * num_players
        assert all(player.card.is_complete for player in state.players)
        assert all(state.scores[seat] == max(state.scores) for seat in state.winners)
        if variant.tie_break is TieBreak.PLAYOFF:
            assert len(state.winners) == 1
        if variant.tie_break is TieBreak.DRAW:
            assert len(state.winners) == state.scores.count(max(state.scores))
    return state


@pytest.mark.parametrize("num_players", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", PRESETS)
def test_random_games_of_every_preset(name: str, num_players: int) -> None:
    variant = PRESETS[name].override(min_players=1, max_players=None)
    rng = np.random.default_rng([num_players, *name.encode()])
    over = walk(Game(variant, num_players), rng, compile_variant(name).perfect_score)
    assert len(over.scores) == num_players


@settings(max_examples=50)
@given(variant=variants(), num_players=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_random_games_of_random_rules(variant: Variant, num_players: int, seed: int) -> None:
    perfect = compile_variant(variant).perfect_score
    walk(Game(variant, num_players), np.random.default_rng(seed), perfect)


@given(
    variant=variants(),
    dice=st.lists(st.integers(1, 6), min_size=5, max_size=5),
    order=st.permutations(range(5)),
    own=st.sampled_from(BoxStatus),
    served=st.booleans(),
)
def test_permuting_the_dice_changes_nothing(
    variant: Variant, dice: list[int], order: list[int], own: BoxStatus, served: bool
) -> None:
    card = Card(Card.empty(variant).open_mask, generala=own)
    one, other = counts_of(tuple(dice)), counts_of(tuple(dice[place] for place in order))
    assert is_instant_win(variant, card, one, served=served) == is_instant_win(
        variant, card, other, served=served
    )
    for box in variant.boxes:
        points = box_points(variant, card, box, one, served=served)
        assert points == box_points(variant, card, box, other, served=served)
        assert points >= 0


@settings(max_examples=40)
@given(
    variant=variants(max_boxes=4), places=st.lists(st.floats(0, 1, exclude_max=True), min_size=3, max_size=3)
)
def test_the_tables_of_random_rules_agree_with_the_engine(variant: Variant, places: list[float]) -> None:
    compiled = compile_variant(variant)
    for place in places:
        index = int(place * compiled.num_cards)
        card = compiled.card(index)
        boxes = closable_boxes(variant, card)
        assert tuple(np.flatnonzero(compiled.closable[index])) == boxes
        for box in boxes:
            for throw in range(0, 252, 3):
                for served in (False, True):
                    closing = close_box(variant, card, box, counts_of(THROWS[throw]), served=served)
                    where = (compiled.card_status[index], box, int(served), throw)
                    assert compiled.points[where] == closing.points + closing.bonus
                    after = compiled.next_card(np.array(index), box, int(served), throw)
                    assert compiled.card(int(after)) == closing.card


@settings(max_examples=60)
@given(one=variants(), other=variants())
def test_fingerprints_are_equal_exactly_for_equal_rules(one: Variant, other: Variant) -> None:
    assert (one == other) == (one.fingerprint == other.fingerprint)
    assert Variant.from_dict(one.to_dict()) == one
    assert Variant.from_dict(one.to_dict()).fingerprint == one.fingerprint
