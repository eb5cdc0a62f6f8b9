"""Agents that are not trained: random, a one-turn-greedy rule, rules of thumb, the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, StateAgent, batched
from generala_env.envs.observation import observation_layout
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.solver.solo import ActionValues


class RandomAgent(Agent):
    """Chooses uniformly among the legal actions."""

    always_samples = True

    def __init__(self, compiled: CompiledVariant, seed: int | None = None) -> None:
        """Bind the agent to a variant and seed its draws."""
        self.name = "random"
        self.layout = observation_layout(compiled)
        self.reset(seed)

    def reset(self, seed: int | None = None) -> None:
        """Restart the draws; see ``Agent.reset``."""
        self._generator = np.random.default_rng(seed)

    @batched
    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Draw a legal action for every observation, also when asked to be deterministic."""
        draws = np.where(action_masks, self._generator.random(action_masks.shape), -1.0)
        actions: NDArray[np.int64] = draws.argmax(axis=1)
        return actions

    @batched
    def action_probabilities(
        self, observations: NDArray[Any], action_masks: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return equal probabilities over the legal actions."""
        masks = np.asarray(action_masks, dtype=np.float64)
        return np.asarray(masks / masks.sum(axis=1, keepdims=True))


class ValueAgent(StateAgent):
    """Takes the action of highest value in a table of exact values, the lowest id among equals."""

    def __init__(self, name: str, values: ActionValues) -> None:
        """Play by ``values``."""
        super().__init__(name, values.compiled)
        self.values = values

    def act_on(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choose the best action of every state; see ``StateAgent.act_on``."""
        q_values = self.values.q_values_batch(batch, canonical=False)
        actions: NDArray[np.int64] = np.where(action_masks, q_values, -np.inf).argmax(axis=1)
        return actions
