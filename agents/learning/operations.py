"""How many floating-point operations the networks of a learner take, to say what a run needs of a machine."""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from agents.learning.cards.algorithms import CardAlgorithm
from agents.learning.cards.ppo import PPOLearner
from agents.learning.cards.tabular import TabularLearner
from agents.learning.dqn import MaskableDQN


def _products(module: torch.nn.Module) -> int:
    """Return the operations of a pass over one row: a multiplication and an addition for each weight."""
    return sum(2 * part.weight.numel() for part in module.modules() if isinstance(part, torch.nn.Linear))


def operations_per_step(model: BaseAlgorithm) -> float:
    """Return about how many operations the networks take for each decision that is trained on.

    A gradient costs two passes backward for each one forward. What is not a matrix product is left out.
    """
    policy: Any = model.policy
    if isinstance(model, CardAlgorithm):
        learner = model.learner
        if isinstance(learner, TabularLearner):
            return 0.0
        if isinstance(learner, PPOLearner):
            settings = learner.settings
            passes = settings.num_epochs * settings.num_minibatches
            work = passes * (_products(learner.actor) + _products(learner.critic))
        else:
            work = _products(learner.network)
        return 3.0 * work * learner.num_rows / learner.num_decisions_per_iteration
    if isinstance(model, MaskableDQN):
        network = _products(policy.q_net)
        learned = model.gradient_steps * model.batch_size / model._steps_per_update()
        # Choosing, and for each transition learned from: the gradient, and two passes for its target.
        return network * (1.0 + 5.0 * learned)
    network = _products(policy)
    return network * (1.0 + 3.0 * int(getattr(model, "n_epochs", 1)))
