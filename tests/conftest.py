"""Settings that must be in place before a test module imports numpy, numba or torch."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The suite runs in several processes; a thread pool in each of them would only compete for the cores.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Windows open where nobody sees them.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

# The first call of a compiled function takes seconds, so a deadline per example would fail at random.
# The parent keeps what hypothesis itself chose, which under CI is a fixed seed.
inherited = settings.get_profile(settings.get_current_profile_name())
settings.register_profile("generala", inherited, deadline=None)
settings.load_profile("generala")


@pytest.fixture(autouse=True)
def _as_torch_was() -> Iterator[None]:
    """Take back what a training run set for its process: threads, and how exact products are."""
    torch = sys.modules.get("torch")
    before = None if torch is None else (torch.get_num_threads(), torch.get_float32_matmul_precision())
    yield
    torch = sys.modules.get("torch")
    if torch is not None:
        threads, precision = before or (1, "highest")
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
