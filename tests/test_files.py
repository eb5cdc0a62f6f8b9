"""Files reach the disk whole, also where a file system cannot do all that is asked of it."""

from __future__ import annotations

import errno
import json
import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from generala_env import files
from generala_env.files import MAX_JSON_DEPTH, DiskFullError, parse_json, write_json

DEEP = 200_000
NESTED = {
    "lists": "[" * DEEP + "]" * DEEP,
    "objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "cut short": "[" * DEEP,
    "both": '[{"a":' * (DEEP // 2) + "1" + "}]" * (DEEP // 2),
}


@pytest.fixture(autouse=True)
def _warns_again() -> None:
    files._warn_of_flushing.cache_clear()


def refuse(monkeypatch: pytest.MonkeyPatch, number: int, is_refused: Callable[[int], bool]) -> None:
    """Let ``os.fsync`` fail with an error for some modes of files, as file systems do."""
    fsync = os.fsync

    def refusing(descriptor: int) -> None:
        if is_refused(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)


def write_three_times(*paths: Path) -> None:
    for value in range(3):
        for path in paths:
            write_json(path, value)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO, errno.EBADF])
def test_a_folder_that_cannot_be_flushed_is_warned_of_once_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse(monkeypatch, number, stat.S_ISDIR)
    with pytest.warns(RuntimeWarning, match="folders cannot be flushed") as caught:
        write_three_times(tmp_path / "a.json", tmp_path / "b.json")
    assert len(caught) == 1
    assert os.strerror(number) in str(caught[0].message)
    assert [parse_json((tmp_path / name).read_text()) for name in ("a.json", "b.json")] == [2, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_a_folder_that_cannot_be_opened_is_warned_of_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.open

    def refusing(path: Any, *arguments: Any, **named: Any) -> int:
        if Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return before(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.warns(RuntimeWarning, match=r"folders cannot be flushed to this disk \(Permission denied\)"):
        write_json(tmp_path / "a.json", 1)
    assert (tmp_path / "a.json").read_text() == "1\n"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_without_flushing_is_warned_of_once_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse(monkeypatch, number, stat.S_ISREG)
    with pytest.warns(RuntimeWarning, match="files cannot be flushed") as caught:
        write_three_times(tmp_path / "a.json")
    assert len(caught) == 1
    assert (tmp_path / "a.json").read_text() == "2\n"


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, OSError)],
)
def test_a_file_that_does_not_reach_the_disk_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[OSError]
) -> None:
    write_json(tmp_path / "a.json", "old")
    refuse(monkeypatch, number, stat.S_ISREG)
    with pytest.raises(kind):
        write_json(tmp_path / "a.json", "new")
    assert parse_json((tmp_path / "a.json").read_text()) == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_for_a_name_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse(monkeypatch, number, stat.S_ISDIR)
    with pytest.raises(DiskFullError):
        write_json(tmp_path / "a.json", 1)


def test_a_file_system_without_permissions_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "chmod", Mock(side_effect=PermissionError(errno.EPERM, "not permitted")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_json(tmp_path / "a.json", 1)
    assert (tmp_path / "a.json").read_text() == "1\n"


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_json_is_read_as_deep_as_anything_is_written_and_no_deeper() -> None:
    deepest = nested(MAX_JSON_DEPTH)
    assert parse_json(json.dumps(deepest)) == deepest
    assert parse_json(json.dumps(deepest).encode()) == deepest
    with pytest.raises(ValueError, match=f"nested deeper than {MAX_JSON_DEPTH} levels"):
        parse_json(json.dumps(nested(MAX_JSON_DEPTH + 1)))


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_no_depth_is_too_much_to_refuse(text: str) -> None:
    with pytest.raises(ValueError, match="nested deeper"):
        parse_json(text)
