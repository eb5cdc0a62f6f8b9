"""The ``Agent`` protocol, and the registry that makes agents by name."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from generala_env.envs.observation import ObservationLayout, observation_layout
from generala_env.rules.compiled import CompiledVariant, InstantWin, TurnBatch, compile_variant
from generala_env.rules.variants import Variant


class AgentError(ValueError):
    """An agent that cannot be made: unknown, broken, or made for other rules."""


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
    """

    compiled: CompiledVariant
    instant_win: InstantWin = "perfect"
    seed: int | None = None


AgentFactory = Callable[[AgentRequest], Agent]

_REGISTRY: Final[dict[str, AgentFactory]] = {}


def register_agent(name: str) -> Callable[[AgentFactory], AgentFactory]:
    """Return a decorator that puts a factory into the registry.

    Raises:
        ValueError: The name is taken.
    """
    if name in _REGISTRY:
        raise ValueError(f"agent {name!r} is registered already")

    def decorate(factory: AgentFactory) -> AgentFactory:
        _REGISTRY[name] = factory
        return factory

    return decorate


def agent_names() -> tuple[str, ...]:
    """Return the names in the registry."""
    import agents.baselines  # noqa: F401 - fills the registry

    return tuple(sorted(_REGISTRY))


def make_agent(
    spec: str | Path,
    variant: str | Variant | CompiledVariant,
    *,
    instant_win: InstantWin = "perfect",
    seed: int | None = None,
) -> Agent:
    """Make an agent from its name, or load a trained one from its run folder or file.

    Args:
        spec: A name of the registry, or a path.
        variant: The rules it is to play.
        instant_win: How the one-player game treats a served Generala that wins.
        seed: Seed of whatever the agent draws.

    Raises:
        AgentError: There is no such agent, its files are broken, or it plays other rules.
    """
    names = agent_names()
    compiled = variant if isinstance(variant, CompiledVariant) else compile_variant(variant)
    request = AgentRequest(compiled, instant_win, seed)
    if str(spec) in names:
        return _REGISTRY[str(spec)](request)
    path = Path(spec)
    if path.exists():
        from agents.saving import load_agent

        return load_agent(path, request)
    near = difflib.get_close_matches(str(spec), names, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise AgentError(
        f"agent: {str(spec)!r} is neither a known agent nor a run folder; {hint}known: {', '.join(names)}"
    )
