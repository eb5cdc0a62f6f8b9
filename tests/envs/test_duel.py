"""The duel for one learner: opponents inside ``step``, single and batched, the same game."""

import pickle
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from agents.registry import make_agent
from generala_env.envs.dealing import DealtGame
from generala_env.envs.duel import GeneralaDuelEnv
from generala_env.envs.duel_vector import GeneralaDuelVectorEnv
from generala_env.envs.observation import ObservationLayout, observation_layout
from generala_env.envs.opponents import OpponentPool
from generala_env.envs.table_observation import TableLayout, table_layout
from generala_env.rules import get_variant
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import IllegalActionError
from generala_env.rules.variants import PRESETS


class LastLegal:
    """Takes the highest legal action: never keeps, so its turns are single decisions."""

    def __init__(self, variant: str, *, sees_table: bool = False) -> None:
        compiled = compile_variant(variant)
        self.layout: ObservationLayout | TableLayout = (
            table_layout(compiled, 2) if sees_table else observation_layout(compiled)
        )
        self.asked: list[tuple[int, ...]] = []

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        self.asked.append(observations.shape)
        return np.asarray(action_masks.shape[1] - 1 - action_masks[:, ::-1].argmax(axis=1))


def play(
    env: gym.Env[Any, Any], generator: np.random.Generator, info: dict[str, Any]
) -> tuple[float, dict[str, Any]]:
    total, terminated = 0.0, False
    while not terminated:
        action = generator.choice(np.flatnonzero(info["action_mask"]))
        _, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        total += float(reward)
    return total, info


def test_gymnasiums_checker_passes() -> None:
    env = gym.make("generala_env/GeneralaDuel-v0", opponent=LastLegal("ruibal"), illegal_action="penalty")
    check_env(env.unwrapped, skip_render_check=True)


def test_the_opponent_plays_inside_step_and_the_reward_is_the_outcome() -> None:
    opponent = LastLegal("ruibal")
    env = gym.make("generala_env/GeneralaDuel-v0", opponent=opponent)
    outcomes = set()
    for seed in range(60):
        _, info = env.reset(seed=seed)
        total, info = play(env, np.random.default_rng(seed), info)
        own, other = info["scores"]
        if not info["instant_win"]:
            assert total == np.sign(own - other)
        assert total == 2 * info["win_value"] - 1
        assert not info["action_mask"].any()
        outcomes.add((info["seat"], total))
    assert len(outcomes) >= 4
    assert all(shape[1] == opponent.layout.size for shape in opponent.asked)


def test_an_opponent_may_read_the_whole_table() -> None:
    opponent = LastLegal("clasica", sees_table=True)
    env = GeneralaDuelEnv("clasica", opponent=opponent)
    _, info = env.reset(seed=0)
    play(env, np.random.default_rng(0), info)
    assert {shape[1] for shape in opponent.asked} == {opponent.layout.size}


@pytest.mark.parametrize("variant", PRESETS)
def test_single_and_batched_duels_are_the_same_game(variant: str) -> None:
    pool: Any = [(LastLegal(variant), 1.0), (LastLegal(variant, sees_table=True), 2.0)]
    num_envs = 12
    batch = GeneralaDuelVectorEnv(num_envs, variant, opponent=pool)
    observations, info = batch.reset(seed=50)
    single = [GeneralaDuelEnv(variant, opponent=pool) for _ in range(num_envs)]
    infos: list[dict[str, Any]] = []
    for index, env in enumerate(single):
        observation, own = env.reset(seed=50 + index)
        assert np.array_equal(observation, observations[index])
        infos.append(own)
    over = np.zeros(num_envs, dtype=bool)
    generator = np.random.default_rng(0)
    ended = 0
    for _ in range(60):
        masks = batch.action_masks()
        actions = np.where(masks, generator.random(masks.shape), -1.0).argmax(axis=1)
        observations, rewards, terminated, _, info = batch.step(actions)
        for index, env in enumerate(single):
            reward, ends = 0.0, False
            if over[index]:
                observation, infos[index] = env.reset()
            else:
                observation, reward, ends, _, infos[index] = env.step(actions[index])
            assert np.array_equal(observation, observations[index])
            # At an end the batch is about to begin another game, whatever the action.
            offered = np.ones_like(infos[index]["action_mask"]) if ends else infos[index]["action_mask"]
            assert np.array_equal(offered, info["action_mask"][index])
            assert (reward, ends) == (rewards[index], terminated[index])
            assert infos[index]["seat"] == info["seat"][index]
            assert infos[index]["opponent"] == info["opponent"][index]
            if ends:
                assert infos[index]["win_value"] == info["win_value"][index]
                ended += 1
        over = terminated
    assert ended >= num_envs


