"""What the terminal shows of a game."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich.box import HEAVY_HEAD
from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from agents.evaluation.report_text import number
from agents.games.advice import Choice
from agents.games.record import Table
from agents.games.seating import is_unnamed, seat_names
from agents.terminal.words import text
from generala_env.envs.board import STRUCK, is_kept, move_text, sheet_rows, status_line
from generala_env.envs.closing import payment
from generala_env.envs.outcomes import standings
from generala_env.envs.rendering import die_lines
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.dice import NUM_DICE, Dice
from generala_env.rules.game import GameState, Phase
from generala_env.rules.names import Language, face_label, word

HINT_CHOICES: Final = 8

LOG_LINES: Final = 12

WIDE: Final = 110
"""From this many columns on, the dice stand beside the sheet."""

LAST_MOVES: Final = 2
"""So many of the last moves are shown before anything else is made smaller."""

SCORE_DIGITS: Final = 3
"""Columns of a player's points, which are kept from the start."""

TYPED: Final = 12
"""Columns left for what is typed after a prompt."""

FRAME: Final = 4
"""Columns of the frame."""

GAP: Final = 3
"""Columns between the sheet and the dice beside it."""

BESIDE: Final = NUM_DICE * 10 + GAP
"""Columns of the dice beside the sheet."""

_UNBOUNDED: Final = 1_000
"""Columns enough for any sheet."""


@dataclass(frozen=True)
class _Layout:
    """One way to draw the table.

    Attributes:
        is_framed: Whether there is a frame around it and lines within the sheet.
        is_wide: Whether the dice stand beside the sheet, otherwise below it.
        has_pips: Whether the dice are drawn, otherwise written.
        has_sheet: Whether the sheet is there.
    """

    is_framed: bool = False
    is_wide: bool = False
    has_pips: bool = False
    has_sheet: bool = True


_LAYOUTS: Final = (
    _Layout(is_framed=True, is_wide=True, has_pips=True),
    _Layout(is_framed=True, has_pips=True),
    _Layout(has_pips=True),
    _Layout(),
)
"""From the most room to the least."""

_WITHOUT_SHEET: Final = (_Layout(has_pips=True, has_sheet=False), _Layout(has_sheet=False))
"""What is left where a long answer, such as a hint, needs the room of the sheet."""


