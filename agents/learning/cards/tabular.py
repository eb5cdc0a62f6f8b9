"""Q-learning with a table in place of a network: the yardstick of what a network adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.learning.cards.kernels import collect_q, table_update
from agents.learning.cards.learner import CardLearner, GameSettings, State
from agents.learning.cards.play import CardPlay, closed_column
from agents.learning.cards.tables import NUM_OUTPUTS
from generala_env.rules.compiled import CompiledVariant, InstantWin
from generala_env.rules.variants import Variant


@dataclass(frozen=True)
class TabularSettings(GameSettings):
    """How the tabular learner learns.

    Attributes:
        memory_share: How long targets are remembered, as a share of the iterations so far. Early
            targets come from values that were wrong.
    """

    memory_share: float = 0.1


class TabularLearner(CardLearner):
    """Learns what afterstates are worth by Q-learning, each for itself.

    Args:
        variant: A preset's name, a variant, or its tables.
        settings: How to learn.
        instant_win: How a served Generala that wins is treated.
        seed: Of dice and exploration.
    """

    def __init__(
        self,
        variant: str | Variant | CompiledVariant,
        settings: TabularSettings | None = None,
        *,
        instant_win: InstantWin = "play_on",
        seed: int = 0,
    ) -> None:
        self.settings = settings or TabularSettings()
        super().__init__(variant, self.settings, instant_win=instant_win, seed=seed)
        self.values, self.weights, self._sums, self._counts = (
            np.zeros((self.num_rows, NUM_OUTPUTS), dtype=np.float32) for _ in range(4)
        )

    def collect_and_learn_iteration(self, remaining: float) -> dict[str, float]:
        """Play epsilon-greedily, move the table, and return what is worth a log."""
        settings = self.settings
        epsilon = settings.epsilon(remaining)
        self._sums.fill(0.0)
        self._counts.fill(0.0)
        self.num_finished += collect_q(
            self.tables,
            self.values,
            closed_column(self.values, len(self.tables.status)),
            self.rng,
            self.games,
            settings.num_steps,
            epsilon,
            self.random_start,
            settings.trace,
            self._sums,
            self._counts,
        )
        self.num_iterations += 1
        self.num_updates += 1
        self.num_decisions += settings.num_games * settings.num_steps
        retention = 1.0 - 1.0 / max(1.0, settings.memory_share * self.num_iterations)
        table_update(self.values, self.weights, self._sums, self._counts, retention)
        return {"epsilon": epsilon, "value": float(self.values[0, -1])}

    def play(self, *, is_averaged: bool = True) -> CardPlay:
        """Return greedy play on the table, which has no averages; see ``CardLearner.play``."""
        return CardPlay(self.compiled, self.values.copy())

    def state_dict(self) -> State:
        """Return all that a run needs to go on exactly."""
        return {**super().state_dict(), "values": self.values.copy(), "weights": self.weights.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set what ``state_dict`` returned, of a learner with the same settings."""
        super().load_state_dict(state)
        self.values[:] = state["values"]
        self.weights[:] = state["weights"]