def test_the_duel_is_the_engines_game_under_its_dice_key() -> None:
    variant = get_variant("clasica")
    opponent = LastLegal("clasica")
    env = GeneralaDuelEnv(variant, opponent=opponent, seat=1)
    for number in range(8):
        _, info = env.reset(options={"dice_key": (9, number)})
        generator = np.random.default_rng(number)
        play(env, generator, info)
        dealt = DealtGame(variant, 2)
        dealt.start((9, number))
        generator = np.random.default_rng(number)
        while not dealt.is_over:
            legal = np.flatnonzero(dealt.action_mask())
            learner = dealt.state.current_player == 1
            dealt.apply(int(generator.choice(legal) if learner else legal[-1]))
        assert env.state == dealt.state


def test_seats_and_opponents_are_drawn_with_their_probabilities() -> None:
    env = GeneralaDuelEnv("ruibal", opponent=[(LastLegal("ruibal"), 1.0), (LastLegal("ruibal"), 3.0)])
    infos = [env.reset(seed=seed)[1] for seed in range(400)]
    assert abs(np.mean([info["seat"] for info in infos]) - 0.5) < 4 * 0.5 / 20
    assert abs(np.mean([info["opponent"] for info in infos]) - 0.75) < 4 * 0.44 / 20
    fixed = GeneralaDuelEnv("ruibal", opponent=LastLegal("ruibal"), seat=1)
    assert {fixed.reset(seed=seed)[1]["seat"] for seed in range(20)} == {1}


@pytest.mark.parametrize(("reward", "values"), [("win_value", {0.0, 0.5, 1.0}), ("rank", {0.0, 0.5, 1.0})])
def test_other_rewards(reward: str, values: set[float]) -> None:
    env = GeneralaDuelEnv("ruibal", opponent=LastLegal("ruibal"), reward=reward)
    for seed in range(10):
        _, info = env.reset(seed=seed)
        total, info = play(env, np.random.default_rng(0), info)
        assert total in values
        assert total == info["win_value"]


def game_won_before_the_first_decision() -> tuple[int, int]:
    """Return a game number of key 1 that the starter's first throw wins, and the starter."""
    for number in range(20_000):
        dealt = DealtGame(get_variant("ruibal"), 2)
        dealt.start((1, number))
        if dealt.is_over:
            return number, dealt.state.current_player
    raise AssertionError("no such game")


@pytest.mark.parametrize("learner_wins", [True, False])
def test_a_game_won_before_the_learner_can_act_ends_with_a_single_action(learner_wins: bool) -> None:
    number, winner = game_won_before_the_first_decision()
    env = GeneralaDuelEnv("ruibal", opponent=LastLegal("ruibal"), seat=winner if learner_wins else 1 - winner)
    _, info = env.reset(options={"dice_key": (1, number)})
    assert info["action_mask"].sum() == 1
    _, reward, terminated, _, info = env.step(int(info["action_mask"].argmax()))
    assert terminated
    assert info["instant_win"]
    assert reward == (1.0 if learner_wins else -1.0)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("how", ["raise", "penalty", "terminate"])
def test_illegal_actions(how: Any) -> None:
    env = GeneralaDuelEnv("ruibal", opponent=LastLegal("ruibal"), illegal_action=how, illegal_reward=-3.0)
    _, info = env.reset(seed=0)
    before = env.state
    bad = int((info["action_mask"] == 0).argmax())
    if how == "raise":
        with pytest.raises(IllegalActionError):
            env.step(bad)
    else:
        _, reward, terminated, _, info = env.step(bad)
        assert (reward, terminated) == (-3.0, how == "terminate")
        assert info["illegal_action"] == bad
    assert env.state is before


@pytest.mark.parametrize("mode", AutoresetMode)
def test_autoreset_modes(mode: AutoresetMode) -> None:
    env = GeneralaDuelVectorEnv(8, "ruibal", opponent=LastLegal("ruibal"), autoreset_mode=mode)
    _, info = env.reset(seed=0)
    ends = 0
    for _ in range(40):
        masks = env.action_masks()
        was_over = ~masks.any(axis=1)
        if mode is AutoresetMode.DISABLED and was_over.any():
            with pytest.raises(gym.error.ResetNeeded):
                env.step(np.zeros(8, dtype=int))
            _, info = env.reset(options={"reset_mask": was_over})
            masks = env.action_masks()
        actions = masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)
        observations, rewards, terminated, truncated, info = env.step(actions)
        assert env.observation_space.contains(observations)
        assert not truncated.any()
        assert not rewards[~terminated].any()
        ends += int(terminated.sum())
        if mode is AutoresetMode.SAME_STEP and terminated.any():
            assert info["action_mask"].any(axis=1).all()
            final = info["final_info"]
            assert np.array_equal(final["_win_value"], terminated)
            assert np.array_equal(2 * final["win_value"][terminated] - 1, rewards[terminated])
            assert not np.array_equal(info["final_obs"][terminated], observations[terminated])
        if mode is AutoresetMode.NEXT_STEP:
            assert info["action_mask"][terminated].all()
    assert ends >= 16


