"""What there is to see of a position, in words and numbers: the ground of the text and of the pictures.

Everything is read from the state, so showing a game draws nothing from any generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from generala_env.envs.closing import is_served_now, payment, pays_for_service
from generala_env.rules.actions import Keep, action_of
from generala_env.rules.boxes import Box
from generala_env.rules.card import closable_boxes
from generala_env.rules.dice import THROW_INDEX, THROWS_PER_TURN, Dice, select
from generala_env.rules.game import GameState, Phase
from generala_env.rules.names import DiceSkin, box_name, face_label, word
from generala_env.rules.playoff import playoff_tables
from generala_env.rules.variants import DobleKind, Variant

STRUCK: Final = "—"
"""What is written in a box closed without points."""


class Mark(StrEnum):
    """What stands in a place of the card."""

    EMPTY = "empty"
    PAYS = "pays"
    STRIKES = "strikes"
    POINTS = "points"
    STRUCK = "struck"


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the card.

    Attributes:
        text: What is written there, or what closing the box now would write.
        mark: Whether it is written, would pay, or would strike the box.
        is_last: Whether it is what its player wrote last.
    """

    text: str = ""
    mark: Mark = Mark.EMPTY
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Die:
    """One die on the table.

    Attributes:
        face: 1 to 6.
        is_kept: Whether it was set aside before the throw.
    """

    face: int
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Board:
    """A position as it is shown.

    Attributes:
        title: The variant's name, as words.
        stage: The round, the playoff, or that the game is over.
        mover: Who throws which throw, or who has won and how.
        served: The word for a served throw, where it makes closing some box pay more; otherwise empty.
        kept: The word under dice that were set aside.
        dice: The dice on the table; none while they are still to be thrown.
        names: What stands above the column of every seat.
        current: The seat to decide; ``None`` once the game is over.
        winners: The seats that won.
        last_move: What was done last, or nothing.
        rows: A name and the cells by seat for each box, the Doble bonus, the playoff.
        total: The name of the last row.
        scores: What stands in it.
    """

    title: str
    stage: str
    mover: str
    served: str
    kept: str
    dice: tuple[Die, ...]
    names: tuple[str, ...]
    current: int | None
    winners: tuple[int, ...]
    last_move: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    total: str
    scores: tuple[int, ...]


def is_kept(dice: Dice, kept: Dice) -> tuple[bool, ...]:
    """Tell which dice on the table were set aside before the throw.

    Of equal dice the lower positions count as the ones set aside.
    """
    left = list(kept)
    flags = []
    for die in dice:
        flags.append(die in left)
        if flags[-1]:
            left.remove(die)
    return tuple(flags)


def player_names(num_players: int, language: str) -> tuple[str, ...]:
    """Return what the seats are called where players have no names of their own."""
    return tuple(f"{word('player', language)} {seat + 1}" for seat in range(num_players))


def keep_text(kept: Dice, *, language: str = "en", dice: str = "standard") -> str:
    """Return keeping dice in words: ``keep 5 5 6``, or throwing all five."""
    if not kept:
        return word("throw_all", language)
    return f"{word('keep', language)} {' '.join(face_label(face, dice) for face in kept)}"


def close_text(box: Box, points: int, *, language: str = "en", dice: str = "standard") -> str:
    """Return closing a box in words: ``close Full house (30)``, or striking it."""
    name = box_name(box, language, dice)
    if not points:
        return f"{word('strike', language)} {name}"
    return f"{word('close', language)} {name} ({points})"


def move_text(
    variant: Variant, state: GameState, action: int, *, language: str = "en", dice: str = "standard"
) -> str:
    """Return what an action does in words, with what it pays, a Doble bonus included.

    Args:
        variant: The rules.
        state: A position with dice on the table.
        action: The id of a legal action.
        language: ``en``, ``es`` or ``pt``.
        dice: ``standard`` or ``poker``.
    """
    move = action_of(action, variant.num_boxes)
    if isinstance(move, Keep):
        return keep_text(select(state.turn.dice, move.mask), language=language, dice=dice)
    points = sum(payment(variant, state, move.box))
    return close_text(variant.boxes[move.box], points, language=language, dice=dice)


