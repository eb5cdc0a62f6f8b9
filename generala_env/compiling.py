"""Compiled functions, cached on disk under the code they were made from.

numba's own cache looks at the file of the function alone, though a kernel is compiled together with
what it calls in other files: after an edit there it would go on to run what is no longer written.
Here a cache folder is named by a digest of the file and of every file of its package that it imports,
however far round, and of the compiler; so what is loaded is what is on disk, after any edit, and two
versions never share a file.

A cache is a convenience: where no folder can be written the functions are compiled anew in each
process, and a file that is broken, or that a full disk did not take, is passed over and made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import llvmlite
import numba
import numpy as np
import platformdirs
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache

KEPT_VERSIONS: Final = 3
"""Cache folders kept for each file: that of its code today, and of what it was before."""

config: Any = numba.config

_Function = TypeVar("_Function", bound=Callable[..., Any])

_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([^\n#]+))", re.MULTILINE
)


def kernel(*, is_inner: bool = False, **options: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that compiles a function for speed, once for each version of the code.

    Compiled functions let go of Python's lock, so that threads may run them side by side.

    Args:
        is_inner: Only compiled code calls it; without the wrappers for Python, which take a quarter
            of the compiling.
        options: Those of ``numba.njit``.
    """
    if is_inner:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

    def decorate(function: _Function) -> _Function:
        dispatcher: Any = numba.njit(nogil=True, **options)(function)
        if not config.DISABLE_JIT:
            dispatcher._cache = _cache_of(function)
        compiled: _Function = dispatcher
        return compiled

    return decorate


# --- what a function is made from -----------------------------------------------------------------


@cache
def _source(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imported(path: Path, root: Path) -> frozenset[Path]:
    """Return the files of the project, which lies beside ``root``, that one of its files imports."""
    ours = {root.name, "generala_env"}
    found = set()
    for origin, names, plain in _IMPORT.findall(_source(path).decode("utf-8", "replace")):
        if origin:
            last = [name.split(" as ")[0].strip() for name in names.strip("()").split(",")]
            modules = [origin, *(f"{origin}.{name}" for name in last if name)]
        else:
            modules = [name.split(" as ")[0].strip() for name in plain.split(",")]
        for module in modules:
            if module.partition(".")[0] not in ours:
                continue
            where = root.parent.joinpath(*module.split("."))
            for candidate in (where.with_suffix(".py"), where / "__init__.py"):
                if candidate.is_file():
                    found.add(candidate)
    return frozenset(found)


def source_files(path: Path, package: str) -> list[Path]:
    """Return a file and all files of the project that it imports, directly or through others.

    Args:
        path: The file of a function.
        package: The top-level package it belongs to; files of that one and of ``generala_env`` count.
    """
    path = path.resolve()
    root = next((parent for parent in path.parents if parent.name == package), None)
    if root is None:
        return [path]
    found, waiting = {path}, [path]
    while waiting:
        new = _imported(waiting.pop(), root) - found
        found |= new
        waiting += new
    return sorted(found)


@cache
def source_digest(path: Path, package: str) -> str:
    """Return a digest of the code that the functions of a file are compiled from, and of the compiler."""
    digest = hashlib.sha256()
    for version in (
        str(config.BOUNDSCHECK),
        sys.version,
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
    ):
        digest.update(f"{version}\n".encode())
    for source in source_files(path, package):
        digest.update(f"{source.name}\n".encode())
        digest.update(hashlib.sha256(_source(source)).digest())
    return digest.hexdigest()[:16]


# --- where it is kept -----------------------------------------------------------------------------


@cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _roots(path: Path) -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield path.parent / "__pycache__"
    with contextlib.suppress(RuntimeError, OSError):  # no home
        yield platformdirs.user_cache_path("generala-env") / "kernels"


class _Locator:
    """Tells numba where the compiled versions of one function lie."""

    def __init__(self, function: Callable[..., Any], path: Path, root: Path) -> None:
        package = function.__module__.partition(".")[0]
        self._py_file = str(path)  # numba names it in its warnings
        self._line = function.__code__.co_firstlineno
        self._stem = f"kernels-{path.parent.name}-{path.stem}-"
        self._digest = source_digest(path, package)
        self._root = root

    def get_cache_path(self) -> str:
        return str(self._root / f"{self._stem}{self._digest}")

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        folder = Path(self.get_cache_path())
        if folder.is_dir():
            return
        folder.mkdir(parents=True, exist_ok=True)
        others = [other for other in self._root.glob(f"{self._stem}*") if other != folder]
        with contextlib.suppress(OSError):  # another process may be tidying too
            others.sort(key=lambda other: other.stat().st_mtime)
            for old in others[: -(KEPT_VERSIONS - 1)]:
                shutil.rmtree(old, ignore_errors=True)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Locator | None:
        path = Path(file)
        if not path.is_file():  # a notebook's cell
            return None
        root = next((root for root in _roots(path) if _is_writable(root)), None)
        return None if root is None else cls(function, path, root)


_LOCATORS: Final[list[Any]] = [_Locator]


class _Impl(CompileResultCacheImpl):
    _locator_classes = _LOCATORS


class _NoCache(NullCache):
    """Compiles each time, and says so the first time."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        _warn_once("no folder for compiled code can be written: functions are compiled again in each process")


class _Cache(FunctionCache):
    """A cache that is never the reason for a failure."""

    _impl_class = _Impl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # a broken pickle can raise anything
            shutil.rmtree(self.cache_path, ignore_errors=True)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _warn_once(
                f"{self.cache_path}: compiled code could not be kept there ({error.strerror or error})"
            )
        except Exception:  # the index is broken: the next process makes it anew
            shutil.rmtree(self.cache_path, ignore_errors=True)


@cache
def _warn_once(message: str) -> None:
    warnings.warn(f"generala_env: {message}; set NUMBA_CACHE_DIR to a folder", RuntimeWarning, stacklevel=2)


def _cache_of(function: Callable[..., Any]) -> Any:
    try:
        return _Cache(function)  # type: ignore[no-untyped-call]
    except RuntimeError:  # numba found no place for it
        return _NoCache()
