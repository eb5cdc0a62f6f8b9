"""Watching a learner for numbers that are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm


class TrainingError(Exception):
    """What ended a run before its time; told in one line."""


class NonFiniteError(TrainingError):
    """A tensor that is not finite."""


class FiniteWatch:
    """Stops a run as soon as an output, a gradient, a loss or a weight is NaN or infinite.

    Gradients are looked at as they are computed, before clipping spreads a NaN over all of
    them, so that the tensor that is named is where it began.
    """

    def __init__(self, model: BaseAlgorithm) -> None:
        """Hook into the networks of a learner."""
        self.model = model
        self.handles: list[Any] = []
        for name, module in model.policy.named_modules():
            if name and not list(module.children()):
                self.handles.append(module.register_forward_hook(self._output_check(name)))
        for name, parameter in model.policy.named_parameters():
            if parameter.requires_grad:
                hook = self._gradient_check(name)
                self.handles.append(parameter.register_post_accumulate_grad_hook(hook))  # type: ignore[no-untyped-call]

    def _fail(self, what: str, tensor: torch.Tensor) -> None:
        kind = "NaN" if bool(torch.isnan(tensor).any()) else "infinite"
        raise NonFiniteError(f"{what} is {kind} at step {self.model.num_timesteps:,}")

    def _output_check(self, name: str) -> Callable[[Any, Any, Any], None]:
        kind = "Q-values" if name.startswith(("q_net", "q_net_target")) else "output"

        def check(_module: Any, _inputs: Any, output: Any) -> None:
            if isinstance(output, torch.Tensor) and output.is_floating_point():
                total = output.detach().sum()
                # -inf may stand for a masked action.
                if bool(torch.isnan(total)) or total.item() == float("inf"):
                    self._fail(f"{kind} of {name}", output)

        return check

    def _gradient_check(self, name: str) -> Callable[[torch.Tensor], None]:
        def check(parameter: torch.Tensor) -> None:
            gradient = parameter.grad
            if gradient is not None and not bool(torch.isfinite(gradient.sum())):
                self._fail(f"gradient of {name}", gradient)

        return check

    def check_boundary(self, logged: Mapping[str, Any]) -> None:
        """Check the losses and the weights after an update."""
        for name, value in logged.items():
            is_figure = name.startswith("train/") and isinstance(value, int | float | np.number)
            # The explained variance is NaN by definition where all returns are equal.
            if is_figure and name != "train/explained_variance" and not np.isfinite(value):
                self._fail(name, torch.tensor(float(value)))
        for name, parameter in self.model.policy.named_parameters():
            if not bool(torch.isfinite(parameter.detach().sum())):
                self._fail(f"weight {name}", parameter.detach())

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self.handles:
            handle.remove()
