"""Agents: things that choose actions, and how they are trained and judged.

Importing the package lets environments make their opponents by name.
"""

from typing import Any

import gymnasium as gym

from generala_env.envs.opponents import Opponent, set_opponent_resolver
from generala_env.rules.compiled import CompiledVariant


def _opponent(name: str, compiled: CompiledVariant) -> Opponent:
    # Agents bring in numba and more, so only when one is asked for.
    from agents.registry import make_agent

    return make_agent(name, compiled, num_players=2)


def __getattr__(name: str) -> Any:
    if name == "GeneralaDuelEnv":
        # Only when one is made: it brings in numba.
        from generala_env.envs.duel import GeneralaDuelEnv

        return GeneralaDuelEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


set_opponent_resolver(_opponent)
# A process that is spawned, not forked, imports what the specification of its environment names.
gym.registry["generala_env/GeneralaDuel-v0"].entry_point = "agents:GeneralaDuelEnv"
