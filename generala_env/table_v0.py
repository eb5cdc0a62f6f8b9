"""The table for two or more players, by PettingZoo's convention: ``env``, ``raw_env``, ``parallel_env``.

Importing it also enters ``generala_env/table-v0`` into PettingZoo's registry, where the installed version
has one.
"""

import pettingzoo

from generala_env.envs.table import env, parallel_env, raw_env

__all__ = ["env", "parallel_env", "raw_env"]

if hasattr(pettingzoo, "register"):  # from PettingZoo 1.27 on
    pettingzoo.register("aec", "generala_env/table-v0", entry_point="generala_env.envs.table:env")
    pettingzoo.register(
        "parallel", "generala_env/table-v0", entry_point="generala_env.envs.table:parallel_env"
    )