def sheet_rows(
    variant: Variant, state: GameState, *, language: str = "en", dice: str = "standard"
) -> list[tuple[str, ...]]:
    """Return the score sheet: one row for each box, the Doble bonus where there is one, the total.

    A row is the name followed by one entry for each seat: blank while the box is open, a
    dash where it was struck.
    """
    rows: list[tuple[str, ...]] = []
    for index, box in enumerate(variant.boxes):
        written = [player.sheet[index] for player in state.players]
        entries = ["" if points is None else str(points) if points else STRUCK for points in written]
        rows.append((box_name(box, language, dice), *entries))
    if variant.doble.kind is DobleKind.BONUS:
        bonuses = [str(player.bonus) if player.bonus else "" for player in state.players]
        rows.append((f"Doble ({word('bonus', language)})", *bonuses))
    rows.append((word("total", language), *map(str, state.scores)))
    return rows


def stage_text(variant: Variant, state: GameState, *, language: str = "en") -> str:
    """Return what is going on: the round, a roll-off, the playoff, or that the game is over."""
    if state.phase is Phase.OVER:
        return word("game_over", language)
    if state.phase is Phase.FIRST_PLAYER:
        return f"{word('first_player', language)}?"
    if state.phase is Phase.PLAYOFF:
        return word("playoff", language)
    return f"{word('round', language)} {state.round}/{variant.num_boxes}"


def throw_text(state: GameState, *, language: str = "en") -> str:
    """Return which throw of the turn it is."""
    return f"{word('throw', language)} {state.turn.throw}/{THROWS_PER_TURN}"


def mover_text(state: GameState, names: Sequence[str], *, language: str = "en") -> str:
    """Return who makes which throw, or who has won and how."""
    if state.phase is Phase.OVER:
        if len(names) == 1:
            ending = f"{state.scores[0]} {word('points', language)}"
        else:
            how_many = word("winner" if len(state.winners) == 1 else "draw", language)
            ending = f"{how_many}: {', '.join(names[seat] for seat in state.winners)}"
        return f"{ending} ({word('instant_win', language)})" if state.is_instant_win else ending
    name = names[state.current_player]
    if state.phase is Phase.FIRST_PLAYER:
        return name
    return f"{name} · {throw_text(state, language=language)}"


def status_line(variant: Variant, state: GameState, names: Sequence[str], *, language: str = "en") -> str:
    """Return one line on what is going on: the round, the throw and who has it, or who has won."""
    parts = [stage_text(variant, state, language=language), mover_text(state, names, language=language)]
    if pays_for_service(variant, state):
        parts.append(word("served", language))
    return " · ".join(parts)


def closing_points(variant: Variant, state: GameState) -> dict[int, int]:
    """Return what each box that the player to move may close would bring now, a Doble bonus included.

    Empty where nothing is to be decided, and in a playoff, whose turns close no box of the card.
    """
    if state.phase is not Phase.TURNS or not state.turn.dice:
        return {}
    return {box: sum(payment(variant, state, box)) for box in closable_boxes(variant, state.card)}


def _offer(points: int) -> Cell:
    return Cell(str(points), Mark.PAYS if points else Mark.STRIKES)


def _box_cells(
    state: GameState, box: int, offers: Mapping[int, int], last_boxes: Sequence[int | None]
) -> tuple[Cell, ...]:
    cells = []
    for seat, player in enumerate(state.players):
        points = player.sheet[box]
        if points is not None:
            is_last = last_boxes[seat] == box
            cells.append(
                Cell(str(points) if points else STRUCK, Mark.POINTS if points else Mark.STRUCK, is_last)
            )
        elif seat == state.current_player and box in offers:
            cells.append(_offer(offers[box]))
        else:
            cells.append(Cell())
    return tuple(cells)


