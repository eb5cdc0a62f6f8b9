"""A game on disk: JSON Lines that can be resumed, replayed and reviewed.

The first line names the rules, the seats and the key of the dice; each further line is one
decision; the last one, once the game is over, is the result. The dice follow from the key,
and are written beside each decision so that a person can read the file and a changed one is
noticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from agents.errors import UsageError, shown
from generala_env import __version__
from generala_env.envs.dealing import DealtGame
from generala_env.envs.outcomes import how_ended
from generala_env.files import flush_to_disk, parse_json, replacing
from generala_env.rules.actions import action_text
from generala_env.rules.compiled import InstantWin
from generala_env.rules.game import GameState, IllegalActionError
from generala_env.rules.names import DiceSkin, Language
from generala_env.rules.variants import Variant, VariantError

FORMAT: Final = "generala-game"

VERSION: Final = 1


AT_TABLE: Final[InstantWin] = "perfect"
"""At a table, and alone as well, a served Generala that wins ends the game: whoever values games that are
really played counts it as the most that a card can make."""


_Named = TypeVar("_Named", bound=StrEnum)


class RecordError(UsageError):
    """A game record that cannot be written, or that is damaged or of another kind."""


@dataclass(frozen=True)
class Table:
    """What a game is played with.

    Attributes:
        variant: The rules.
        seats: Who sits where: ``me``, ``me:NAME`` or an agent.
        seed: Seed of the dice.
    """

    variant: Variant
    seats: tuple[str, ...]
    seed: int

    def deal(self) -> DealtGame:
        """Return the game at its first decision.

        Raises:
            ValueError: The variant does not allow that many players.
        """
        dealt = DealtGame(self.variant, len(self.seats))
        dealt.start((self.seed, 0))
        return dealt


@dataclass(frozen=True)
class Face:
    """How a game is shown to the people at it.

    Attributes:
        language: Of all that is said.
        skin: What the dice show.
    """

    language: Language = Language.EN
    skin: DiceSkin = DiceSkin.STANDARD


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False) + "\n"


def _header(table: Table, face: Face | None) -> dict[str, Any]:
    shown = {} if face is None else {"language": face.language.value, "dice": face.skin.value}
    return {
        "format": FORMAT,
        "version": VERSION,
        "generala_env": __version__,
        "fingerprint": table.variant.fingerprint,
        "variant": table.variant.to_dict(),
        "seats": list(table.seats),
        "seed": table.seed,
        **shown,
    }


@dataclass
class GameRecord:
    """A game being written to a file, or read from one.

    Attributes:
        path: The file; ``None`` keeps nothing.
        table: What the game is played with.
        dealt: The game after the actions so far.
        actions: The ids of the actions taken.
        face: How it is shown; ``None`` where the file does not say.
    """

    path: Path | None
    table: Table
    dealt: DealtGame
    actions: list[int] = field(default_factory=list)
    face: Face | None = None

    @classmethod
    def create(cls, path: Path | None, table: Table, face: Face | None = None) -> GameRecord:
        """Begin a game and its file.

        Args:
            path: The file; ``None`` keeps nothing.
            table: What the game is played with.
            face: How it is shown, to be remembered; ``None`` leaves it open.

        Raises:
            RecordError: The file exists already or cannot be written, or the variant does not
                allow that many players.
        """
        try:
            dealt = table.deal()
        except ValueError as error:
            raise RecordError(str(error)) from None
        record = cls(path, table, dealt, face=face)
        if path is not None:
            if path.exists():
                raise RecordError(f"--record: {path} exists already; name another file, or --resume it")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                record._append(_header(table, face), mode="x")
            except OSError as error:
                raise RecordError(f"--record: cannot write {path}: {error.strerror}") from None
            record._finish_if_over()
        return record

    @classmethod
    def read(cls, path: Path) -> GameRecord:
        """Read a record and play its actions again.

        A last line that was cut short, as by a crash, is left out.

        Raises:
            RecordError: The file is missing, damaged, of another kind or of a newer version.
        """
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
        return cls.parse(raw, path)

    @classmethod
    def parse(cls, raw: bytes, path: Path) -> GameRecord:
        """Read a record from the bytes of its file and play its actions again.

        Args:
            raw: What the file holds.
            path: Where it is, or is to be; for the record and for messages, not opened.

        Raises:
            RecordError: The record is damaged, of another kind or of a newer version.
        """
        lines = _lines(path, raw)
        try:
            _, header = next(lines)
        except StopIteration:
            raise RecordError(f"{path}: is empty; a game record was expected") from None
        table = _table(path, header)
        try:
            record = cls(path, table, table.deal(), face=_face(path, header))
        except ValueError as error:
            raise RecordError(f"{path}:1: {error}") from None
        for number, values in lines:
            if "result" in values:
                continue
            record._repeat(f"{path}:{number}", values)
        return record

    def _repeat(self, where: str, values: Mapping[str, Any]) -> None:
        if self.dealt.is_over:
            raise RecordError(f"{where}: an action after the end of the game")
        state = self.dealt.state
        action, dice = values.get("action"), values.get("dice")
        if type(action) is not int:
            raise RecordError(f"{where}: action: {shown(action)} is not an action id")
        if dice != list(state.turn.dice) or values.get("seat") != state.current_player:
            raise RecordError(
                f"{where}: dice {shown(dice)} in seat {shown(values.get('seat'))} do not follow from seed "
                f"{self.table.seed}: {list(state.turn.dice)} in seat {state.current_player} do; "
                "the record was changed"
            )
        try:
            self.dealt.apply(action)
        except IllegalActionError as error:
            raise RecordError(f"{where}: {error}") from None
        self.actions.append(action)

    def resume(self) -> None:
        """Make the file ready for more: drop a line that was cut short."""
        assert self.path is not None
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            with replacing(self.path) as temporary:
                temporary.write_bytes(whole)

    def take(self, action: int) -> None:
        """Take the current player's action and write it down.

        Raises:
            IllegalActionError: The action is not legal; nothing has changed.
        """
        state = self.dealt.state
        self.dealt.apply(action)
        self.actions.append(action)
        self._append(
            {
                "seat": state.current_player,
                "round": state.round,
                "throw": state.turn.throw,
                "dice": list(state.turn.dice),
                "action": action,
                "does": action_text(action, state.turn.dice, self.table.variant.boxes),
            }
        )
        self._finish_if_over()

    def _finish_if_over(self) -> None:
        state = self.dealt.state
        if self.dealt.is_over:
            result = {
                "scores": list(state.scores),
                "winners": list(state.winners),
                "decided_by": how_ended(self.table.variant, state, was_tied=self.dealt.was_tied),
            }
            self._append({"result": result})

    def _append(self, values: Mapping[str, Any], mode: str = "a") -> None:
        if self.path is None:
            return
        with self.path.open(mode, encoding="utf-8") as file:
            file.write(_line(values))
            flush_to_disk(file)

    def history(self) -> Iterator[tuple[GameState, int]]:
        """Yield every decision of the game so far: the position and the action taken."""
        dealt = self.table.deal()
        for action in self.actions:
            yield dealt.state, action
            dealt.apply(action)


def _lines(path: Path, raw: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    # What follows the last line break was cut short.
    for number, line in enumerate(raw[: raw.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            values = parse_json(line)
        except ValueError:
            raise RecordError(f"{path}:{number}: is not a line of JSON") from None
        if not isinstance(values, dict):
            raise RecordError(f"{path}:{number}: is not a JSON object")
        yield number, values


def _table(path: Path, header: Mapping[str, Any]) -> Table:
    where = f"{path}:1"
    if header.get("format") != FORMAT:
        raise RecordError(f"{where}: format {shown(header.get('format'))} is not {FORMAT}: not a game record")
    if header.get("version") != VERSION:
        raise RecordError(
            f"{where}: version {shown(header.get('version'))} is not {VERSION}, the one known here"
        )
    seats, seed, values = header.get("seats"), header.get("seed"), header.get("variant")
    if not isinstance(seats, list) or not seats or not all(isinstance(seat, str) for seat in seats):
        raise RecordError(f"{where}: seats: {shown(seats)} is not a list of names")
    if type(seed) is not int:
        raise RecordError(f"{where}: seed: {shown(seed)} is not a whole number")
    if not isinstance(values, dict):
        raise RecordError(f"{where}: variant: {shown(values)} is not a mapping of fields")
    try:
        variant = Variant.from_dict(values)
    except VariantError as error:
        raise RecordError(f"{where}: variant: {error}") from None
    if header.get("fingerprint") != variant.fingerprint:
        raise RecordError(
            f"{where}: fingerprint {shown(header.get('fingerprint'))} is not {variant.fingerprint}, "
            "that of its rules"
        )
    return Table(variant, tuple(seats), seed)


def _face(path: Path, header: Mapping[str, Any]) -> Face | None:
    """Return how a game is shown; games of the page, and older ones, leave it open."""
    if "language" not in header and "dice" not in header:
        return None
    return Face(
        _one_of(path, header, "language", Language, Language.EN),
        _one_of(path, header, "dice", DiceSkin, DiceSkin.STANDARD),
    )


def _one_of(
    path: Path, header: Mapping[str, Any], key: str, known: type[_Named], otherwise: _Named
) -> _Named:
    value = header.get(key, otherwise.value)
    if value not in [one.value for one in known]:
        raise RecordError(f"{path}:1: {key}: {value!r} is not one of {', '.join(known)}")
    return known(value)
