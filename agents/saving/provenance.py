"""Which versions and which commit something was made with."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_PACKAGES: Final = (
    "generala-env",
    "gymnasium",
    "numpy",
    "torch",
    "stable-baselines3",
    "sb3-contrib",
    "numba",
)


def processor() -> str:
    """Return what this processor calls itself."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def provenance() -> dict[str, Any]:
    """Return the versions, the git commit and the processor that this is, as JSON types.

    The commit ends in ``+`` where files differ from it; it is ``None`` outside a checkout.
    """
    import generala_env

    versions = {"python": platform.python_version(), "generala-env": generala_env.__version__}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.setdefault(name, importlib.metadata.version(name))
    root = Path(__file__).resolve().parents[2]

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit and git("status", "--porcelain", "--untracked-files=no"):
        commit += "+"
    return {"versions": versions, "commit": commit, "processor": processor()}
