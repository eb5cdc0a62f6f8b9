"""A config from its file, ``--set`` overrides and flags of the command; the later wins."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from agents.config.explaining import validation_problems
from agents.config.model import RunConfig
from agents.config.problems import ConfigError, KeyPath, Problem, dotted
from agents.config.reading import Reading, read_yaml
from agents.errors import shown
from generala_env.rules.variants import FIELD_NAMES

CONFIG_FOLDER: Final = Path(__file__).resolve().parents[2] / "configs"
"""Where a config named without a path is looked up."""

SCHEMA_FILE: Final = "schema.json"


@dataclass(frozen=True)
class ResolvedConfig:
    """A config and where its values come from.

    Attributes:
        config: The config.
        sources: For each leaf that was given, its key path and where: ``file:line`` or a flag.
        name: The name of the file, without folder and ending.
    """

    config: RunConfig
    sources: dict[str, str]
    name: str

    def source(self, path: str) -> str:
        """Return where the value at a key path comes from."""
        return self.sources.get(path, "default")

    def leaf_sources(self) -> dict[str, str]:
        """Return where each value comes from, by key path."""
        lines: list[tuple[str, str]] = []
        _yaml_lines(self.config.to_dict(), (), lines)
        return {path: self.source(path) for _, path in lines if path}

    def to_yaml(self, *, with_sources: bool = False) -> str:
        """Return the config as YAML, optionally with the source of each value beside it."""
        lines: list[tuple[str, str]] = []
        _yaml_lines(self.config.to_dict(), (), lines)
        if not with_sources:
            return "".join(f"{text}\n" for text, _ in lines)
        width = max(len(text) for text, path in lines if path) + 2
        return "".join(
            f"{text:<{width}}# {self.source(path)}\n" if path else f"{text}\n" for text, path in lines
        )


def _yaml_lines(values: Mapping[str, Any], path: KeyPath, lines: list[tuple[str, str]]) -> None:
    indent = "  " * len(path)
    for key, value in values.items():
        here = (*path, key)
        if isinstance(value, Mapping) and value:
            lines.append((f"{indent}{key}:", ""))
            _yaml_lines(value, here, lines)
        else:
            lines.append((f"{indent}{key}: {_yaml_value(value)}", dotted(here)))


def _yaml_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "e" in text and "." not in text:
        # 1e-05 is text to a YAML 1.1 parser, 1.0e-05 a number to both.
        text = text.replace("e", ".0e")
    return text


def find_config(name: str | Path) -> Path:
    """Return the file a config's name stands for: a path, else one in ``configs/``.

    Raises:
        ConfigError: There is no such file.
    """
    path = Path(name)
    known = sorted(file.name for file in CONFIG_FOLDER.glob("*.yaml"))
    try:
        if path.is_file():
            return path
        for candidate in (CONFIG_FOLDER / path, CONFIG_FOLDER / f"{path}.yaml"):
            if len(path.parts) == 1 and candidate.is_file():
                return candidate
    except (OSError, ValueError):
        pass
    near = difflib.get_close_matches(path.name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    reason = "is a folder" if path.is_dir() else "no such file"
    raise ConfigError(
        [
            Problem(
                "--config",
                "",
                f"{str(name)!r}: {reason}, here or in configs/; {hint}known: {', '.join(known)}",
            )
        ]
    )


def load_config(
    name: str | Path,
    overrides: Sequence[str] = (),
    flags: Mapping[str, tuple[str, Any]] | None = None,
    variant: str | None = None,
) -> ResolvedConfig:
    """Read a config file, apply overrides and flags, and check everything.

    Args:
        name: A path, or the name of a file in ``configs/``.
        overrides: Texts such as ``algorithm.gamma=0.99``; the value is YAML. A field of the rules may be
            named alone, as in ``generala_points=50``.
        flags: For each key path, the flag that gave it and its value.
        variant: A preset in the place of the file's rules; overrides come on top of it.

    Raises:
        ConfigError: Something is wrong; it tells everything that is.
    """
    path = find_config(name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError([Problem(f"{path}:{line}", "", "not UTF-8 text")]) from None
    except OSError as error:
        raise ConfigError([Problem(str(path), "", error.strerror or str(error))]) from None
    return parse_config(text, _label(path), path.stem, overrides, flags, variant)


def _label(path: Path) -> str:
    """Return a path as short as it can be said from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def parse_config(
    text: str,
    label: str,
    name: str,
    overrides: Sequence[str] = (),
    flags: Mapping[str, tuple[str, Any]] | None = None,
    variant: str | None = None,
) -> ResolvedConfig:
    """Read a config from its text; see ``load_config``.

    Args:
        text: The YAML.
        label: What errors call the file.
        name: What the run is called after.
        overrides: As in ``load_config``.
        flags: As in ``load_config``.
        variant: As in ``load_config``.

    Raises:
        ConfigError: Something is wrong; it tells everything that is.
    """
    reading = Reading()
    values = read_yaml(text, lambda line: f"{label}:{line}", (), reading)
    if values is None and not reading.problems:
        values = {}
    if not isinstance(values, dict):
        if not reading.problems:
            reading.problems.append(
                Problem(f"{label}:1", "", f"{shown(values)} is not a section of keys and values")
            )
        raise ConfigError(reading.problems)
    if variant is not None:
        _put(values, ("variant",), variant, "--variant", reading)
    for override in overrides:
        _apply_override(values, override, reading)
    for dotted_path, (flag, value) in (flags or {}).items():
        _put(values, tuple(dotted_path.split(".")), value, flag, reading)
    problems = list(reading.problems)
    config: RunConfig | None = None
    try:
        config = RunConfig(**values)
    except ValidationError as error:
        problems += validation_problems(error, values, reading, label)
    if problems or config is None:
        raise ConfigError(sorted(_unique(problems), key=_position))
    sources = {dotted(path): place for path, place in reading.places.items()}
    for path in [path for path in reading.places if path[-1:] == (0,)]:
        sources.setdefault(dotted(path[:-1]), reading.places[path])
    return ResolvedConfig(config, sources, name)


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))


