"""A run folder is one process's, where the file system has locks and where it has none."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from unittest.mock import Mock

import filelock
import pytest

from agents.runs.lock import LOCK_FILE, OWNER_FILE, locked
from generala_env.files import parse_json


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(filelock.FileLock, "acquire", Mock(side_effect=error))


def own(folder: Path, **owner: object) -> None:
    (folder / OWNER_FILE).write_text(json.dumps(owner))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOLCK, "No locks available"),
        OSError(errno.ENOTSUP, "Operation not supported"),
        PermissionError(errno.EACCES, "Permission denied"),
        NotImplementedError("no locks here"),
    ],
)
def test_a_file_system_without_locks_is_warned_of_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    refuse(monkeypatch, error)
    told: list[str] = []
    with locked(tmp_path, told.append):
        assert parse_json((tmp_path / OWNER_FILE).read_text())["pid"] == os.getpid()
    (line,) = told
    assert line.startswith(f"warning: {tmp_path}: this file system has no locks ({error})")
    assert not (tmp_path / OWNER_FILE).exists()


def test_a_full_disk_is_no_missing_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    told: list[str] = []
    with pytest.raises(OSError, match="No space left"), locked(tmp_path, told.append):
        pytest.fail("the folder was taken")
    assert not told


def test_an_owner_on_another_host_may_be_there_still(tmp_path: Path) -> None:
    own(tmp_path, pid=7, host="elsewhere", since="2026-01-02 03:04:05")
    told: list[str] = []
    with locked(tmp_path, told.append):
        assert parse_json((tmp_path / OWNER_FILE).read_text())["host"] == socket.gethostname()
    (line,) = told
    assert line == (
        "warning: process 7 on elsewhere, since 2026-01-02 03:04:05 had this run; whether it still trains "
        "cannot be seen from here: if it does, stop it first"
    )


def test_an_owner_that_was_here_is_gone(tmp_path: Path) -> None:
    own(tmp_path, pid=7, host=socket.gethostname(), since="2026-01-02 03:04:05")
    told: list[str] = []
    with locked(tmp_path, told.append):
        pass
    (line,) = told
    assert line.startswith("stale lock: process 7 on ")
    assert line.endswith("had this run and is gone; taking over")


@pytest.mark.parametrize("text", ["", "[]", "{", "3", "[" * 200_000, '{"host": 1}'])
def test_a_note_that_says_nothing_stops_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / OWNER_FILE).write_text(text)
    told: list[str] = []
    with locked(tmp_path, told.append):
        pass
    (line,) = told
    assert "an unknown process had this run" in line


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_whatever_ends_the_work_leaves_no_note_and_no_lock(
    tmp_path: Path, error: type[BaseException]
) -> None:
    with pytest.raises(error), locked(tmp_path, pytest.fail):
        raise error
    assert not (tmp_path / OWNER_FILE).exists()
    lock = filelock.FileLock(tmp_path / LOCK_FILE, timeout=0)
    with lock:
        pass
