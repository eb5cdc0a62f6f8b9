"""Which game a command plays: the one it is told, or the one that its agents were trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from agents.cli import instant_win_from, variant_from
from agents.registry import agent_names
from agents.runs.folder import RunRules, read_rules
from agents.saving.agent_files import read_agent
from agents.zoo.entries import agent_path, is_zoo_name
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin
from generala_env.rules.variants import DEFAULT_VARIANT


def rules_of(path: Path) -> RunRules:
    """Return the game that a run folder, or an agent in a file, was trained on.

    Raises:
        AgentError: It is neither.
    """
    if path.is_dir():
        return read_rules(path)
    blueprint, _ = read_agent(path)
    return RunRules(blueprint.variant, cast(InstantWin, blueprint.instant_win))


def _trained_on(agent: str) -> RunRules | None:
    """Return the game that an agent was trained on; ``None`` where it plays any, or there is none such."""
    if agent in agent_names():
        return None
    path = agent_path(agent) if is_zoo_name(agent) else Path(agent)
    return rules_of(path) if path.exists() else None


def rules_of_each(
    agents: Sequence[str], variant: str | None, overrides: Sequence[str], instant_win: InstantWin | None
) -> list[RunRules]:
    """Return the game of every agent: as ``rules_to_play``, but trained agents keep to their own.

    Args:
        agents: Names, run folders and agent files.
        variant: A preset's name, where one is given; it is then everybody's.
        overrides: Fields of the rules to override, each as ``FIELD=VALUE``.
        instant_win: How a served Generala that wins is treated, where that is given.

    Raises:
        UsageError: The name, a field or a value is not known.
        AgentError: A run or a file cannot be read.
    """
    shared = rules_to_play(agents, variant, overrides, instant_win)
    return [
        rules_to_play([agent], None, overrides, instant_win)
        if variant is None and _trained_on(agent) is not None
        else shared
        for agent in agents
    ]


def rules_to_play(
    agents: Iterable[str], variant: str | None, overrides: Iterable[str], instant_win: InstantWin | None
) -> RunRules:
    """Return the game to play: as given, else that of the first run or agent file, else the default.

    Args:
        agents: Names, run folders and agent files.
        variant: A preset's name, where one is given.
        overrides: Fields of the rules to override, each as ``FIELD=VALUE``.
        instant_win: How a served Generala that wins is treated, where that is given.

    Raises:
        UsageError: The name, a field or a value is not known.
        AgentError: A run or a file cannot be read.
    """
    run: RunRules | None = None
    if variant is None:
        run = next((found for found in map(_trained_on, agents) if found is not None), None)
    base = run.variant if run is not None else variant or DEFAULT_VARIANT
    otherwise = run.instant_win if run is not None else DEFAULT_INSTANT_WIN
    return RunRules(variant_from(base, overrides), instant_win_from(instant_win, otherwise))
