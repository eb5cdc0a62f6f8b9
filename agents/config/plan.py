"""What a run will really do: learners train in whole updates, so its steps are rounded up to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agents.config.model import RunConfig

FEW_UPDATES: Final = 10
"""A run of fewer updates than this learns next to nothing."""


@dataclass(frozen=True)
class Plan:
    """How much a run trains, evaluates and saves.

    Attributes:
        num_timesteps: Decisions that are collected, whole updates of them.
        steps_per_update: Decisions between two updates.
        num_updates: Updates of the networks.
        num_evaluations: Evaluations in the loop, the last one at the end; those that are left out for
            want of time still count.
        num_checkpoints: Checkpoints written, the last one at the end.
    """

    num_timesteps: int
    steps_per_update: int
    num_updates: int
    num_evaluations: int
    num_checkpoints: int

    @property
    def warning(self) -> str | None:
        """Why the run cannot learn much, or ``None``."""
        if self.num_updates >= FEW_UPDATES:
            return None
        updates = f"{self.num_updates} update" + ("" if self.num_updates == 1 else "s")
        return (
            f"total_timesteps: {self.num_timesteps:,} steps are {updates} of {self.steps_per_update:,}, "
            f"too few to learn from; give at least {FEW_UPDATES * self.steps_per_update:,} steps, or fewer "
            "environments"
        )


def plan_of(config: RunConfig) -> Plan:
    """Return what a run with a config does."""
    steps = config.algorithm.steps_per_update(config.env.num_envs)
    rounds = -(-config.total_timesteps // steps)
    return Plan(
        num_timesteps=rounds * steps,
        steps_per_update=steps,
        num_updates=max(rounds - config.algorithm.rounds_before_updates(config.env.num_envs), 0),
        num_evaluations=_times_due(config.evaluation.every, steps, rounds),
        num_checkpoints=_times_due(config.checkpoints.every, steps, rounds),
    )


def _times_due(every: int, steps: int, rounds: int) -> int:
    """Count the boundaries at which something is due that is due every so many steps, and at the end."""
    if steps >= every:
        return rounds
    whole, last = divmod(rounds * steps, every)
    # The last boundary is one of them where it is the first after a multiple.
    return whole + (0 if last < steps else 1)
