"""Scores on two scales must not be compared by accident: ``instant_win`` has one default."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import agents
import generala_env
from agents.config.loading import parse_config
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN


def parameters() -> Iterator[tuple[str, inspect.Parameter]]:
    """Yield every parameter named ``instant_win`` of what the packages define, with its owner's name."""
    for package in (generala_env, agents):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if callable(value) and getattr(value, "__module__", None) == found.name:
                    try:
                        signature = inspect.signature(value)
                    except (TypeError, ValueError):
                        continue
                    if "instant_win" in signature.parameters:
                        yield f"{found.name}.{name}", signature.parameters["instant_win"]


def test_every_signature_has_the_same_default() -> None:
    assert DEFAULT_INSTANT_WIN == "play_on"
    defaults = {name: one.default for name, one in parameters() if one.default is not one.empty}
    # One of each room, so that this is known to look everywhere.
    assert defaults.keys() >= {
        "generala_env.solver.solo.solve_solo",
        "generala_env.solver.evaluation.evaluate_policy",
        "generala_env.solver.race.race_tables",
        "generala_env.envs.solo.GeneralaEnv",
        "generala_env.envs.vector.GeneralaVectorEnv",
        "agents.base.AgentRequest",
        "agents.registry.make_agent",
        "agents.evaluation.exact.exact_evaluation",
        "agents.evaluation.sampled.play_games",
    }
    assert set(defaults.values()) == {DEFAULT_INSTANT_WIN}


def test_a_config_has_it_too() -> None:
    resolved = parse_config("algorithm: {name: ppo}\ntotal_timesteps: 100000\n", "a text", "name")
    assert resolved.config.env.instant_win == DEFAULT_INSTANT_WIN
