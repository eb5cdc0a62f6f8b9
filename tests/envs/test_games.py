"""Batched games against the readable engine: the same dice, the same game, every rule of the end."""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from generala_env.envs.dealing import STAGE_FIRST_PLAYER, DealtGame, dice_uniforms
from generala_env.envs.games import TableGames
from generala_env.envs.outcomes import how_ended, outcome_rewards, places, standings
from generala_env.envs.table_observation import table_batch, table_layout
from generala_env.rules import Variant, get_variant
from generala_env.rules.compiled import compile_variant
from generala_env.rules.dice import NUM_ORDERED_THROWS, THROWS, next_throw_table
from generala_env.rules.variants import PRESETS, FirstPlayer, TieBreak

ONE_BOX = {"boxes": ["ones"], "doble": "none", "served_generala_wins": "never"}
"""A game so short that ties are common."""


def begin(variant: Variant, num_players: int, num_games: int, seed: int = 7) -> TableGames:
    seeds = np.full(num_games, seed, dtype=np.uint64)
    return TableGames(compile_variant(variant), num_players, seeds, np.arange(num_games))


def random_actions(masks: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.int64]:
    return np.asarray(np.where(masks, generator.random(masks.shape), -1.0).argmax(axis=1))


def play_randomly(games: TableGames, seed: int = 0) -> TableGames:
    generator = np.random.default_rng(seed)
    while not games.is_over.all():
        rows = np.flatnonzero(~games.is_over)
        games.step(rows, random_actions(games.action_masks(rows), generator))
    return games


def compare_with_engine(variant: Variant, num_players: int, num_games: int) -> Counter[str]:
    """Play games in both forms, checking every decision; return how they ended."""
    compiled = compile_variant(variant)
    games = begin(variant, num_players, num_games)
    engine = [DealtGame(variant, num_players) for _ in range(num_games)]
    for number, dealt in enumerate(engine):
        dealt.start((7, number))
    layout = table_layout(compiled, num_players)
    generator = np.random.default_rng(1)
    while not games.is_over.all():
        rows = np.flatnonzero(~games.is_over)
        masks = games.action_masks(rows)
        observations = layout.encode(games.table_batch(rows))
        actions = random_actions(masks, generator)
        for position, row in enumerate(rows):
            dealt = engine[row]
            seat = dealt.state.current_player
            assert seat == games.current[row]
            assert np.array_equal(dealt.action_mask(), masks[position])
            seen = layout.encode(table_batch(compiled, dealt.state, seat))[0]
            assert np.array_equal(seen, observations[position])
            dealt.apply(int(actions[position]))
        games.step(rows, actions)
    for number, dealt in enumerate(engine):
        state = dealt.state
        assert dealt.is_over
        assert tuple(np.flatnonzero(games.won[number])) == state.winners
        assert state.scores == tuple(games.score[number])
        assert state.is_instant_win == games.is_instant_win[number]
        assert dealt.was_tied == games.was_tied[number]
        for seat in range(num_players):
            seats = np.array([seat])
            last = layout.encode(games.table_batch(np.array([number]), seats))
            assert np.array_equal(last, layout.encode(table_batch(compiled, state, seat)))
    return Counter(how_ended(variant, dealt.state, was_tied=dealt.was_tied) for dealt in engine)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("num_players", [2, 3])
def test_the_batch_and_the_engine_play_the_same_games(preset: str, num_players: int) -> None:
    compare_with_engine(get_variant(preset), num_players, 4)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("num_players", [2, 3, 4, 5])
def test_many_games_are_the_same_in_the_batch_and_in_the_engine(preset: str, num_players: int) -> None:
    variant = get_variant(preset)
    if variant.max_players is not None:
        variant = variant.override(max_players=None)
    compare_with_engine(variant, num_players, 400)


@pytest.mark.parametrize("tie_break", TieBreak)
@pytest.mark.parametrize("num_players", [2, 4])
def test_ties_are_broken_alike(tie_break: str, num_players: int) -> None:
    variant = get_variant("clasica").override(tie_break=tie_break, **ONE_BOX)
    ended = compare_with_engine(variant, num_players, 60)
    expected = "playoff" if tie_break == "playoff" else "draw"
    assert ended[expected] >= 10
    assert ended["points"] >= 10


def test_a_repeated_playoff_happens_and_ends_with_one_winner() -> None:
    games = play_randomly(begin(get_variant("clasica").override(tie_break="playoff", **ONE_BOX), 4, 400))
    assert (games.repeats > 0).sum() >= 5
    assert (games.won.sum(axis=1) == 1).all()


def test_a_draw_is_shared_by_everybody_with_most_points() -> None:
    games = play_randomly(begin(get_variant("clasica").override(tie_break="draw", **ONE_BOX), 4, 400))
    expected = games.score == games.score.max(axis=1, keepdims=True)
    assert np.array_equal(games.won, expected)
    assert (games.won.sum(axis=1) > 1).sum() > 50


