"""A played game looked at again: what each decision gave away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.table import Table as RichTable

from agents.games.advice import Adviser
from agents.games.record import GameRecord
from agents.games.verdicts import judge
from agents.terminal.screen import Screen
from generala_env.rules.actions import Keep, action_of
from generala_env.rules.dice import select
from generala_env.rules.game import Phase
from generala_env.rules.names import word

REVIEW_CHOICES: Final = 8


def replay(record: GameRecord, screen: Screen, wait: Callable[[], None]) -> None:
    """Show every position of a recorded game with the move that was made in it."""
    for state, action in record.history():
        kept = None
        move = action_of(action, record.table.variant.num_boxes)
        if isinstance(move, Keep):
            kept = select(state.turn.dice, move.mask)
        screen.draw(state, pending=kept)
        screen.console.print(
            f"{screen.names[state.current_player]}: {screen.move(state, action)}",
            markup=False,
            highlight=False,
        )
        wait()
        screen.note(state, action)
    screen.draw(record.dealt.state)


def review(record: GameRecord, screen: Screen, adviser: Adviser) -> None:
    """Print, for each seat, its share of optimal decisions and the ones that cost most."""
    alone = len(record.table.seats) == 1
    for name, verdicts in zip(screen.names, judge(record, adviser), strict=True):
        total = sum(verdict.cost for verdict in verdicts)
        good = sum(verdict.is_optimal for verdict in verdicts)
        line = screen.say(
            "review_sum", name=name, good=good, count=len(verdicts), cost=screen.cost(total, alone=alone)
        )
        screen.console.print(line, style="bold", markup=False, highlight=False)
        worst = sorted((v for v in verdicts if not v.is_optimal), key=lambda v: -v.cost)[:REVIEW_CHOICES]
        if not worst:
            continue
        table = RichTable(title=screen.say("review_title", name=name))
        for heading in (word("round", screen.language), word("throw", screen.language)):
            table.add_column(heading, justify="right")
        table.add_column(word("dice", screen.language), no_wrap=True)
        for key in ("did", "best"):
            table.add_column(screen.say(key))
        table.add_column(screen.say("cost"), justify="right", no_wrap=True)
        for verdict in worst:
            state = verdict.state
            table.add_row(
                word("playoff", screen.language) if state.phase is Phase.PLAYOFF else str(state.round),
                str(state.turn.throw),
                screen.faces(state.turn.dice),
                screen.move(state, verdict.action),
                screen.move(state, verdict.best),
                screen.cost(verdict.cost, alone=alone),
            )
        screen.console.print(table)
