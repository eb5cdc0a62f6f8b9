"""Work divided among threads.

Compiled functions let go of Python's lock, so Python's own threads run them side by side. numba's are
not used: once started they outlive their work, and a process that has them cannot fork, or a second
thread start work on them, without the whole process ending. Here a fork first waits for the threads and
ends them; parent and child start new ones when they need them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

import numba

config: Final[Any] = numba.config

_Result = TypeVar("_Result")

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def num_shares(num_items: int, least: int) -> int:
    """Return into how many shares to divide work: one a thread, and one alone where there is little.

    Args:
        num_items: How many items the work has.
        least: How many of them are worth handing to a thread, which takes some 0.02 ms, at least 1.

    Returns:
        From 1 to ``NUMBA_NUM_THREADS``, of the environment; the number of cores where it is not set.
    """
    # Not numba.get_num_threads(), which starts numba's threads.
    most: int = config.NUMBA_NUM_THREADS
    return max(1, min(most, num_items // least))


def in_shares(work: Callable[[int, int], _Result], shares: int) -> list[_Result]:
    """Do work in shares, side by side: one here, the others on threads.

    Args:
        work: Called with each share, from 0, and how many there are. Never divides its own work.
        shares: How many.

    Returns:
        (shares,) what ``work`` returned for each.
    """
    global _pool
    if shares == 1:
        return [work(0, 1)]
    with _lock:  # so that no fork comes between
        if _pool is None:
            _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="generala")
        others = [_pool.submit(work, share, shares) for share in range(1, shares)]
    try:
        mine = work(0, shares)
    finally:
        wait(others)  # also after an error: they write into the caller's arrays
    return [mine, *(other.result() for other in others)]


def _before_fork() -> None:
    global _pool
    _lock.acquire()
    if _pool is not None:
        _pool.shutdown()
        _pool = None


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release)
