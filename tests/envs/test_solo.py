"""The one-player environment: its contracts, its masks, and the engine played beside it."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from numpy.typing import NDArray
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import generala_env  # noqa: F401 - registers the environments
from generala_env.envs.observation import BLOCKS, DEFAULT_BLOCKS, observation_layout
from generala_env.envs.solo import GeneralaEnv, IllegalAction
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules import PRESETS, Game, IllegalActionError, compile_variant, get_variant
from generala_env.rules.actions import action_id, action_of
from generala_env.rules.card import BoxStatus, Card
from generala_env.rules.compiled import TurnBatch
from generala_env.rules.dice import IS_CANONICAL_MASK, KEEP_OF_MASK, KEEPS, THROWS
from generala_env.rules.game import GameState, Phase, Player, Turn

ID = "generala_env/Generala-v0"

SEED_OF_A_WIN_AT_RESET = 1074
"""Five equal dice on the first throw, 6 times in 7,776."""


def random_action(mask: NDArray[Any], rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def put(
    env: GeneralaEnv,
    dice: tuple[int, ...],
    *,
    throw: int = 1,
    kept: tuple[int, ...] = (),
    card: Card | None = None,
) -> None:
    """Lay a position on the table; closed boxes were struck."""
    env.reset(seed=0)
    card = Card.empty(env.variant) if card is None else card
    sheet = tuple(None if card.is_open(box) else 0 for box in range(env.compiled.num_boxes))
    env.set_state(GameState(Phase.TURNS, (Player(card, sheet),), 0, 0, turn=Turn(throw, dice, kept)))


# --- contracts of Gymnasium and stable-baselines3 --------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_gymnasium_accepts_it(name: str) -> None:
    env = gym.make(ID, variant=name, illegal_action="penalty", render_mode="ansi")
    check_env(env.unwrapped)


@pytest.mark.parametrize("illegal_action", ["penalty", "terminate"])
def test_stable_baselines3_accepts_it(illegal_action: Any) -> None:
    sb3_check_env(GeneralaEnv(illegal_action=illegal_action), warn=True)


@pytest.mark.parametrize("name", PRESETS)
def test_two_environments_give_one_episode(name: str) -> None:
    first, second = gym.make(ID, variant=name), gym.make(ID, variant=name)
    rng = np.random.default_rng(0)
    assert data_equivalence(first.reset(seed=5), second.reset(seed=5))
    for _ in range(200):
        action = random_action(first.get_wrapper_attr("action_masks")(), rng)
        left, right = first.step(action), second.step(action)
        assert data_equivalence(left, right)
        if left[2]:
            assert data_equivalence(first.reset(), second.reset())


def test_seed_0_is_a_seed() -> None:
    env = GeneralaEnv()
    observations = [env.reset(seed=0)[1]["dice"] for _ in range(3)]
    assert len(set(observations)) == 1
    assert len({env.reset()[1]["dice"] for _ in range(10)}) > 1


def test_rendering_draws_nothing() -> None:
    plain, shown = GeneralaEnv(), GeneralaEnv(render_mode="ansi")
    rng = np.random.default_rng(1)
    plain.reset(seed=4)
    shown.reset(seed=4)
    for _ in range(30):
        action = random_action(plain.action_masks(), rng)
        assert shown.render()
        left, right = plain.step(action), shown.step(action)
        assert data_equivalence(left, right)
        if left[2]:
            break


@pytest.mark.parametrize("name", ["clasica", "doble_fija"])
def test_pickled_and_copied_environments_go_on_alike(name: str) -> None:
    env = GeneralaEnv(name, observation_blocks=["pays", "dice", "open"])
    env.reset(seed=8)
    rng = np.random.default_rng(2)
    for _ in range(7):
        env.step(random_action(env.action_masks(), rng))
    raw = pickle.dumps(env)
    assert len(raw) < 20_000, "the tables of the variant do not belong in the pickle"
    others = [pickle.loads(raw), copy.deepcopy(env)]
    for _ in range(20):
        if not env.action_masks().any():
            break
        action = random_action(env.action_masks(), rng)
        step = env.step(action)
        for other in others:
            assert data_equivalence(step, other.step(action))


def test_wrappers_keep_the_mask_reachable() -> None:
    env = gym.wrappers.RecordEpisodeStatistics(gym.wrappers.FlattenObservation(gym.make(ID)))
    _, info = env.reset(seed=3)
    masks = env.get_wrapper_attr("action_masks")()
    assert masks.dtype == np.bool_
    assert info["action_mask"].dtype == np.int8
    np.testing.assert_array_equal(masks, info["action_mask"])
    vector = gym.make_vec(ID, num_envs=2, vectorization_mode="sync")
    _, infos = vector.reset(seed=3)
    np.testing.assert_array_equal(infos["action_mask"][0], masks)


def test_without_a_render_mode_it_says_so() -> None:
    env = GeneralaEnv()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


# --- info, rewards, the end -------------------------------------------------------------------------


def test_info_says_what_is_on_the_table() -> None:
    env = GeneralaEnv("ruibal")
    _, info = env.reset(seed=3)
    names = {"action_mask", "dice", "throw", "served", "open_boxes", "score"}
    assert set(info) == names
    assert info["open_boxes"] == tuple(box.value for box in env.variant.boxes)
    assert (info["throw"], info["served"], info["score"]) == (1, True, 0.0)
    dice = info["dice"]
    assert isinstance(dice, tuple)
    assert list(dice) == sorted(dice)
    assert {type(die) for die in dice} == {int}
    _, reward, _, _, info = env.step(31)
    assert reward == float(dice.count(1))
    assert isinstance(reward, float)
    assert "ones" not in info["open_boxes"]
    assert info["score"] == reward
    _, reward, _, _, info = env.step(0)
    assert (reward, info["throw"], info["served"]) == (0.0, 2, False)
    total, terminated = info["score"], False
    while not terminated:
        assert set(info) == names
        _, reward, terminated, truncated, info = env.step(int(env.action_masks().argmax()))
        assert not truncated
        total += reward
    assert set(info) == names | {"instant_win", "final_score"}
    assert info["final_score"] == info["score"] == total
    assert info["open_boxes"] == ()
    assert not info["instant_win"]


def test_a_throw_of_all_five_is_served_again_where_the_rules_say_so() -> None:
    env = GeneralaEnv("clasica", instant_win="play_on")
    env.reset(seed=1)
    assert env.step(0)[4]["served"]
    assert not env.step(int(env.action_masks()[1:].argmax()) + 1)[4]["served"]
    env = GeneralaEnv("ruibal", instant_win="play_on")
    env.reset(seed=1)
    assert not env.step(0)[4]["served"]


@pytest.mark.parametrize("name", PRESETS)
def test_there_is_never_a_fourth_throw(name: str) -> None:
    env = GeneralaEnv(name, instant_win="play_on")
    rng = np.random.default_rng(3)
    for episode in range(4):
        _, info = env.reset(seed=episode)
        turns = throws = 0
        while True:
            assert info["throw"] <= 3
            keeps = np.flatnonzero(info["action_mask"][:31])
            assert bool(len(keeps)) == (info["throw"] < 3)
            # Keep whenever that is possible, in every round.
            action = int(rng.choice(keeps)) if len(keeps) else random_action(info["action_mask"], rng)
            throws += 1
            turns += action >= 31
            _, _, terminated, _, info = env.step(action)
            if terminated:
                break
        assert turns == env.compiled.num_boxes
        assert throws == 3 * turns


def test_the_last_step_has_no_mask_of_the_next_episode() -> None:
    env = GeneralaEnv()
    rng = np.random.default_rng(4)
    for episode in range(5):
        env.reset(seed=episode)
        terminated = False
        info: dict[str, Any] = {}
        while not terminated:
            assert env.action_masks().any()
            *_, terminated, _, info = env.step(random_action(env.action_masks(), rng))
        assert not info["action_mask"].any()
        assert not env.action_masks().any()
        with pytest.raises(gym.error.ResetNeeded):
            env.step(31)
    with pytest.raises(gym.error.ResetNeeded):
        GeneralaEnv().step(0)


def test_masks_are_copies() -> None:
    env = GeneralaEnv()
    _, info = env.reset(seed=0)
    before = env.action_masks()
    info["action_mask"][:] = 1
    env.action_masks()[:] = True
    np.testing.assert_array_equal(env.action_masks(), before)
    observation, *_, later = env.step(int(before.argmax()))
    assert later["action_mask"] is not info["action_mask"]
    observation[:] = 7.0  # belongs to the caller


# --- instant wins ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("instant_win", "paid"), [("perfect", None), (12.5, 12.5), (0, 0.0), (-3, -3.0)])
def test_a_win_on_the_first_throw_of_the_episode(instant_win: Any, paid: float | None) -> None:
    env = GeneralaEnv("ruibal", instant_win=instant_win)
    _, info = env.reset(seed=SEED_OF_A_WIN_AT_RESET)
    assert len(set(info["dice"])) == 1
    assert env.action_masks().sum() == 1
    action = int(env.action_masks().argmax())
    assert action >= 31
    _, reward, terminated, _, info = env.step(action)
    assert terminated
    assert reward == info["final_score"] == (env.compiled.perfect_score if paid is None else paid)
    assert info["instant_win"]


def test_play_on_goes_on() -> None:
    env = GeneralaEnv("ruibal", instant_win="play_on")
    env.reset(seed=SEED_OF_A_WIN_AT_RESET)
    assert env.action_masks().sum() > 10
    _, reward, terminated, _, _ = env.step(31 + 9)
    assert (reward, terminated) == (60.0, False)


@pytest.mark.parametrize(
    ("name", "status", "wins"),
    [
        ("ruibal", BoxStatus.STRUCK, True),
        ("clasica", BoxStatus.OPEN, True),
        ("clasica", BoxStatus.SCORED, True),
        ("clasica", BoxStatus.STRUCK, False),
        ("doble_fija", BoxStatus.OPEN, True),
        ("doble_fija", BoxStatus.SCORED, False),
    ],
)
def test_a_win_later_on_depends_on_the_own_generala(name: str, status: BoxStatus, wins: bool) -> None:
    """Find a throw that would win, and see whether it does with this Generala box."""
    env = GeneralaEnv(name, instant_win="perfect")
    compiled = env.compiled
    mask = (1 << compiled.num_boxes) - 1
    if status is not BoxStatus.OPEN:
        mask &= ~(1 << 9)
    card = Card(mask, generala=status)
    for seed in range(20_000):
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        if seed == SEED_OF_A_WIN_AT_RESET:
            put(env, (1, 2, 3, 4, 5), throw=3, card=card)
            env.np_random = generator
            # Closing ends the turn, and the next one begins with five equal dice.
            _, reward, terminated, _, info = env.step(31)
            assert len(set(info["dice"])) == 1
            assert terminated is wins
            assert (reward > 2) is wins
            if wins:
                assert info["instant_win"]
                assert reward == 1 + compiled.perfect_score
            return


# --- illegal actions -----------------------------------------------------------------------------------


def test_illegal_actions_raise_and_change_nothing() -> None:
    env = GeneralaEnv()
    env.reset(seed=0)
    before = pickle.dumps(env)
    illegal = np.flatnonzero(~env.action_masks()).tolist()
    action: Any
    for action in (*illegal, -1, 41, 10**6, np.int64(99)):
        with pytest.raises(IllegalActionError, match=f"action {action} is not legal"):
            env.step(action)
        assert pickle.dumps(env) == before
    wrong: Any
    for wrong in (1.0, 0.5, "0", None, np.zeros(2, dtype=int)):
        with pytest.raises(IllegalActionError, match="is not an integer"):
            env.step(wrong)
    for action in (np.uint8(31), np.array(32)):
        env.step(action)


def test_penalty_changes_nothing_and_terminate_ends() -> None:
    modes: tuple[IllegalAction, ...] = ("penalty", "terminate")
    for mode in modes:
        env = GeneralaEnv(illegal_action=mode, illegal_reward=-2.5)
        first, info = env.reset(seed=0)
        bad = int((~env.action_masks()).argmax())
        observation, reward, terminated, truncated, later = env.step(bad)
        assert (reward, terminated, truncated) == (-2.5, mode == "terminate", False)
        assert later["illegal_action"] == bad
        assert later["score"] == 0.0
        assert later["dice"] == info["dice"]
        np.testing.assert_array_equal(observation, first)
        assert env.action_masks().any() == (mode == "penalty")


def test_wrong_options_are_told_by_name() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"illegal_action": "ignore"}, "illegal_action: 'ignore'"),
        ({"render_mode": "vr"}, "render_mode: 'vr' is not one of ansi, rgb_array, human"),
        ({"render_size": 319}, "render_size: 319 is not a whole number of pixels from 320"),
        ({"render_theme": "neon"}, "render_theme: 'neon' is not one of light, dark"),
        ({"language": "fr"}, "language: 'fr'"),
        ({"dice": "wooden"}, "dice: 'wooden'"),
        ({"instant_win": "sometimes"}, "instant_win: 'sometimes'"),
        ({"instant_win": float("nan")}, "instant_win: nan"),
        ({"observation_blocks": ["dices"]}, "observation_blocks: 'dices'"),
        ({"observation_blocks": []}, "observation_blocks: at least one"),
        ({"observation_blocks": ["dice", "dice"]}, "observation_blocks: a block is repeated"),
        ({"variant": "rubial"}, "did you mean ruibal"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            GeneralaEnv(**options)


# --- the mask against the dynamics ------------------------------------------------------------------


def positions(name: str) -> list[tuple[int, tuple[int, ...]]]:
    """Throw numbers and dice set aside, of all kinds that matter for the mask."""
    kept = [(), (6,), (2, 2), (1, 5), (3, 3, 3), (2, 4, 6), (5, 5, 5, 5), (1, 2, 3, 4)]
    later = [(throw, dice) for throw in (2, 3) for dice in kept]
    return [(1, ()), *(later if get_variant(name).is_locked else [(2, ()), (3, ())])]


@pytest.mark.parametrize("canonical", [True, False])
@pytest.mark.parametrize("name", ["ruibal", "clasica_obligada", "doble_fija"])
def test_the_mask_is_the_dynamics(name: str, canonical: bool) -> None:
    """Over all 252 throws, what is offered is accepted and does what the engine does; the rest is refused."""
    env = GeneralaEnv(name, canonical_keeps=canonical, instant_win="play_on")
    game = Game(env.variant, 1, solo=True)
    num_actions = env.compiled.num_actions
    card = {
        "ruibal": Card(0b10110, generala=BoxStatus.STRUCK),
        "clasica_obligada": Card(0b1111110000),
        "doble_fija": Card(0b11000010110),
    }[name]
    for throw, kept in positions(name):
        for index, dice in enumerate(THROWS):
            if kept and not all(kept.count(face) <= dice.count(face) for face in kept):
                continue
            put(env, dice, throw=throw, kept=kept, card=card)
            mask = env.action_masks()
            state = env.state
            legal = {action_id(action) for action in game.legal_actions(state, canonical=canonical)}
            assert set(np.flatnonzero(mask)) == legal
            if not canonical:
                assert (mask[:31] >= IS_CANONICAL_MASK[index, :31] * mask[0]).all() or kept
            for action in range(num_actions):
                if mask[action]:
                    env.np_random.bit_generator.state = START
                    _, reward, _, _, info = env.step(action)
                    after = game.apply(state, action_of(action, env.compiled.num_boxes))
                    assert reward == after.scores[0] - state.scores[0]
                    if action < 31:
                        assert env.state.turn.kept == after.turn.kept == KEEPS[KEEP_OF_MASK[index, action]]
                        assert all(info["dice"].count(face) >= after.turn.kept.count(face) for face in dice)
                        assert info["throw"] == throw + 1
                    env.set_state(state)
                elif action % 5 == index % 5:
                    with pytest.raises(IllegalActionError):
                        env.step(action)


START = np.random.PCG64(0).state


# --- the engine beside it ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("seed", [0, 1, 2, SEED_OF_A_WIN_AT_RESET])
def test_plays_as_the_engine_on_the_same_dice(name: str, seed: int) -> None:
    env = GeneralaEnv(name, canonical_keeps=False, instant_win="perfect")
    game = Game(env.variant, 1, solo=True)
    chance = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    rng = np.random.default_rng(seed)
    for episode in range(6):
        _, info = env.reset(seed=seed if episode == 0 else None)
        state = game.initial_state()
        total, terminated = 0.0, False
        while not terminated:
            outcome = game.sample_chance(state, chance.random())
            state = game.apply_chance(state, outcome)
            assert info["dice"] == state.turn.dice
            if state.phase is Phase.OVER:
                break
            assert env.state == state
            assert info["served"] == game.is_served(state)
            legal = {action_id(action) for action in game.legal_actions(state, canonical=False)}
            assert set(np.flatnonzero(info["action_mask"])) == legal
            # Prefer throwing all five again, so that served Generalas happen.
            action = 0 if 0 in legal and rng.random() < 0.5 else int(rng.choice(sorted(legal)))
            state = game.apply(state, action_of(action, env.compiled.num_boxes))
            _, reward, terminated, _, info = env.step(action)
            total += reward
            if terminated and not info["instant_win"]:
                assert game.is_over(state)
                assert total == info["final_score"] == state.scores[0]
        if state.is_instant_win:
            if not terminated:
                # The very first throw: one action, which only ends the episode.
                _, reward, terminated, _, info = env.step(int(env.action_masks().argmax()))
                total += reward
            assert terminated
            assert info["instant_win"]
            assert total == state.scores[0] + env.compiled.perfect_score


@pytest.mark.parametrize("name", ["clasica", "doble_fija"])
def test_play_goes_on_alike_from_a_position_that_was_set(name: str) -> None:
    played, laid = (GeneralaEnv(name, instant_win="perfect") for _ in range(2))
    rng = np.random.default_rng(3)
    for seed in range(4):
        played.reset(seed=seed)
        terminated = False
        while not terminated:
            observation, info = laid.set_state(played.state)
            np.testing.assert_array_equal(played.action_masks(), laid.action_masks())
            laid.np_random.bit_generator.state = played.np_random.bit_generator.state
            action = random_action(played.action_masks(), rng)
            one, two = played.step(action), laid.step(action)
            assert data_equivalence(one, two)
            terminated = one[2]
            observation, info = laid.set_state(played.state)
            assert data_equivalence((one[0], one[4]), (observation, info))
            assert laid.state == played.state


def test_a_served_generala_laid_on_the_table_offers_the_action_that_ends_the_game() -> None:
    env = GeneralaEnv("clasica", instant_win="perfect")
    put(env, (4, 4, 4, 4, 4))
    assert env.action_masks().sum() == 1
    _, reward, terminated, _, info = env.step(int(env.action_masks().argmax()))
    assert terminated
    assert info["instant_win"]
    assert reward == info["final_score"] == env.compiled.perfect_score


POSITION = GameState(
    Phase.TURNS,
    (Player(Card.empty(get_variant("clasica")), (None,) * 10),),
    0,
    0,
    turn=Turn(2, (1, 2, 2, 3, 6), (2, 2)),
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"players": POSITION.players * 2}, "2 players instead of 1"),
        ({"phase": Phase.PLAYOFF}, "playoff"),
        ({"turn": Turn(1, ())}, "not 5 dice"),
        ({"turn": Turn(1, (6, 3, 2, 2, 1))}, "not 5 dice on the table in ascending order"),
        ({"turn": Turn(4, (1, 2, 2, 3, 6))}, "throw 4 is not from 1 to 3"),
        ({"turn": Turn(2, (1, 2, 2, 3, 6), (5,))}, r"\(5,\) cannot have been kept"),
        ({"turn": Turn(1, (1, 2, 2, 3, 6), (2,))}, "cannot have been kept before throw 1"),
        ({"players": (Player(POSITION.card, (5, *[None] * 9)),)}, "does not fit the open boxes"),
        ({"players": (Player(Card(0), (0,) * 10),)}, "the card is complete, and the game is not over"),
        ({"players": (Player(Card((1 << 10) - 1, BoxStatus.STRUCK), (None,) * 10),)}, "is not reachable"),
    ],
)
def test_a_position_that_cannot_be_is_refused_and_changes_nothing(
    changes: dict[str, Any], message: str
) -> None:
    env = GeneralaEnv("clasica")
    env.set_state(POSITION)
    with pytest.raises(ValueError, match=message):
        env.set_state(replace(POSITION, **changes))
    assert replace(env.state, round=POSITION.round) == POSITION


def test_a_million_random_steps_break_nothing() -> None:
    """Every preset: no illegal action, points never negative, totals below the perfect score."""
    rng = np.random.default_rng(7)
    steps_each = 10**6 // len(PRESETS)
    for name in PRESETS:
        env = GeneralaVectorEnv(2_048, name, instant_win="perfect", autoreset_mode="SameStep")
        env.reset(seed=0)
        compiled = env.compiled
        for _ in range(steps_each // 2_048 + 1):
            masks = env.action_masks()
            assert masks.any(axis=1).all()
            actions = (rng.random(masks.shape, dtype=np.float32) * masks).argmax(axis=1)
            observations = env.advance(actions)  # raises on an illegal action
            batch = env.batch
            assert (batch.rewards >= 0).all()
            assert ((observations >= 0) & (observations <= 1)).all()
            assert ((batch.state[:, 2] >= 1) & (batch.state[:, 2] <= 3)).all()
            ended = batch.terminated
            won = batch.final_state[ended, 6] > 0
            totals = batch.final_score[ended]
            assert (totals[~won] <= compiled.perfect_score).all()
            assert (totals[won] >= compiled.perfect_score).all()
            assert (batch.final_length[ended][~won] >= compiled.num_boxes).all()
            assert (batch.final_length[ended] <= 3 * compiled.num_boxes).all()


# --- observations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_observations_can_be_read_back(name: str) -> None:
    compiled = compile_variant(name)
    layout = observation_layout(compiled)
    rng = np.random.default_rng(9)
    size = 5_000
    throw_number = rng.integers(1, 4, size)
    throw = rng.integers(0, 252, size)
    kept = np.zeros(size, dtype=int)
    if compiled.variant.is_locked:
        # Dice that were kept lie on the table: pick them out of the throw.
        kept = np.where(throw_number > 1, KEEP_OF_MASK[throw, rng.integers(0, 31, size)], 0)
    full = np.where(compiled.variant.is_locked, kept == 0, (throw_number == 1) | (rng.random(size) < 0.3))
    served = compiled.is_served[throw_number - 1, full.astype(int)]
    batch = TurnBatch(rng.integers(0, compiled.num_cards, size), throw, throw_number, served, kept)
    observations = layout.encode(batch)
    assert observations.dtype == np.float32
    assert observations.min() >= 0
    assert observations.max() <= 1
    decoded = layout.decode(observations)
    for field, value, expected in zip(TurnBatch._fields, decoded, batch, strict=True):
        if field == "card":
            # Cards of one class may show the same; all that is shown must be the same card's.
            np.testing.assert_array_equal(layout.encode(batch._replace(card=value)), observations)
        else:
            np.testing.assert_array_equal(value, expected, err_msg=field)
    np.testing.assert_array_equal(decoded.card, batch.card)


def test_broken_observations_are_refused() -> None:
    compiled = compile_variant("ruibal")
    layout = observation_layout(compiled)
    env = GeneralaEnv()
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match="shape"):
        layout.decode(observation)
    broken = observation[None].copy()
    broken[0, layout.where("dice")] = 1.0
    with pytest.raises(ValueError, match="not observations of ruibal"):
        layout.decode(broken)
    partial = observation_layout(compiled, ["dice", "throw"])
    with pytest.raises(ValueError, match="without open"):
        partial.decode(np.zeros((1, partial.size), dtype=np.float32))
    with pytest.raises(ValueError, match="no block 'pays'"):
        partial.where("pays")


@pytest.mark.parametrize("name", ["ruibal", "clasica_fija", "doble"])
def test_blocks_can_be_chosen(name: str) -> None:
    whole = GeneralaEnv(name, observation_blocks=list(BLOCKS))
    full, _ = whole.reset(seed=2)
    rng = np.random.default_rng(0)
    for block in whole.layout.names:
        env = GeneralaEnv(name, observation_blocks=[block])
        observation, _ = env.reset(seed=2)
        assert env.observation_space.shape == observation.shape
        np.testing.assert_array_equal(observation, full[whole.layout.where(block)])
    # Their order does not matter, and what the variant has no use for is left out.
    shuffled = GeneralaEnv(name, observation_blocks=rng.permutation(list(BLOCKS)).tolist())
    assert shuffled.layout.names == whole.layout.names
    assert ("locked" in whole.layout.names) == whole.variant.is_locked
    assert GeneralaEnv(name).layout.names == tuple(
        block for block in DEFAULT_BLOCKS if block in whole.layout.names
    )
    assert [row[0] for row in whole.layout.table()] == list(whole.layout.names)


@pytest.mark.parametrize("name", PRESETS)
def test_the_single_path_shows_what_the_layout_encodes(name: str) -> None:
    """The environment gathers one state by itself; the layout encodes batches."""
    env = GeneralaEnv(name, observation_blocks=list(BLOCKS))
    rng = np.random.default_rng(5)
    observation, _ = env.reset(seed=6)
    for _ in range(120):
        if env.state.phase is Phase.OVER:
            observation, _ = env.reset()
        batch = env.compiled.turn_batch(env.state)
        np.testing.assert_array_equal(env.layout.encode(batch)[0], observation)
        np.testing.assert_array_equal(env.compiled.action_masks(batch)[0], env.action_masks())
        observation, *_ = env.step(random_action(env.action_masks(), rng))


def test_make_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(ID)
        env.reset(seed=0)
        env.step(31)


def test_kept_dice_stay_and_the_others_are_thrown() -> None:
    """Kept and rethrown dice are easily swapped."""
    env = GeneralaEnv("ruibal", instant_win="play_on")
    changed = 0
    for seed in range(60):
        _, info = env.reset(seed=seed)
        for action in np.flatnonzero(env.action_masks()[:31]).tolist()[::5]:
            _, info = env.reset(seed=seed)
            dice = info["dice"]
            kept = tuple(die for bit, die in enumerate(dice) if action >> bit & 1)
            _, _, _, _, info = env.step(action)
            assert all(info["dice"].count(face) >= kept.count(face) for face in kept)
            assert env.state.turn.kept == kept
            changed += info["dice"] != dice
    assert changed > 200
