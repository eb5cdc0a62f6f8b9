"""Finding and reading the agents that ship with the project; a file that is not its card's is refused."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Any, Final

from agents.errors import AgentError, shown
from generala_env.files import parse_json

ZOO_FOLDER: Final = Path(__file__).resolve().parent
PREFIX: Final = "zoo/"
"""How the name of an agent of the zoo begins where agents are asked for."""
CARD_FORMAT: Final = 1


class ZooError(AgentError):
    """An agent that the zoo does not have, or whose card does not match its file."""


def is_zoo_name(spec: str | Path) -> bool:
    """Return whether an agent is asked for from the zoo."""
    return str(spec).startswith(PREFIX)


def zoo_names(folder: Path = ZOO_FOLDER) -> tuple[str, ...]:
    """Return the names of all agents, with the prefix, sorted."""
    return tuple(sorted(f"{PREFIX}{path.stem}" for path in folder.glob("*.json")))


def _paths(name: str, folder: Path) -> tuple[Path, Path]:
    if name not in zoo_names(folder):
        near = difflib.get_close_matches(name, zoo_names(folder), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ZooError(f"agent: there is no {name!r}; {hint}known: {', '.join(zoo_names(folder)) or 'none'}")
    stem = name.removeprefix(PREFIX)
    return folder / f"{stem}.safetensors", folder / f"{stem}.json"


def read_card(name: str, folder: Path = ZOO_FOLDER) -> dict[str, Any]:
    """Return a model card as JSON types.

    Args:
        name: With the prefix.
        folder: Where the zoo is.

    Raises:
        ZooError: There is no such agent, or its card is broken.
    """
    _, path = _paths(name, folder)
    try:
        card = parse_json(path.read_text(encoding="utf-8"))
        version = card["format"]
        digest = card["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ZooError(f"{name}: its card {path} is missing or broken ({shown(repr(error))})") from None
    if version != CARD_FORMAT or not isinstance(digest, str):
        raise ZooError(f"{name}: its card {path} has format {shown(version)}; known: {CARD_FORMAT}")
    return dict(card)


def agent_path(name: str, folder: Path = ZOO_FOLDER) -> Path:
    """Return the file of an agent, checked against its card.

    Raises:
        ZooError: There is no such agent, or its file is not the one that the card describes.
    """
    path, _ = _paths(name, folder)
    expected = read_card(name, folder)["sha256"]
    try:
        found = file_digest(path)
    except OSError as error:
        raise ZooError(f"{name}: its file {path} cannot be read ({error.strerror or error})") from None
    if found != expected:
        raise ZooError(
            f"{name}: {path} is not the file that its card describes: "
            f"its SHA-256 is {found[:12]}…, the card says {expected[:12]}…"
        )
    return path


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


COLUMNS: Final = ("agent", "exact score", "of optimum", "worst seed", "seeds", "minutes")


def overview(folder: Path = ZOO_FOLDER) -> list[tuple[str, ...]]:
    """Return a row of text for each agent, with the entries of ``COLUMNS``.

    Raises:
        ZooError: A card is broken.
    """
    rows: list[tuple[str, ...]] = []
    for name in zoo_names(folder):
        card = read_card(name, folder)
        scores = card["scores_by_seed"].values()
        rows.append(
            (
                card["name"],
                f"{card['mean_score']:.3f}",
                f"{card['optimality']:.2%}",
                f"{min(scores) / card['optimal_score']:.2%}",
                str(len(scores)),
                f"{card['minutes']:.1f}",
            )
        )
    return rows


def overview_as_markdown(folder: Path = ZOO_FOLDER) -> str:
    """Return ``overview`` as a table in Markdown."""
    rows = [(f"`{name}`", *rest) for name, *rest in overview(folder)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (COLUMNS, ("---",) * len(COLUMNS), *rows))
