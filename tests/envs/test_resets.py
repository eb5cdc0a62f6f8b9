"""What both batches of environments accept when they are reset, and what they refuse alike."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from generala_env.envs.duel_vector import GeneralaDuelVectorEnv
from generala_env.envs.observation import observation_layout
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules import DEFAULT_VARIANT, compile_variant


class FirstLegal:
    """Takes the first legal action."""

    layout = observation_layout(compile_variant(DEFAULT_VARIANT))

    def act(self, observations: Any, action_masks: Any, *, deterministic: bool = True) -> Any:
        return np.asarray(action_masks).argmax(axis=1)


def batch_of(kind: str) -> GeneralaVectorEnv | GeneralaDuelVectorEnv:
    if kind == "alone":
        return GeneralaVectorEnv(3)
    return GeneralaDuelVectorEnv(3, opponent=FirstLegal())


@pytest.fixture(params=["alone", "duel"])
def envs(request: pytest.FixtureRequest) -> GeneralaVectorEnv | GeneralaDuelVectorEnv:
    return batch_of(request.param)


@pytest.mark.parametrize("mask", [np.ones(2, dtype=bool), np.ones(3), [True], np.zeros(3, dtype=bool)])
def test_a_mask_that_does_not_fit_is_refused(envs: Any, mask: Any) -> None:
    with pytest.raises(ValueError, match=r"options\['reset_mask'\]: .* is not a bool array of shape \(3,\)"):
        envs.reset(seed=0, options={"reset_mask": mask})


@pytest.mark.parametrize("seed", [[1, 2], [1, 2, 3, 4], []])
def test_seeds_that_do_not_fit_are_refused(envs: Any, seed: list[int]) -> None:
    with pytest.raises(ValueError, match=f"seed: {len(seed)} seeds for 3 environments"):
        envs.reset(seed=seed)


@pytest.mark.parametrize("seed", [-1, [0, -7, 2], [0, 1.5, 2]])
def test_a_seed_that_is_no_natural_number_is_refused_before_any_generator_has_changed(
    envs: Any, seed: Any
) -> None:
    first, _ = envs.reset(seed=5)
    with pytest.raises(gym.error.Error, match="is not a non-negative integer"):
        envs.reset(seed=seed)
    second, _ = envs.reset()
    again = batch_of("alone" if isinstance(envs, GeneralaVectorEnv) else "duel")
    np.testing.assert_array_equal(again.reset(seed=5)[0], first)
    np.testing.assert_array_equal(again.reset()[0], second)


def test_a_seed_of_an_environment_that_goes_on_is_not_read(envs: Any) -> None:
    envs.reset(seed=0)
    envs.reset(seed=[1, -1, None], options={"reset_mask": np.array([True, False, True])})


def test_seeds_of_numpy_do_as_well(envs: Any) -> None:
    first, _ = envs.reset(seed=np.int64(7))
    second, _ = envs.reset(seed=list(np.arange(7, 10)))
    np.testing.assert_array_equal(first, second)
