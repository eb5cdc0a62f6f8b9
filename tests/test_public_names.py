"""What README says of the package itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

import generala_env


def test_the_table_is_there_after_importing_the_package_alone() -> None:
    code = (
        "import sys, generala_env; assert 'pettingzoo' not in sys.modules; "
        "print(generala_env.table_v0.env(num_players=3).unwrapped.possible_agents)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['player_0', 'player_1', 'player_2']"


def test_other_names_are_refused_as_usual() -> None:
    with pytest.raises(AttributeError, match="table_v9"):
        _ = generala_env.table_v9
