"""What the page is told when something cannot be done."""

from __future__ import annotations

from typing import Final, Literal

Reason = Literal["bad_request", "foreign", "not_found", "stale", "too_large", "too_many", "not_now"]

STATUS: Final[dict[Reason, int]] = {
    "bad_request": 400,
    "foreign": 403,
    "not_found": 404,
    "stale": 409,
    "too_large": 413,
    "too_many": 429,
    "not_now": 403,
}
"""The HTTP status of each reason."""


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault
    """Something that is not done, and why.

    Attributes:
        reason: A word for programs; the page has a sentence for it in each language.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        """Give the reason and, for whoever reads the answer itself, a line in English."""
        super().__init__(message)
        self.reason = reason
