"""Who sits at a table: people and agents, what they are called, and how an agent is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, ask_alone
from agents.games.record import AT_TABLE, Table
from agents.players.seats import SeatAgent
from agents.registry import make_agent
from generala_env.envs.opponents import ask
from generala_env.envs.table_observation import table_batch
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import GameState
from generala_env.rules.names import numbered, word

PERSON: Final = "me"


def is_person(seat: str) -> bool:
    """Tell whether a seat is a person's: ``me`` or ``me:NAME``."""
    return seat == PERSON or seat.startswith(f"{PERSON}:")


def is_unnamed(seat: str) -> bool:
    """Tell whether a seat is that of a person who gave no name."""
    return is_person(seat) and not seat.partition(":")[2]


def seat_names(seats: Sequence[str], language: str) -> list[str]:
    """Return what the players are called, numbered where a name comes more than once.

    A person without a name is addressed, unless there are several, who are players with numbers.
    """
    unnamed = word("you" if sum(map(is_unnamed, seats)) == 1 else "player", language)
    names = []
    for seat in seats:
        if is_unnamed(seat):
            names.append(unnamed)
        else:
            names.append(seat.partition(":")[2] if is_person(seat) else Path(seat).name)
    return numbered(names)


class Seating:
    """The agents of a table, each made once.

    Attributes:
        agents: By seat; ``None`` where a person sits.
    """

    def __init__(self, table: Table, store: Path | None = None) -> None:
        """Make the agents.

        Args:
            table: Who sits where.
            store: Folder of solved two-player games; ``None`` is the default place.

        Raises:
            AgentError: An agent cannot be made.
        """
        self.compiled = compile_variant(table.variant)
        self.agents = [
            None if is_person(seat) else self._agent(table, index, store)
            for index, seat in enumerate(table.seats)
        ]

    def _agent(self, table: Table, index: int, store: Path | None) -> SeatAgent | Agent:
        name, seed, num_players = table.seats[index], table.seed + index, len(table.seats)
        if num_players == 1:
            return make_agent(name, self.compiled, instant_win=AT_TABLE, seed=seed)
        return make_agent(
            name, self.compiled, num_players=num_players, instant_win=AT_TABLE, seed=seed, store=store
        )

    def decide(self, state: GameState, mask: NDArray[np.bool_]) -> int:
        """Return what the agent to move does.

        Args:
            state: The position.
            mask: (num_actions,) bool, what is legal; at least one.

        Raises:
            ValueError: A person is to move.
            AnswerError: The agent's answer is not legal, or is no action.
        """
        agent = self.agents[state.current_player]
        if agent is None:
            raise ValueError(f"seat {state.current_player} is a person's, who is not asked here")
        if mask.sum() == 1:
            return int(mask.argmax())
        if len(self.agents) == 1:
            assert isinstance(agent, Agent)
            return int(ask_alone(agent, self.compiled.turn_batch(state), mask[None])[0])
        batch = table_batch(self.compiled, state, state.current_player)
        return int(ask(agent, batch, mask[None], deterministic=True)[0])
