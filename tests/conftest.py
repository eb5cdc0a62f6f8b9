"""Settings that must be in place before a test module imports numpy, numba or torch."""

import os

from hypothesis import settings

# The suite runs in several processes; a thread pool in each of them would only compete for the cores.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# The first call of a compiled function takes seconds, so a deadline per example would fail at random.
# The parent keeps what hypothesis itself chose, which under CI is a fixed seed.
inherited = settings.get_profile(settings.get_current_profile_name())
settings.register_profile("generala", inherited, deadline=None)
settings.load_profile("generala")
