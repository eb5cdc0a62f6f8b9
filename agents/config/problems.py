"""What a config's errors are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.errors import UsageError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """Something wrong with a config.

    Attributes:
        where: File and line, or the flag that gave the value.
        path: The key path, such as ``algorithm.gamma``; empty for the file as a whole.
        message: The value, what is allowed, and the nearest known key for a typo.
    """

    where: str
    path: str
    message: str

    def __str__(self) -> str:
        """Return the one line shown to a person."""
        return ": ".join(part for part in (self.where, self.path, self.message) if part)


class ConfigError(UsageError):
    """A config with something wrong; its text has a line for each problem.

    Attributes:
        problems: Everything wrong, in the order of the file.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        """List the problems, after a count where there are several."""
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        if len(lines) > 1:
            lines = [f"the config has {len(lines)} problems", *(f"  {line}" for line in lines)]
        super().__init__("\n".join(lines))


def dotted(path: Iterable[str | int]) -> str:
    """Return a key path as people write it, such as ``policy.net_arch[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
