"""How many floating-point operations the networks of a learner take, to say what a run needs of a machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch.utils.flop_counter import FlopCounterMode

from agents.learning.cards.algorithms import CardAlgorithm
from agents.learning.cards.ppo import PPOLearner
from agents.learning.cards.tabular import TabularLearner
from agents.learning.dqn import MaskableDQN
from agents.learning.networks import action_values


def _pass(outputs: Callable[[], torch.Tensor]) -> int:
    """Return the operations of computing outputs, by torch's own count."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        outputs()
    return int(counter.get_total_flops())


def _gradient(outputs: Callable[[], torch.Tensor], module: torch.nn.Module) -> int:
    """Return the operations of computing outputs and their gradient by a module's weights.

    No gradient of the module is written: the learner's may be in use.
    """
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    with torch.enable_grad(), FlopCounterMode(display=False) as counter:
        torch.autograd.grad(outputs().sum(), weights, allow_unused=True)
    return int(counter.get_total_flops())


def operations_per_step(model: BaseAlgorithm) -> float:
    """Return about how many operations the networks take for each decision that is trained on.

    Counted on a row of zeros, which changes nothing of the model. What is not a matrix product is left out.
    """
    policy: Any = model.policy
    if isinstance(model, CardAlgorithm):
        learner = model.learner
        if isinstance(learner, TabularLearner):
            return 0.0
        row = learner.features[:1]
        if isinstance(learner, PPOLearner):
            passes = learner.settings.num_epochs * learner.settings.num_minibatches
            networks = [learner.actor, learner.critic]
        else:
            passes, networks = 1, [learner.network]
        work = sum(_gradient(partial(network, row), network) for network in networks)
        return passes * work * learner.num_rows / learner.num_decisions_per_iteration
    assert model.observation_space.shape is not None
    zeros = torch.zeros(1, *model.observation_space.shape, device=model.device)
    if isinstance(model, MaskableDQN):
        network = policy.q_net
        actions = torch.zeros(1, dtype=torch.int64, device=model.device)

        def values() -> torch.Tensor:
            return action_values(network, zeros, actions)

        choice = _pass(partial(network, zeros))
        learned = model.gradient_steps * model.batch_size / model._steps_per_update()
        # For each transition learned from: the best action after it, its value, and the gradient.
        return choice + learned * (choice + _pass(values) + _gradient(values, network))

    def both() -> torch.Tensor:
        return torch.cat(policy.logits_and_values(zeros), dim=1)

    num_epochs = int(getattr(model, "n_epochs", 1))
    work = _pass(both) + num_epochs * _gradient(both, policy)
    if getattr(model, "throw_lambda", None) is not None:
        # The critic values what was known before each throw, too.
        value = partial(policy.predict_values, zeros)
        work += _pass(value) + num_epochs * _gradient(value, policy)
    return float(work)
