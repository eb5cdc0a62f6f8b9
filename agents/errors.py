"""The errors that a command tells in one line, ending with exit code 2."""

from __future__ import annotations

import json


class AgentError(ValueError):
    """An agent that cannot be made: unknown, broken, or made for other rules."""


class UsageError(Exception):
    """Bad input that is best told in one line."""


def shown(value: object, limit: int = 60) -> str:
    """Return a value as it is quoted in an error: JSON where it can be, cut at a limit of characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
