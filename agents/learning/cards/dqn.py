"""Q-learning on a card network: one throw of the dice from an afterstate, then the best action.

There is no replay and no target network: the forward pass that prices all cards serves acting,
targets and the gradient of the same iteration, and every gradient step sees tens of thousands of
fresh targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from agents.learning.cards.kernels import collect_q
from agents.learning.cards.learner import (
    RATE,
    CardLearner,
    GameSettings,
    Schedule,
    State,
    WeightAverage,
    arrays_of,
    optimizer_state,
    set_optimizer_state,
    set_tensors,
)
from agents.learning.cards.networks import CardNetwork, CardNetworkSettings
from agents.learning.cards.play import CardPlay, closed_column
from agents.learning.cards.tables import NUM_OUTPUTS, card_features
from generala_env.rules.compiled import CompiledVariant, InstantWin
from generala_env.rules.variants import Variant


@dataclass(frozen=True)
class QSettings(GameSettings):
    """How a card DQN learns.

    Attributes:
        network: The shape of the network.
        learning_rate: Of Adam.
        betas: Of Adam.
        average_share: The window of the averaged weights, as a share of the updates so far.
    """

    network: CardNetworkSettings = field(default_factory=CardNetworkSettings)
    learning_rate: Schedule = RATE
    betas: tuple[float, float] = (0.9, 0.999)
    average_share: float = 0.05


class QLearner(CardLearner):
    """Learns what afterstates are worth by Q-learning.

    Args:
        variant: A preset's name, a variant, or its tables.
        settings: How to learn.
        instant_win: How a served Generala that wins is treated.
        seed: Of dice, exploration and weights.
    """

    def __init__(
        self,
        variant: str | Variant | CompiledVariant,
        settings: QSettings | None = None,
        *,
        instant_win: InstantWin = "play_on",
        seed: int = 0,
    ) -> None:
        self.settings = settings or QSettings()
        super().__init__(variant, self.settings, instant_win=instant_win, seed=seed)
        features = card_features(self.compiled)
        self.features = torch.from_numpy(features)
        generator = torch.Generator().manual_seed(seed)
        self.network = CardNetwork(features.shape[1], self.settings.network, generator)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(),
            lr=self.settings.learning_rate(1.0),
            betas=self.settings.betas,
            fused=True,
        )
        self.average = WeightAverage(self.network.parameters(), self.settings.average_share)
        self._sums = np.zeros((self.num_rows, NUM_OUTPUTS), dtype=np.float32)
        self._counts = np.zeros_like(self._sums)

    def collect_and_learn_iteration(self, remaining: float) -> dict[str, float]:
        """Play epsilon-greedily, take one gradient step, and return what is worth a log."""
        settings = self.settings
        rate, epsilon = settings.learning_rate(remaining), settings.epsilon(remaining)
        outputs = self.network(self.features)
        values = outputs.detach().numpy()
        self._sums.fill(0.0)
        self._counts.fill(0.0)
        self.num_finished += collect_q(
            self.tables,
            values,
            closed_column(values, len(self.tables.status)),
            self.rng,
            self.games,
            settings.num_steps,
            epsilon,
            self.random_start,
            settings.trace,
            self._sums,
            self._counts,
        )
        num_decisions = settings.num_games * settings.num_steps
        # The gradient of the mean squared error of all targets, in units of the network.
        gradient = self._counts * values - self._sums
        gradient *= 2.0 / (num_decisions * settings.network.output_scale**2)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        outputs.backward(torch.from_numpy(gradient))
        self.optimizer.step()
        self.num_iterations += 1
        self.num_updates += 1
        self.num_decisions += num_decisions
        self.average.update(self.num_updates)
        return {
            "epsilon": epsilon,
            "learning_rate": rate,
            "value": float(values[0, -1]),
        }

    def play(self, *, is_averaged: bool = True) -> CardPlay:
        """Return greedy play on the values of afterstates; see ``CardLearner.play``."""
        averages = self.average.averages if is_averaged else None
        return CardPlay(self.compiled, self.network.outputs_of(self.features, averages))

    def state_dict(self) -> State:
        """Return all that a run needs to go on exactly."""
        return {
            **super().state_dict(),
            "weights": arrays_of(self.network.parameters()),
            "averages": arrays_of(self.average.averages),
            "optimizer": optimizer_state(self.optimizer),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set what ``state_dict`` returned, of a learner with the same settings."""
        super().load_state_dict(state)
        set_tensors(self.network.parameters(), state["weights"])
        set_tensors(self.average.averages, state["averages"])
        set_optimizer_state(self.optimizer, state["optimizer"])
