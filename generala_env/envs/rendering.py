"""The table as plain text: the dice, the throw, and the score sheet of every player."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from generala_env.envs.board import is_kept, player_names, sheet_rows, status_line
from generala_env.rules.dice import Dice
from generala_env.rules.game import GameState, Phase
from generala_env.rules.names import DiceSkin, face_label, word
from generala_env.rules.variants import Variant

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
