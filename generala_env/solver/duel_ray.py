"""Layers of the two-player game solved as Ray tasks, on this machine or on a cluster.

The pairs of a layer are independent, so runs of them are tasks. The layer below is put into the
object store once and read there by every worker without a copy. A task whose worker dies is tried again;
it writes nothing but its own values, so the numbers are the same, bit for bit.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generala_env.solver.duel import LayerSolver, LayerTask

LOCAL: Final = "local"
"""The address that starts a Ray on this machine's cores."""

_TASKS_PER_CORE: Final = 4


def _solve_run(task: LayerTask, number: int, previous: NDArray[Any]) -> NDArray[Any]:
    first, last = task.bounds(number)
    values = np.empty(last - first, dtype=previous.dtype)
    task.solve(number, previous, values)
    return values


@contextmanager
def ray_solver(address: str = LOCAL, *, num_workers: int | None = None) -> Iterator[LayerSolver]:
    """Connect to Ray and give what ``solve_duel`` takes as ``solve_layer``.

    Args:
        address: ``"local"``, ``"auto"`` or the address of a cluster.
        num_workers: Cores of a local Ray; all of them if ``None``.

    Raises:
        ModuleNotFoundError: Ray is not installed (extra ``distributed``).
        ConnectionError: There is no cluster at the address.
    """
    import ray

    is_local = address == LOCAL
    ray.init(
        address=address,
        num_cpus=num_workers if is_local else None,
        include_dashboard=False if is_local else None,
        configure_logging=True,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
    # A worker may die as often as it likes; one task takes one core, so one thread.
    run = ray.remote(num_cpus=1, max_retries=-1, runtime_env={"env_vars": {"NUMBA_NUM_THREADS": "1"}})(
        _solve_run
    )

    def solve_layer(
        task: LayerTask, previous: NDArray[Any], values: NDArray[Any], report: Callable[[int], None]
    ) -> None:
        # Ray is an extra: typed loosely, so that types are checked alike with it and without.
        cluster: Any = ray
        resources: dict[str, float] = cluster.cluster_resources()
        stored, below = ray.put(task), ray.put(np.asarray(previous))
        pending: dict[Any, int] = {}
        waiting = iter(range(task.num_tasks))
        most_pending = _TASKS_PER_CORE * max(1, int(resources.get("CPU", 1)))
        while True:
            while len(pending) < most_pending and (number := next(waiting, None)) is not None:
                pending[run.remote(stored, number, below)] = number
            if not pending:
                return
            done, _ = ray.wait(list(pending))
            for reference in done:
                first, last = task.bounds(pending.pop(reference))
                values[first:last] = ray.get(reference)
                report(last - first)

    try:
        # Ray tells of dead workers on standard output, which belongs to the caller's result.
        with redirect_stdout(sys.stderr):
            yield solve_layer
    finally:
        ray.shutdown()
