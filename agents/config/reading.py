"""YAML 1.2 with the place of every value, so that ``3e-4`` is a number and an error has a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from agents.config.problems import ConfigError, KeyPath, Problem, dotted
from agents.errors import shown


@dataclass
class Reading:
    """What has been read so far.

    Attributes:
        places: Where each key path was given.
        problems: What is wrong, with the position to sort by.
    """

    places: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: KeyPath, fallback: str) -> str:
        """Return where a path, or the nearest section around it, was given."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return fallback


def plain_value(text: str, place: str, at: KeyPath = ()) -> Any:
    """Return the plain value of a YAML text: the one dialect of configs, run folders and ``--set``.

    Args:
        text: The YAML.
        place: What errors call it: a flag or a file.
        at: The key path that the text is the value of.

    Raises:
        ConfigError: It is not YAML, or more than plain values.
    """
    reading = Reading()
    value = read_yaml(text, lambda _: place, at, reading)
    if reading.problems:
        raise ConfigError(reading.problems)
    return value


_PLAIN_TAGS: Final = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}


def read_yaml(text: str, place: Callable[[int], str], at: KeyPath, reading: Reading) -> Any:
    """Return the plain value of a YAML text, noting where each key was given.

    Args:
        text: The YAML.
        place: What to call a line, counted from 1.
        at: The key path that the text is the value of.
        reading: Where places and problems go.
    """
    yaml = YAML(typ="safe", pure=True)
    seen: set[int] = set()

    def complain(node: Node, path: KeyPath, message: str) -> None:
        reading.problems.append(Problem(place(node.start_mark.line + 1), dotted(path), message))

    def convert(node: Node, path: KeyPath) -> Any:
        if id(node) in seen:
            complain(node, path, "an alias (*name) is not allowed here: write the value out")
            return None
        seen.add(id(node))
        if isinstance(node, MappingNode):
            values: dict[str, Any] = {}
            for key_node, value_node in node.value:
                if not isinstance(key_node, ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                    complain(key_node, path, f"the key {_text_of(key_node)} is not a name")
                    continue
                key, here = key_node.value, (*path, key_node.value)
                if key in values:
                    again, first = shown(_text_of(value_node)), reading.places[here]
                    complain(key_node, here, f"given twice, here {again}, first at {first}; keep one")
                    continue
                reading.places[here] = place(key_node.start_mark.line + 1)
                values[key] = convert(value_node, here)
            return values
        if isinstance(node, SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                reading.places[*path, index] = place(item.start_mark.line + 1)
                items.append(convert(item, (*path, index)))
            return items
        if node.tag in _PLAIN_TAGS:
            try:
                return yaml.constructor.construct_object(node)
            except (ValueError, OverflowError, YAMLError):
                complain(node, path, f"{shown(node.value)} is not a value")
                return None
        if node.tag == "tag:yaml.org,2002:timestamp":
            return node.value
        complain(node, path, f"the tag {node.tag} is not allowed: plain values only")
        return None

    if _flow_depth(text) > _MAX_DEPTH:
        # The YAML library takes seconds to run out of stack on these.
        reading.problems.append(Problem(place(1), dotted(at), "nested too deeply; a config has three levels"))
        return None
    try:
        root = yaml.compose(text)
        return None if root is None else convert(root, at)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        told = " ".join(str(error.problem or error.context).split())
        reading.problems.append(Problem(place(line), dotted(at), f"not YAML: {told}"))
    except YAMLError as error:
        told = str(error).partition("\n")[0]
        reading.problems.append(Problem(place(1), dotted(at), f"not YAML: {told}"))
    except RecursionError:
        reading.problems.append(Problem(place(1), dotted(at), "nested too deeply; a config has three levels"))
    except (ValueError, OverflowError, AttributeError, TypeError, IndexError) as error:
        # The YAML library itself trips over some malformed texts.
        reading.problems.append(Problem(place(1), dotted(at), f"not YAML: {error}"))
    return None


_MAX_DEPTH: Final = 100


def _flow_depth(text: str) -> int:
    """Return how deep brackets nest, at most."""
    depth = deepest = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _text_of(node: Node) -> str:
    return node.value if isinstance(node, ScalarNode) else "{…}" if isinstance(node, MappingNode) else "[…]"