def _position(problem: Problem) -> tuple[int, int]:
    _, _, line = problem.where.rpartition(":")
    return (0, int(line)) if line.isdigit() else (1, 0)


def _apply_override(values: dict[str, Any], override: str, reading: Reading) -> None:
    key, sign, text = override.partition("=")
    parts = tuple(key.strip().split("."))
    if not sign or not all(parts):
        reading.problems.append(Problem("--set", "", f"{override!r} is not KEY.PATH=VALUE"))
        return
    if len(parts) == 1 and parts[0] in FIELD_NAMES:
        # Every command takes a field of the rules by its name; no key of a config has such a name.
        parts = ("variant", *parts)
    place = "--set"
    fresh = Reading()
    value = read_yaml(text, lambda _: place, parts, fresh)
    reading.problems += fresh.problems
    if not fresh.problems:
        _put(values, parts, value, place, reading)
        reading.places.update(fresh.places)


def _put(values: dict[str, Any], path: KeyPath, value: Any, place: str, reading: Reading) -> None:
    """Put a value into nested mappings, and forget where what it replaces was given."""
    section: Any = values
    for depth, part in enumerate(path[:-1], start=1):
        inner = section.setdefault(part, {}) if isinstance(section, dict) else None
        if path[:depth] == ("variant",) and isinstance(inner, str):
            # A field set on a preset's name makes that preset the base.
            reading.places["variant", "base"] = reading.places.get(("variant",), place)
            inner = section[part] = {"base": inner}
        if inner is None:
            inner = section[part] = {}
        if not isinstance(inner, dict):
            reading.problems.append(
                Problem(place, dotted(path), f"{dotted(path[:depth])} is {shown(inner)}, which has no keys")
            )
            return
        reading.places.setdefault(path[:depth], place)
        section = inner
    section[path[-1]] = value
    for known in [known for known in reading.places if known[: len(path)] == path]:
        del reading.places[known]
    reading.places[path] = place
