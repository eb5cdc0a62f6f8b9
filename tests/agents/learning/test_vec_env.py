"""The stable-baselines3 face of the batched environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from agents.learning.vec_env import GeneralaVecEnv
from generala_env.envs.solo import GeneralaEnv
from generala_env.rules import IllegalActionError


def random_actions(masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    return np.asarray((rng.random(masks.shape) * masks).argmax(axis=1))


def test_equals_stable_baselines_own_vectorisation() -> None:
    num_envs = 5
    ours = GeneralaVecEnv(num_envs, "clasica")
    theirs = DummyVecEnv([lambda: Monitor(GeneralaEnv("clasica")) for _ in range(num_envs)])
    rng = np.random.default_rng(0)
    ours.seed(3)
    theirs.seed(3)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    episodes = 0
    for _ in range(150):
        masks = get_action_masks(ours)
        np.testing.assert_array_equal(masks, get_action_masks(theirs))
        np.testing.assert_array_equal(masks, ours.action_masks())
        actions = random_actions(masks, rng)
        left, right = ours.step(actions), theirs.step(actions)
        for part, other in zip(left[:3], right[:3], strict=True):
            np.testing.assert_array_equal(part, other)
            assert part.dtype == other.dtype  # type: ignore[union-attr]
        for index, done in enumerate(left[2]):
            own, other_info = left[3][index], right[3][index]
            assert ("episode" in own) == done
            if done:
                episodes += 1
                np.testing.assert_array_equal(own["terminal_observation"], other_info["terminal_observation"])
                assert own["episode"]["r"] == pytest.approx(other_info["episode"]["r"])
                assert own["episode"]["l"] == other_info["episode"]["l"]
                assert own["final_score"] == other_info["final_score"]
                assert not own["TimeLimit.truncated"]
    assert episodes >= num_envs


def test_masks_are_found_by_sb3_contrib() -> None:
    env = GeneralaVecEnv(3)
    env.reset()
    assert is_masking_supported(env)
    assert get_action_masks(env).shape == (3, env.action_space.n)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(env.env_method("action_masks", indices=1)[0], env.action_masks()[1])
    np.testing.assert_array_equal(env.get_attr("action_masks")[2](), env.action_masks()[2])
    with pytest.raises(IllegalActionError):
        env.step((~env.action_masks()).argmax(axis=1))


def test_reward_scale_leaves_scores_alone() -> None:
    scaled, plain = GeneralaVecEnv(4, reward_scale=0.02), GeneralaVecEnv(4)
    rng = np.random.default_rng(1)
    for env in (scaled, plain):
        env.seed(0)
        env.reset()
    seen = 0
    for _ in range(120):
        actions = random_actions(plain.action_masks(), rng)
        left, right = scaled.step(actions), plain.step(actions)
        np.testing.assert_allclose(left[1], 0.02 * right[1], rtol=1e-6)
        for own, other in zip(left[3], right[3], strict=True):
            if other:
                seen += 1
                assert own["episode"]["r"] == other["episode"]["r"] == other["final_score"]
    assert seen
    with pytest.raises(ValueError, match="reward_scale"):
        GeneralaVecEnv(1, reward_scale=0.0)


def test_infos_belong_to_one_step() -> None:
    env = GeneralaVecEnv(3)
    env.seed(0)
    env.reset()
    rng = np.random.default_rng(2)
    while True:
        _, _, dones, infos = env.step(random_actions(env.action_masks(), rng))
        if dones.any():
            break
    kept = [dict(info) for info in infos]
    assert env.ended == np.flatnonzero(dones).tolist()
    _, _, again, later = env.step(random_actions(env.action_masks(), rng))
    assert (dones & ~again).any()
    assert [bool(info) for info in later] == again.tolist()
    assert [info.keys() for info in infos] == [info.keys() for info in kept]


def test_resumes_exactly() -> None:
    env = GeneralaVecEnv(4, "doble_fija")
    env.seed(5)
    env.reset()
    rng = np.random.default_rng(3)
    for _ in range(20):
        env.step(random_actions(env.action_masks(), rng))
    other = GeneralaVecEnv(4, "doble_fija")
    other.set_state(env.get_state())
    for _ in range(60):
        actions = random_actions(env.action_masks(), rng)
        left, right = env.step(actions), other.step(actions)
        for part, twin in zip(left[:3], right[:3], strict=True):
            np.testing.assert_array_equal(part, twin)
        assert [info.get("final_score") for info in left[3]] == [info.get("final_score") for info in right[3]]


def test_works_in_wrappers_and_evaluation() -> None:
    class First:
        """Takes the first legal action."""

        def predict(
            self, observations: Any, action_masks: NDArray[np.bool_], **_: Any
        ) -> tuple[NDArray[np.int64], None]:
            return action_masks.argmax(axis=1), None

    env = GeneralaVecEnv(2, instant_win="play_on")
    rewards, lengths = evaluate_policy(
        First(),  # type: ignore[arg-type]
        env,
        n_eval_episodes=4,
        return_episode_rewards=True,
        warn=True,
    )
    assert isinstance(lengths, list)
    assert set(lengths) == {30}
    assert all(score == int(score) for score in rewards)  # type: ignore[union-attr]
    wrapped = VecNormalize(GeneralaVecEnv(2), norm_obs=False)
    wrapped.reset()
    assert get_action_masks(wrapped).shape[0] == 2
    wrapped.step(get_action_masks(wrapped).argmax(axis=1))


def test_unknown_names_are_attribute_errors() -> None:
    env = GeneralaVecEnv(2)
    assert env.get_attr("render_mode") == [None, None]
    for call in (env.get_attr, env.env_method):
        with pytest.raises(AttributeError, match="no_such"):
            call("no_such")
    with pytest.raises(AttributeError, match="variant"):
        env.set_attr("variant", "doble")
