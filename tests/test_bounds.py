"""Compiled code looks up nothing outside its arrays: numba checks indices on request, never otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FILES = [
    "tests/solver/test_turn.py",
    "tests/solver/test_solo.py",
    "tests/solver/test_evaluation.py",
    "tests/envs/test_vector.py",
]

OUT_OF_BOUNDS = """\
import numpy as np
from generala_env.compiling import kernel

@kernel()
def beyond(values):
    return values[values.shape[0]]

beyond(np.zeros(3))
"""


@pytest.fixture
def checked(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose kernels are compiled anew, with their bounds checked."""
    return {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}


def test_an_index_out_of_bounds_would_be_told(checked: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "beyond.py"
    script.write_text(OUT_OF_BOUNDS)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={**checked, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "IndexError: index is out of bounds" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", FILES)
def test_no_kernel_leaves_its_arrays(file: str, checked: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file]
    done = subprocess.run(command, cwd=ROOT, env=checked, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
