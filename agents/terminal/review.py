"""A played game looked at again: what each decision gave away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.table import Table as RichTable
from rich.text import Text

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
        done = Text(f"{screen.names[state.current_player]}: {screen.move(state, action)}")
        screen.draw(state, pending=kept, notice=done, lines_below=1)
        wait()
        screen.note(state, action)
    screen.draw(record.dealt.state)


def review(record: GameRecord, screen: Screen, adviser: Adviser) -> None:
    """Print, for each seat, its share of optimal decisions and the ones that cost most."""
    alone = len(record.table.seats) == 1
    judged = judge(record, adviser)
    unit = word("points", screen.language) if alone else screen.say("unit_win")
    summed = "review_sum" if adviser.is_exact else "review_estimate"
    for seat, (name, verdicts) in enumerate(zip(screen.names, judged, strict=True)):
        total = sum(verdict.cost for verdict in verdicts)
        good = sum(verdict.is_optimal for verdict in verdicts)
        cost = screen.say("cost_points" if alone else "cost_win", value=_shown(screen, total, alone=alone))
        line = screen.say(summed, name=name, good=good, count=len(verdicts), cost=cost)
        screen.console.print(line, style="bold", markup=False, highlight=False)
        worst = sorted((v for v in verdicts if not v.is_optimal), key=lambda v: -v.cost)[:REVIEW_CHOICES]
        if not worst:
            continue
        # The unit stands in the title and there are no lines, so that moves fit on a narrow terminal.
        title = Text(f"{screen.say_of('review_title', seat)} ({unit})")
        table = RichTable(title=title, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in (word("round", screen.language), word("throw", screen.language)):
            table.add_column(heading, justify="right")
        table.add_column(word("dice", screen.language), no_wrap=True)
        for done in ("did", "best"):
            table.add_column(screen.say(done))
        table.add_column(screen.say("cost"), justify="right", no_wrap=True)
        for verdict in worst:
            state = verdict.state
            table.add_row(
                word("playoff", screen.language) if state.phase is Phase.PLAYOFF else str(state.round),
                str(state.turn.throw),
                screen.faces(state.turn.dice),
                screen.move(state, verdict.action),
                screen.move(state, verdict.best),
                _shown(screen, verdict.cost, alone=alone),
            )
        screen.console.print(table)
    if not adviser.is_exact:
        screen.console.print(screen.say("estimate_note"), markup=False, highlight=False)


def _shown(screen: Screen, cost: float, *, alone: bool) -> str:
    """Return a cost in the unit it is judged by: points alone, otherwise percent of winning."""
    return screen.number(cost, 1) if alone else screen.number(100 * cost)