def test_make_vec_gives_the_batched_form() -> None:
    env = gym.make_vec("generala_env/GeneralaDuel-v0", num_envs=3, opponent=LastLegal("ruibal"))
    assert isinstance(env.unwrapped, GeneralaDuelVectorEnv)
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match="environment 0"):
        env.step(np.full(3, 40 + 1))


def test_opponents_by_name_come_from_the_agents_package() -> None:
    code = (
        "import gymnasium as gym, generala_env\n"
        "try:\n    gym.make('generala_env/GeneralaDuel-v0', opponent='tips')\n"
        "except ValueError as error:\n    print(error)\n"
        "env = gym.make('agents:generala_env/GeneralaDuel-v0', opponent={'tips': 1, 'turn_greedy': 2})\n"
        "print(len(env.unwrapped.pool.opponents))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert "import it first" in first
    assert second == "2"


def test_importing_the_package_is_light() -> None:
    heavy = {"numba", "pettingzoo", "torch", "agents"}
    code = f"import sys, generala_env; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bad_opponents_are_named() -> None:
    compiled = compile_variant("ruibal")
    with pytest.raises(ValueError, match=r"doble \(.*ruibal \("):
        OpponentPool(LastLegal("doble"), compiled)
    with pytest.raises(ValueError, match="neither a name nor an agent"):
        OpponentPool(object(), compiled)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weights"):
        OpponentPool([(LastLegal("ruibal"), -1.0)], compiled)
    opponent = LastLegal("ruibal")
    opponent.layout = table_layout(compiled, 3)
    with pytest.raises(ValueError, match="tables of 3"):
        OpponentPool(opponent, compiled)
    with pytest.raises(ValueError, match="seat"):
        GeneralaDuelEnv("ruibal", opponent=opponent, seat=2)


def test_a_trained_or_exact_agent_plays_as_it_is() -> None:
    env = GeneralaDuelEnv("ruibal", opponent=make_agent("optimal", "ruibal"), seat=0)
    losses = 0
    for seed in range(15):
        _, info = env.reset(seed=seed)
        total, _ = play(env, np.random.default_rng(seed), info)
        losses += total == -1
    assert losses >= 13


def test_a_duel_is_pickled() -> None:
    env = pickle.loads(pickle.dumps(GeneralaDuelEnv("doble", opponent=LastLegal("doble"))))
    env.reset(seed=0)
    assert env.state.turn.dice


def _episode(env: Any, seed: int | None) -> list[Any]:
    observation, info = env.reset(seed=seed)
    seen, over = [observation.tobytes()], False
    while not over:
        action = int(np.flatnonzero(info["action_mask"])[-1])
        observation, reward, over, _, info = env.step(action)
        seen.append((observation.tobytes(), reward))
    return seen


@pytest.mark.parametrize("opponent", ["random", {"random": 1.0, "tips": 1.0}])
def test_one_seed_decides_opponents_that_sample_too(opponent: Any) -> None:
    def make() -> GeneralaDuelEnv:
        return GeneralaDuelEnv("clasica_obligada", opponent=opponent)

    env = make()
    first, second = _episode(env, 3), _episode(env, None)
    assert [_episode(env, 3), _episode(env, None)] == [first, second]
    other = make()
    assert [_episode(other, 3), _episode(other, None)] == [first, second]
    assert _episode(env, 4) != first


@pytest.mark.parametrize("opponent", ["random", {"random": 1.0, "tips": 1.0}])
def test_one_seed_decides_a_batch_of_duels_too(opponent: Any) -> None:
    def played(batch: GeneralaDuelVectorEnv, seed: int) -> list[Any]:
        observations, info = batch.reset(seed=seed)
        seen: list[Any] = [observations.tobytes()]
        for _ in range(80):
            actions = info["action_mask"].argmax(axis=1)
            observations, rewards, ended, _, info = batch.step(actions)
            seen.append((observations.tobytes(), rewards.tobytes(), ended.tobytes()))
        return seen

    batch = GeneralaDuelVectorEnv(8, "clasica_obligada", opponent=opponent)
    first = played(batch, 5)
    assert played(batch, 5) == first
    assert played(GeneralaDuelVectorEnv(8, "clasica_obligada", opponent=opponent), 5) == first
    assert played(batch, 6) != first