class Screen:
    """Draws the table with rich: the sheet of everybody, the dice, what has happened.

    Whatever the size of the terminal, all that is drawn at once fits in it as far as it can: frames,
    older moves and pips go first, then the names move out of the sheet, which is kept.
    """

    def __init__(self, console: Console, table: Table, *, language: str, skin: str) -> None:
        """Bind the screen to a table.

        Args:
            console: Where it is drawn.
            table: The rules and who sits where.
            language: ``es``, ``pt`` or ``en``.
            skin: ``standard`` or ``poker``.
        """
        self.console = console
        self.variant = table.variant
        self.names = seat_names(table.seats, language)
        self.language = language
        self.skin = skin
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        unnamed = [seat for seat, who in enumerate(table.seats) if is_unnamed(who)]
        # Where several people have no name, each is a player with a number and none is addressed.
        self._you = unnamed[0] if len(unnamed) == 1 else None

    def say(self, key: str, **values: object) -> str:
        """Return a sentence in the language of the table."""
        return text(key, self.language, **values)

    def say_of(self, key: str, seat: int, **values: object) -> str:
        """Return a sentence on a player, who is addressed if it is the person at the terminal."""
        return self.say(f"{key}_you" if seat == self._you else key, name=self.names[seat], **values)

    def number(self, value: float, digits: int = 2, *, sign: bool = False) -> str:
        """Return a number as the language of the table writes it."""
        return number(value, Language(self.language), digits, sign=sign)

    def faces(self, dice: Dice) -> str:
        """Return dice as their labels."""
        return " ".join(face_label(face, self.skin) for face in dice)

    def move(self, state: GameState, action: int) -> str:
        """Return what an action does, in words."""
        return move_text(self.variant, state, action, language=self.language, dice=self.skin)

    def dice(self, state: GameState, pending: Dice | None = None, *, has_pips: bool = True) -> RenderableType:
        """Draw the dice; those set aside are green, those about to be yellow."""
        kept = is_kept(state.turn.dice, state.turn.kept)
        chosen = is_kept(state.turn.dice, pending or ())
        drawn = []
        for place, face in enumerate(state.turn.dice):
            style = "bold yellow" if chosen[place] else "green" if kept[place] else "white"
            lines = die_lines(face, self.skin) if has_pips else (f"[{face_label(face, self.skin):^3}]",)
            place_line = f"{place + 1:^{len(lines[0])}}"
            drawn.append(Text("\n".join((*lines, place_line)), style=style))
        return Columns(drawn, padding=(0, 1))

    def sheet(
        self,
        state: GameState,
        mask: NDArray[np.bool_] | None = None,
        *,
        is_dense: bool = False,
        has_names: bool = True,
    ) -> RichTable:
        """Draw everybody's sheet, and what each box would pay the player to move.

        Args:
            state: The position.
            mask: (num_actions,) bool, what is legal; ``None`` leaves out what boxes would pay.
            is_dense: Whether there are no lines within it.
            has_names: Whether the players' names stand above their columns, otherwise their numbers.
        """
        table = RichTable(
            show_edge=False,
            pad_edge=False,
            box=None if is_dense else HEAVY_HEAD,
            padding=(0, 1) if has_names else (0, 1, 0, 0),
        )
        table.add_column("", justify="right", style="dim", no_wrap=True)
        table.add_column(word("box", self.language), no_wrap=True)
        for seat, name in enumerate(self.names):
            heading = Text(self._mark(state, seat) + (name if has_names else str(seat + 1)))
            style = self._seat_style(state, seat)
            table.add_column(heading, justify="right", style=style, no_wrap=True, min_width=SCORE_DIGITS)
        if mask is not None:
            table.add_column(self.say("pays"), justify="right", style="cyan", no_wrap=True)
        rows = sheet_rows(self.variant, state, language=self.language, dice=self.skin)
        for index, row in enumerate(rows):
            is_box = index < self.variant.num_boxes
            cells = [str(index + 1) if is_box else "", *row]
            if mask is not None:
                can = is_box and bool(mask[NUM_KEEP_ACTIONS + index])
                cells.append(str(sum(payment(self.variant, state, index)) or STRUCK) if can else "")
            table.add_row(*cells, end_section=index == len(rows) - 2)
        return table

    def _mark(self, state: GameState, seat: int) -> str:
        return "▸" if state.phase is not Phase.OVER and seat == state.current_player else ""

    def _seat_style(self, state: GameState, seat: int) -> str:
        if state.phase is Phase.OVER:
            return "bold green" if seat in state.winners else ""
        return "bold" if seat == state.current_player else ""

    def _legend(self, state: GameState) -> Text:
        """Return who has which column, where the names do not fit above them."""
        entries = [
            Text(f"{self._mark(state, seat)}{seat + 1} {name}", style=self._seat_style(state, seat))
            for seat, name in enumerate(self.names)
        ]
        return Text(" · ").join(entries)

    def _width(self, sheet: RichTable) -> int:
        """Return how many columns a sheet takes where there is room."""
        options = self.console.options.update(max_width=_UNBOUNDED)
        return Measurement.get(self.console, options, sheet).maximum

    def draw(
        self,
        state: GameState,
        *,
        mask: NDArray[np.bool_] | None = None,
        pending: Dice | None = None,
        notice: RenderableType | None = None,
        prompt: str = "",
        lines_below: int = 0,
    ) -> None:
        """Clear the terminal and draw everything, in the roomiest way that fits.

        Args:
            state: The position.
            mask: (num_actions,) bool, what is legal; shows what each box would pay.
            pending: Dice about to be kept.
            notice: What is said below all else: an answer, a fault, a hint.
            prompt: What is asked next, for which room is left.
            lines_below: Further lines that are printed next.
        """
        prompt_lines = -(-(cell_len(prompt) + TYPED) // self.console.width)
        room = self.console.height - prompt_lines - lines_below
        self.console.clear()
        self.console.print(self._fitting(state, mask, pending, notice, room))

    def _fitting(
        self,
        state: GameState,
        mask: NDArray[np.bool_] | None,
        pending: Dice | None,
        notice: RenderableType | None,
        room: int,
    ) -> RenderableType:
        passes: list[tuple[tuple[_Layout, ...], int]] = [(_LAYOUTS, LAST_MOVES), (_LAYOUTS, 0)]
        if notice is not None:
            passes += [(_WITHOUT_SHEET, LAST_MOVES), (_WITHOUT_SHEET, 0)]
        log = list(self.log)
        drawn: RenderableType = ""
        for layouts, least in passes:
            for layout in layouts:
                if layout.is_wide and self.console.width < WIDE:
                    continue
                for count in range(len(log), min(least, len(log)) - 1, -1):
                    drawn = self._compose(layout, state, mask, pending, notice, log[len(log) - count :])
                    # What is not shown on a terminal has no height to fit.
                    if not self.console.is_terminal or len(self.console.render_lines(drawn)) <= room:
                        return drawn
        return drawn

    def _compose(
        self,
        layout: _Layout,
        state: GameState,
        mask: NDArray[np.bool_] | None,
        pending: Dice | None,
        notice: RenderableType | None,
        log: Sequence[str],
    ) -> RenderableType:
        title = f"Generala · {self.variant.name}"
        status = status_line(self.variant, state, self.names, language=self.language)
        turn: list[RenderableType] = [Text("\n".join(log), style="dim")] if log else []
        if layout.is_framed:
            turn.append(Text(status, style="bold"))
        if state.turn.dice:
            turn.append(self.dice(state, pending, has_pips=layout.has_pips))
        if notice is not None:
            turn.append(notice)
        above: list[RenderableType] = [] if layout.is_framed else [Text(f"{title} · {status}", style="bold")]
        if not layout.has_sheet:
            return Group(*above, *turn)
        sheet = self.sheet(state, mask, is_dense=not layout.is_framed)
        room = self.console.width - (FRAME if layout.is_framed else 0) - (BESIDE if layout.is_wide else 0)
        if self._width(sheet) > room:
            sheet = self.sheet(state, mask, is_dense=not layout.is_framed, has_names=False)
            above.append(self._legend(state))
        if layout.is_wide:
            both = RichTable.grid(padding=(0, GAP))
            both.add_column(min_width=self._width(sheet))
            both.add_row(sheet, Group(*turn))
            return Panel(Group(*above, both), title=title, expand=False)
        whole = Group(*above, sheet, *turn)
        return Panel(whole, title=title, expand=False) if layout.is_framed else whole

    def note(self, state: GameState, action: int) -> None:
        """Add a move to what has happened."""
        self.log.append(
            self.say(
                "does",
                name=self.names[state.current_player],
                dice=self.faces(state.turn.dice),
                what=self.move(state, action),
            )
        )

    def hint(self, state: GameState, choices: Sequence[Choice], *, is_exact: bool) -> RichTable:
        """Return the best choices and what each is worth."""
        table = RichTable(title=self.say("hint_title"), title_style="bold", show_edge=False, pad_edge=False)
        table.add_column(self.say("choice"))
        alone = choices[0].win is None
        if not alone:
            how = self.say("by_duel" if is_exact else "by_race")
            table.add_column(f"{self.say('win')} % ({how})", justify="right")
        table.add_column(self.say("points_to_come"), justify="right")
        for choice in choices[:HINT_CHOICES]:
            cells = [self.move(state, choice.action)]
            if choice.win is not None:
                cells.append(self.number(100 * choice.win))
            table.add_row(*cells, self.number(choice.points))
        return table

    def summary(self, state: GameState) -> RichTable:
        """Return how a game ended: places, points, boxes struck, and by how much it was won.

        The margin of a winner is over the next player, that of the others behind the winner; a game
        that a served Generala won has none.
        """
        table = RichTable(show_edge=False, pad_edge=False, box=None, padding=(0, 2, 0, 0))
        places = standings(state)
        has_margin = len(self.names) > 1 and not state.is_instant_win
        headings = [word("points", self.language), *([self.say("margin")] if has_margin else [])]
        table.add_column("", justify="right")
        table.add_column("", no_wrap=True)
        for heading in (*headings, self.say("boxes_struck")):
            table.add_column(heading, justify="right", no_wrap=True)
        order = sorted(range(len(self.names)), key=lambda seat: (places[seat], seat))
        for seat in order:
            rival = order[1] if seat == order[0] and len(order) > 1 else order[0]
            margin = self.number(state.scores[seat] - state.scores[rival], 0, sign=True)
            table.add_row(
                f"{places[seat] + 1}.",
                Text(self.names[seat]),
                str(state.scores[seat]),
                *([margin] if has_margin else []),
                str(state.players[seat].sheet.count(0)),
                style="bold" if seat in state.winners else "",
            )
        return table
