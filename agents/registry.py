"""Agents by name: one registry for those that play alone and those that look at the others."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, overload

from agents.base import Agent, AgentRequest
from agents.errors import AgentError
from agents.players.baselines import RandomAgent, ValueAgent
from agents.players.seats import DuelOptimalAgent, RaceAgent, SeatAgent, SoloOptimalAgent, duel_solution
from agents.players.tips import TipsAgent
from agents.zoo.entries import agent_path, is_zoo_name
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CompiledVariant, InstantWin, compile_variant
from generala_env.rules.variants import Variant
from generala_env.solver.solo import solve_solo, solve_turn_greedy
from generala_env.solver.storage import default_store

AgentFactory = Callable[[AgentRequest], Agent | SeatAgent]


@dataclass(frozen=True)
class _Entry:
    factory: AgentFactory
    needs_table: bool


_REGISTRY: Final[dict[str, _Entry]] = {}


def register_agent(name: str, *, needs_table: bool = False) -> Callable[[AgentFactory], AgentFactory]:
    """Return a decorator that puts a factory into the registry.

    Args:
        name: How the agent is asked for.
        needs_table: Whether it looks at the others, so that it cannot play alone.

    Raises:
        ValueError: The name is taken.
    """
    if name in _REGISTRY:
        raise ValueError(f"agent {name!r} is registered already")

    def decorate(factory: AgentFactory) -> AgentFactory:
        _REGISTRY[name] = _Entry(factory, needs_table)
        return factory

    return decorate


def agent_names(num_players: int = 1) -> tuple[str, ...]:
    """Return the names of the agents that can play with so many players, sorted."""
    return tuple(
        sorted(name for name, entry in _REGISTRY.items() if num_players > 1 or not entry.needs_table)
    )


@overload
def make_agent(
    spec: str | Path,
    variant: str | Variant | CompiledVariant,
    *,
    num_players: Literal[1] = 1,
    instant_win: InstantWin = ...,
    seed: int | None = None,
    store: Path | None = None,
) -> Agent: ...


@overload
def make_agent(
    spec: str | Path,
    variant: str | Variant | CompiledVariant,
    *,
    num_players: int,
    instant_win: InstantWin = ...,
    seed: int | None = None,
    store: Path | None = None,
) -> Agent | SeatAgent: ...


def make_agent(
    spec: str | Path,
    variant: str | Variant | CompiledVariant,
    *,
    num_players: int = 1,
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
    seed: int | None = None,
    store: Path | None = None,
) -> Agent | SeatAgent:
    """Make an agent from its name, or load a trained one from its run folder or file.

    Args:
        spec: A name of the registry, or a path.
        variant: The rules it is to play.
        num_players: How many play. Agents that look at the others need two or more.
        instant_win: How one-player values treat a served Generala that wins.
        seed: Seed of whatever the agent draws.
        store: Folder of solved two-player games; ``None`` is the default place.

    Raises:
        AgentError: There is no such agent, its files are broken, it plays other rules or not
            with that many players.
    """
    compiled = compile_variant(variant)
    request = AgentRequest(compiled, instant_win, seed, num_players, store)
    entry = _REGISTRY.get(str(spec))
    if entry is not None:
        if entry.needs_table and num_players < 2:
            raise AgentError(
                f"agent: {str(spec)!r} looks at the other players and cannot play alone; "
                f"alone: {', '.join(agent_names())}"
            )
        return entry.factory(request)
    path = agent_path(str(spec)) if is_zoo_name(spec) else Path(spec)
    if path.exists():
        # torch takes seconds to import, and most agents do without.
        from agents.learning.trained import load_agent

        return load_agent(path, request)
    near = difflib.get_close_matches(str(spec), agent_names(2), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    at_table = sorted(set(agent_names(2)) - set(agent_names()))
    raise AgentError(
        f"agent: {str(spec)!r} is neither a known agent nor a run folder; "
        f"{hint}known: {', '.join(agent_names())}; at a table also {', '.join(at_table)}"
    )


@register_agent("random")
def _random(request: AgentRequest) -> Agent:
    return RandomAgent(request.compiled, request.seed)


@register_agent("turn_greedy")
def _turn_greedy(request: AgentRequest) -> Agent:
    values = solve_turn_greedy(request.compiled, instant_win=request.instant_win)
    return ValueAgent("turn_greedy", values)


@register_agent("tips")
def _tips(request: AgentRequest) -> Agent:
    return TipsAgent(request.compiled)


@register_agent("optimal")
def _optimal(request: AgentRequest) -> Agent:
    return ValueAgent("optimal", solve_solo(request.compiled, instant_win=request.instant_win))


@register_agent("solo_optimal", needs_table=True)
def _solo_optimal(request: AgentRequest) -> SeatAgent:
    return SoloOptimalAgent(request.compiled, request.num_players, request.instant_win)


@register_agent("duel_optimal", needs_table=True)
def _duel_optimal(request: AgentRequest) -> SeatAgent:
    if request.num_players != 2:
        raise AgentError(f"duel_optimal: is for 2 players, not {request.num_players}")
    return DuelOptimalAgent(duel_solution(request.compiled, request.store or default_store()))


@register_agent("race", needs_table=True)
def _race(request: AgentRequest) -> SeatAgent:
    return RaceAgent(request.compiled, request.num_players, request.instant_win)
