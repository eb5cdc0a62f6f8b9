"""How far a training is, for schedules that must not run past their end."""

from __future__ import annotations

from stable_baselines3.common.base_class import BaseAlgorithm


class WholeUpdates(BaseAlgorithm):
    """An algorithm that counts its progress over whole updates.

    Decisions are collected in rounds, and the last round may end after the steps that were asked for.
    SB3 divides by what was asked for, so that progress falls below zero there, and learning rates and
    entropy weights that fall to zero go on to negative values.
    """

    def _steps_per_update(self) -> int:
        """Return the decisions collected between two updates, all environments together."""
        raise NotImplementedError

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        steps = self._steps_per_update()
        whole = -(-total_timesteps // steps) * steps
        super()._update_current_progress_remaining(min(num_timesteps, whole), whole)