def _playoff_cells(variant: Variant, state: GameState) -> tuple[Cell, ...]:
    """Return what the playoff turns made, and what the one going on would."""
    assert state.contest is not None
    cells = [Cell()] * len(state.players)
    for seat, result in zip(state.contest.candidates, state.contest.results, strict=False):
        cells[seat] = Cell(str(result), Mark.POINTS)
    if state.turn.dice:
        points = playoff_tables(variant).points[int(is_served_now(variant, state))]
        cells[state.current_player] = _offer(int(points[THROW_INDEX[state.turn.dice]]))
    return tuple(cells)


def _last_move(
    variant: Variant,
    state: GameState,
    names: Sequence[str],
    last_boxes: Sequence[int | None],
    *,
    language: str,
    dice: str,
) -> str:
    """Return the move that led here, with its player where there are several."""
    num_players = len(state.players)
    is_full = state.phase is Phase.OVER and not state.is_instant_win
    if state.phase is Phase.FIRST_PLAYER:
        return ""
    if state.turn.throw > 1 and not is_full:
        seat = state.current_player
        text = keep_text(state.turn.kept, language=language, dice=dice)
    else:
        seat = state.current_player if is_full else (state.current_player - 1) % num_players
        box = last_boxes[seat]
        points = None if box is None else state.players[seat].sheet[box]
        if box is None or points is None or state.phase is Phase.PLAYOFF:
            return ""
        text = close_text(variant.boxes[box], points, language=language, dice=dice)
    label = word("last_move", language)
    return f"{label}: {text}" if num_players == 1 else f"{label}, {names[seat]}: {text}"


def make_board(
    variant: Variant,
    state: GameState,
    *,
    names: Sequence[str] | None = None,
    last_boxes: Sequence[int | None] | None = None,
    language: str = "en",
    dice: str = "standard",
) -> Board:
    """Describe a position as it is shown.

    Args:
        variant: The rules.
        state: Any position, finished ones included.
        names: What the seats are called; numbered players where ``None``, and no name for one alone.
        last_boxes: By seat, the index of the box that was closed last, where one was.
        language: ``en``, ``es`` or ``pt``.
        dice: ``standard`` or ``poker``.

    Raises:
        ValueError: The language or the dice are not known, or the names or the last boxes are not as
            many as the players.
    """
    num_players = len(state.players)
    if names is None:
        names = player_names(num_players, language) if num_players > 1 else (word("points", language),)
    last_boxes = (None,) * num_players if last_boxes is None else tuple(last_boxes)
    for what, given in (("names", names), ("last_boxes", last_boxes)):
        if len(given) != num_players:
            raise ValueError(f"{what}: {given!r} is not one for each of {num_players} players")
    DiceSkin(dice)
    offers = closing_points(variant, state)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    *written, total = sheet_rows(variant, state, language=language, dice=dice)
    for index, (name, *entries) in enumerate(written):
        if index < variant.num_boxes:
            rows.append((name, _box_cells(state, index, offers, last_boxes)))
        else:
            rows.append((name, tuple(Cell(entry, Mark.POINTS if entry else Mark.EMPTY) for entry in entries)))
    if state.phase is Phase.PLAYOFF:
        rows.append((word("playoff", language), _playoff_cells(variant, state)))
    mover = mover_text(state, names, language=language)
    if num_players == 1 and state.phase is not Phase.OVER:
        mover = throw_text(state, language=language)  # there is nobody else
    flags = is_kept(state.turn.dice, state.turn.kept)
    return Board(
        title=variant.name.replace("_", " "),
        stage=stage_text(variant, state, language=language),
        mover=mover,
        served=word("served", language) if pays_for_service(variant, state) else "",
        kept=word("locked" if variant.is_locked else "kept", language),
        dice=tuple(Die(face, flag) for face, flag in zip(state.turn.dice, flags, strict=True)),
        names=tuple(names),
        current=None if state.phase is Phase.OVER else state.current_player,
        winners=state.winners,
        last_move=_last_move(variant, state, names, last_boxes, language=language, dice=dice),
        rows=tuple(rows),
        total=total[0],
        scores=state.scores,
    )
