"""Reading what a training run left behind: its configuration, its learning curve, its result."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agents.config.loading import ResolvedConfig, load_config
from agents.config.model import RunConfig
from agents.config.problems import ConfigError
from agents.config.reading import plain_value
from agents.errors import AgentError, UsageError, shown
from agents.saving.provenance import provenance
from generala_env.files import parse_json, write_json, write_text
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin
from generala_env.rules.variants import Variant, VariantError, get_variant

CONFIG_FILE: Final = "config.yaml"

PROGRESS_FILE: Final = "progress.jsonl"

EVALUATION_FILE: Final = "evaluation.json"


class RunError(AgentError):
    """A run folder that cannot be read: not there, or a file of it missing or broken."""


@dataclass(frozen=True)
class RunRules:
    """The game that a run was trained on.

    Attributes:
        variant: The rules.
        instant_win: How a served Generala that wins was treated.
    """

    variant: Variant
    instant_win: InstantWin


def read_config(folder: Path) -> dict[str, Any]:
    """Return the resolved configuration of a run.

    Raises:
        RunError: The folder or its ``config.yaml`` is missing or broken.
    """
    path = folder / CONFIG_FILE
    if not folder.is_dir():
        raise RunError(f"run: {str(folder)!r} is not a folder")
    if not path.is_file():
        raise RunError(f"run: {str(folder)!r} holds no {CONFIG_FILE}, so it is not a run folder")
    try:
        config = plain_value(path.read_text(encoding="utf-8"), CONFIG_FILE)
    except (ConfigError, UnicodeDecodeError) as error:
        raise RunError(f"run: {str(path)!r} is broken: {' '.join(str(error).split())}") from None
    if not isinstance(config, dict):
        raise RunError(f"run: {str(path)!r} is not a mapping")
    return config


def read_rules(folder: Path) -> RunRules:
    """Return the game a run was trained on, from its resolved configuration.

    Raises:
        RunError: The configuration is missing, broken, or names no rules.
    """
    config = read_config(folder)
    path = str(folder / CONFIG_FILE)
    if "variant" not in config:
        raise RunError(f"run: {path!r} has no variant")
    try:
        variant = get_variant(config["variant"])
    except VariantError as error:
        raise RunError(f"run: {path!r}: {error}") from None
    env = config.get("env")
    given = env.get("instant_win") if isinstance(env, dict) else None
    return RunRules(variant, DEFAULT_INSTANT_WIN if given is None else given)


def read_result(folder: Path) -> dict[str, Any]:
    """Return the final evaluation of a run.

    Raises:
        RunError: ``evaluation.json`` is missing or broken.
    """
    return _read_object(folder, EVALUATION_FILE, "has the run ended?")


def _read_object(folder: Path, name: str, hint: str) -> dict[str, Any]:
    path = folder / name
    if not folder.is_dir():
        raise RunError(f"run: {str(folder)!r} is not a folder")
    if not path.is_file():
        raise RunError(f"run: {str(folder)!r} holds no {name}: {hint}")
    try:
        result = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"run: {str(path)!r} is not JSON: {error}") from None
    if not isinstance(result, dict):
        raise RunError(f"run: {str(path)!r} is not a JSON object")
    return result


def read_about(folder: Path) -> dict[str, Any]:
    """Return how a run was started: its command, rules, versions, commit and processor.

    Raises:
        RunError: ``run.json`` is missing or broken.
    """
    return _read_object(folder, RUN_FILE, "is it a run folder?")


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """Return the evaluations made during a run, in order; empty if there were none.

    A last line that was cut off, as a killed run leaves it, is passed over.

    Raises:
        RunError: A line of ``progress.jsonl`` is no JSON object.
    """
    path = folder / PROGRESS_FILE
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            if number == len(lines) and not text.endswith("\n"):
                break
            raise RunError(f"run: {str(path)!r}, line {number} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise RunError(f"run: {str(path)!r}, line {number} is not a JSON object")
        rows.append(row)
    return rows


RUNS_FOLDER: Final = Path("runs")

RUN_FILE: Final = "run.json"

TENSORBOARD_FOLDER: Final = "tensorboard"
"""Where runs of earlier versions keep their curves."""

EVENT_FILES: Final = "events.out.tfevents.*"
"""The pattern of the names of TensorBoard's files."""


def events_folder(folder: Path) -> Path:
    """Return where a run's TensorBoard files lie: in its own folder, which TensorBoard then calls it by.

    A run that was begun by an earlier version goes on in its ``tensorboard`` folder.
    """
    earlier = folder / TENSORBOARD_FOLDER
    return earlier if earlier.is_dir() else folder


def event_files(folder: Path) -> list[Path]:
    """Return a run's TensorBoard files, in order."""
    return sorted(events_folder(folder).glob(EVENT_FILES))


def log_folder(folder: Path) -> Path:
    """Return the folder to show TensorBoard: all of ``runs/`` for a run in it, otherwise the run alone.

    TensorBoard names a run by its path below that folder.
    """
    return folder.parent if folder.parent.name == RUNS_FOLDER.name else folder


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested mapping as one of dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        flat.update(flattened(value, path) if isinstance(value, Mapping) else {path: value})
    return flat


def create_run_folder(resolved: ResolvedConfig, folder: Path | None, command: Sequence[str]) -> Path:
    """Make the folder of a new run, under a name that nothing has.

    Args:
        resolved: The config.
        folder: Where; ``None`` for ``runs/`` and a name from the config's name, the variant and the seed.
        command: The command line, for the record.

    Raises:
        UsageError: The folder is there already.
    """
    config = resolved.config
    about = {
        "command": list(command),
        "variant": config.rules.to_dict(),
        "fingerprint": config.rules.fingerprint,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "host": socket.gethostname(),
        **provenance(),
    }
    if folder is None:
        stem = f"{resolved.name}-{_slug(config.rules.name)}-seed{config.seed}"
        RUNS_FOLDER.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            folder = RUNS_FOLDER / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir()
                break
            except FileExistsError:
                number += 1
    else:
        try:
            folder.mkdir(parents=True)
        except (FileExistsError, NotADirectoryError):
            raise UsageError(
                f"--run-dir: {str(folder)!r} exists and is never overwritten; "
                "give another name, or go on with it: --resume"
            ) from None
    try:
        # config.yaml comes last: a folder that has it is a run that can be resumed.
        write_json(folder / RUN_FILE, {"name": folder.name, **about})
        write_text(folder / CONFIG_FILE, resolved.to_yaml(with_sources=True))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in name)[:60].strip("-")


def open_run_folder(folder: Path) -> RunConfig:
    """Return the config of a run that is to go on.

    Raises:
        UsageError: It is no run folder, or its rules are not what they were.
    """
    if not folder.is_dir():
        raise UsageError(f"--resume: {str(folder)!r} is not a run folder: there is no such folder")
    if not (folder / CONFIG_FILE).is_file():
        raise UsageError(f"--resume: {str(folder)!r} is not a run folder: it holds no {CONFIG_FILE}")
    config = load_config(folder / CONFIG_FILE).config
    try:
        fingerprint = parse_json((folder / RUN_FILE).read_text(encoding="utf-8"))["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--resume: {str(folder / RUN_FILE)!r} is missing or broken ({error})") from None
    if fingerprint != config.rules.fingerprint:
        raise UsageError(
            f"--resume: {str(folder)!r} was begun for rules with fingerprint {shown(fingerprint)}, but its "
            f"{CONFIG_FILE} now says {config.rules.name} (fingerprint {config.rules.fingerprint})"
        )
    return config
