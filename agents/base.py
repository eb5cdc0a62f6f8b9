"""The ``Agent`` protocol: what every agent that plays alone is."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from agents.errors import AgentError
from generala_env.envs.observation import ObservationLayout, observation_layout
from generala_env.rules.answers import checked_actions
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CompiledVariant, InstantWin, TurnBatch


class _Layout(Protocol):
    @property
    def compiled(self) -> CompiledVariant: ...

    @property
    def size(self) -> int: ...


class _Acting(Protocol):
    name: str

    @property
    def layout(self) -> _Layout: ...


_Method = TypeVar("_Method", bound=Callable[..., Any])


def as_batch(
    agent: _Acting, observations: Any, action_masks: Any
) -> tuple[NDArray[Any], NDArray[np.bool_], bool]:
    """Return what an agent is asked as a batch: arrays, lists or tensors, of one decision or of many.

    Args:
        agent: Who is asked; it is named in errors.
        observations: (batch, layout.size) numbers, or (layout.size,) for a single decision.
        action_masks: (batch, num_actions) of 0 and 1, or (num_actions,), at least one 1 in each row.

    Returns:
        The observations (batch, layout.size), the masks (batch, num_actions) bool, and whether there was a
        single decision without a batch.

    Raises:
        AgentError: There are no masks, a shape is wrong, or the numbers are no observations or masks.
    """
    size, num_actions = agent.layout.size, agent.layout.compiled.num_actions
    if isinstance(observations, Mapping):
        raise AgentError(
            f"{agent.name}: observations: a mapping with {', '.join(map(repr, observations))}; "
            "pass its array of observations, and its masks as action_masks"
        )
    if action_masks is None:
        raise AgentError(f"{agent.name}: action_masks: needed to choose an action; pass env.action_masks()")
    try:
        numbers, masks = np.asarray(observations), np.asarray(action_masks)
    except ValueError as error:
        raise AgentError(f"{agent.name}: observations and action_masks: no arrays: {error}") from None
    is_numbers = np.issubdtype(numbers.dtype, np.number)
    if numbers.ndim not in (1, 2) or numbers.shape[-1] != size or not is_numbers:
        raise AgentError(
            f"{agent.name}: observations: {numbers.dtype} of shape {numbers.shape} are not numbers of shape "
            f"(batch, {size}) or ({size},)"
        )
    is_single = numbers.ndim == 1
    numbers = numbers.reshape(-1, size)
    if not np.isfinite(numbers).all():
        raise AgentError(f"{agent.name}: observations: not all numbers are finite")
    allowed = [(len(numbers), num_actions)] + ([(num_actions,)] if len(numbers) == 1 else [])
    if masks.shape not in allowed:
        raise AgentError(
            f"{agent.name}: action_masks: shape {masks.shape} is not {allowed[0]}, a row for each observation"
        )
    masks = masks.reshape(-1, num_actions)
    if masks.dtype != np.bool_:
        if not np.isin(masks, (0, 1)).all():
            raise AgentError(f"{agent.name}: action_masks: {masks.dtype} that are not all 0 or 1")
        masks = masks.astype(np.bool_)
    if not masks.any(axis=1).all():
        row = int(masks.any(axis=1).argmin())
        raise AgentError(f"{agent.name}: action_masks: row {row} allows nothing; is that episode over?")
    return numbers, masks, is_single


def batched(answer: _Method) -> _Method:
    """Let a method that answers batches take single decisions too, and refuse what is none; see ``as_batch``.

    A single observation, (layout.size,), has a single answer, without the axis of the batch: as from the
    ``predict`` of stable-baselines3.

    Args:
        answer: A method of observations (batch, layout.size), masks (batch, num_actions) bool and options,
            which returns an array with a row for each.
    """

    @functools.wraps(answer)
    def answer_any(self: _Acting, observations: Any, action_masks: Any, *args: Any, **options: Any) -> Any:
        batch, masks, is_single = as_batch(self, observations, action_masks)
        answers = answer(self, batch, masks, *args, **options)
        return answers.reshape(answers.shape[1:]) if is_single else answers

    return cast(_Method, answer_any)


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
            observations: (batch, layout.size) float32; the agents of this package also take a single one,
                (layout.size,), see ``batched``.
            action_masks: (batch, num_actions) bool, at least one true in each row.
            deterministic: Take the best action instead of sampling one.

        Returns:
            (batch,) int64, legal under the masks; a single action without the axis of the batch.
        """

    @batched
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


class StateAgent(Agent):
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

    @batched
    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation; see ``Agent.act``."""
        return self.act_on(self.layout.decode(observations), action_masks)

    @abstractmethod
    def act_on(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choose an action for every state of a batch.

        Args:
            batch: The states.
            action_masks: (batch, num_actions) bool.

        Returns:
            (batch,) int64, legal under the masks.
        """


def ask_alone(
    agent: Agent, batch: TurnBatch, action_masks: NDArray[np.bool_], *, deterministic: bool = True
) -> NDArray[np.int64]:
    """Ask an agent for its actions in states, through whatever it reads.

    Args:
        agent: Who decides.
        batch: The states.
        action_masks: (batch, num_actions) bool.
        deterministic: Take the agent's best actions instead of sampling.

    Returns:
        (batch,) int64, legal.

    Raises:
        AnswerError: An answer is not legal, or is no action.
    """
    # A copy, so that whoever writes into its masks does not make its own action legal.
    masks = action_masks.copy()
    if isinstance(agent, StateAgent):
        # What it would read back from the observation.
        answer = agent.act_on(batch, masks)
    else:
        answer = agent.act(agent.layout.encode(batch), masks, deterministic=deterministic)
    return checked_actions(agent, answer, agent.compiled, batch, action_masks)


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