def test_most_generalas_decides_between_equal_points() -> None:
    variant = get_variant("ruibal").override(
        boxes=["sixes", "generala"],
        generala_points=12,
        tie_break="most_generalas",
        served_generala_wins="never",
    )
    compiled = compile_variant(variant)
    games = begin(variant, 2, 6_000)
    generator = np.random.default_rng(0)
    while not games.is_over.all():
        rows = np.flatnonzero(~games.is_over)
        masks = games.action_masks(rows)
        # Close the Generala box only with five equal dice, if any: score it often.
        fives = np.array([len(set(THROWS[throw])) == 1 for throw in games.throw[rows]])
        actions = random_actions(masks, generator)
        can = fives & masks[:, -1]
        actions[can] = masks.shape[1] - 1
        games.step(rows, actions)
    level = games.score[:, 0] == games.score[:, 1]
    generalas = compiled.num_generalas[games.card].astype(int)
    differ = level & (generalas[:, 0] != generalas[:, 1])
    assert differ.sum() >= 5
    assert (games.won[differ].argmax(axis=1) == generalas[differ].argmax(axis=1)).all()
    assert (games.won[differ].sum(axis=1) == 1).all()
    assert games.won[level & ~differ].all()


def starter_by_hand(rule: str, num_players: int, number: int) -> tuple[int, int]:
    """Return the starter and how often the roll-off was repeated, one throw at a time."""

    def roll(repeat: int, seat: int) -> int:
        uniform = dice_uniforms(7, number, STAGE_FIRST_PLAYER, repeat, 1, seat)[0]
        return int(uniform * NUM_ORDERED_THROWS)

    seats, repeat = list(range(num_players)), 0
    while True:
        if rule == "highest_die":
            made = {seat: roll(repeat, seat) % 6 + 1 for seat in seats}
        else:
            made = {seat: sum(THROWS[next_throw_table()[0, roll(repeat, seat)]]) for seat in seats}
        best = min(made.values()) if rule == "lowest_throw" else max(made.values())
        seats = [seat for seat in seats if made[seat] == best]
        if len(seats) == 1:
            return seats[0], repeat
        repeat += 1


@pytest.mark.parametrize("rule", ["highest_die", "highest_throw", "lowest_throw"])
@pytest.mark.parametrize("num_players", [2, 4])
def test_roll_offs_repeat_among_the_tied(rule: str, num_players: int) -> None:
    variant = get_variant("doble").override(first_player=rule)
    games = begin(variant, num_players, 80)
    by_hand = [starter_by_hand(rule, num_players, number) for number in range(80)]
    assert games.first.tolist() == [starter for starter, _ in by_hand]
    assert sum(repeats > 0 for _, repeats in by_hand) >= 3
    for number in range(20):
        dealt = DealtGame(variant, num_players)
        dealt.start((7, number))
        assert dealt.state.first_player == by_hand[number][0]


def test_a_random_starter_is_drawn_evenly_and_a_seat_starts_where_the_rule_says_so() -> None:
    random = begin(get_variant("doble").override(first_player=FirstPlayer.RANDOM), 3, 6_000)
    shares = np.bincount(random.first, minlength=3) / 6_000
    assert np.abs(shares - 1 / 3).max() < 4 * np.sqrt(2 / 9 / 6_000)
    assert not begin(get_variant("ruibal"), 3, 50).first.any()
    for number in range(20):
        dealt = DealtGame(random.compiled.variant, 3)
        dealt.start((7, number))
        assert dealt.state.first_player == random.first[number]


def check_invariants(variant: Variant, num_players: int, num_games: int) -> None:
    """Play random games, checking at every step what must hold in any game."""
    compiled = compile_variant(variant)
    games = begin(variant, num_players, num_games, seed=11)
    generator = np.random.default_rng(num_players)
    turns = np.zeros((num_games, num_players), dtype=int)
    while not games.is_over.all():
        rows = np.flatnonzero(~games.is_over)
        masks = games.action_masks(rows)
        assert masks.any(axis=1).all()
        assert not masks[games.throw_number[rows] == 3, :31].any()
        batch = games.table_batch(rows)
        assert (batch.mover == 0).all()
        score, opened = games.score[rows].copy(), compiled.num_open[games.card[rows]].copy()
        seats, in_playoff = games.current[rows].copy(), games.is_playoff[rows].copy()
        actions = random_actions(masks, generator)
        games.step(rows, actions)
        closes = (actions >= 31) & ~in_playoff
        turns[rows[closes], seats[closes]] += 1
        gained = games.score[rows] - score
        closed = opened.astype(int) - compiled.num_open[games.card[rows]]
        mover = np.zeros_like(gained, dtype=bool)
        mover[np.arange(len(rows)), seats] = True
        assert (gained >= 0).all()
        assert not gained[~mover].any()
        assert not closed[~mover].any()
        assert np.array_equal(closed[mover], closes.astype(int))
    assert (games.won.any(axis=1)).all()
    played_out = ~games.is_instant_win | games.is_playoff
    assert (turns[played_out] == compiled.num_boxes).all()
    assert (compiled.num_open[games.card[played_out]] == 0).all()
    assert (games.won[games.is_instant_win].sum(axis=1) == 1).all()
    decided = ~games.is_instant_win
    best = games.score == games.score.max(axis=1, keepdims=True)
    assert (best | ~games.won)[decided].all()
    assert (games.score <= compiled.perfect_score).all()
    shares = outcome_rewards("win_value", games.score, games.won)
    assert np.allclose(shares.sum(axis=1), 1.0)
    if variant.tie_break is TieBreak.PLAYOFF:
        assert (games.won.sum(axis=1) == 1).all()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("num_players", [2, 5])
