"""What a card learner holds, with the face of SB3's policies, and what it has learned as an agent."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs
from torch import nn

from agents.base import StateAgent
from agents.learning.cards.dqn import QLearner
from agents.learning.cards.learner import WeightAverage
from agents.learning.cards.networks import CardNetwork, CardNetworkSettings
from agents.learning.cards.play import CardPlay
from agents.learning.cards.ppo import PPOLearner
from agents.learning.cards.tables import card_features
from agents.learning.cards.tabular import TabularLearner
from agents.learning.networks import MissingMaskError
from generala_env.envs.observation import ObservationLayout
from generala_env.rules.compiled import CompiledVariant, TurnBatch

Learner = QLearner | PPOLearner | TabularLearner


class CardPolicy(BasePolicy):
    """The networks of a card learner, the averages of their weights, and how they choose.

    Observations are read back to states, so they need the blocks that tell states apart. Choosing is by
    the averaged weights.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        layout: ObservationLayout,
        learner: Learner,
    ) -> None:
        """Show what a learner holds; nothing is copied.

        Args:
            observation_space: Of the environment.
            action_space: Of the environment.
            layout: The observations.
            learner: Whose networks these are.
        """
        super().__init__(observation_space, action_space)
        self.layout = layout
        self.learner = learner
        self.optimizer: Any = getattr(learner, "optimizer", None)
        if isinstance(learner, TabularLearner):
            self.register_buffer("values", torch.from_numpy(learner.values))
            self.register_buffer("weights", torch.from_numpy(learner.weights))
            return
        if isinstance(learner, QLearner):
            self.q_net = learner.network
        else:
            self.actor, self.critic, self.log_scale = learner.actor, learner.critic, learner.log_scale
        self.averaged = _Averaged(self, learner.average)

    def critic_play(self) -> CardPlay:
        """Return play by what the learner takes afterstates to be worth, in points."""
        return self.learner.critic_play() if isinstance(self.learner, PPOLearner) else self.learner.play()

    def choose(
        self, observations: NDArray[Any], action_masks: NDArray[np.bool_], *, deterministic: bool
    ) -> NDArray[np.int64]:
        """Return an allowed action for each observation.

        Args:
            observations: (batch, size).
            action_masks: (batch, num_actions) bool.
            deterministic: Take the best one; otherwise an actor draws from torch's generator.
        """
        play, batch = self.learner.play(), self.layout.decode(observations)
        if deterministic or not play.is_actor:
            return play.best_actions(batch, action_masks)
        uniforms = torch.rand(len(observations), dtype=torch.float64).numpy()
        return play.drawn_actions(batch, action_masks, uniforms)

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return an allowed action for each observation.

        Args:
            observation: (batch, size), or (size,) for a single one.
            state: Passed through.
            episode_start: Not used.
            deterministic: Take the best action.
            action_masks: (batch, num_actions) bool, or (num_actions,).

        Raises:
            MissingMaskError: There is no mask.
            ValueError: The observation is not one of this game.
        """
        if action_masks is None:
            raise MissingMaskError("action_masks: needed to choose an action; pass env.action_masks()")
        rows = np.asarray(observation, dtype=np.float32)
        masks = np.asarray(action_masks, dtype=bool)
        actions = self.choose(np.atleast_2d(rows), np.atleast_2d(masks), deterministic=deterministic)
        return (actions[0] if rows.ndim == 1 else actions), state

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> torch.Tensor:
        raise MissingMaskError("action_masks: needed to choose an action; call predict with them")


class _Averaged(nn.Module):
    """The averages of a policy's weights under the names of the weights, in the same memory."""

    def __init__(self, policy: nn.Module, average: WeightAverage) -> None:
        super().__init__()
        pairs = zip(average.parameters, average.averages, strict=True)
        mean_of = {id(parameter): mean for parameter, mean in pairs}
        for name, module in policy.named_children():
            twin = copy.deepcopy(module)
            for mine, theirs in zip(twin.parameters(), module.parameters(), strict=True):
                mine.requires_grad_(False)
                mine.data = mean_of[id(theirs)]
            self.add_module(name, twin)
        for name, parameter in policy.named_parameters(recurse=False):
            self.register_parameter(name, nn.Parameter(mean_of[id(parameter)], requires_grad=False))


def saved_play(
    algorithm: str,
    compiled: CompiledVariant,
    widths: tuple[int, ...],
    output_scale: float,
    weights: Mapping[str, NDArray[Any]],
) -> CardPlay:
    """Return what was learned, from the weights of a ``CardPolicy``; those of the averages are enough.

    Args:
        algorithm: ``ppo``, ``dqn`` or ``tabular``.
        compiled: The variant's tables.
        widths: Of the hidden layers.
        output_scale: Points that one unit of the network's output stands for.
        weights: By name.

    Raises:
        KeyError: A weight is missing.
        RuntimeError: The weights do not fit.
    """
    if algorithm == "tabular":
        return CardPlay(compiled, weights["values"])
    name = "averaged.actor." if algorithm == "ppo" else "averaged.q_net."
    features = torch.from_numpy(card_features(compiled))
    settings = CardNetworkSettings(widths=widths, output_scale=output_scale)
    network = CardNetwork(features.shape[1], settings, torch.Generator())
    network.load_state_dict(
        {key[len(name) :]: torch.from_numpy(array) for key, array in weights.items() if key.startswith(name)}
    )
    outputs = network.outputs_of(features)
    if algorithm == "dqn":
        return CardPlay(compiled, outputs)
    return CardPlay(compiled, outputs, float(np.exp(weights["averaged.log_scale"])), is_actor=True)


class CardAgent(StateAgent):
    """A trained card learner as an agent: an actor samples, values are greedy."""

    def __init__(
        self, name: str, layout: ObservationLayout, play: CardPlay, *, seed: int | None = None
    ) -> None:
        """Bind what was learned to the observations it reads.

        Args:
            name: How it is called.
            layout: The observations it reads.
            play: What was learned.
            seed: Seed of what it samples; ``None`` draws one.
        """
        super().__init__(name, play.compiled, layout)
        self.play = play
        self.reset(seed)

    def reset(self, seed: int | None = None) -> None:
        """Restart the generator with a seed; ``None`` draws one."""
        self._generator = np.random.default_rng(seed)

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation; see ``Agent.act``."""
        batch, masks = self.layout.decode(observations), np.asarray(action_masks, dtype=bool)
        if deterministic or not self.play.is_actor:
            return self.play.best_actions(batch, masks)
        return self.play.drawn_actions(batch, masks, self._generator.random(len(masks)))

    def act_on(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choose the best action of every state; see ``StateAgent.act_on``."""
        return self.play.best_actions(batch, action_masks)

    def action_probabilities(
        self, observations: NDArray[Any], action_masks: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return how probable each action is when ``act`` samples."""
        return self.play.probabilities(self.layout.decode(observations), np.asarray(action_masks, dtype=bool))
