"""A run folder belongs to one process at a time."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import filelock

from agents.errors import UsageError
from generala_env.files import is_disk_full, parse_json, write_json

LOCK_FILE: Final = ".lock"

OWNER_FILE: Final = ".owner.json"


@contextlib.contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Keep a run folder to this process.

    The lock is the operating system's and ends with the process that holds it, so a run that was
    killed leaves no lock behind, only a note of who had it, which is explained and replaced.

    Args:
        folder: The run folder.
        say: Tells a person something.

    Raises:
        UsageError: Another process has it.
    """
    owner_file = folder / OWNER_FILE
    lock = filelock.FileLock(folder / LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        if isinstance(error, filelock.Timeout):
            raise UsageError(
                f"{folder}: another process trains here: {_described_owner(owner_file)}; "
                "wait for it or stop it, then --resume"
            ) from None
        if isinstance(error, OSError) and is_disk_full(error):
            raise
        # Network and user-space file systems may have no locks; a run is worth more than a lock.
        say(f"warning: {folder}: this file system has no locks ({error}); let no other process train here")
    try:
        if owner_file.exists():
            if _owner_is_elsewhere(owner_file):
                say(
                    f"warning: {_described_owner(owner_file)} had this run; whether it still trains "
                    "cannot be seen from here: if it does, stop it first"
                )
            else:
                say(f"stale lock: {_described_owner(owner_file)} had this run and is gone; taking over")
        write_json(
            owner_file,
            {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            },
        )
        yield
        owner_file.unlink(missing_ok=True)
    except BaseException:
        with contextlib.suppress(OSError):
            owner_file.unlink(missing_ok=True)
        raise
    finally:
        lock.release()


def _owner_is_elsewhere(owner_file: Path) -> bool:
    try:
        return bool(parse_json(owner_file.read_text(encoding="utf-8"))["host"] != socket.gethostname())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _described_owner(owner_file: Path) -> str:
    try:
        owner = parse_json(owner_file.read_text(encoding="utf-8"))
        return f"process {owner['pid']} on {owner['host']}, since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "an unknown process"
