"""The terminal game: people and agents at one table, with hints, records and reviews."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, RenderableType
from rich.text import Text

from agents.games.advice import Adviser
from agents.games.record import GameRecord
from agents.games.seating import Seating
from agents.terminal.moves import NotUnderstood, parse_move
from agents.terminal.screen import Screen
from generala_env.rules.actions import Keep, action_of
from generala_env.rules.compiled import compile_variant
from generala_env.rules.dice import Dice, select
from generala_env.rules.game import GameState
from generala_env.rules.names import DiceSkin

FAREWELL_LINES: Final = 4
"""Lines of where the game was kept and how to go on, which follow its end."""


class Leave(Exception):  # noqa: N818 - leaving is not an error
    """A person leaves the table; the record can be resumed."""


# --- playing --------------------------------------------------------------------------------------

Input = Callable[[str], str]


class TerminalGame:
    """A game between people and agents in one terminal.

    Args:
        record: The game and its file.
        console: Where it is drawn.
        language: ``es``, ``pt`` or ``en``.
        skin: ``standard`` or ``poker``.
        pause: Seconds to wait after each move of an agent.
        read: Reads one line after showing a prompt; raises ``EOFError`` at the end of input.
        store: Folder of solved two-player games.

    Raises:
        AgentError: An agent cannot be made.
    """

    def __init__(
        self,
        record: GameRecord,
        console: Console,
        *,
        language: str = "en",
        skin: str = DiceSkin.STANDARD,
        pause: float = 0.0,
        read: Input | None = None,
        store: Path | None = None,
    ) -> None:
        """Seat everybody."""
        self.record = record
        self.variant = record.table.variant
        seats = record.table.seats
        self.screen = Screen(console, record.table, language=language, skin=skin)
        self.language = language
        self.skin = skin
        self.pause = pause
        self.read = read if read is not None else console.input
        self.adviser = Adviser(compile_variant(self.variant), len(seats), store)
        self.seating = Seating(record.table, store)

    def play(self) -> None:
        """Play to the end.

        Raises:
            Leave: A person leaves, or the input ends.
        """
        dealt = self.record.dealt
        if not self.record.actions and not dealt.is_over and len(self.record.table.seats) > 1:
            self.screen.log.append(self.screen.say_of("starts", dealt.state.current_player))
        while not dealt.is_over:
            state = dealt.state
            mask = dealt.action_mask()
            is_agent = self.seating.agents[state.current_player] is not None
            action = self.seating.decide(state, mask) if is_agent else self._ask_person(state, mask)
            self.screen.note(state, action)
            self.record.take(action)
            if is_agent and self.pause > 0:
                self.screen.draw(dealt.state)
                time.sleep(self.pause)
        if not self.record.actions:
            self.screen.log.append(self.screen.say("first_throw_won"))
        self.screen.draw(dealt.state, notice=self.screen.summary(dealt.state), lines_below=FAREWELL_LINES)

    def _ask_person(self, state: GameState, mask: NDArray[np.bool_]) -> int:
        """Ask until a move is confirmed: an empty line does what is shown, anything else takes it back."""
        screen, say = self.screen, self.screen.say
        pending: int | None = None
        notice: RenderableType | None = None
        while True:
            prompt = f"{say('prompt')} (h, ?, u, x): "
            if pending is not None:
                prompt = f"{screen.move(state, pending)} — {say('confirm')}: "
            screen.draw(
                state, mask=mask, pending=self._about_to_keep(state, pending), notice=notice, prompt=prompt
            )
            typed = self._read(prompt)
            confirmed, pending, notice = pending, None, None
            if typed == "":
                if confirmed is not None:
                    return confirmed
                notice = Text(say("nothing_to_confirm"))
            elif typed == "u":
                if confirmed is None:
                    notice = Text(say("nothing_to_undo"))
            elif typed in ("h", "help"):
                notice = Text(say("help"))
            elif typed == "?":
                notice = screen.hint(state, self.adviser.choices(state, mask), is_exact=self.adviser.is_exact)
            else:
                try:
                    pending = parse_move(typed, self.variant, state, mask, self.language, self.skin)
                except NotUnderstood as error:
                    notice = Text(str(error), style="red")

    def _about_to_keep(self, state: GameState, pending: int | None) -> Dice | None:
        move = None if pending is None else action_of(pending, self.variant.num_boxes)
        return select(state.turn.dice, move.mask) if isinstance(move, Keep) else None

    def _read(self, prompt: str) -> str:
        try:
            typed = self.read(prompt).strip()
        except EOFError:
            raise Leave from None
        if typed.lower() == "x":
            raise Leave
        return typed
