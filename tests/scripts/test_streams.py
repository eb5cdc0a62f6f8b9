"""What the commands print, where standard output is no terminal or has few letters."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"NUMBA_NUM_THREADS": "1"} | environment,
        capture_output=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["scripts/match.py", "--agents", "random", "tips", "--games", "8"],
        ["scripts/evaluate.py", "--agent", "random", "--games", "20"],
        ["scripts/solve.py"],
        ["scripts/play.py", "--seats", "random", "tips", "--pause", "0", "--seed", "1"],
    ],
    ids=lambda arguments: Path(arguments[0]).stem,
)
def test_letters_an_encoding_lacks_are_no_error(arguments: list[str], encoding: str, tmp_path: Path) -> None:
    if "--seats" in arguments:
        arguments = [*arguments, "--record", str(tmp_path / "game.jsonl")]
    done = run(arguments, PYTHONIOENCODING=encoding, COLUMNS="80")
    assert b"Traceback" not in done.stderr, done.stderr.decode(encoding)
    assert done.returncode == 0, done.stderr.decode(encoding)
    assert done.stdout.decode(encoding)


@pytest.mark.parametrize(
    "arguments",
    [
        ["scripts/solve.py", "--players", "2", "--set", "boxes=[ones,twos]"],
        ["scripts/match.py", "--agents", "random", "tips", "--games", "3000"],
    ],
    ids=lambda arguments: Path(arguments[0]).stem,
)
def test_a_log_gets_no_progress_bars(arguments: list[str]) -> None:
    done = run(arguments)
    assert done.returncode == 0
    assert done.stderr == b""
