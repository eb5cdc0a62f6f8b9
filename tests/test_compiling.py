"""What runs is the code on disk, and no cache is ever the reason for a failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from generala_env.compiling import KEPT_VERSIONS, source_files

ROOT = Path(__file__).parents[1]
CALLEE = """
from generala_env.compiling import kernel

@kernel(is_inner=True)
def one(x):
    return x + {term}
"""
CALLER = """
from generala_env.compiling import kernel
from pack.inner import callee

one = callee.one

@kernel()
def two(x):
    return 10 * one(x)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "inner" / "__init__.py").touch()
    (folder / "inner" / "callee.py").write_text(CALLEE.format(term=1))
    (folder / "caller.py").write_text(CALLER)
    return folder


def start(package: Path, *, before: str = "", **environment: str) -> subprocess.Popen[str]:
    program = f"{before}\nfrom pack.caller import two\nprint(two(1), sum(two._cache_hits.values()))"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env={**inherited, "PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(package: Path, *, before: str = "", **environment: str) -> tuple[int, int, str]:
    """Return what the caller computes, how often it came from a cache, and what was said."""
    child = start(package, before=before, **environment)
    out, said = child.communicate(timeout=120)
    assert child.returncode == 0, said
    value, hits = out.split()
    return int(value), int(hits), said


def caches(package: Path) -> list[Path]:
    return sorted(package.rglob("__pycache__/kernels-*-caller-*"))


def test_an_edit_of_another_file_is_seen_with_a_warm_cache(package: Path) -> None:
    assert result(package)[:2] == (20, 0)
    assert result(package)[:2] == (20, 1)
    callee = package / "inner" / "callee.py"
    stat = callee.stat()
    callee.write_text(CALLEE.format(term=2))
    # Neither the time nor the size tells, as after `git switch` within one tick of the clock.
    os.utime(callee, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    before = "import sys; sys.dont_write_bytecode = True; import shutil, pathlib\n"
    for stale in package.rglob("*.pyc"):
        stale.unlink()
    assert result(package, before=before)[:2] == (30, 0)
    callee.write_text(CALLEE.format(term=1))
    for stale in package.rglob("*.pyc"):
        stale.unlink()
    assert result(package)[:2] == (20, 1), "the first version is kept beside the second"


def test_old_versions_are_tidied_away(package: Path) -> None:
    for term in range(1, KEPT_VERSIONS + 2):
        (package / "inner" / "callee.py").write_text(CALLEE.format(term=10 * term))
        for stale in package.rglob("*.pyc"):
            stale.unlink()
        assert result(package)[0] == 10 * (1 + 10 * term)
    assert len(caches(package)) == KEPT_VERSIONS


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("left", [0, 20])
def test_a_file_cut_short_is_made_again(package: Path, suffix: str, left: int) -> None:
    result(package)
    (folder,) = caches(package)
    (file,) = [path for path in folder.iterdir() if path.suffix == suffix]
    file.write_bytes(file.read_bytes()[:left])
    assert result(package)[:2] == (20, 0)
    assert result(package) == (20, 1, "")


def test_it_works_where_nothing_can_be_written_and_says_so_once(package: Path) -> None:
    for folder in (package, package / "inner"):
        (folder / "__pycache__").write_text("in the way")
    in_the_way = str(package / "__init__.py")
    value, _, said = result(package, HOME=in_the_way, XDG_CACHE_HOME=in_the_way)
    assert value == 20
    assert said.count("generala_env: no folder for compiled code can be written") == 1
    assert "NUMBA_CACHE_DIR" in said
    assert "Traceback" not in said


def test_a_full_disk_costs_speed_alone_and_is_named(package: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"
    value, _, said = result(package, before=full)
    assert value == 20
    assert "could not be kept" in said
    assert str(package) in said
    assert "Traceback" not in said
    assert result(package) == (20, 0, "")


def test_a_folder_can_be_named(package: Path, tmp_path: Path) -> None:
    assert result(package, NUMBA_CACHE_DIR=str(tmp_path / "kept"))[:2] == (20, 0)
    assert result(package, NUMBA_CACHE_DIR=str(tmp_path / "kept"))[:2] == (20, 1)
    assert not caches(package)


def _cold_starts(package: Path, rounds: int) -> None:
    for term in range(1, rounds + 1):
        (package / "inner" / "callee.py").write_text(CALLEE.format(term=term))
        for stale in package.rglob("*.pyc"):
            stale.unlink()
        children = [start(package) for _ in range(8)]
        for child in children:
            out, said = child.communicate(timeout=120)
            assert child.returncode == 0, said
            assert int(out.split()[0]) == 10 * (1 + term)
            assert said == ""


def test_eight_cold_starts_at_once(package: Path) -> None:
    _cold_starts(package, 1)


@pytest.mark.slow
def test_eight_cold_starts_at_once_twenty_times(package: Path) -> None:
    _cold_starts(package, 20)


def test_every_kernel_is_compiled_this_way() -> None:
    files = [*(ROOT / "generala_env").rglob("*.py"), *(ROOT / "agents").rglob("*.py")]
    direct = [path.name for path in files if re.search(r"\bn?jit\(", path.read_text(encoding="utf-8"))]
    assert direct == ["compiling.py"]
    with_kernels = [path for path in files if re.search(r"^@kernel\(", path.read_text("utf-8"), re.MULTILINE)]
    assert len(with_kernels) > 5
    solo = source_files(ROOT / "generala_env" / "solver" / "solo.py", "generala_env")
    assert {"turn.py", "dice.py", "compiled.py", "variants.py"} <= {path.name for path in solo}
    assert all(path.is_relative_to(ROOT) for path in solo)
