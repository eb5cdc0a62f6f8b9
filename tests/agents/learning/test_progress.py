from __future__ import annotations

from typing import Any

import pytest

from agents.config.model import RunConfig
from agents.config.plan import FEW_UPDATES, plan_of
from agents.learning.learners import make_learner

CONFIGS: dict[str, dict[str, Any]] = {
    "ppo": {
        "env": {"num_envs": 16},
        "algorithm": {
            "name": "ppo",
            "n_steps": 8,
            "batch_size": 64,
            "n_epochs": 1,
            "learning_rate": {"start": 1e-3, "end": 0},
            "ent_coef": {"start": 0.3, "end": 0},
        },
    },
    "dqn": {
        "env": {"num_envs": 16},
        "algorithm": {
            "name": "dqn",
            "train_freq": 4,
            "batch_size": 16,
            "buffer_size": 1_000,
            "learning_starts": 100,
            "learning_rate": {"start": 1e-3, "end": 0},
        },
    },
}


def config_of(name: str, total_timesteps: int) -> RunConfig:
    values: dict[str, Any] = {
        **CONFIGS[name],
        "policy": {"net_arch": [8]},
        "total_timesteps": total_timesteps,
        "evaluation": {"every": 200},
        "checkpoints": {"every": 1_000},
    }
    return RunConfig(**values)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("total_timesteps", [101, 130, 700, 1_280])
def test_schedules_stay_within_their_ends_and_the_plan_is_what_happens(
    name: str, total_timesteps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(name, total_timesteps)
    model: Any = make_learner(config)
    rates: list[float] = []
    entropies: list[float] = []
    train = model.train

    def watched(*arguments: Any, **named: Any) -> None:
        train(*arguments, **named)
        rates.append(model.policy.optimizer.param_groups[0]["lr"])
        if name == "ppo":
            entropies.append(model.entropy_schedule(model._current_progress_remaining))

    monkeypatch.setattr(model, "train", watched)
    model.learn(total_timesteps)
    plan = plan_of(config)
    assert model.num_timesteps == plan.num_timesteps >= total_timesteps
    assert len(rates) == plan.num_updates
    assert all(0.0 <= rate <= 1e-3 for rate in rates)
    assert all(0.0 <= weight <= 0.3 for weight in entropies)
    assert model._current_progress_remaining == 0.0
    if len(rates) > 1:
        assert rates[0] > rates[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("every", [1, 64, 100, 128, 300, 5_000])
@pytest.mark.parametrize("total_timesteps", [1, 128, 500, 1_280])
def test_evaluations_are_counted_as_the_loop_counts_them(every: int, total_timesteps: int) -> None:
    base = config_of("ppo", total_timesteps)
    evaluation = base.evaluation.model_copy(update={"every": every})
    plan = plan_of(base.model_copy(update={"evaluation": evaluation}))
    due, count = every, 0
    for now in range(128, plan.num_timesteps + 1, 128):
        if now >= due or now == plan.num_timesteps:
            count += 1
            due = (now // every + 1) * every
    assert plan.num_evaluations == count


def test_a_run_of_few_updates_is_warned_of() -> None:
    assert plan_of(config_of("ppo", 128 * FEW_UPDATES)).warning is None
    warning = plan_of(config_of("ppo", 128 * (FEW_UPDATES - 1))).warning
    assert warning is not None
    assert "1,280" in warning
    assert "9 updates" in warning
