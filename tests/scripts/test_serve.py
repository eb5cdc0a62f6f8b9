"""The command that serves the page."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from agents.errors import UsageError
from scripts.serve import main

ROOT = Path(__file__).parents[2]


def test_it_serves_the_page_and_ends_when_told_to(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/serve.py", "--port", "0", "--records", str(tmp_path / "games")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment) as served:
        assert served.stdout is not None
        line = served.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line
        with urllib.request.urlopen(found[0], timeout=30) as answer:
            assert b"<title>Generala</title>" in answer.read()
        served.send_signal(signal.SIGTERM)
        assert served.wait(30) in (0, -signal.SIGTERM)


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen at 127\.0\.0\.1:{port}: .*in use"):
            main(["--port", str(port), "--records", str(tmp_path)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "70000"], "--port: 70000 is not from 0 to 65535"),
        (["--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid"),
        (["--records", "README.md"], "--records: README.md is not a folder"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(UsageError, match=re.escape(message)):
        main(arguments)


@pytest.mark.parametrize("rules", [["--variant", "rubial"], ["--set", "generala_pionts=3"]])
def test_unknown_rules_are_refused(rules: list[str]) -> None:
    with pytest.raises(UsageError, match="did you mean"):
        main(rules)
