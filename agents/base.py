"""The ``Agent`` protocol: what every agent that plays alone is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from generala_env.envs.observation import ObservationLayout, observation_layout
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CompiledVariant, InstantWin, TurnBatch


class Agent(ABC):
    """Something that chooses actions from batches of observations and masks.

    Attributes:
        name: How it is called in tables.
        layout: The layout of the observations it reads.
        always_samples: Whether ``act`` samples even when asked to be deterministic, so that the
            agent is described by its ``action_probabilities`` alone.
    """

    name: str
    layout: ObservationLayout
    always_samples: ClassVar[bool] = False

    @property
    def compiled(self) -> CompiledVariant:
        """The tables of the variant it plays."""
        return self.layout.compiled

    @abstractmethod
    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation.

        Args:
            observations: (batch, layout.size) float32.
            action_masks: (batch, num_actions) bool, at least one true in each row.
            deterministic: Take the best action instead of sampling one.

        Returns:
            (batch,) int64, legal under the masks.
        """

    def action_probabilities(
        self, observations: NDArray[Any], action_masks: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return how probable each action is when ``act`` samples.

        An agent that never samples puts everything on its one action.

        Returns:
            (batch, num_actions) float64, rows summing to 1, zero where masked.
        """
        actions = self.act(observations, action_masks, deterministic=True)
        probabilities = np.zeros(np.shape(action_masks))
        probabilities[np.arange(len(actions)), actions] = 1.0
        return probabilities

    def reset(self, seed: int | None = None) -> None:  # noqa: B027 - most agents draw nothing
        """Restart whatever the agent draws from, with a seed; ``None`` draws afresh."""


class TableAgent(Agent):
    """An agent that decides from the state itself, read back from the observation."""

    def __init__(self, name: str, compiled: CompiledVariant, layout: ObservationLayout | None = None) -> None:
        """Bind the agent to a variant.

        Args:
            name: How it is called.
            compiled: The tables of the variant.
            layout: The observations it reads; the default blocks if ``None``.
        """
        self.name = name
        self.layout = layout if layout is not None else observation_layout(compiled)

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation; see ``Agent.act``."""
        return self.act_on(self.layout.decode(observations), np.asarray(action_masks, dtype=bool))

    @abstractmethod
    def act_on(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choose an action for every state of a batch.

        Args:
            batch: The states.
            action_masks: (batch, num_actions) bool.

        Returns:
            (batch,) int64, legal under the masks.
        """


@dataclass(frozen=True)
class AgentRequest:
    """What an agent is made for.

    Attributes:
        compiled: The tables of the variant it will play.
        instant_win: How the one-player game treats a served Generala that wins.
        seed: Seed of whatever the agent draws.
        num_players: How many play.
        store: Folder of solved two-player games; ``None`` is the default place.
    """

    compiled: CompiledVariant
    instant_win: InstantWin = DEFAULT_INSTANT_WIN
    seed: int | None = None
    num_players: int = 1
    store: Path | None = None
