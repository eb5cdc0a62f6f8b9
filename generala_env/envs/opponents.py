"""Who sits opposite the learner in a duel: an agent, a name, or a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from generala_env.envs.observation import ObservationLayout
from generala_env.envs.table_observation import TableBatch, TableLayout
from generala_env.rules.answers import checked_actions
from generala_env.rules.compiled import CompiledVariant

NUM_PLAYERS = 2


class Opponent(Protocol):
    """What can sit opposite the learner: every agent is one.

    Attributes:
        layout: The observations it reads: those of a table, or those of a player alone.
    """

    @property
    def layout(self) -> ObservationLayout | TableLayout:
        """The layout of the observations it reads."""
        ...

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation."""
        ...


OpponentSpec = str | Opponent

Opponents = OpponentSpec | Mapping[str, float] | Sequence[tuple[OpponentSpec, float]]
"""One opponent, or a pool with probabilities from which each episode draws one."""

OpponentResolver = Callable[[str, CompiledVariant], Opponent]

_resolvers: list[OpponentResolver] = []


def set_opponent_resolver(resolver: OpponentResolver) -> None:
    """Let ``opponent="name"`` be made by a function of the name and the variant's tables.

    Importing the package ``agents`` does so; environments themselves know no agents.
    """
    _resolvers[:] = [resolver]


def _resolve(spec: OpponentSpec, compiled: CompiledVariant) -> Opponent:
    opponent: Opponent
    if isinstance(spec, str):
        if not _resolvers:
            raise ValueError(
                f"opponent: {spec!r} is a name, and names are made by the package agents; import it first"
                f' (gym.make("agents:generala_env/GeneralaDuel-v0", opponent={spec!r}) does) or pass an agent'
            )
        opponent = _resolvers[0](spec, compiled)
    else:
        opponent = spec
    layout = getattr(opponent, "layout", None)
    if layout is None or not callable(getattr(opponent, "act", None)):
        raise ValueError(f"opponent: {spec!r} is neither a name nor an agent with layout and act()")
    theirs, ours = layout.compiled.variant, compiled.variant
    if theirs != ours:
        raise ValueError(
            f"opponent: plays {theirs.name} ({theirs.fingerprint}), "
            f"the environment {ours.name} ({ours.fingerprint})"
        )
    if isinstance(layout, TableLayout) and layout.num_players != NUM_PLAYERS:
        raise ValueError(f"opponent: plays at tables of {layout.num_players}, not of {NUM_PLAYERS}")
    return opponent


class OpponentPool:
    """The opponents of an environment and how likely each is to be drawn.

    Attributes:
        opponents: The opponents.
        probabilities: (opponents,) float64, summing to 1.
    """

    def __init__(self, opponents: Opponents, compiled: CompiledVariant) -> None:
        """Make the opponents.

        Args:
            opponents: One opponent, or pairs of opponent and weight.
            compiled: The variant's tables.

        Raises:
            ValueError: An opponent cannot be made or plays other rules, or a weight is wrong.
        """
        pairs: list[tuple[OpponentSpec, float]]
        if isinstance(opponents, Mapping):
            pairs = list(opponents.items())
        elif isinstance(opponents, Sequence) and not isinstance(opponents, str):
            pairs = [(pair[0], pair[1]) for pair in opponents]
        else:
            pairs = [(opponents, 1.0)]
        weights = np.array([weight for _, weight in pairs], dtype=np.float64)
        if not len(pairs) or not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
            raise ValueError(f"opponent: weights {weights.tolist()} are not non-negative with a positive sum")
        self.opponents = tuple(_resolve(spec, compiled) for spec, _ in pairs)
        self.probabilities = weights / weights.sum()
        self._thresholds = np.cumsum(self.probabilities)[:-1]

    def reset(self, seeds: Sequence[int]) -> None:
        """Restart what opponents draw from, so that one seed of an environment decides all.

        Args:
            seeds: Those that the environment was reset with.
        """
        for index, opponent in enumerate(self.opponents):
            restart = getattr(opponent, "reset", None)
            if callable(restart):
                restart(int(np.random.SeedSequence([index, *seeds]).generate_state(1, np.uint32)[0]))

    def draw(self, generator: np.random.Generator) -> int:
        """Draw the index of an opponent; nothing is drawn where there is only one."""
        if len(self.opponents) == 1:
            return 0
        return int(np.searchsorted(self._thresholds, generator.random(), side="right"))


def ask(
    agent: Opponent, batch: TableBatch, masks: NDArray[np.bool_], *, deterministic: bool
) -> NDArray[np.int64]:
    """Ask an agent for its actions at tables, through whatever it reads.

    Args:
        agent: Who decides.
        batch: The positions, seen by the seat to move.
        masks: (batch, num_actions) bool.
        deterministic: Take the agent's best actions instead of sampling.

    Returns:
        (batch,) int64, legal.

    Raises:
        AnswerError: An answer is not legal, or is no action.
    """
    layout = agent.layout
    observations = layout.encode(batch) if isinstance(layout, TableLayout) else layout.encode(batch.turn)
    answer = agent.act(observations, masks.copy(), deterministic=deterministic)
    return checked_actions(agent, answer, layout.compiled, batch.turn, masks)
