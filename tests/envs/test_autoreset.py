"""The habits of loops over batches: any spelling of the mode, and never a row without an action."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from torch.distributions import Categorical

import agents  # noqa: F401 - so that opponents have names
from generala_env.envs.duel_vector import GeneralaDuelVectorEnv
from generala_env.envs.vector import GeneralaVectorEnv

BATCHES = [GeneralaVectorEnv, GeneralaDuelVectorEnv]


@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_every_spelling_of_gymnasium_is_accepted(kind: Any, mode: AutoresetMode) -> None:
    for spelling in (mode, mode.value, mode.name, mode.name.lower()):
        assert kind(2, autoreset_mode=spelling).autoreset_mode is mode
    with pytest.raises(ValueError, match=r"autoreset_mode: 'NextStop'.*NextStep or NEXT_STEP"):
        kind(2, autoreset_mode="NextStop")


@pytest.mark.parametrize("name", ["generala_env/Generala-v0", "generala_env/GeneralaDuel-v0"])
def test_a_plain_loop_with_a_masked_categorical_runs_in_gymnasiums_default_mode(name: str) -> None:
    envs: Any = gym.make_vec(name, num_envs=4, variant="clasica_obligada")
    torch.manual_seed(0)
    _, info = envs.reset(seed=0)
    num_ended, were_over = 0, np.zeros(4, dtype=bool)
    for _ in range(150):
        mask = torch.as_tensor(info["action_mask"], dtype=torch.bool)
        assert np.array_equal(mask.numpy(), envs.unwrapped.action_masks())
        # Where an episode ended the action is ignored, and any may be drawn.
        assert mask.numpy()[were_over].all()
        logits = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        actions = Categorical(logits=logits).sample().numpy()  # type: ignore[no-untyped-call]
        _, rewards, terminated, _, info = envs.step(actions)
        assert (rewards[were_over] == 0).all()
        num_ended += int(terminated.sum())
        were_over = terminated
    assert num_ended >= 8


def test_what_is_put_back_offers_the_same() -> None:
    envs = GeneralaVectorEnv(4, "clasica_obligada")
    _, info = envs.reset(seed=0)
    while True:
        _, _, terminated, _, info = envs.step(info["action_mask"].argmax(axis=1))
        if terminated.any():
            break
    state = {name: np.array(array) for name, array in envs.get_state().items()}
    other = GeneralaVectorEnv(4, "clasica_obligada")
    other.set_state(state)
    assert np.array_equal(other.action_masks(), info["action_mask"] != 0)


def test_a_batch_that_is_not_reset_by_itself_offers_nothing_at_the_end() -> None:
    envs = GeneralaVectorEnv(2, "clasica_obligada", autoreset_mode="Disabled")
    _, info = envs.reset(seed=0)
    terminated = np.zeros(2, dtype=bool)
    while not terminated.any():
        _, _, terminated, _, info = envs.step(info["action_mask"].argmax(axis=1))
    assert not info["action_mask"][terminated].any()
