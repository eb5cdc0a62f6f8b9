"""How anything is written to disk: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, Any, Final

MAX_JSON_DEPTH: Final = 100


class DiskFullError(OSError):
    """No room is left to write to."""


def os_error_number(error: BaseException) -> int | None:
    """Return the number of the operating system's error that an error tells of, if it tells of one.

    Libraries written in Rust have errors of their own for it, whose texts carry the number.
    """
    if isinstance(error, OSError):
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return None if found is None else int(found[1])


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error says that the disk, or the quota on it, is full."""
    return os_error_number(error) in (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to, and put it in the place of ``path`` once it is on the disk.

    Until then, and whatever goes wrong, what stood at ``path`` stays as it was.

    Raises:
        DiskFullError: There is no room.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        # File systems without permissions may refuse to set them.
        with contextlib.suppress(PermissionError):
            temporary.chmod(0o666 & ~_umask())
        with temporary.open("rb") as file:
            flush_to_disk(file)
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if is_disk_full(error):
            raise DiskFullError(errno.ENOSPC, "no space left on the disk", str(path)) from None
        raise


@lru_cache(maxsize=1)
def _umask() -> int:
    # It can be read only by setting it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


_CANNOT_FLUSH: Final = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What file systems answer that have no flushing; other errors say that a file did not reach the disk."""


def flush_to_disk(file: IO[Any]) -> None:
    """Put what was written to an open file on the disk, where the file system can be asked for it.

    Raises:
        OSError: What was written did not reach the disk.
    """
    if file.writable():
        file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in _CANNOT_FLUSH:
            raise
        _warn_of_flushing("files", error.strerror or str(error))


def _flush_folder(folder: Path) -> None:
    """Put a new name in a folder on the disk, where the file system can be asked for it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # A full disk is told of; network and user-space file systems may refuse for no such reason.
        if is_disk_full(error):
            raise
        _warn_of_flushing("folders", error.strerror or str(error))


@cache
def _warn_of_flushing(what: str, why: str) -> None:
    warnings.warn(
        f"{what} cannot be flushed to this disk ({why}): after a power cut, the last save may be missing",
        RuntimeWarning,
        stacklevel=2,
    )


def write_text(path: Path, text: str) -> None:
    """Write a text file as ``replacing`` does."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file as ``replacing`` does."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text says.

    Raises:
        ValueError: It is not JSON, or nested deeper than anything that is written here: what reads it
            goes down level by level, and Python goes only so deep.
    """
    too_deep = f"nested deeper than {MAX_JSON_DEPTH} levels"
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    level = [value]
    for _ in range(MAX_JSON_DEPTH + 1):
        inside = [part for part in level if isinstance(part, dict | list)]
        if not inside:
            return value
        level = [item for part in inside for item in (part.values() if isinstance(part, dict) else part)]
    raise ValueError(too_deep)


def remove_leftovers(folder: Path, *, of_the_living: bool = False) -> None:
    """Delete what killed processes left under temporary names, here and one folder down.

    Args:
        folder: Where.
        of_the_living: Delete also what belongs to a process that is still there, as where a lock says
            that nobody else writes here; and what safetensors left, which does not say whose it is.
    """
    for path in [*folder.glob(".*.tmp"), *folder.glob("*/.*.tmp")]:
        if of_the_living or not _is_alive(path.name.split(".")[-2]):
            path.unlink(missing_ok=True)
    if of_the_living:
        for path in [*folder.glob(".tmp*"), *folder.glob("*/.tmp*")]:
            path.unlink(missing_ok=True)


def _is_alive(process: str) -> bool:
    """Return whether a process may be there, by its number; a name that is no number may be anybody's."""
    if os.name != "posix":
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError, OverflowError):
        return True
    return True
