"""What is wrong with a config, told with its place, its value and what is allowed; and the schema."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from agents.config.model import ALGORITHMS, RunConfig
from agents.config.problems import KeyPath, Problem, dotted
from agents.config.reading import Reading
from agents.errors import shown


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of a config, for editors and checkers."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **deepcopy(_schema())}


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return RunConfig.model_json_schema()


def _schema_at(path: KeyPath, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the schema that describes a key path."""
    schema = _schema()
    definitions = schema.get("$defs", {})

    def resolved(node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            node = definitions[node["$ref"].rpartition("/")[2]]
        return node

    node: dict[str, Any] = schema
    value: Any = values
    for part in path:
        node = resolved(node)
        options = [resolved(option) for option in node.get("oneOf", node.get("anyOf", []))]
        name = value.get("name") if isinstance(value, Mapping) else None
        for option in options:
            if option.get("properties", {}).get("name", {}).get("const") == name and name is not None:
                node = option
                break
        else:
            sections = [option for option in options if "properties" in option or "items" in option]
            node = sections[0] if sections else node
        node = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
        value = value.get(part) if isinstance(value, Mapping) else None
    node = resolved(node)
    expanded = dict(node)
    for key in ("oneOf", "anyOf"):
        if key in node:
            expanded[key] = [resolved(option) for option in node[key]]
    if "items" in node:
        expanded["items"] = resolved(node["items"])
    return expanded


def _allowed(schema: Mapping[str, Any]) -> str:
    """Say in words what a schema allows."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "const" in schema:
        return str(schema["const"])
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_allowed(option) for option in schema[key]))
    kind = schema.get("type")
    if kind in ("integer", "number"):
        noun = "a whole number" if kind == "integer" else "a number"
        low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
        high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
        bounds = [
            f" {word} {bound:g}" if isinstance(bound, float) else f" {word} {bound}"
            for word, bound in (("from", low), ("above", above), ("to", high), ("below", below))
            if bound is not None
        ]
        return noun + "".join(bounds)
    if kind == "array":
        return f"a list, each {_allowed(schema.get('items', {}))}"
    if kind == "boolean":
        return "true or false"
    if kind == "null":
        return "null"
    if kind == "object":
        keys = ", ".join(schema.get("properties", {}))
        return f"a section with {keys}" if len(schema.get("properties", {})) < 5 else "a section"
    return "text" if kind == "string" else "another value"


def _all_paths(schema: dict[str, Any]) -> list[str]:
    """Return every key path that a config may have."""
    definitions = schema.get("$defs", {})
    found: list[str] = []

    def walk(node: dict[str, Any], path: str) -> None:
        if "$ref" in node:
            node = definitions[node["$ref"].rpartition("/")[2]]
        for option in [*node.get("oneOf", ()), *node.get("anyOf", ())]:
            walk(option, path)
        for key, inner in node.get("properties", {}).items():
            here = f"{path}.{key}" if path else key
            found.append(here)
            walk(inner, here)

    walk(schema, "")
    return list(dict.fromkeys(found))


def _nearest(path: KeyPath, values: Mapping[str, Any]) -> str:
    """Return a hint for an unknown key: the nearest among its siblings, else anywhere."""
    siblings = list(_schema_properties(path[:-1], values))
    key = str(path[-1])
    near = difflib.get_close_matches(key, siblings, n=1)
    if near:
        return f"did you mean {dotted((*path[:-1], near[0]))}?"
    if path[0] == "algorithm" and len(path) == 2:
        owners = [name for name, section in ALGORITHMS.items() if key in section.model_fields]
        if owners:
            return f"only {' and '.join(owners)} has it; known: {', '.join(siblings)}"
    every = _all_paths(_schema())
    by_name = {known.rpartition(".")[2]: known for known in reversed(every)}
    near = difflib.get_close_matches(key, by_name, n=1, cutoff=0.75)
    if near:
        return f"did you mean {by_name[near[0]]}?"
    return f"known: {', '.join(siblings)}"


def _schema_properties(path: KeyPath, values: Mapping[str, Any]) -> dict[str, Any]:
    schema = _schema_at(path, values)
    properties = dict(schema.get("properties", {}))
    section: Any = values
    for part in path:
        section = section.get(part) if isinstance(section, Mapping) else None
    name = section.get("name") if isinstance(section, Mapping) else None
    for option in [*schema.get("oneOf", ()), *schema.get("anyOf", ())]:
        constant = option.get("properties", {}).get("name", {}).get("const")
        if constant is None or constant == name:
            properties.update(option.get("properties", {}))
    return properties


def validation_problems(
    error: ValidationError, values: Mapping[str, Any], reading: Reading, label: str
) -> list[Problem]:
    """Return what pydantic found wrong, each with its place and what would be right.

    Args:
        error: What pydantic raised.
        values: The values as they were given.
        reading: Where each value was given.
        label: What to call the place of what was not given.
    """
    problems = []
    for item in error.errors(include_url=False):
        # Tags of unions stand in angle brackets; they are no part of the key path.
        path: KeyPath = tuple(
            part for part in item["loc"] if not (isinstance(part, str) and part.startswith("<"))
        )
        kind, given = item["type"], item["input"]
        if kind in ("variant", "contradiction"):
            for inner, message in item["ctx"]["problems"]:
                full = (*path, *inner)
                at = reading.place(full, label)
                if kind == "variant":
                    told = message
                else:
                    told = f"{shown(_value_at(values, full))} is not allowed; allowed: {message}"
                problems.append(Problem(at, dotted(full), told))
            continue
        if kind == "algorithm_name":
            names = ", ".join(ALGORITHMS)
            if isinstance(given, Mapping):
                path = (*path, "name")
                if "name" not in given:
                    problems.append(
                        Problem(reading.place(path, label), dotted(path), f"is missing; allowed: {names}")
                    )
                    continue
                given = given["name"]
            near = difflib.get_close_matches(str(given), ALGORITHMS, n=1)
            message = f"{shown(given)} is not allowed; allowed: " + (
                f"one of {names}" if path[-1] == "name" else f"a section with name: {' or '.join(ALGORITHMS)}"
            )
            if near and path[-1] == "name":
                message += f"; did you mean {near[0]}?"
        elif kind == "extra_forbidden":
            message = f"unknown key (value {shown(given)}); {_nearest(path, values)}"
        elif kind == "missing":
            message = f"is missing; allowed: {_allowed(_schema_at(path, values))}"
        elif kind == "too_long" or kind == "too_short":
            bounds = item["ctx"]
            count = bounds.get("max_length", bounds.get("min_length"))
            word = "at most" if kind == "too_long" else "at least"
            message = f"{shown(given)} is not allowed; allowed: a list of {word} {count}"
        else:
            schema = _schema_at(path, values)
            message = f"{shown(given)} is not allowed; allowed: {_allowed(schema)}"
            if isinstance(given, str) and "enum" in schema:
                near = difflib.get_close_matches(given, [str(value) for value in schema["enum"]], n=1)
                message += f"; did you mean {near[0]}?" if near else ""
        problems.append(Problem(reading.place(path, label), dotted(path), message))
    return problems


def _value_at(values: Any, path: KeyPath) -> Any:
    """Return the value given at a path, or the default if none was."""
    for part in path:
        if isinstance(values, Mapping):
            values = values.get(part)
    if values is None:
        values = _schema_at(path, {"algorithm": {"name": "ppo"}}).get("default")
    return values
