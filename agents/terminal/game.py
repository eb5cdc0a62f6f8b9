"""The terminal game: people and agents at one table, with hints, records and reviews."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from agents.games.advice import Adviser
from agents.games.record import GameRecord
from agents.games.seating import Seating, seat_names
from agents.terminal.moves import NotUnderstood, parse_move
from agents.terminal.screen import Screen
from generala_env.rules.actions import Keep, action_of
from generala_env.rules.compiled import compile_variant
from generala_env.rules.dice import select
from generala_env.rules.game import GameState
from generala_env.rules.names import DiceSkin


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
        self.screen = Screen(console, self.variant, seat_names(seats, language), language=language, skin=skin)
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
            name = self.screen.names[dealt.state.current_player]
            self.screen.log.append(self.screen.say("starts", name=name))
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
        self.screen.draw(dealt.state)

    def _ask_person(self, state: GameState, mask: NDArray[np.bool_]) -> int:
        console, say = self.screen.console, self.screen.say
        self.screen.draw(state, mask=mask)
        prompt = f"{say('prompt')} (h, ?, u, x): "
        while True:
            typed = self._read(prompt)
            if typed in ("h", "help"):
                console.print(say("help"), markup=False, highlight=False)
            elif typed == "?":
                self.screen.hint(state, self.adviser.choices(state, mask), is_exact=self.adviser.is_exact)
            elif typed not in ("", "u"):
                try:
                    action = parse_move(typed, self.variant, state, mask, self.language, self.skin)
                except NotUnderstood as error:
                    console.print(str(error), style="red", markup=False, highlight=False)
                    continue
                if self._confirms(state, mask, action):
                    return action
                self.screen.draw(state, mask=mask)

    def _confirms(self, state: GameState, mask: NDArray[np.bool_], action: int) -> bool:
        """Show what is about to happen; an empty line does it, ``u`` takes it back."""
        move = action_of(action, self.variant.num_boxes)
        if isinstance(move, Keep):
            self.screen.draw(state, mask=mask, pending=select(state.turn.dice, move.mask))
        what = self.screen.move(state, action)
        while True:
            typed = self._read(f"{what} — {self.screen.say('confirm')}: ")
            if typed in ("", "u"):
                return typed == ""

    def _read(self, prompt: str) -> str:
        try:
            typed = self.read(prompt).strip()
        except EOFError:
            raise Leave from None
        if typed.lower() == "x":
            raise Leave
        return typed
