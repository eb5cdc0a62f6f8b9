"""Configs of card learners that train for a moment."""

from __future__ import annotations

from typing import Any

from agents.config.model import RunConfig


def config_of(name: str, **changes: Any) -> RunConfig:
    algorithm: dict[str, Any] = {"name": name}
    if name == "ppo":
        algorithm |= {"n_steps": 8, "batch_size": 256, "n_epochs": 1}
    elif name == "dqn":
        algorithm |= {"train_freq": 8, "exploration_fraction": 1.0}
    values = {
        "env": {"num_envs": 64},
        "algorithm": {**algorithm, "random_start": 0.1},
        "policy": {"kind": "card", "net_arch": [16]},
        "total_timesteps": 20 * 512,
        "evaluation": {"mode": "exact", "every": 10 * 512, "max_share_of_run": 1},
        "checkpoints": {"every": 5 * 512, "keep_last": 9},
    }
    return RunConfig(**{**values, **changes})
