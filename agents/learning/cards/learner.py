"""What the card learners have in common: games, weights, averages of weights, state, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from agents.learning.cards.kernels import Games, start_games
from agents.learning.cards.play import CardPlay
from agents.learning.cards.tables import AfterstateTables, afterstate_tables
from generala_env.rules.compiled import CompiledVariant, InstantWin, compile_variant
from generala_env.rules.variants import Variant

State = dict[str, Any]
"""A nested dictionary of arrays."""


Schedule = Callable[[float], float]
"""From the remaining progress, which falls from 1 to 0, to a value, as SB3 counts it."""


def linear(start: float, end: float) -> Schedule:
    """Return a schedule that goes from ``start`` to ``end`` along a line."""
    return lambda remaining: end + (start - end) * remaining


def constant(value: float) -> Schedule:
    """Return a schedule that stays."""
    return lambda _: value


RATE: Final = linear(3e-3, 0.0)
EXPLORATION: Final = linear(0.1, 0.02)
"""How learning rates and the share of random actions fall unless told otherwise."""


@dataclass(frozen=True)
class GameSettings:
    """How games are played while learning from them.

    Attributes:
        num_games: Games played side by side.
        num_steps: Decisions of each game in an iteration.
        epsilon: The chance of an action drawn uniformly.
        random_start: The chance that a game starts from any card.
        trace: Lambda of the targets, 0 for one step.
    """

    num_games: int = 4096
    num_steps: int = 8
    epsilon: Schedule = EXPLORATION
    random_start: float = 0.1
    trace: float = 0.0


class WeightAverage:
    """A running average of weights over the last share of all updates.

    The newest of ``n`` updates counts ``1 / max(1, share * n)``, so that the window grows with the
    run and the random beginning is forgotten at any length of run.

    Args:
        parameters: The weights to follow.
        share: How long the window is, as a share of the updates so far; 0 follows at once.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], share: float) -> None:
        self.parameters = list(parameters)
        self.share = share
        self.averages = [parameter.detach().clone() for parameter in self.parameters]

    @torch.no_grad()
    def update(self, num_updates: int) -> None:
        """Take in the weights after the update of that number, from 1."""
        weight = 1.0 / max(1.0, self.share * num_updates)
        torch._foreach_lerp_(self.averages, [p.detach() for p in self.parameters], weight)


def optimizer_state(optimizer: torch.optim.Adam) -> State:
    """Return the moments and step counts of every parameter, in order, as arrays."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        str(index): {
            name: value.detach().numpy().copy() for name, value in optimizer.state[parameter].items()
        }
        for index, parameter in enumerate(parameters)
        if optimizer.state[parameter]
    }


def set_optimizer_state(optimizer: torch.optim.Adam, state: Mapping[str, Any]) -> None:
    """Set what ``optimizer_state`` returned."""
    optimizer.state.clear()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, moments in state.items():
        optimizer.state[parameters[int(index)]] = {
            name: torch.from_numpy(np.array(value)) for name, value in moments.items()
        }


def set_tensors(tensors: Iterable[torch.Tensor], arrays: Mapping[str, Any]) -> None:
    """Copy numbered arrays into tensors."""
    with torch.no_grad():
        for index, tensor in enumerate(tensors):
            tensor.copy_(torch.from_numpy(np.array(arrays[str(index)])))


def arrays_of(tensors: Iterable[torch.Tensor]) -> State:
    """Return copies of tensors as numbered arrays."""
    return {str(index): tensor.detach().numpy().copy() for index, tensor in enumerate(tensors)}


class CardLearner:
    """Games in progress and answers from a table of outputs; what learns is in the subclasses.

    Args:
        variant: A preset's name, a variant, or its tables.
        settings: How to play and learn.
        instant_win: How a served Generala that wins is treated.
        seed: Of the dice, the exploration and the initial weights.

    Attributes:
        compiled: The variant.
        tables: Its arrays for the compiled loops.
        rng: (1,) uint64, the state of the random numbers.
        games: The games in progress.
        num_iterations: Iterations done.
        num_updates: Gradient steps done.
        num_decisions: Decisions collected.
        num_finished: Games finished.
    """

    def __init__(
        self,
        variant: str | Variant | CompiledVariant,
        settings: GameSettings,
        *,
        instant_win: InstantWin,
        seed: int,
    ) -> None:
        self.compiled = variant if isinstance(variant, CompiledVariant) else compile_variant(variant)
        self.tables: AfterstateTables = afterstate_tables(self.compiled, instant_win)
        self.num_games, self.num_steps = settings.num_games, settings.num_steps
        self.random_start = settings.random_start
        self.rng = np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
        self.games = Games(
            np.zeros(self.num_games, dtype=np.int32),
            np.zeros(self.num_games, dtype=np.int16),
            np.zeros(self.num_games, dtype=np.int16),
            np.zeros(self.num_games, dtype=np.int16),
        )
        # From any card: games that all begin together would stay in step for long.
        start_games(self.tables, self.rng, 1.0, self.games)
        self.num_iterations = self.num_updates = self.num_decisions = self.num_finished = 0

    @property
    def num_rows(self) -> int:
        """``R``, the classes of cards with an open box."""
        return self.tables.num_rows

    @property
    def num_decisions_per_iteration(self) -> int:
        """Decisions of all games together in an iteration."""
        return self.num_games * self.num_steps

    def collect_and_learn_iteration(self, remaining: float) -> dict[str, float]:
        """Play some decisions, learn from them, and return what is worth a log.

        Args:
            remaining: How much of the run is left, from 1 to 0.
        """
        raise NotImplementedError

    def play(self, *, is_averaged: bool = True) -> CardPlay:
        """Return what has been learned so far, which later learning does not change.

        Args:
            is_averaged: Whether by the averaged weights.
        """
        raise NotImplementedError

    def state_dict(self) -> State:
        """Return all that a run needs to go on exactly, as a nested dictionary of arrays."""
        return {
            "rng": self.rng.copy(),
            "games": {name: array.copy() for name, array in self.games._asdict().items()},
            "counters": np.array(
                [self.num_iterations, self.num_updates, self.num_decisions, self.num_finished]
            ),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set what ``state_dict`` returned, of a learner with the same settings."""
        self.rng[:] = state["rng"]
        for name, array in self.games._asdict().items():
            array[:] = state["games"][name]
        self.num_iterations, self.num_updates, self.num_decisions, self.num_finished = (
            int(count) for count in state["counters"]
        )
