"""What the terminal shows of a game."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from agents.games.advice import Choice
from agents.games.closing import payment
from agents.terminal.words import text
from generala_env.envs.board import is_kept, sheet_rows, status_line
from generala_env.envs.rendering import die_lines
from generala_env.rules.actions import NUM_KEEP_ACTIONS, Keep, action_of
from generala_env.rules.dice import NUM_DICE, Dice, select
from generala_env.rules.game import GameState, Phase
from generala_env.rules.names import box_name, face_label, word
from generala_env.rules.variants import Variant

HINT_CHOICES: Final = 8

LOG_LINES: Final = 12

WIDE: Final = 110
"""From this many columns on, the dice stand beside the sheet."""

SHEET_LINES: Final = 5
"""Lines of the sheet beside those of the boxes."""

TURN_LINES: Final = 10
"""Lines of the dice, the status, the frame and the prompt."""


class Screen:
    """Draws the table with rich: the sheet of everybody, the dice, what has happened."""

    def __init__(
        self, console: Console, variant: Variant, names: Sequence[str], *, language: str, skin: str
    ) -> None:
        """Bind the screen to a table."""
        self.console = console
        self.variant = variant
        self.names = list(names)
        self.language = language
        self.skin = skin
        self.log: deque[str] = deque(maxlen=LOG_LINES)

    def say(self, key: str, **values: object) -> str:
        """Return a sentence in the language of the table."""
        return text(key, self.language, **values)

    def faces(self, dice: Dice) -> str:
        """Return dice as their labels."""
        return " ".join(face_label(face, self.skin) for face in dice)

    def move(self, state: GameState, action: int) -> str:
        """Return what an action does, in words."""
        move = action_of(action, self.variant.num_boxes)
        if isinstance(move, Keep):
            kept = select(state.turn.dice, move.mask)
            if not kept:
                return self.say("will_throw_all")
            return self.say("will_keep", what=self.faces(kept), count=NUM_DICE - len(kept))
        name = box_name(self.variant.boxes[move.box], self.language, self.skin)
        points = payment(self.variant, state, move.box).points
        return (
            self.say("will_close", what=name, points=points) if points else self.say("will_strike", what=name)
        )

    def dice(self, state: GameState, pending: Dice | None = None) -> Columns:
        """Draw the dice; those set aside are green, those about to be yellow."""
        kept = is_kept(state.turn.dice, state.turn.kept)
        chosen = is_kept(state.turn.dice, pending or ())
        drawn = []
        for place, face in enumerate(state.turn.dice):
            style = "bold yellow" if chosen[place] else "green" if kept[place] else "white"
            drawn.append(Text("\n".join((*die_lines(face, self.skin), f"{place + 1:^9}")), style=style))
        return Columns(drawn, padding=(0, 1))

    def sheet(self, state: GameState, mask: NDArray[np.bool_] | None = None) -> RichTable:
        """Draw everybody's sheet, and what each box would pay the player to move."""
        table = RichTable(show_edge=False, pad_edge=False)
        table.add_column("", justify="right", style="dim")
        table.add_column(word("box", self.language), no_wrap=True)
        playing = None if state.phase is Phase.OVER else state.current_player
        for seat, name in enumerate(self.names):
            mark = "▸ " if seat == playing else ""
            winner = state.phase is Phase.OVER and seat in state.winners
            style = "bold green" if winner else "bold" if seat == playing else ""
            table.add_column(f"{mark}{name}", justify="right", style=style)
        if mask is not None:
            table.add_column(self.say("pays"), justify="right", style="cyan")
        rows = sheet_rows(self.variant, state, language=self.language, dice=self.skin)
        for index, row in enumerate(rows):
            is_box = index < self.variant.num_boxes
            cells = [str(index + 1) if is_box else "", *row]
            if mask is not None:
                can = is_box and bool(mask[NUM_KEEP_ACTIONS + index])
                cells.append(str(payment(self.variant, state, index).points or "—") if can else "")
            table.add_row(*cells, end_section=index == len(rows) - 2)
        return table

    def draw(
        self, state: GameState, *, mask: NDArray[np.bool_] | None = None, pending: Dice | None = None
    ) -> None:
        """Clear the terminal and draw everything."""
        self.console.clear()
        sheet = self.sheet(state, mask)
        turn: list[Any] = []
        is_wide = self.console.width >= WIDE
        room = self.console.height - TURN_LINES - (0 if is_wide else self.variant.num_boxes + SHEET_LINES)
        if self.log:
            turn.append(Text("\n".join(list(self.log)[-max(room, 2) :]), style="dim"))
        turn.append(Text(status_line(self.variant, state, self.names, language=self.language), style="bold"))
        if state.turn.dice:
            turn.append(self.dice(state, pending))
        title = f"Generala · {self.variant.name}"
        if is_wide:
            both = RichTable.grid(padding=(0, 3))
            both.add_row(sheet, Group(*turn))
            self.console.print(Panel(both, title=title, expand=False))
        else:
            self.console.print(Panel(Group(sheet, *turn), title=title, expand=False))

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

    def hint(self, state: GameState, choices: Sequence[Choice], *, is_exact: bool) -> None:
        """Show the best choices and what each is worth."""
        table = RichTable(title=self.say("hint_title"), title_style="bold")
        table.add_column(self.say("choice"))
        alone = choices[0].win is None
        if not alone:
            how = self.say("by_duel" if is_exact else "by_race")
            table.add_column(f"{self.say('win')} % ({how})", justify="right")
        table.add_column(self.say("points_to_come"), justify="right")
        for choice in choices[:HINT_CHOICES]:
            cells = [self.move(state, choice.action)]
            if choice.win is not None:
                cells.append(f"{100 * choice.win:.2f}")
            table.add_row(*cells, f"{choice.points:.2f}")
        self.console.print(table)

    def cost(self, value: float, *, alone: bool) -> str:
        """Return a cost in its unit: points alone, otherwise percent of winning."""
        return self.say("points_unit", value=value) if alone else f"{100 * value:.2f} %"
