"""The errors that a command tells in one line, ending with exit code 2."""

from __future__ import annotations


class AgentError(ValueError):
    """An agent that cannot be made: unknown, broken, or made for other rules."""


class UsageError(Exception):
    """Bad input that is best told in one line."""
