"""The table: who starts, what may be done, how turns pass, who wins."""

import pickle
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from itertools import product
from math import comb

import numpy as np
import pytest

from generala_env.rules import (
    PRESETS,
    Box,
    BoxStatus,
    Card,
    Game,
    GameState,
    IllegalActionError,
    Phase,
    Variant,
)
from generala_env.rules.actions import Action, Close, Keep
from generala_env.rules.dice import KEEP_INDEX, THROWS, Dice, next_throw_table, select
from generala_env.rules.game import Contest, Player, Turn

RUIBAL, CLASICA, DOBLE = PRESETS["ruibal"], PRESETS["clasica"], PRESETS["doble"]
NOTHING: Dice = (1, 2, 2, 4, 6)
"""Dice that fit no play."""


def start(game: Game) -> GameState:
    """Return the first turn of the first seat, skipping the draw for it."""
    state = game.initial_state()
    return replace(state, phase=Phase.TURNS, contest=None, first_player=0, current_player=0)


def play_turn(game: Game, state: GameState, box: int, dice: Dice = NOTHING) -> GameState:
    """Throw once and close a box."""
    return game.apply(game.apply_chance(state, dice), Close(box))


def keeps(game: Game, state: GameState, *, canonical: bool = True) -> list[int]:
    actions = game.legal_actions(state, canonical=canonical)
    return [action.mask for action in actions if isinstance(action, Keep)]


def closings(game: Game, state: GameState) -> list[int]:
    return [action.box for action in game.legal_actions(state) if isinstance(action, Close)]


