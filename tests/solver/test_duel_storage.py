"""Solutions on disk: they come back, they continue, and nothing damaged or foreign is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from generala_env.rules.compiled import compile_variant
from generala_env.rules.variants import get_variant
from generala_env.solver.duel import DuelPlan, LayerTask, open_duel, solve_duel, solve_layer_here
from generala_env.solver.storage import DuelStore, StoreError

NAME = "doble_obligada"
ROOT = Path(__file__).parents[2]

MEDIUM = {"base": "ruibal", "boxes": ["fives", "sixes", "escalera", "full", "poker", "generala"]}
"""Big enough to be interrupted, small enough for a test."""
MEDIUM_ARGUMENTS = ["--variant", "ruibal", "--set", f"boxes={','.join(MEDIUM['boxes'])}"]


def folder_of(root: Path, name: str = NAME) -> Path:
    return root / get_variant(name).fingerprint


def test_a_stored_solution_comes_back_the_same(tmp_path: Path) -> None:
    in_memory = solve_duel(NAME)
    assert open_duel(NAME, tmp_path) is None
    solved = solve_duel(NAME, store=tmp_path)
    opened = open_duel(NAME, tmp_path)
    assert opened is not None
    for solution in (solved, opened):
        assert solution.first_player_value == in_memory.first_player_value
        assert all(map(np.array_equal, solution.values, in_memory.values))
        assert all(isinstance(values, np.memmap) for values in solution.values)
    opened.verify()
    assert not [path for path in folder_of(tmp_path).iterdir() if path.suffix == ".tmp"]


def test_the_manifest_says_what_the_tables_are_for(tmp_path: Path) -> None:
    solve_duel(NAME, store=tmp_path)
    manifest = json.loads((folder_of(tmp_path) / "duel.json").read_text())
    variant = get_variant(NAME)
    assert manifest["fingerprint"] == variant.fingerprint
    assert get_variant(manifest["variant"]) == variant


def test_endgames_have_folders_of_their_own(tmp_path: Path) -> None:
    compiled = compile_variant(NAME)
    start = (compiled.card(8), compiled.card(8))
    first = solve_duel(NAME, start, store=tmp_path)
    assert open_duel(NAME, tmp_path) is None
    again = solve_duel(NAME, start, store=tmp_path)
    assert all(map(np.array_equal, first.values, again.values))


def _flip(path: Path, position: int = -3) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x40
    path.write_bytes(content)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: _flip(folder / "duel.json", 40), "its checksum does not fit"),
        (lambda folder: (folder / "duel.json").write_text("[]"), "its checksum does not fit"),
        (lambda folder: (folder / "duel.json").unlink(), "duel.json is missing"),
        (lambda folder: _truncate(folder / "layer-05.npy"), "layer-05.npy: damaged or missing"),
        (lambda folder: (folder / "layer-05.npy").unlink(), "layer-05.npy: damaged or missing"),
        (lambda folder: np.save(folder / "layer-05.npy", np.zeros(3)), "layer-05.npy: damaged: float64"),
        (lambda folder: _flip(folder / "checksums-05.npy"), "checksums-05.npy: damaged"),
        (lambda folder: (folder / "checksums-05.npy").unlink(), "checksums-05.npy: damaged or missing"),
    ],
)
def test_a_damaged_folder_is_refused_with_a_reason(
    tmp_path: Path, damage: Callable[[Path], Any], reason: str
) -> None:
    solve_duel(NAME, store=tmp_path)
    damage(folder_of(tmp_path))
    with pytest.raises(StoreError, match=reason):
        open_duel(NAME, tmp_path)
    with pytest.raises(StoreError, match=reason):
        solve_duel(NAME, store=tmp_path)


def test_a_damaged_value_is_noticed_when_it_is_used(tmp_path: Path) -> None:
    solve_duel(NAME, store=tmp_path)
    _flip(folder_of(tmp_path) / "layer-22.npy", -1)
    opened = open_duel(NAME, tmp_path)
    assert opened is not None
    with pytest.raises(StoreError, match=r"layer-22.npy: damaged \(row 0"):
        _ = opened.first_player_value
    with pytest.raises(StoreError, match=r"layer-22.npy: damaged"):
        opened.verify()


def test_a_solve_does_not_continue_from_a_damaged_layer(tmp_path: Path) -> None:
    _solve_up_to(tmp_path, 9)
    _flip(folder_of(tmp_path) / "layer-08.npy", -1)
    with pytest.raises(StoreError, match=r"layer-08.npy: damaged"):
        solve_duel(NAME, store=tmp_path)


def test_a_foreign_folder_is_refused_with_a_reason(tmp_path: Path) -> None:
    solve_duel(NAME, store=tmp_path)
    other = get_variant({"base": NAME, "generala_points": 60})
    folder_of(tmp_path).rename(tmp_path / other.fingerprint)
    with pytest.raises(StoreError, match="made for another game: fingerprint"):
        open_duel(other, tmp_path)


def _solve_up_to(root: Path, layer: int) -> None:
    def interrupt(task: LayerTask, *arguments: Any) -> None:
        if task.number == layer:
            raise KeyboardInterrupt
        solve_layer_here(task, *arguments)

    with pytest.raises(KeyboardInterrupt):
        solve_duel(NAME, store=root, solve_layer=interrupt)


def test_an_interrupted_solve_continues_from_its_finished_layers(tmp_path: Path) -> None:
    _solve_up_to(tmp_path, 9)
    assert open_duel(NAME, tmp_path) is None
    solved: list[int] = []

    def watch(task: LayerTask, *arguments: Any) -> None:
        solved.append(task.number)
        solve_layer_here(task, *arguments)

    solution = solve_duel(NAME, store=tmp_path, solve_layer=watch)
    assert solved == list(range(9, 23))
    assert all(map(np.array_equal, solution.values, solve_duel(NAME).values))


def test_the_layout_digest_depends_on_where_values_lie() -> None:
    plans = [DuelPlan(compile_variant(name)) for name in (NAME, "clasica_obligada", NAME)]
    assert plans[0].layout == plans[2].layout != plans[1].layout


# --- whole commands: kills, Ctrl-C and Ray -------------------------------------------------------


def start(store: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "scripts/solve.py", "--players", "2", *MEDIUM_ARGUMENTS, "--store", str(store)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*command, "--json", *arguments],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A test that itself runs in the background would hand its deafness to Ctrl-C down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    result: dict[str, Any] = json.loads(output)
    return result


def wait_for_layer(store: Path, layer: int) -> None:
    path = store / get_variant(MEDIUM).fingerprint / f"checksums-{layer:02d}.npy"
    deadline = time.monotonic() + 300
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def same_files(first: Path, second: Path) -> bool:
    names = sorted(path.name for path in first.rglob("*.npy"))
    assert names == sorted(path.name for path in second.rglob("*.npy"))
    fingerprint = get_variant(MEDIUM).fingerprint
    return all(
        (first / fingerprint / name).read_bytes() == (second / fingerprint / name).read_bytes()
        for name in names
    )


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_command_continues(tmp_path: Path, sent: signal.Signals) -> None:
    whole = finish(start(tmp_path / "whole"))
    killed = start(tmp_path / "killed")
    wait_for_layer(tmp_path / "killed", 5)
    killed.send_signal(sent)
    _, errors = killed.communicate(timeout=60)
    assert killed.returncode == (130 if sent == signal.SIGINT else -sent)
    assert sent != signal.SIGINT or "interrupted" in errors
    store = DuelStore.folder_of(tmp_path / "killed", get_variant(MEDIUM), None)
    finished = {path.name: path.stat().st_mtime_ns for path in store.glob("layer-*.npy")}
    assert 5 <= len(finished) < 13
    continued = finish(start(tmp_path / "killed"))
    assert continued["first_player_value"] == whole["first_player_value"]
    for name, written in finished.items():
        assert (store / name).stat().st_mtime_ns == written
    assert same_files(tmp_path / "whole", tmp_path / "killed")
    assert not list(store.glob(".*.tmp"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [0, 1])
def test_two_ray_workers_give_the_same_numbers_bit_for_bit(tmp_path: Path, kills: int) -> None:
    pytest.importorskip("ray")
    finish(start(tmp_path / "here"))
    process = start(tmp_path / "ray", "--ray")
    killed = 0
    deadline = time.monotonic() + 600
    while process.poll() is None and killed < kills:
        assert time.monotonic() < deadline
        for child in psutil.Process(process.pid).children(recursive=True):
            try:
                is_busy = "ray::_solve_run" in " ".join(child.cmdline())
                if is_busy:
                    child.kill()
                    killed += 1
                    break
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.005)
    finish(process)
    assert killed == kills
    assert same_files(tmp_path / "here", tmp_path / "ray")
