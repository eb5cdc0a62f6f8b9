"""The command ``match``: what it prints, its JSON, and bad input."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.errors import UsageError
from scripts.match import main

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/match.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    main([*arguments, "--json"])
    out, _ = capsys.readouterr()
    assert out.count("\n") == 1
    result: dict[str, Any] = json.loads(out)
    return result


def test_json_is_one_object_with_tables_pairs_and_ratings(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--agents", "solo_optimal", "tips", "random", "--games", "30", "--variant", "doble")
    result = as_json(capsys, *arguments)
    assert result["variant"] == "doble"
    assert len(result["tables"]) == 1
    assert result["tables"][0]["num_games"] == 30
    assert len(result["pairs"]) == 3
    assert {entry["agent"] for entry in result["ratings"]} == {"solo_optimal", "tips", "random"}
    assert result == as_json(capsys, *arguments)


def test_seats_make_a_round_robin(capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(
        capsys, "--agents", "solo_optimal", "turn_greedy", "random", "--players", "2", "--games", "20"
    )
    assert len(result["tables"]) == 3
    assert all(table["num_deals"] == 10 for table in result["tables"])


def test_overrides_and_the_starter_reach_the_games(capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(
        capsys,
        *("--agents", "turn_greedy", "random", "--games", "20", "--first-player", "1"),
        *("--set", "generala_points=55"),
    )
    assert "generala_points=55" in result["variant"]
    # The starter's seat is fixed, and rotations put both agents there equally often.
    for row in result["tables"][0]["agents"]:
        assert row["win_share_starting"] is not None


def test_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--agents", "turn_greedy", "random", "--games", "20"])
    out, _ = capsys.readouterr()
    for text in ("turn_greedy", "win share", "decided by", "ends ahead", "Ratings"):
        assert text in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agents", "tips"], "--agents"),
        (["--agents", "tips", "tipsy"], "tipsy"),
        (["--agents", "tips", "random", "--players", "3"], "--players"),
        (["--agents", "tips", "random", "--games", "1"], "games: 1"),
        (["--agents", "tips", "random", "--set", "full_points=x"], "full_points"),
        (["--agents", *(["random"] * 5)], "2 to 4"),
    ],
)
def test_bad_input_is_told_in_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises((UsageError, ValueError), match=message):
        main(arguments)


def test_bad_input_exits_with_2_and_nothing_on_standard_output() -> None:
    done = run("--agents", "tips", "tipsy", "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "did you mean tips" in done.stderr


def test_help_shows_examples() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "scripts/match.py --agents" in done.stdout