# --- how many play ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "num_players", "message"),
    [
        (RUIBAL, 1, "num_players: ruibal is for 2 to 4, not 1"),
        (RUIBAL, 5, "num_players: ruibal is for 2 to 4, not 5"),
        (CLASICA, 1, "num_players: clasica is for 2 to any number, not 1"),
        (CLASICA, 0, "num_players: clasica is for 2 to any number, not 0"),
        (CLASICA, -1, "not -1"),
        (PRESETS["doble_fija"], 5, "num_players: doble_fija is for 2 to 4, not 5"),
        (RUIBAL.override(min_players=3, name="three"), 2, "num_players: three is for 3 to 4, not 2"),
        (RUIBAL, 2.0, "num_players: 2.0 is not a whole number"),
        (RUIBAL, True, "num_players: True is not a whole number"),
    ],
)
def test_a_table_of_another_size_is_refused(variant: Variant, num_players: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Game(variant, num_players)


def test_tables_of_every_allowed_size() -> None:
    for num_players in (2, 3, 4):
        assert len(Game(RUIBAL, num_players).initial_state().players) == num_players
    for num_players in (2, 5, 12):
        assert len(Game(CLASICA, num_players).initial_state().players) == num_players
    assert len(Game(RUIBAL.override(min_players=1), 1).initial_state().players) == 1


def test_a_card_filled_alone_needs_no_second_player() -> None:
    for variant in PRESETS.values():
        game = Game(variant, 1, solo=True)
        state = game.initial_state()
        assert (state.phase, state.first_player) == (Phase.TURNS, 0)
    with pytest.raises(ValueError, match="num_players: ruibal is for 1 to 4, not 0"):
        Game(RUIBAL, 0, solo=True)
    with pytest.raises(ValueError, match="num_players: ruibal is for 1 to 4, not 5"):
        Game(RUIBAL, 5, solo=True)


# --- the state is a value --------------------------------------------------------------------


def test_states_are_immutable_hashable_and_pickle() -> None:
    game = Game(DOBLE, 3)
    state = start(game)
    thrown = game.apply_chance(state, NOTHING)
    for value in (state, thrown, game.apply(thrown, Keep(3)), game.apply(thrown, Close(2))):
        assert hash(value) == hash(pickle.loads(pickle.dumps(value)))
        assert pickle.loads(pickle.dumps(value)) == value
        with pytest.raises(FrozenInstanceError):
            value.round = 7  # type: ignore[misc]
    before = hash(thrown)
    game.apply(thrown, Close(2))
    assert hash(thrown) == before
    assert thrown.players[0].sheet == (None,) * 11


# --- a turn ----------------------------------------------------------------------------------


def test_no_box_can_be_closed_before_the_first_throw() -> None:
    game = Game(RUIBAL, 2)
    state = start(game)
    assert game.is_chance(state)
    assert game.legal_actions(state) == ()
    actions: tuple[Action, ...] = (Keep(0), Close(0))
    for action in actions:
        with pytest.raises(IllegalActionError, match="where nothing is to be decided: phase turns"):
            game.apply(state, action)


def test_a_turn_has_three_throws_in_every_round() -> None:
    """A counter that is not reset lets the second round have a fourth throw."""
    game = Game(RUIBAL, 2)
    state = start(game)
    for turn in range(20):
        assert state.round == turn // 2 + 1
        assert state.current_player == turn % 2
        for throw in (1, 2, 3):
            assert game.is_chance(state)
            assert state.turn == Turn(throw, (), () if throw == 1 else (1, 2))
            state = game.apply_chance(state, NOTHING)
            assert state.turn.throw == throw
            assert len(keeps(game, state)) == (
                len({select(NOTHING, mask) for mask in range(31)}) if throw < 3 else 0
            )
            assert len(closings(game, state)) == 10 - turn // 2
            if throw < 3:
                state = game.apply(state, Keep(0b00011))
        for mask in range(31):
            with pytest.raises(IllegalActionError, match="is not allowed on"):
                game.apply(state, Keep(mask))
        state = game.apply(state, Close(turn // 2))
    assert game.is_over(state)


def test_keeping_all_five_dice_is_not_an_action() -> None:
    game = Game(RUIBAL, 2)
    state = game.apply_chance(start(game), NOTHING)
    for mask in (31, 32, -1):
        with pytest.raises(IllegalActionError, match="is not allowed on"):
            game.apply(state, Keep(mask))


@pytest.mark.parametrize("throw", THROWS[::23])
def test_the_kept_dice_stay_and_the_others_are_thrown(throw: Dice) -> None:
    """Taking the mask for the dice to throw again is the classic mistake."""
    game = Game(RUIBAL.override(served_generala_wins="never"), 2)
    state = game.apply_chance(start(game), throw)
    for mask in keeps(game, state, canonical=False):
        pending = game.apply(state, Keep(mask))
        kept = tuple(die for bit, die in enumerate(throw) if mask & 2**bit)
        assert pending.turn == Turn(2, (), kept)
        outcomes = game.chance_outcomes(pending)
        thrown_again = 5 - len(kept)
        # Multisets of that many dice of six faces.
        assert len(outcomes) == comb(thrown_again + 5, 5)
        assert all(isinstance(dice, tuple) and not Counter(kept) - Counter(dice) for dice, _ in outcomes)
        assert sum(probability for _, probability in outcomes) == pytest.approx(1.0, abs=1e-12)


def test_the_listed_actions_are_by_ascending_id_and_named_once() -> None:
    game = Game(RUIBAL, 2)
    for throw in THROWS:
        if throw[0] == throw[-1]:
            continue
        state = game.apply_chance(start(game), throw)
        every = keeps(game, state, canonical=False)
        assert every == list(range(31))
        named = keeps(game, state)
        kept = [select(throw, mask) for mask in named]
        assert len(set(kept)) == len(kept) == len({select(throw, mask) for mask in range(31)})
        for mask, dice in zip(named, kept, strict=True):
            assert mask == min(other for other in every if select(throw, other) == dice)
        assert closings(game, state) == list(range(10))


@pytest.mark.parametrize(
    "outcome", [(1, 2, 3, 4), (1, 2, 3, 4, 6, 6), (6, 5, 4, 3, 2), (1, 2, 3, 4, 7), 3, None, [1, 2, 3, 4, 5]]
)
def test_dice_that_cannot_fall_are_refused(outcome: Dice) -> None:
    game = Game(RUIBAL, 2)
    with pytest.raises(ValueError, match=r"is not five ascending dice that contain \(\)"):
        game.apply_chance(start(game), outcome)


def test_dice_that_lack_the_kept_ones_are_refused() -> None:
    game = Game(RUIBAL, 2)
    pending = game.apply(game.apply_chance(start(game), (1, 3, 3, 5, 6)), Keep(0b00110))
    with pytest.raises(ValueError, match=r"that contain \(3, 3\)"):
        game.apply_chance(pending, (1, 2, 3, 4, 5))
    assert game.apply_chance(pending, (1, 2, 3, 3, 4)).turn.dice == (1, 2, 3, 3, 4)


def test_chance_is_refused_where_something_is_to_be_decided() -> None:
    game = Game(RUIBAL, 2)
    state = game.apply_chance(start(game), NOTHING)
    for call in (
        game.chance_outcomes,
        lambda s: game.sample_chance(s, 0.5),
        lambda s: game.apply_chance(s, NOTHING),
    ):
        with pytest.raises(ValueError, match="the state is not a chance state"):
            call(state)


@pytest.mark.parametrize("kept", [(), (6,), (2, 2), (1, 3, 5), (4, 4, 4, 4)])
def test_sampling_is_the_exact_distribution_and_equal_draws_are_equal_dice(kept: Dice) -> None:
    game = Game(RUIBAL, 2)
    state = replace(start(game), turn=Turn(2, (), kept))
    rolls = (np.arange(7_776) + 0.5) / 7_776
    sampled = [game.sample_chance(state, uniform) for uniform in rolls.tolist()]
    counts = Counter(sampled)
    outcomes = dict(game.chance_outcomes(state))
    assert set(counts) == set(outcomes)
    for dice, probability in outcomes.items():
        assert counts[dice] / 7_776 == pytest.approx(probability, abs=1e-13)
    row = next_throw_table()[KEEP_INDEX[kept]]
    assert sampled == [THROWS[index] for index in row]


@pytest.mark.parametrize("uniform", [1.0, -0.25, float("nan")])
def test_a_draw_that_is_not_from_the_unit_interval_is_refused(uniform: float) -> None:
    game = Game(RUIBAL.override(first_player="random"), 2)
    for state in (game.initial_state(), start(game)):
        with pytest.raises(ValueError, match=r"^uniform: .* is not from 0 up to"):
            game.sample_chance(state, uniform)


# --- served, and the throw that wins ----------------------------------------------------------


def test_the_served_bonus_survives_keeping_all_dice_by_closing() -> None:
    game = Game(RUIBAL, 2)
    state = play_turn(game, start(game), RUIBAL.boxes.index(Box.FULL), (2, 2, 3, 3, 3))
    assert state.players[0].score == 35


def test_throwing_all_five_again_counts_as_served_only_where_the_variant_says_so() -> None:
    for variant, paid in ((CLASICA, 25), (RUIBAL, 20)):
        game = Game(variant, 2)
        box = variant.boxes.index(Box.ESCALERA)
        state = game.apply_chance(start(game), NOTHING)
        state = game.apply_chance(game.apply(state, Keep(0)), (1, 2, 3, 4, 5))
        assert game.is_served(state) == (paid == 25)
        assert game.apply(state, Close(box)).players[0].score == paid
        again = game.apply_chance(game.apply(state, Keep(0)), (2, 3, 4, 5, 6))
        assert game.apply(again, Close(box)).players[0].score == paid
        partial = game.apply_chance(game.apply(state, Keep(0b1)), (1, 2, 3, 4, 5))
        assert not game.is_served(partial)
        assert game.apply(partial, Close(box)).players[0].score == 20


def test_the_instant_win_looks_at_the_own_card_and_ends_the_game() -> None:
    game = Game(CLASICA, 3)
    generala = CLASICA.boxes.index(Box.GENERALA)
    state = play_turn(game, start(game), generala)  # seat 0 strikes its Generala
    assert state.players[0].card.generala is BoxStatus.STRUCK
    won = game.apply_chance(state, (4,) * 5)
    assert (won.phase, won.winners, won.is_instant_win) == (Phase.OVER, (1,), True)
    assert game.is_over(won)
    assert not game.is_chance(won)
    assert game.legal_actions(won) == ()
    with pytest.raises(IllegalActionError, match="phase over"):
        game.apply(won, Close(0))
    with pytest.raises(ValueError, match="not a chance state"):
        game.apply_chance(won, NOTHING)
    state = play_turn(game, play_turn(game, state, 0), 0)
    assert state.current_player == 0
    ordinary = game.apply_chance(state, (4,) * 5)
    assert (ordinary.phase, ordinary.winners) == (Phase.TURNS, ())
    poker = CLASICA.boxes.index(Box.POKER)
    assert game.apply(ordinary, Close(poker)).players[0].score == 45


# --- locked dice -----------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [PRESETS["doble_fija"], PRESETS["clasica_fija"]], ids=lambda v: v.name)
def test_dice_set_aside_stay_set_aside_unless_all_are_thrown_again(variant: Variant) -> None:
    game = Game(variant, 2)
    state = game.apply_chance(start(game), (1, 3, 3, 5, 6))
    assert keeps(game, state, canonical=False) == list(range(31))  # the first keep is free
    state = game.apply_chance(game.apply(state, Keep(0b00110)), (1, 3, 3, 3, 6))
    expected = {(), (3, 3), (3, 3, 3), (1, 3, 3), (3, 3, 6), (1, 3, 3, 3), (3, 3, 3, 6), (1, 3, 3, 6)}
    assert {select(state.turn.dice, mask) for mask in keeps(game, state, canonical=False)} == expected
    assert {select(state.turn.dice, mask) for mask in keeps(game, state)} == expected
    with pytest.raises(IllegalActionError, match="is not allowed on"):
        game.apply(state, Keep(0b00010))
    unlocked = game.apply(state, Keep(0))
    assert unlocked.turn == Turn(3, (), ())


def test_throwing_all_five_again_unlocks_the_second_throw() -> None:
    game = Game(PRESETS["clasica_fija"], 2)
    state = game.apply_chance(start(game), (1, 3, 3, 5, 6))
    state = game.apply_chance(game.apply(state, Keep(0)), (1, 3, 3, 5, 6))
    assert keeps(game, state, canonical=False) == list(range(31))


def test_locked_keeps_of_every_keep_and_throw_by_counting() -> None:
    game = Game(PRESETS["doble_fija"], 2)
    base = start(game)
    for throw in THROWS[::5]:
        first_keeps = {select(throw, mask) for mask in range(31)}
        for locked in first_keeps:
            state = replace(base, turn=Turn(2, throw, locked))
            legal = {
                mask for mask in range(31) if mask == 0 or not Counter(locked) - Counter(select(throw, mask))
            }
            assert set(keeps(game, state, canonical=False)) == legal


# --- forced order ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["clasica_obligada", "doble_obligada"])
def test_forced_boxes_are_closed_in_card_order(name: str) -> None:
    variant = PRESETS[name]
    game = Game(variant, 2)
    state = start(game)
    for turn in range(2 * variant.num_boxes):
        thrown = game.apply_chance(state, NOTHING)
        following = turn // 2
        assert closings(game, thrown) == [following]
        for box in range(variant.num_boxes):
            for strike in (False, True):
                if box != following:
                    with pytest.raises(IllegalActionError, match=rf"closable boxes: \({following},\)"):
                        game.apply(thrown, Close(box, strike=strike))
        state = game.apply(thrown, Close(following))
    assert state.phase is (Phase.PLAYOFF if variant.tie_break == "playoff" else Phase.OVER)
    # Ones 1, twos 4, threes 0, fours 4, fives 0, sixes 6.
    assert state.scores == (15, 15)


# --- closing, striking, the Doble -------------------------------------------------------------


def test_a_closed_box_stays_closed() -> None:
    game = Game(RUIBAL, 2)
    state = play_turn(game, play_turn(game, start(game), 3), 3)
    thrown = game.apply_chance(state, NOTHING)
    assert closings(game, thrown) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    for box in (3, 10, -1):
        with pytest.raises(IllegalActionError, match="closable boxes"):
            game.apply(thrown, Close(box))


def test_a_deliberate_strike_is_legal_but_not_listed() -> None:
    game = Game(DOBLE.override(served_generala_wins="never"), 2)
    generala = DOBLE.boxes.index(Box.GENERALA)
    thrown = game.apply_chance(start(game), (5,) * 5)
    assert not any(isinstance(action, Close) and action.strike for action in game.legal_actions(thrown))
    struck = game.apply(thrown, Close(generala, strike=True)).players[0]
    assert (struck.sheet[generala], struck.score, struck.card.generala) == (0, 0, BoxStatus.STRUCK)
    scored = game.apply(thrown, Close(generala)).players[0]
    assert (scored.sheet[generala], scored.score, scored.card.generala) == (50, 50, BoxStatus.SCORED)


def test_the_doble_box_needs_a_scored_generala() -> None:
    game = Game(DOBLE.override(served_generala_wins="never"), 2)
    generala, doble = DOBLE.boxes.index(Box.GENERALA), DOBLE.boxes.index(Box.DOBLE_GENERALA)
    fives = (5,) * 5

    def doble_points(*first: Action) -> int | None:
        state = start(game)
        for action in first:
            state = game.apply(game.apply_chance(state, fives), action)
            state = play_turn(game, state, 0 if state.players[1].sheet[0] is None else 1)
        return game.apply(game.apply_chance(state, fives), Close(doble)).players[0].sheet[doble]

    assert doble_points() == 0  # the Generala box is open
    assert doble_points(Close(0)) == 0
    assert doble_points(Close(generala, strike=True)) == 0
    assert doble_points(Close(generala)) == 100


def test_the_doble_bonus_is_added_once_and_only_after_a_scored_generala() -> None:
    variant = CLASICA.override(served_generala_wins="never")
    game = Game(variant, 2)
    generala, full = variant.boxes.index(Box.GENERALA), variant.boxes.index(Box.FULL)
    fives = (5,) * 5
    state = start(game)
    scores = []
    for box in (0, generala, full, 4, variant.boxes.index(Box.POKER)):
        state = play_turn(game, state, box, fives)
        scores.append(state.players[0].score)
        state = play_turn(game, state, box)
    assert scores == [0, 50, 150, 175, 220]
    assert state.players[0].bonus == 100
    assert state.players[0].sheet[full] == 0


# --- who starts ------------------------------------------------------------------------------


def test_the_first_seat_starts_where_the_seat_decides() -> None:
    state = Game(RUIBAL, 4).initial_state()
    assert (state.phase, state.first_player, state.current_player) == (Phase.TURNS, 0, 0)


def test_a_random_starter_is_every_seat_with_equal_chance() -> None:
    game = Game(CLASICA.override(first_player="random"), 5)
    state = game.initial_state()
    assert state.phase is Phase.FIRST_PLAYER
    assert state.first_player is None
    assert game.legal_actions(state) == ()
    assert game.chance_outcomes(state) == [(seat, 0.2) for seat in range(5)]
    drawn = Counter(game.sample_chance(state, (step + 0.5) / 1_000) for step in range(1_000))
    assert drawn == dict.fromkeys(range(5), 200)
    for seat in range(5):
        after = game.apply_chance(state, seat)
        assert (after.phase, after.first_player, after.current_player) == (Phase.TURNS, seat, seat)
        assert after.contest is None
        assert after.turn == Turn()
    for outcome in (5, -1, (1,)):
        with pytest.raises(ValueError, match="is not an outcome of the draw for the first player"):
            game.apply_chance(state, outcome)


ROLL_OFFS: list[tuple[str, int, list[Dice], list[int], int]] = [
    # rule, players, what falls in order, who throws each time, who starts
    ("highest_die", 2, [(3,), (5,)], [0, 1], 1),
    ("highest_die", 2, [(6,), (5,)], [0, 1], 0),
    ("highest_die", 2, [(4,), (4,), (1,), (1,), (2,), (6,)], [0, 1, 0, 1, 0, 1], 1),
    ("highest_die", 4, [(2,), (6,), (1,), (6,), (3,), (5,)], [0, 1, 2, 3, 1, 3], 3),
    (
        "highest_die",
        4,
        [(6,), (6,), (1,), (6,), (2,), (2,), (1,), (5,), (4,)],
        [0, 1, 2, 3, 0, 1, 3, 0, 1],
        0,
    ),
    ("highest_throw", 2, [(1, 1, 1, 1, 6), (1, 1, 2, 3, 4)], [0, 1], 1),
    ("highest_throw", 3, [(1, 1, 1, 1, 1), (6, 6, 6, 6, 6), (5, 6, 6, 6, 6)], [0, 1, 2], 1),
    (
        "highest_throw",
        3,
        [(2, 2, 2, 2, 2), (1, 1, 1, 1, 6), (1, 1, 2, 2, 3), (1, 2, 3, 4, 5), (1, 2, 3, 4, 6)],
        [0, 1, 2, 0, 1],
        1,
    ),
    ("lowest_throw", 2, [(1, 1, 1, 1, 6), (1, 1, 2, 3, 4)], [0, 1], 0),
    ("lowest_throw", 3, [(6, 6, 6, 6, 6), (1, 1, 1, 1, 1), (1, 1, 1, 1, 2)], [0, 1, 2], 1),
    (
        "lowest_throw",
        3,
        [(1, 1, 1, 1, 2), (1, 1, 1, 1, 1), (1, 1, 1, 1, 1), (6, 6, 6, 6, 6), (1, 6, 6, 6, 6)],
        [0, 1, 2, 1, 2],
        2,
    ),
]


@pytest.mark.parametrize(("rule", "num_players", "falls", "throwers", "starter"), ROLL_OFFS)
def test_a_roll_off_repeats_among_the_tied(
    rule: str, num_players: int, falls: list[Dice], throwers: list[int], starter: int
) -> None:
    game = Game(CLASICA.override(first_player=rule), num_players)
    state = game.initial_state()
    for dice, seat in zip(falls, throwers, strict=True):
        assert state.phase is Phase.FIRST_PLAYER
        assert state.current_player == seat
        assert state.contest is not None
        assert seat == state.contest.candidates[len(state.contest.results)]
        assert game.is_chance(state)
        assert game.legal_actions(state) == ()
        state = game.apply_chance(state, dice)
        assert not state.is_instant_win  # five equal dice in a roll-off are nothing special
    assert (state.phase, state.first_player, state.current_player) == (Phase.TURNS, starter, starter)
    assert (state.contest, state.round, state.turn) == (None, 1, Turn())
    assert all(player.score == 0 for player in state.players)


def test_the_roll_off_throws_one_die_or_five() -> None:
    one = Game(CLASICA, 2)
    outcomes = one.chance_outcomes(one.initial_state())
    assert outcomes == [((face,), 1 / 6) for face in range(1, 7)]
    drawn = Counter(one.sample_chance(one.initial_state(), (roll + 0.5) / 7_776) for roll in range(7_776))
    assert drawn == {(face,): 1_296 for face in range(1, 7)}
    for rule in ("highest_throw", "lowest_throw"):
        five = Game(CLASICA.override(first_player=rule), 2)
        assert len(five.chance_outcomes(five.initial_state())) == 252
    for outcome in ((7,), (1, 1), 1, (1, 2, 3, 4, 5)):
        with pytest.raises(ValueError, match="is not an outcome of the draw for the first player"):
            one.apply_chance(one.initial_state(), outcome)


@pytest.mark.parametrize("num_players", [2, 3])
def test_a_roll_off_is_fair(num_players: int) -> None:
    """By symmetry, every seat wins a decided roll-off equally often."""
    game = Game(CLASICA, num_players)
    starters: Counter[int] = Counter()
    for faces in product(range(1, 7), repeat=num_players):
        state = game.initial_state()
        for face in faces:
            state = game.apply_chance(state, (face,))
        if state.phase is Phase.TURNS:
            assert state.first_player is not None
            starters[state.first_player] += 1
    assert len(set(starters.values())) == 1
    assert sorted(starters) == list(range(num_players))


def test_rounds_begin_with_the_starter() -> None:
    game = Game(CLASICA.override(first_player="random"), 3)
    state = game.apply_chance(game.initial_state(), 2)
    assert game.playing_order(state) == (2, 0, 1)
    seen = []
    for turn in range(30):
        assert state.round == turn // 3 + 1
        seen.append(state.current_player)
        state = play_turn(game, state, turn // 3)
    assert seen == [2, 0, 1] * 10
    assert state.phase in (Phase.PLAYOFF, Phase.OVER)


# --- ties ------------------------------------------------------------------------------------


def final_turn(
    game: Game, scores: list[int], generalas: list[int] | None = None, first_player: int = 0
) -> GameState:
    """Return the last turn of a game, in which the last player strikes the ones."""
    variant = game.variant
    last = (first_player - 1) % game.num_players
    players = []
    for seat, score in enumerate(scores):
        made = generalas[seat] if generalas else 0
        status = [BoxStatus.SCORED if made > index else BoxStatus.STRUCK for index in range(2)]
        card = Card(int(seat == last), status[0], status[1])
        sheet = (None if seat == last else 0, score, *[0] * (variant.num_boxes - 2))
        players.append(Player(card, sheet))
    state = GameState(
        Phase.TURNS,
        tuple(players),
        current_player=last,
        first_player=first_player,
        round=variant.num_boxes,
    )
    thrown = game.apply_chance(state, (2, 2, 3, 4, 6))
    assert closings(game, thrown) == [0]
    return game.apply(thrown, Close(0))


@pytest.mark.parametrize("tie_break", ["draw", "most_generalas", "playoff"])
def test_the_most_points_win_whatever_decides_ties(tie_break: str) -> None:
    game = Game(DOBLE.override(tie_break=tie_break), 3)
    over = final_turn(game, [90, 120, 119], generalas=[2, 0, 1])
    assert (over.phase, over.winners, over.is_instant_win) == (Phase.OVER, (1,), False)
    assert over.scores == (90, 120, 119)
    assert over.round == 11


def test_a_draw_is_shared_by_seat() -> None:
    game = Game(DOBLE.override(tie_break="draw"), 4)
    over = final_turn(game, [120, 90, 120, 120], generalas=[2, 0, 1, 0], first_player=3)
    assert (over.phase, over.winners) == (Phase.OVER, (0, 2, 3))


@pytest.mark.parametrize(
    ("generalas", "winners"),
    [
        ([0, 2, 1, 0], (2,)),
        ([1, 2, 1, 0], (0, 2)),
        ([0, 2, 0, 0], (0, 2, 3)),
        ([1, 0, 2, 0], (2,)),
        ([2, 0, 1, 2], (0, 3)),
    ],
)
def test_most_generalas_decides_among_the_tied_only(generalas: list[int], winners: tuple[int, ...]) -> None:
    game = Game(DOBLE.override(tie_break="most_generalas"), 4)
    over = final_turn(game, [120, 90, 120, 120], generalas=generalas)
    assert (over.phase, over.winners) == (Phase.OVER, winners)


def play_off(game: Game, state: GameState, dice: Dice) -> GameState:
    """Take the whole of one playoff turn with one throw."""
    thrown = game.apply_chance(state, dice)
    (action,) = (action for action in game.legal_actions(thrown) if isinstance(action, Close))
    return game.apply(thrown, action)


def test_a_playoff_goes_by_playing_order_and_repeats_among_those_tied_again() -> None:
    game = Game(CLASICA, 4)
    state = final_turn(game, [120, 120, 90, 120], first_player=3)
    assert (state.phase, state.current_player, state.turn) == (Phase.PLAYOFF, 3, Turn())
    assert state.contest == Contest((3, 0, 1))
    for seat, dice, results in (
        (3, (1, 2, 3, 4, 5), (25,)),
        (0, (1, 2, 3, 4, 6), (25, 6)),
    ):
        assert state.current_player == seat
        state = play_off(game, state, dice)
        assert state.contest == Contest((3, 0, 1), results)  # later players see what was made
    state = play_off(game, state, (2, 3, 4, 5, 6))
    assert (state.phase, state.current_player) == (Phase.PLAYOFF, 3)
    assert state.contest == Contest((3, 1), repeats=1)
    state = play_off(game, play_off(game, state, (1, 1, 2, 2, 4)), (1, 1, 1, 2, 4))
    assert state.contest == Contest((3, 1), repeats=2)
    state = play_off(game, play_off(game, state, (2, 2, 3, 3, 3)), (1, 1, 2, 2, 5))
    assert (state.phase, state.winners, state.is_instant_win) == (Phase.OVER, (3,), False)
    assert state.contest is None
    assert state.scores == (120, 120, 90, 120)


def test_a_playoff_turn_has_three_throws_and_the_served_bonus() -> None:
    game = Game(CLASICA, 2)
    state = final_turn(game, [100, 100])
    thrown = game.apply_chance(state, (1, 2, 3, 4, 6))
    assert keeps(game, thrown, canonical=False) == list(range(31))
    second = game.apply_chance(game.apply(thrown, Keep(0b01111)), (1, 2, 3, 4, 5))
    third = game.apply_chance(game.apply(second, Keep(0b01111)), (1, 2, 3, 4, 5))
    assert keeps(game, third) == []
    escalera = CLASICA.boxes.index(Box.ESCALERA)
    assert game.legal_actions(third) == (Close(escalera),)
    after = game.apply(third, Close(escalera))
    assert after.contest == Contest((0, 1), (20,))
    served = play_off(game, after, (1, 2, 3, 4, 5))
    assert (served.phase, served.winners) == (Phase.OVER, (1,))


def test_a_playoff_turn_is_worth_its_best_box_and_no_other() -> None:
    game = Game(PRESETS["clasica_obligada"], 2)
    boxes = CLASICA.boxes.index
    for dice, box, points in (
        ((4, 4, 4, 4, 6), boxes(Box.POKER), 45),
        ((2, 2, 3, 3, 3), boxes(Box.FULL), 35),
        ((1, 3, 4, 5, 6), boxes(Box.ESCALERA), 25),
        ((1, 2, 2, 6, 6), boxes(Box.SIXES), 12),
        ((1, 2, 2, 4, 4), boxes(Box.FOURS), 8),
    ):
        thrown = game.apply_chance(final_turn(game, [100, 100]), dice)
        for other in range(10):
            for strike in (False, True):
                if (other, strike) != (box, False):
                    with pytest.raises(IllegalActionError, match=rf"worth its best box, Close\({box}\)"):
                        game.apply(thrown, Close(other, strike=strike))
        contest = game.apply(thrown, Close(box)).contest
        assert contest is not None
        assert contest.results == (points,)


def test_the_doble_does_not_count_in_a_playoff() -> None:
    for variant in (DOBLE.override(tie_break="playoff"), CLASICA.override(served_on="first_throw")):
        game = Game(variant, 2)
        state = final_turn(game, [100, 100], generalas=[1, 1])
        assert state.phase is Phase.PLAYOFF
        pending = game.apply(game.apply_chance(state, (3, 3, 3, 3, 4)), Keep(0b01111))
        thrown = game.apply_chance(pending, (3,) * 5)
        generala = variant.boxes.index(Box.GENERALA)
        after = game.apply(thrown, Close(generala))
        assert after.contest == Contest((0, 1), (50,))


def test_dice_are_locked_in_a_playoff_too() -> None:
    game = Game(PRESETS["clasica_fija"], 2)
    thrown = game.apply_chance(final_turn(game, [100, 100]), (1, 3, 3, 5, 6))
    second = game.apply_chance(game.apply(thrown, Keep(0b00110)), (1, 3, 3, 4, 6))
    kept = {select(second.turn.dice, mask) for mask in keeps(game, second)}
    assert kept == {(), (3, 3), (1, 3, 3), (3, 3, 4), (3, 3, 6), (1, 3, 3, 4), (1, 3, 3, 6), (3, 3, 4, 6)}


@pytest.mark.parametrize("rule", ["always", "unless_struck", "if_open"])
def test_a_served_generala_in_a_playoff_wins_at_once_whatever_the_own_card(rule: str) -> None:
    game = Game(CLASICA.override(served_generala_wins=rule), 3)
    state = final_turn(game, [100, 100, 100], generalas=[0, 0, 0])
    assert all(player.card.generala is BoxStatus.STRUCK for player in state.players)
    state = play_off(game, state, (4, 4, 4, 4, 6))
    won = game.apply_chance(state, (1,) * 5)
    assert (won.phase, won.winners, won.is_instant_win) == (Phase.OVER, (1,), True)
    # Also in a repeated playoff, and on a later throw of all five dice.
    state = play_off(game, play_off(game, state, (4, 4, 4, 4, 6)), (2, 2, 2, 4, 6))
    assert state.contest == Contest((0, 1), repeats=1)
    again = game.apply(game.apply_chance(state, NOTHING), Keep(0))
    won = game.apply_chance(again, (6,) * 5)
    assert (won.phase, won.winners, won.is_instant_win) == (Phase.OVER, (0,), True)


def test_a_served_generala_that_never_wins_does_not_win_a_playoff_either() -> None:
    game = Game(CLASICA.override(served_generala_wins="never"), 2)
    state = play_off(game, final_turn(game, [100, 100]), (1,) * 5)
    assert (state.phase, state.contest) == (Phase.PLAYOFF, Contest((0, 1), (50,)))


def test_one_player_alone_always_wins() -> None:
    for variant in PRESETS.values():
        game = Game(variant, 1, solo=True)
        state = game.initial_state()
        for box in range(variant.num_boxes):
            state = play_turn(game, state, box)
        assert (state.phase, state.winners) == (Phase.OVER, (0,))
        assert state.round == variant.num_boxes
