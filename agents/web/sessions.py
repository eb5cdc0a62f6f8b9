"""Whose games are whose: a token for each browser, a folder for each token, a record for each game.

Nothing but the records is kept, so a server that was restarted knows every game it knew before.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import secrets
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agents.cli import variant_from
from agents.errors import AgentError
from agents.games.record import GameRecord, RecordError, Table
from agents.games.seating import is_person
from agents.registry import agent_names
from agents.saving.agent_files import AGENT_FILE
from agents.web.daily import daily_table
from agents.web.errors import Refused
from agents.web.messages import MAX_SEATS, DailyGame, NewGame, SameAgain, SavedRecord
from agents.web.open_game import DAILY, OpenGame
from generala_env.files import remove_leftovers, replacing

MAX_GAMES: Final = 1_000
"""Games that one session may keep."""

MAX_LISTED: Final = 50
"""Games of a session that are listed, the latest first."""

MAX_OPEN: Final = 64
"""Games kept in memory; the others are read again when they are asked for."""

MAX_REVIEWED_SEATS: Final = 12

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")

_IDENTIFIER: Final = re.compile(r"(?:game|record|daily)-[0-9a-f-]{16,40}")

_NOT_PRINTED: Final = re.compile(r"[\x00-\x1f\x7f]")


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(32)


def is_token(text: str | None) -> bool:
    """Tell whether a text has the form of a token."""
    return text is not None and _TOKEN.fullmatch(text) is not None


class Sessions:
    """The games of all browsers.

    It is meant for one caller at a time.
    """

    def __init__(self, folder: Path, *, runs: Path, store: Path | None = None) -> None:
        """Use a folder of games.

        Args:
            folder: Where the records are; made when the first game is.
            runs: The folder whose trained agents may be played against, and no others.
            store: Folder of solved two-player games; ``None`` is the default place.
        """
        self.folder = folder
        self.runs = runs
        self.store = store
        self._open: OrderedDict[Path, tuple[tuple[int, int], OpenGame]] = OrderedDict()
        if folder.exists():
            remove_leftovers(folder)

    # --- who may sit down -------------------------------------------------------------------------

    def run_names(self) -> list[str]:
        """Return the names of the runs that hold an agent, sorted."""
        return sorted(path.parent.name for path in self.runs.glob(f"*/{AGENT_FILE}"))

    def agent_at(self, seat: str) -> str:
        """Return what to make for a seat that is not a person's: a known name, or a path inside the runs.

        Raises:
            Refused: It is a path that leads out of the folder of runs.
            AgentError: There is no such agent.
        """
        if seat in agent_names(MAX_SEATS):
            return seat
        inside = self.runs.resolve()
        # A run is named as the page lists it, or with the folder before it, as on the command line.
        for path in (self.runs / seat, Path(seat)):
            try:
                resolved = path.resolve()
                found = resolved.exists()
            except (OSError, ValueError):
                continue
            if found:
                if resolved == inside or not resolved.is_relative_to(inside):
                    raise Refused("bad_request", f"seats: {seat!r} is not inside {self.runs}")
                return str(path)
        raise AgentError(f"seats: {seat!r} is neither a known agent nor a run in {self.runs}")

    # --- the games of a session -------------------------------------------------------------------

    def _home(self, token: str) -> Path:
        # Whoever may read the folder must not learn the tokens from it.
        return self.folder / hashlib.sha256(token.encode()).hexdigest()[:32]

    def _path(self, token: str, identifier: str) -> Path:
        if _IDENTIFIER.fullmatch(identifier) is None:
            raise Refused("not_found", "there is no such game")
        return self._home(token) / f"{identifier}.jsonl"

    def game(self, token: str, identifier: str) -> OpenGame:
        """Return a game of a session, read from its file unless that is as it was left.

        Raises:
            Refused: The session has no such game.
            RecordError: Its record was damaged.
        """
        path = self._path(token, identifier)
        try:
            stat = path.stat()
        except OSError:
            raise Refused("not_found", "there is no such game") from None
        known = self._open.get(path)
        if known is not None and known[0] == (stat.st_size, stat.st_mtime_ns):
            self._open.move_to_end(path)
            return known[1]
        record = GameRecord.read(path)
        record.resume()
        opened = OpenGame(identifier, record, store=self.store, seat=self.agent_at)
        self.keep(opened)
        return opened

    def keep(self, opened: OpenGame) -> None:
        """Remember an open game as its file now is."""
        path = opened.record.path
        assert path is not None
        stat = path.stat()
        self._open[path] = ((stat.st_size, stat.st_mtime_ns), opened)
        self._open.move_to_end(path)
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)

    def forget(self, opened: OpenGame) -> None:
        """Forget an open game, so that it is read again: its file may not hold what was done."""
        assert opened.record.path is not None
        self._open.pop(opened.record.path, None)

    def _listed(self, token: str) -> list[Path]:
        paths = [path for path in self._home(token).glob("*.jsonl") if _IDENTIFIER.fullmatch(path.stem)]
        return sorted(paths, key=lambda path: (-path.stat().st_mtime_ns, path.name))

    def games(self, token: str) -> list[dict[str, Any]]:
        """Return the latest games of a session in a few words each; damaged ones say so."""
        listed: list[dict[str, Any]] = []
        for path in self._listed(token)[:MAX_LISTED]:
            entry: dict[str, Any] = {"id": path.stem, "changed": int(path.stat().st_mtime)}
            try:
                entry |= self.game(token, path.stem).summary()
            except RecordError as error:
                entry["damaged"] = str(error).removeprefix(f"{path}:")
            listed.append(entry)
        return listed

    def _begin(self, token: str, identifier: str, table: Table) -> OpenGame:
        path = self._path(token, identifier)
        if path.exists():
            return self.game(token, identifier)
        self._require_room(token)
        record = GameRecord.create(None, table)
        opened = OpenGame(identifier, record, store=self.store, seat=self.agent_at)
        # Agents are made before the file is, so that a misspelt one leaves nothing behind.
        opened.require_agents()
        opened.record = GameRecord.create(path, table)
        self.keep(opened)
        return opened

    def _require_room(self, token: str) -> None:
        if len(self._listed(token)) >= MAX_GAMES:
            raise Refused("too_many", f"{MAX_GAMES} games are kept already")

    def begin(self, token: str, message: NewGame) -> OpenGame:
        """Begin a game, or return the one with this key.

        Raises:
            AgentError: An agent cannot be made.
            RecordError: The variant does not allow that many players.
            Refused: A path leads out of the folder of runs, or the session keeps too many games.
            UsageError: The variant cannot be made.
        """
        variant = variant_from(message.variant, message.overrides)
        seats = tuple(_NOT_PRINTED.sub("", seat) if is_person(seat) else seat for seat in message.seats)
        seed = secrets.randbelow(2**31) if message.seed is None else message.seed
        return self._begin(token, f"game-{message.key}", Table(variant, seats, seed))

    def begin_again(self, token: str, identifier: str, message: SameAgain) -> OpenGame:
        """Begin a game with the rules and the seats of another, and other dice.

        Raises:
            AgentError: An agent cannot be made.
            Refused: The session has no such game, or keeps too many; or too many sit at the table.
        """
        table = self.game(token, identifier).record.table
        if len(table.seats) > MAX_SEATS:
            raise Refused("bad_request", f"seats: {len(table.seats)} are more than {MAX_SEATS}")
        return self._begin(token, f"game-{message.key}", replace(table, seed=secrets.randbelow(2**31)))

    def begin_daily(self, token: str, message: DailyGame, today: datetime.date) -> OpenGame:
        """Begin the deal of a day, or return it: a session plays each but once.

        Raises:
            Refused: The day is yet to come, or the session keeps too many games.
            UsageError: The variant cannot be made.
        """
        variant = variant_from(message.variant, message.overrides)
        day = message.day or today
        if day > today:
            raise Refused("bad_request", f"day: {day} is yet to come; today is {today}")
        return self._begin(token, f"{DAILY}-{day}-{variant.fingerprint}", daily_table(day, variant))

    def take_in(self, token: str, message: SavedRecord) -> OpenGame:
        """Keep a copy of a saved game, to be reviewed.

        Raises:
            RecordError: It is no game record.
            Refused: Too many sit at its table, or the session keeps too many games.
        """
        identifier = f"record-{message.key}"
        path = self._path(token, identifier)
        if path.exists():
            return self.game(token, identifier)
        self._require_room(token)
        raw = message.text.encode()
        _check_size(raw)
        GameRecord.parse(raw, Path(identifier))
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(raw)
        return self.game(token, identifier)


def _check_size(raw: bytes) -> None:
    """Refuse a table at which too many sit before it is dealt; what else is wrong, the record says."""
    try:
        seats = json.loads(raw.partition(b"\n")[0])["seats"]
        num_seats = len(seats)
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    if num_seats > MAX_REVIEWED_SEATS:
        raise Refused("bad_request", f"seats: {num_seats} are more than {MAX_REVIEWED_SEATS}")
