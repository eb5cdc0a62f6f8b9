"""The messages that the page sends, each checked whole before anything is done."""

from __future__ import annotations

import datetime
import json
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.web.errors import Refused
from generala_env.rules.variants import DEFAULT_VARIANT

MAX_MESSAGE: Final = 16_384
"""Bytes that an ordinary message may have."""

MAX_RECORD: Final = 1_048_576
"""Bytes that a message with a game record in it may have."""

MAX_SEATS: Final = 4

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
"""Drawn by the page for a new game, so that asking again after a lost answer makes no second one."""

Overrides = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=30)]


class Message(BaseModel):
    """A message; types are exact and nothing unknown is let through."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NewGame(Message):
    """Begin a game.

    Attributes:
        key: Names the game.
        variant: A preset.
        overrides: Changed fields, each ``FIELD=VALUE``.
        seats: ``me``, ``me:NAME``, an agent's name, or a run inside the folder of runs.
        seed: Seed of the dice; drawn if ``None``.
    """

    key: Key
    variant: str = Field(DEFAULT_VARIANT, max_length=64)
    overrides: Overrides = []
    seats: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=MAX_SEATS
    )
    seed: int | None = Field(None, ge=0, lt=2**53)


class SameAgain(Message):
    """Begin a game at the table of another.

    Attributes:
        key: Names the new game.
    """

    key: Key


class DailyGame(Message):
    """Begin, or go on with, the deal of a day.

    Attributes:
        variant: A preset.
        overrides: Changed fields, each ``FIELD=VALUE``.
        day: The day; today if ``None``.
    """

    variant: str = Field(DEFAULT_VARIANT, max_length=64)
    overrides: Overrides = []
    # A date is no JSON type, so its text has to be read.
    day: Annotated[datetime.date, Field(strict=False)] | None = None


class SavedRecord(Message):
    """Take in a game record, to be reviewed.

    Attributes:
        key: Names the game.
        text: The file.
    """

    key: Key
    text: str = Field(max_length=MAX_RECORD)


class Take(Message):
    """Take a person's action.

    Attributes:
        at: How many decisions the page knows of; it must be up to date.
        action: The action's id.
        judge: Also say what the choice was worth.
    """

    at: int = Field(ge=0)
    action: int
    judge: bool = False


class Step(Message):
    """Let the agent to move take one decision.

    Attributes:
        at: How many decisions the page knows of.
        judge: Also say what the choice was worth.
    """

    at: int = Field(ge=0)
    judge: bool = False


M = TypeVar("M", bound=Message)


def read_message(raw: bytes, kind: type[M]) -> M:
    """Read a message.

    Raises:
        Refused: It is not JSON, or not such a message; the text says what is wrong first.
    """
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        raise Refused("bad_request", "the message is not JSON") from None
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "message"
        raise Refused("bad_request", f"{where}: {first['msg']}") from None
