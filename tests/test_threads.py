"""Work on several threads: the same results, and nothing that a fork or another thread cannot survive."""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generala_env.solver import solo
from generala_env.solver.duel import solve_duel
from generala_env.solver.solo import solve_solo
from generala_env.threads import config, in_shares, num_shares

NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def run_fresh(code: str, folder: Path) -> str:
    """Run code in a fresh process with two threads and return what it prints."""
    path = folder / "fresh.py"
    path.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(path)],
        env=os.environ | {"NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def start_together(work: Callable[[], object], count: int) -> None:
    """Call a function in several threads at once and wait for them."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_little_work_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 3)
    assert [num_shares(items, 16) for items in (0, 1, 31, 32, 47, 48, 1000)] == [1, 1, 1, 2, 2, 3, 3]


def test_shares_run_side_by_side_and_answer_in_order() -> None:
    together = threading.Barrier(2, timeout=60)

    def work(share: int, shares: int) -> tuple[int, int]:
        together.wait()
        return share, shares

    assert in_shares(work, 2) == [(0, 2), (1, 2)]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_a_share_is_raised_after_all_have_ended(failing: int) -> None:
    ended = []

    def work(share: int, _: int) -> None:
        if share == failing:
            raise ValueError("this share fails")
        ended.append(share)

    with pytest.raises(ValueError, match="this share fails"):
        in_shares(work, 2)
    assert ended == [1 - failing]


def test_threads_change_no_bit_of_a_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    solo_alone, duel_alone = solve_solo("ruibal"), solve_duel("ruibal", start=(33, 33))
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 3)
    shares = []

    def counted(work: Callable[[int, int], Any], count: int) -> list[Any]:
        shares.append(count)
        return in_shares(work, count)

    monkeypatch.setattr(solo, "in_shares", counted)
    solo_shared, duel_shared = solve_solo("ruibal"), solve_duel("ruibal", start=(33, 33))
    assert max(shares) == 3
    np.testing.assert_array_equal(solo_alone.class_keep_values, solo_shared.class_keep_values)
    for alone, shared in zip(duel_alone.values, duel_shared.values, strict=True):
        np.testing.assert_array_equal(alone, shared)


def test_two_threads_may_solve_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = solve_solo("ruibal").class_values
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 2)
    found = []
    start_together(lambda: found.append(solve_solo("ruibal").class_values), 2)
    assert len(found) == 2
    for values in found:
        np.testing.assert_array_equal(values, expected)


@NEEDS_FORK
def test_a_fork_after_solving_survives(tmp_path: Path) -> None:
    code = """
import os, threading
from generala_env.solver.solo import solve_solo

value = solve_solo("ruibal").class_values.max()
child = os.fork()
assert solve_solo("ruibal").class_values.max() == value
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(round(float(value), 3))
"""
    assert run_fresh(code, tmp_path) == "151.935"


@NEEDS_FORK
def test_forks_while_another_thread_solves_survive(tmp_path: Path) -> None:
    code = """
import os, threading
from generala_env.solver.solo import solve_solo

solve_solo("ruibal")
done = threading.Event()
def go_on():
    while not done.is_set():
        solve_solo("ruibal")
solving = threading.Thread(target=go_on)
solving.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        solve_solo("ruibal")
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
solving.join()
print(codes)
"""
    assert run_fresh(code, tmp_path) == "[0, 0, 0, 0, 0]"


@pytest.mark.parametrize("context", sorted(multiprocessing.get_all_start_methods()))
def test_duels_step_in_processes_of_their_own(context: str, tmp_path: Path) -> None:
    code = f"""
import gymnasium as gym

def main():
    ids = "agents:generala_env/GeneralaDuel-v0"
    envs = gym.make_vec(ids, num_envs=2, vectorization_mode="async", vector_kwargs={{"context": {context!r}}})
    observations, infos = envs.reset(seed=0)
    for _ in range(3):
        observations, rewards, *_, infos = envs.step(infos["action_mask"].argmax(1))
    envs.close()
    print(rewards.shape)

if __name__ == "__main__":
    main()
"""
    assert run_fresh(code, tmp_path) == "(2,)"
