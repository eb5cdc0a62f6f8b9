"""The table as plain text: the dice, the throw, and the score sheet of every player.

Everything shown is read from the state, so rendering draws nothing from any generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from generala_env.rules.card import is_served
from generala_env.rules.dice import THROWS_PER_TURN, Dice
from generala_env.rules.game import GameState, Phase
from generala_env.rules.names import DiceSkin, box_name, face_label, word
from generala_env.rules.variants import DobleKind, Variant

_PIPS: Final = {
    1: ("       ", "   ●   ", "       "),
    2: (" ●     ", "       ", "     ● "),
    3: (" ●     ", "   ●   ", "     ● "),
    4: (" ●   ● ", "       ", " ●   ● "),
    5: (" ●   ● ", "   ●   ", " ●   ● "),
    6: (" ●   ● ", " ●   ● ", " ●   ● "),
}
"""The three rows of pips on each face."""

_DIE_WIDTH: Final = 9


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


def die_lines(face: int, skin: DiceSkin | str = DiceSkin.STANDARD) -> tuple[str, ...]:
    """Draw one die in five lines of nine characters: pips, or the label of a poker die.

    Raises:
        ValueError: The face or the skin is not known.
    """
    label = face_label(face, skin)
    rows = _PIPS[face] if DiceSkin(skin) is DiceSkin.STANDARD else ("       ", f"{label:^7}", "       ")
    return ("┌───────┐", *(f"│{row}│" for row in rows), "└───────┘")


def dice_lines(
    dice: Dice,
    skin: DiceSkin | str = DiceSkin.STANDARD,
    *,
    captions: Sequence[str] = (),
) -> list[str]:
    """Draw dice side by side, each with a centred caption below it where one is given."""
    lines = [" ".join(parts) for parts in zip(*(die_lines(face, skin) for face in dice), strict=True)]
    if any(captions):
        under = [f"{caption:^{_DIE_WIDTH}}" for _, caption in zip_longest(dice, captions, fillvalue="")]
        lines.append(" ".join(under).rstrip())
    return lines


def player_names(num_players: int, language: str) -> tuple[str, ...]:
    """Return what the seats are called where players have no names of their own."""
    return tuple(f"{word('player', language)} {seat + 1}" for seat in range(num_players))


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
        entries = ["" if points is None else str(points) if points else "—" for points in written]
        rows.append((box_name(box, language, dice), *entries))
    if variant.doble.kind is DobleKind.BONUS:
        bonuses = [str(player.bonus) if player.bonus else "" for player in state.players]
        rows.append((f"Doble ({word('bonus', language)})", *bonuses))
    rows.append((word("total", language), *map(str, state.scores)))
    return rows


def status_line(variant: Variant, state: GameState, names: Sequence[str], *, language: str = "en") -> str:
    """Return one line on what is going on: the round, the throw and who has it, or who has won."""

    def say(key: str) -> str:
        return word(key, language)

    if state.phase is Phase.OVER:
        winners = ", ".join(names[seat] for seat in state.winners)
        if len(names) == 1:
            ending = f"{state.scores[0]} {say('points')}"
        else:
            ending = f"{say('winner') if len(state.winners) == 1 else say('draw')}: {winners}"
        how = f" ({say('instant_win')})" if state.is_instant_win else ""
        return f"{say('game_over')} · {ending}{how}"
    name = names[state.current_player]
    if state.phase is Phase.FIRST_PLAYER:
        return f"{say('first_player')}? · {name}"
    stage = say("playoff")
    if state.phase is not Phase.PLAYOFF:
        stage = f"{say('round')} {state.round}/{variant.num_boxes}"
    line = f"{stage} · {name} · {say('throw')} {state.turn.throw}/{THROWS_PER_TURN}"
    served = is_served(variant, state.turn.throw, is_full_throw=state.turn.is_full_throw)
    return f"{line} · {say('served')}" if state.turn.dice and served else line


def render_text(variant: Variant, state: GameState, *, language: str = "en", dice: str = "standard") -> str:
    """Draw the dice, the throw number and everybody's score sheet as plain text.

    Args:
        variant: The rules.
        state: Any position, finished ones included.
        language: ``en``, ``es`` or ``pt``.
        dice: ``standard`` or ``poker``.

    Returns:
        Several lines, without a newline at the end and without colours.

    Raises:
        ValueError: The language or the dice are not known.
    """
    names = player_names(len(state.players), language)
    lines = [f"{variant.name} · {status_line(variant, state, names, language=language)}"]
    if state.turn.dice:
        kept = is_kept(state.turn.dice, state.turn.kept)
        caption = word("locked" if variant.is_locked else "kept", language)
        lines += dice_lines(state.turn.dice, dice, captions=[caption if flag else "" for flag in kept])
    rows = sheet_rows(variant, state, language=language, dice=dice)
    wide = max(len(row[0]) for row in rows)
    widths = [max(len(name), 5) for name in names]
    marks = [
        "▸" if seat == state.current_player and state.phase is not Phase.OVER else " "
        for seat in range(len(names))
    ]

    def line(title: str, entries: Sequence[str]) -> str:
        cells = (f" {entry:>{width}} " for entry, width in zip(entries, widths, strict=True))
        return "│".join((f"{title:<{wide}} ", *cells)).rstrip()

    rule = "┼".join(("─" * (wide + 1), *("─" * (width + 2) for width in widths)))
    head = "│".join(
        (
            f"{'':<{wide}} ",
            *(f"{mark}{name:>{width}} " for mark, name, width in zip(marks, names, widths, strict=True)),
        )
    )
    body = [line(title, entries) for title, *entries in rows]
    return "\n".join((*lines, head.rstrip(), rule, *body[:-1], rule, body[-1]))
