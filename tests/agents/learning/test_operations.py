"""The operations that a run is said to need, against torch's own count of those it does."""

from __future__ import annotations

from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from agents.config.model import RunConfig
from agents.learning.learners import make_learner
from agents.learning.operations import operations_per_step
from agents.runs.learner_state import weights_of
from agents.saving.agent_files import weights_hash
from tests.agents.card_configs import config_of


def observed(name: str, **algorithm: Any) -> RunConfig:
    """Return the config of a learner whose networks read observations."""
    values: dict[str, Any] = {
        "variant": "clasica_obligada",
        "env": {"num_envs": 16},
        "algorithm": {"name": name, **algorithm},
        "policy": {"net_arch": [32, 24]},
        "total_timesteps": 2048,
    }
    return RunConfig(**values)


CONFIGS = {
    "ppo": observed("ppo", n_steps=16, batch_size=64, n_epochs=3),
    "ppo, one epoch": observed("ppo", n_steps=16, batch_size=128, n_epochs=1),
    "ppo, luck taken out": observed("ppo", n_steps=16, batch_size=64, n_epochs=3, throw_lambda=0.2),
    "dqn": observed("dqn", batch_size=32, learning_starts=16, buffer_size=2048, train_freq=4),
    "card ppo": config_of("ppo", variant="clasica_obligada", total_timesteps=2048),
    "card dqn": config_of("dqn", variant="clasica_obligada", total_timesteps=2048),
    "card tabular": config_of("tabular", variant="clasica_obligada", total_timesteps=2048),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_operations_are_those_that_torch_counts(config: RunConfig) -> None:
    model = make_learner(config)
    with FlopCounterMode(display=False) as counter:
        model.learn(config.total_timesteps)
    counted = counter.get_total_flops() / model.num_timesteps
    # A run does not begin with learning, and not every throw teaches the critic.
    assert operations_per_step(model) == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_counting_changes_nothing(config: RunConfig) -> None:
    hashes = []
    for is_counted in (True, False):
        model = make_learner(config)
        model.learn(config.total_timesteps // 2)
        if is_counted:
            operations_per_step(model)
        model.learn(config.total_timesteps // 2, reset_num_timesteps=False)
        hashes.append(weights_hash(weights_of(model)))
    assert hashes[0] == hashes[1]