def test_random_games_keep_every_invariant(preset: str, num_players: int) -> None:
    check_invariants(get_variant(preset).override(max_players=None), num_players, 60)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("num_players", [2, 3, 4, 5])
def test_a_hundred_thousand_random_games_keep_every_invariant(preset: str, num_players: int) -> None:
    check_invariants(get_variant(preset).override(max_players=None), num_players, 3_200)


def test_the_number_of_players_is_the_variants_business() -> None:
    with pytest.raises(ValueError, match="2 to 4"):
        begin(get_variant("ruibal"), 5, 1)
    with pytest.raises(ValueError, match="first_player"):
        DealtGame(get_variant("ruibal"), 2, first_player=2)


def test_places_and_rewards_of_a_finished_game() -> None:
    scores = np.array([[100, 90, 90, 80], [100, 120, 90, 90], [100, 100, 50, 50]])
    won = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=bool)
    # The second game was won on the spot by a player who was behind.
    assert places(scores, won).tolist() == [[0, 1, 1, 3], [0, 1, 2, 2], [0, 0, 2, 2]]
    assert outcome_rewards("outcome", scores, won).tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0.5, 0.5, 0, 0]]
    assert outcome_rewards("rank", scores, won)[2].tolist() == pytest.approx([5 / 6, 5 / 6, 1 / 6, 1 / 6])
    assert outcome_rewards("points", scores, won).tolist() == scores.tolist()
    two = np.array([[1, 0], [0, 1], [1, 1]], dtype=bool)
    assert outcome_rewards("outcome", scores[:, :2], two).tolist() == [[1, -1], [-1, 1], [0, 0]]
    assert outcome_rewards("win_value", scores[:, :2], two).tolist() == [[1, 0], [0, 1], [0.5, 0.5]]


def test_standings_of_an_engine_game_put_the_winners_first() -> None:
    dealt = DealtGame(get_variant("ruibal"), 3)
    dealt.start((3, 5))
    while not dealt.is_over:
        dealt.apply(int(dealt.action_mask().argmax()))
    place = standings(dealt.state)
    assert set(np.flatnonzero(place == 0)) == set(dealt.state.winners)


@pytest.mark.parametrize("preset", ["ruibal", "clasica", "doble_fija"])
def test_a_table_observation_is_read_back_to_the_position(preset: str) -> None:
    compiled = compile_variant(preset)
    layout = table_layout(compiled, 3)
    games = begin(compiled.variant, 3, 40)
    generator = np.random.default_rng(0)
    seen = 0
    while not games.is_over.all():
        rows = np.flatnonzero(~games.is_over)
        batch = games.table_batch(rows)
        observations = layout.encode(batch)
        assert np.abs(observations).max() <= 1.0
        back = layout.decode(observations)
        for name in batch._fields[1:]:
            written, read = np.asarray(getattr(batch, name)), np.asarray(getattr(back, name))
            if name == "cards":
                written, read = written[:, 1:], read[:, 1:]
            assert np.array_equal(written, read), name
        assert all(np.array_equal(a, b) for a, b in zip(back.turn[:4], batch.turn[:4], strict=True))
        seen += len(rows)
        games.step(rows, random_actions(games.action_masks(rows), generator))
    assert seen > 1_500


def test_the_table_layout_begins_with_the_observation_of_a_player_alone() -> None:
    compiled = compile_variant("doble_fija")
    layout = table_layout(compiled, 2)
    games = begin(compiled.variant, 2, 50)
    batch = games.table_batch(np.arange(50))
    observations = layout.encode(batch)
    assert np.array_equal(observations[:, : layout.solo.size], layout.solo.encode(batch.turn))
    names = [name for name, _, _ in layout.table()]
    assert names[: len(layout.solo.names)] == list(layout.solo.names)
    assert layout.where("results").stop == layout.size
