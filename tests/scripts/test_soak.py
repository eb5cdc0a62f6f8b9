"""The soak command: it counts what it did, notices what is broken, and leaves nothing running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import scripts.soak as soak
from generala_env.envs.vector import GeneralaVectorEnv
from scripts.soak import Invariants, SoakError, main


def test_random_play_is_counted_by_preset(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "NUM_ENVS", 16)
    monkeypatch.setattr(soak, "PRESETS", ("ruibal", "doble_fija"))
    assert main(["--json", "random", "--steps", "3000"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["steps"] == 3008
    assert [row["steps"] for row in result["presets"].values()] == [1504, 1504]
    assert all(row["episodes"] > 20 for row in result["presets"].values())
    assert result["presets"]["ruibal"]["lowest_score"] < result["presets"]["ruibal"]["highest_score"] <= 540


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("rewards", "a negative reward"),
        ("masks", "no legal action"),
        ("observations", r"outside \[0, 1\]"),
        ("throw", "a throw that is none of the three"),
    ],
)
def test_a_broken_invariant_is_noticed(broken: str, message: str) -> None:
    env = GeneralaVectorEnv(4, autoreset_mode="SameStep")
    env.reset(seed=0)
    invariants = Invariants(env)
    actions = env.action_masks().argmax(axis=1)
    observations = env.advance(actions)
    invariants.check(actions, observations)
    actions = env.action_masks().argmax(axis=1)
    observations = env.advance(actions)
    if broken == "observations":
        observations[2, 5] = np.float32(1.5)
    elif broken == "throw":
        env.batch.state[1, 2] = 4
    else:
        getattr(env.batch, broken)[3] = -1 if broken == "rewards" else 0
    with pytest.raises(SoakError, match=message):
        invariants.check(actions, observations)


@pytest.mark.slow
def test_a_training_that_is_watched_ends_with_the_watcher() -> None:
    script = Path(soak.__file__)
    command = [sys.executable, str(script), "memory", "--config", "smoke.yaml", "--minutes", "10"]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(script.parent.parent)})
    limit = time.monotonic() + 120
    children: list[psutil.Process] = []
    while not children:
        assert time.monotonic() < limit
        assert process.poll() is None
        time.sleep(0.1)
        children = psutil.Process(process.pid).children()
    time.sleep(2.0)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    psutil.wait_procs(children, timeout=60)
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
