"""PPO on card networks: an actor that ranks afterstates and a critic that prices them.

The critic says what every legal action is worth before any dice fall, so the clipped surrogate is
summed over all legal actions instead of the one drawn: neither the draw nor the dice add noise to
the actor's gradient. The critic learns from the throws that were met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from agents.learning.cards.kernels import Decisions, collect_ppo, policy_gradient, value_gradient
from agents.learning.cards.learner import (
    RATE,
    CardLearner,
    GameSettings,
    Schedule,
    State,
    WeightAverage,
    arrays_of,
    constant,
    linear,
    optimizer_state,
    set_optimizer_state,
    set_tensors,
)
from agents.learning.cards.networks import CardNetwork, CardNetworkSettings
from agents.learning.cards.play import CardPlay
from agents.learning.cards.tables import NUM_OUTPUTS, card_features
from generala_env.rules.compiled import CompiledVariant, InstantWin
from generala_env.rules.variants import Variant

_CLIP: Final = constant(0.2)
_ENTROPY: Final = linear(0.5, 0.0)


@dataclass(frozen=True)
class PPOSettings(GameSettings):
    """How a card PPO learns.

    Attributes:
        actor: The shape of the actor; its ``output_scale`` is in units of preference.
        critic: The shape of the critic.
        num_minibatches: Parts an iteration's games are learned from, one gradient step each.
        num_epochs: How often each part is learned from.
        learning_rate: Of Adam, for the actor.
        critic_learning_rate: The same for the critic.
        betas: Of Adam.
        clip_range: How far the ratio of probabilities may go from 1.
        entropy_price: The price of entropy, in points per nat.
        average_share: The window of the averaged weights, as a share of the updates so far.
    """

    actor: CardNetworkSettings = field(default_factory=CardNetworkSettings)
    critic: CardNetworkSettings = field(default_factory=CardNetworkSettings)
    num_minibatches: int = 2
    num_epochs: int = 1
    learning_rate: Schedule = RATE
    critic_learning_rate: Schedule = RATE
    betas: tuple[float, float] = (0.9, 0.999)
    clip_range: Schedule = _CLIP
    entropy_price: Schedule = _ENTROPY
    average_share: float = 0.05


class PPOLearner(CardLearner):
    """Learns preferences for afterstates by PPO and their values by expected Sarsa.

    Args:
        variant: A preset's name, a variant, or its tables.
        settings: How to learn.
        instant_win: How a served Generala that wins is treated.
        seed: Of dice, actions and weights.
    """

    def __init__(
        self,
        variant: str | Variant | CompiledVariant,
        settings: PPOSettings | None = None,
        *,
        instant_win: InstantWin = "play_on",
        seed: int = 0,
    ) -> None:
        self.settings = settings = settings or PPOSettings()
        super().__init__(variant, settings, instant_win=instant_win, seed=seed)
        features = card_features(self.compiled)
        self.features = torch.from_numpy(features)
        generator = torch.Generator().manual_seed(seed)
        self.actor = CardNetwork(features.shape[1], settings.actor, generator)
        self.critic = CardNetwork(features.shape[1], settings.critic, generator)
        # The logarithm of what a point counts in the preferences: greedy play is sharp preferences.
        self.log_scale = nn.Parameter(torch.zeros(()))
        self._actor_weights = [*self.actor.parameters(), self.log_scale]
        self._weights = [*self._actor_weights, *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(
            [
                {"params": self._actor_weights, "lr": settings.learning_rate(1.0)},
                {"params": list(self.critic.parameters()), "lr": settings.critic_learning_rate(1.0)},
            ],
            betas=settings.betas,
            fused=True,
        )
        self.average = WeightAverage(self._weights, settings.average_share)
        shape = (settings.num_games, settings.num_steps)
        self.decisions = Decisions(
            np.zeros(shape, dtype=np.int32),
            np.zeros(shape, dtype=np.int16),
            np.zeros(shape, dtype=np.int16),
            np.zeros(shape, dtype=np.int16),
            np.zeros(shape, dtype=np.int32),
            np.zeros(shape, dtype=np.int16),
            np.zeros(shape, dtype=np.float32),
        )
        self._preferences, self._old_preferences, self._by_actor = self._blank_outputs()
        self._values, self._old_values, self._by_critic = self._blank_outputs()

    def _blank_outputs(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        shape = (self.num_rows + 1, NUM_OUTPUTS)
        return np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def collect_and_learn_iteration(self, remaining: float) -> dict[str, float]:
        """Play by the actor, take the gradient steps, and return what is worth a log."""
        settings = self.settings
        epsilon, price = settings.epsilon(remaining), settings.entropy_price(remaining)
        clip_range = settings.clip_range(remaining)
        schedules = (settings.learning_rate, settings.critic_learning_rate)
        for group, schedule in zip(self.optimizer.param_groups, schedules, strict=True):
            group["lr"] = schedule(remaining)
        bounds = np.arange(settings.num_minibatches + 1) * settings.num_games // settings.num_minibatches
        old_scale = 0.0
        sums = np.zeros(4)
        for step in range(settings.num_epochs * settings.num_minibatches):
            part = step % settings.num_minibatches
            first, last = int(bounds[part]), int(bounds[part + 1])
            preferences, values, scale = (
                self.actor(self.features),
                self.critic(self.features),
                self.log_scale.exp(),
            )
            self._preferences[:-1] = preferences.detach().numpy()
            self._values[:-1] = values.detach().numpy()
            if step == 0:
                # The same pass prices the actions that collect.
                self._old_preferences[:] = self._preferences
                self._old_values[:] = self._values
                old_scale = float(scale.detach())
                self._collect(old_scale, epsilon)
            self._by_actor.fill(0.0)
            self._by_critic.fill(0.0)
            error = value_gradient(
                self._values,
                self.decisions,
                first,
                last,
                settings.critic.output_scale**-2,
                self._by_critic,
            )
            by_scale, loss, entropy, clipped = policy_gradient(
                self.tables,
                self._preferences,
                float(scale.detach()),
                self._old_preferences,
                old_scale,
                self._old_values,
                self.decisions,
                first,
                last,
                clip_range,
                price,
                self._by_actor,
            )
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(
                [preferences, values, scale],
                [
                    torch.from_numpy(self._by_actor[:-1]),
                    torch.from_numpy(self._by_critic[:-1]),
                    torch.tensor(by_scale, dtype=torch.float32),
                ],
            )
            self.optimizer.step()
            self.num_updates += 1
            self.average.update(self.num_updates)
            sums += (error, loss, entropy, clipped)
        self.num_iterations += 1
        sums /= settings.num_epochs * settings.num_minibatches
        names = ("value_error", "policy_loss", "entropy", "clip_share")
        return {
            **dict(zip(names, sums.tolist(), strict=True)),
            "epsilon": epsilon,
            "entropy_price": price,
            "learning_rate": settings.learning_rate(remaining),
            "point_scale": old_scale,
            "value": float(self._old_values[0, -1]),
        }

    def _collect(self, scale: float, epsilon: float) -> None:
        self.num_finished += collect_ppo(
            self.tables,
            self._old_preferences,
            scale,
            self._old_values,
            self.rng,
            self.games,
            epsilon,
            self.random_start,
            self.settings.trace,
            self.decisions,
        )
        self.num_decisions += self.decisions.card.size

    def play(self, *, is_averaged: bool = True) -> CardPlay:
        """Return play by the actor's preferences; see ``CardLearner.play``."""
        count = len(self._actor_weights) - 1
        weights = self.average.averages if is_averaged else [weight.detach() for weight in self._weights]
        outputs = self.actor.outputs_of(self.features, weights[:count])
        return CardPlay(self.compiled, outputs, float(weights[count].exp()), is_actor=True)

    def critic_play(self, *, is_averaged: bool = True) -> CardPlay:
        """Return greedy play on the critic's values."""
        averages = self.average.averages[len(self._actor_weights) :] if is_averaged else None
        return CardPlay(self.compiled, self.critic.outputs_of(self.features, averages))

    def state_dict(self) -> State:
        """Return all that a run needs to go on exactly."""
        return {
            **super().state_dict(),
            "weights": arrays_of(self._weights),
            "averages": arrays_of(self.average.averages),
            "optimizer": optimizer_state(self.optimizer),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set what ``state_dict`` returned, of a learner with the same settings."""
        super().load_state_dict(state)
        set_tensors(self._weights, state["weights"])
        set_tensors(self.average.averages, state["averages"])
        set_optimizer_state(self.optimizer, state["optimizer"])
