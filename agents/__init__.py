"""Agents: things that choose actions, and how they are trained and judged.

Importing the package lets environments make their opponents by name.
"""

from generala_env.envs.opponents import Opponent, set_opponent_resolver
from generala_env.rules.compiled import CompiledVariant


def _opponent(name: str, compiled: CompiledVariant) -> Opponent:
    # Agents bring in numba and more, so only when one is asked for.
    from agents.registry import make_agent

    return make_agent(name, compiled, num_players=2)


set_opponent_resolver(_opponent)
