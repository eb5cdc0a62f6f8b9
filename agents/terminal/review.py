"""A played game looked at again: what each decision gave away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from rich.table import Table as RichTable

from agents.terminal.advice import Adviser, worth
from agents.terminal.record import GameRecord, described
from agents.terminal.screen import Screen
from generala_env.rules.actions import NUM_KEEP_ACTIONS, Keep, action_of
from generala_env.rules.dice import KEEP_OF_MASK, THROW_INDEX, select
from generala_env.rules.game import GameState, Phase
from generala_env.rules.names import word

REVIEW_CHOICES: Final = 8

NEGLIGIBLE: Final = 1e-9


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


@dataclass(frozen=True)
class Verdict:
    """What one decision of a recorded game cost.

    Attributes:
        state: The position.
        action: What was done.
        best: What was best.
        cost: What it lost: chance of winning, or points when playing alone.
    """

    state: GameState
    action: int
    best: int
    cost: float


def judge(record: GameRecord, adviser: Adviser) -> list[list[Verdict]]:
    """Judge every decision of a recorded game where there was a choice, seat by seat."""
    verdicts: list[list[Verdict]] = [[] for _ in record.table.seats]
    dealt = record.table.deal()
    for action in record.actions:
        state, mask = dealt.state, dealt.action_mask()
        dealt.apply(action)
        if mask.sum() == 1:
            continue
        choices = adviser.choices(state, mask)
        done = _canonical(state, action)
        chosen = next(choice for choice in choices if choice.action == done)
        cost = max(0.0, worth(choices[0]) - worth(chosen))
        best = done if cost <= NEGLIGIBLE else choices[0].action
        verdicts[state.current_player].append(Verdict(state, done, best, cost))
    return verdicts


def _canonical(state: GameState, action: int) -> int:
    """Return the lowest action id that does the same."""
    if action >= NUM_KEEP_ACTIONS:
        return action
    row = KEEP_OF_MASK[THROW_INDEX[state.turn.dice]]
    return int(np.flatnonzero(row[:NUM_KEEP_ACTIONS] == row[action])[0])


def review(record: GameRecord, screen: Screen, adviser: Adviser) -> None:
    """Print, for each seat, its share of optimal decisions and the ones that cost most."""
    alone = len(record.table.seats) == 1
    for name, verdicts in zip(screen.names, judge(record, adviser), strict=True):
        total = sum(verdict.cost for verdict in verdicts)
        good = sum(verdict.cost <= NEGLIGIBLE for verdict in verdicts)
        line = screen.say(
            "review_sum", name=name, good=good, count=len(verdicts), cost=screen.cost(total, alone=alone)
        )
        screen.console.print(line, style="bold", markup=False, highlight=False)
        worst = sorted((v for v in verdicts if v.cost > NEGLIGIBLE), key=lambda v: -v.cost)[:REVIEW_CHOICES]
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


def review_json(record: GameRecord, adviser: Adviser, names: Sequence[str]) -> dict[str, Any]:
    """Return a review as JSON types."""
    variant = record.table.variant
    verdicts = judge(record, adviser)
    return {
        "variant": variant.name,
        "fingerprint": variant.fingerprint,
        "unit": "points" if len(names) == 1 else "probability of winning",
        "is_exact": adviser.is_exact or len(names) == 1,
        "seats": [
            {
                "name": name,
                "num_decisions": len(own),
                "num_optimal": sum(verdict.cost <= NEGLIGIBLE for verdict in own),
                "total_cost": sum(verdict.cost for verdict in own),
                "mistakes": [
                    {
                        "round": verdict.state.round,
                        "throw": verdict.state.turn.throw,
                        "dice": list(verdict.state.turn.dice),
                        "did": described(variant, verdict.state, verdict.action),
                        "best": described(variant, verdict.state, verdict.best),
                        "cost": verdict.cost,
                    }
                    for verdict in sorted(own, key=lambda verdict: -verdict.cost)
                    if verdict.cost > NEGLIGIBLE
                ],
            }
            for name, own in zip(names, verdicts, strict=True)
        ],
    }
