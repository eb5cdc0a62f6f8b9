"""The PettingZoo table: its API, its rewards, its masks, and the engine's game behind it."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from generala_env import table_v0
from generala_env.envs.dealing import DealtGame
from generala_env.envs.observation import observation_layout
from generala_env.rules import get_variant
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import IllegalActionError
from generala_env.rules.variants import PRESETS

# PettingZoo's own api_test warns of its own convention, a dict of observation and mask, in every
# environment that is not on its list of built-in names; and a finished player has an all-zero mask.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array"),
    pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be"),
    pytest.mark.filterwarnings("ignore:Action mask numpy array is all zeros"),
]

TABLES = [(2, "ruibal"), (3, "clasica"), (4, "doble_fija"), (5, "doble_obligada")]


def play(env: Any, generator: np.random.Generator) -> tuple[dict[str, float], list[int]]:
    """Play a game at random; return what ``last`` paid each player in all, and the actions."""
    totals = dict.fromkeys(env.possible_agents, 0.0)
    actions = []
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        totals[agent] += reward
        assert not truncated
        if terminated:
            assert not observation["action_mask"].any()
            env.step(None)
            continue
        actions.append(int(generator.choice(np.flatnonzero(observation["action_mask"]))))
        env.step(actions[-1])
    return totals, actions


@pytest.mark.parametrize(("num_players", "variant"), TABLES)
def test_pettingzoo_api_and_seeds(num_players: int, variant: str) -> None:
    api_test(table_v0.env(num_players=num_players, variant=variant), num_cycles=200)
    seed_test(lambda: table_v0.env(num_players=num_players, variant=variant), num_cycles=100)


def test_pettingzoo_rendering(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generala_env.envs.showing.RENDER_FPS", 1000)
    render_test(lambda render_mode: table_v0.env(num_players=3, variant="doble", render_mode=render_mode))
    assert not capsys.readouterr().out


def test_pettingzoo_parallel_forms_there_and_back() -> None:
    parallel_api_test(table_v0.parallel_env(num_players=3, variant="clasica"), num_cycles=150)
    back = parallel_to_aec(table_v0.parallel_env(num_players=2, variant="ruibal"))
    back.reset(seed=3)
    straight = table_v0.env(num_players=2, variant="ruibal")
    straight.reset(seed=3)
    for _ in range(25):
        mover = straight.agent_selection
        mask = straight.observe(mover)["action_mask"]
        action = int(mask.argmax())
        straight.step(action)
        for agent in list(back.agents):
            assert back.agent_selection == agent
            # Those who are not to move hand in any action; it is not looked at.
            back.step(action if agent == mover else 0)
        for agent in straight.agents:
            here, there = straight.observe(agent), back.observe(agent)
            assert np.array_equal(here["observation"], there["observation"])
            assert np.array_equal(here["action_mask"], there["action_mask"])


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="this PettingZoo has no registry")
def test_the_table_is_in_pettingzoos_registry() -> None:
    env = pettingzoo.make("aec", "generala_env/table-v0", num_players=3, variant="doble")
    assert env.possible_agents == ["player_0", "player_1", "player_2"]
    parallel = pettingzoo.make("parallel", "generala_env/table-v0")
    assert parallel.possible_agents == ["player_0", "player_1"]


@pytest.mark.parametrize("variant", PRESETS)
def test_the_table_plays_the_engines_game(variant: str) -> None:
    env = table_v0.raw_env(num_players=3, variant=variant)
    for number in range(2):
        env.reset(options={"dice_key": (5, number)})
        totals, actions = play(env, np.random.default_rng(number))
        dealt = DealtGame(get_variant(variant), 3)
        dealt.start((5, number))
        for action in actions:
            assert not dealt.is_over
            dealt.apply(action)
        assert dealt.is_over
        assert env.state_of_game == dealt.state
        assert sum(totals.values()) == pytest.approx(1.0)
        assert {int(agent[-1]) for agent, paid in totals.items() if paid > 0} == set(dealt.state.winners)


@pytest.mark.parametrize(
    ("reward", "num_players", "total"),
    [("outcome", 2, 0.0), ("win_value", 2, 1.0), ("outcome", 4, 1.0), ("rank", 4, 2.0), ("points", 3, None)],
)
def test_rewards_of_all_seats_add_up(reward: str, num_players: int, total: float | None) -> None:
    env = table_v0.env(num_players=num_players, variant="ruibal", reward=reward)
    generator = np.random.default_rng(2)
    for seed in range(6):
        env.reset(seed=seed)
        totals, _ = play(env, generator)
        expected = sum(env.unwrapped.state_of_game.scores) if total is None else total
        assert sum(totals.values()) == pytest.approx(expected)


def won_at_once(after: int) -> tuple[Any, int]:
    """Return a table whose game a served Generala ends, and the game's number under key 1.

    It ends after ``after`` or more actions, or, where that is 0, with the very first throw.
    """
    variant = get_variant("ruibal")
    for number in range(10_000):
        dealt = DealtGame(variant, 2)
        dealt.start((1, number))
        moves = 0
        while after and not dealt.is_over:
            dealt.apply(int(dealt.action_mask().nonzero()[0][-1]))
            moves += 1
        if dealt.state.is_instant_win and moves >= after:
            return table_v0.env(num_players=2, variant=variant), number
    raise AssertionError("no such game")


def test_a_served_generala_ends_the_table_at_once() -> None:
    env, number = won_at_once(2)
    env.reset(options={"dice_key": (1, number)})
    last_to_close = ""
    while not any(env.terminations.values()):
        last_to_close = env.agent_selection
        env.step(int(env.observe(last_to_close)["action_mask"].nonzero()[0][-1]))
    assert all(env.terminations.values())
    winner = next(agent for agent, reward in env.rewards.items() if reward == 1.0)
    assert winner != last_to_close
    assert env.infos[winner]["instant_win"]
    assert env.infos[winner]["decided_by"] == "instant_win"
    assert sorted(env.rewards.values()) == [-1.0, 1.0]


def test_a_first_throw_that_wins_leaves_one_action_which_ends_the_game() -> None:
    env, number = won_at_once(0)
    env.reset(options={"dice_key": (1, number)})
    observation, reward, terminated, _, _ = env.last()
    assert (reward, terminated) == (0.0, False)
    assert observation["action_mask"].sum() == 1
    totals, actions = play(env, np.random.default_rng(0))
    assert len(actions) == 1
    assert sorted(totals.values()) == [-1.0, 1.0]


def test_only_the_player_to_move_has_a_mask_and_sees_what_boxes_pay() -> None:
    env = table_v0.raw_env(num_players=3, variant="clasica")
    env.reset(seed=1)
    layout = env.layout
    for _ in range(20):
        for agent in env.agents:
            seen = env.observe(agent)
            is_mover = agent == env.agent_selection
            assert seen["action_mask"].any() == is_mover
            assert is_mover or not seen["observation"][layout.where("pays")].any()
            assert seen["observation"][layout.where("mover")].argmax() == (
                (int(env.agent_selection[-1]) - int(agent[-1])) % 3
            )
        env.step(int(env.action_masks().nonzero()[0][-1]))


def test_the_first_part_of_an_observation_is_that_of_the_game_played_alone() -> None:
    env = table_v0.raw_env(num_players=2, variant="doble_fija")
    env.reset(seed=0)
    solo = observation_layout(compile_variant("doble_fija"))
    for _ in range(10):
        seen = env.observe(env.agent_selection)["observation"][: solo.size]
        state = env.state_of_game
        assert np.array_equal(seen, solo.encode(env.compiled.turn_batch(state))[0])
        env.step(int(env.action_masks().argmax()))


def test_an_illegal_action_is_refused_and_changes_nothing() -> None:
    env = table_v0.env(num_players=2, variant="ruibal")
    env.reset(seed=0)
    before = env.unwrapped.state_of_game
    for action in (-1, 31 + 10, None, int((env.observe(env.agent_selection)["action_mask"] == 0).argmax())):
        with pytest.raises(IllegalActionError, match="not legal"):
            env.step(action)
    assert env.unwrapped.state_of_game is before


def test_a_fixed_seat_starts() -> None:
    env = table_v0.env(num_players=4, variant="clasica", first_player=2)
    for seed in range(5):
        env.reset(seed=seed)
        assert env.agent_selection == "player_2"


def test_seeds_repeat_games_and_going_on_does_not() -> None:
    env = table_v0.env(num_players=2, variant="doble")
    dice = []
    for seed in (4, None, 4, None, 5):
        env.reset(seed=seed)
        dice.append((env.agent_selection, env.infos["player_0"]["dice"]))
    assert dice[:2] == dice[2:4]
    assert dice[0] != dice[1]
    assert dice[4] != dice[0]


def test_a_table_is_pickled_with_its_options() -> None:
    env = pickle.loads(pickle.dumps(table_v0.raw_env(num_players=3, variant="doble", reward="rank")))
    assert (len(env.possible_agents), env.variant.name, env.reward) == (3, "doble", "rank")
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    twin.reset(seed=0)
    assert env.state_of_game == twin.state_of_game


@pytest.mark.parametrize("make", [table_v0.raw_env, table_v0.env])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_of_a_table_goes_on_with_the_game(make: Any, copied: Any) -> None:
    env = make(num_players=2, variant="doble")
    env.reset(seed=3)
    for _ in range(9):
        env.step(int(env.unwrapped.action_masks().argmax()))
    twin = copied(env)
    assert twin.agents == env.agents
    for _ in range(30):
        action = int(env.unwrapped.action_masks().argmax())
        for one in (env, twin):
            one.step(action)
        assert twin.unwrapped.state_of_game == env.unwrapped.state_of_game
        assert twin.infos == env.infos
    env.reset()
    twin.reset()
    assert twin.unwrapped.state_of_game == env.unwrapped.state_of_game


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ({"num_players": 1}, "num_players"),
        ({"num_players": 5}, "2 to 4"),
        ({"first_player": 2}, "first_player"),
        ({"reward": "glory"}, "glory"),
        ({"render_mode": "vr"}, "render_mode"),
        ({"variant": "ruibla"}, "ruibal"),
    ],
)
def test_bad_options_are_named(option: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        table_v0.env(**option)
    env = table_v0.env()
    with warnings.catch_warnings(), pytest.raises(ValueError, match="dice_key"):
        env.reset(options={"dice_key": "seven"})
