"""The library asks for what it imports, and for nothing else."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

COMES_WITH = {"llvmlite": "numba"}
"""Imported, and always brought by another requirement."""

MODULE_OF = {
    "ruamel.yaml": "ruamel",
    "pygame-ce": "pygame",
    "pillow": "PIL",
    "imageio-ffmpeg": "imageio_ffmpeg",
}


def names(requirements: list[str]) -> set[str]:
    found = {re.split(r"[<>=!~;\[ ]", requirement)[0] for requirement in requirements}
    return {MODULE_OF.get(name, name.replace("-", "_")) for name in found}


def imports(package: str, *, at_once: bool) -> set[str]:
    """Names of the third-party packages that a package imports; at once: when its modules are loaded."""
    found: set[str] = set()
    for path in (ROOT / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body if at_once else ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"generala_env", "agents"}


def test_the_library_asks_for_exactly_what_it_imports() -> None:
    imported = {COMES_WITH.get(name, name) for name in imports("generala_env", at_once=True)}
    assert imported == names(PROJECT["dependencies"])


def test_what_is_needed_to_train_is_imported_by_those_who_train() -> None:
    extra = names(PROJECT["optional-dependencies"]["train"])
    # torch.utils.tensorboard needs it, and does not bring it.
    used = imports("agents", at_once=False) | imports("scripts", at_once=False) | {"tensorboard"}
    assert extra <= used


def test_every_requirement_is_pinned() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = names([line for line in pins if line and not line.startswith("#")])
    for requirements in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        assert {name.lower() for name in names(requirements)} <= {name.lower() for name in pinned}
