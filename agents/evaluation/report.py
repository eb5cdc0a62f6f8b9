"""A report on one agent as a single HTML page that needs nothing but a browser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jinja2
import numpy as np
from numpy.typing import NDArray

from agents.base import Agent
from agents.evaluation.exact import optimal_evaluation
from agents.evaluation.report_text import number, texts
from agents.evaluation.sampled import EVALUATION_SEED
from agents.evaluation.traces import GameTrace, trace_game
from generala_env import __version__
from generala_env.envs.board import close_text, keep_text
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.card import BoxStatus
from generala_env.rules.compiled import CompiledVariant, instant_win_that_pays
from generala_env.rules.dice import KEEP_OF_MASK, KEEPS, THROWS
from generala_env.rules.names import DiceSkin, Language, box_name, face_label, word
from generala_env.solver.evaluation import MISTAKE_KINDS, Blunder, ExactEvaluation

TEMPLATE: Final = "report.html.j2"

BAND: Final = 5
"""Width of the bands of the score distribution, in points."""

MOST_BLUNDERS, MOST_GRAVEST = 18, 6
"""How many mistakes are shown: the first of an evaluation's."""

UNFOLDED_BLUNDERS: Final = 4
"""How many of them are seen before the rest is unfolded."""

CHART_WIDTH, CHART_HEIGHT = 800.0, 260.0

CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_BOTTOM = 48.0, 792.0, 12.0, 220.0

MOST_TICKS: Final = 9
"""How many labels the axis of scores has room for on a phone."""

PIPS: Final = {
    1: ((20, 20),),
    2: ((11, 29), (29, 11)),
    3: ((11, 29), (20, 20), (29, 11)),
    4: ((11, 11), (11, 29), (29, 11), (29, 29)),
    5: ((11, 11), (11, 29), (20, 20), (29, 11), (29, 29)),
    6: ((11, 11), (11, 20), (11, 29), (29, 11), (29, 20), (29, 29)),
}
"""Where the pips of each face are on a die of 40 by 40."""


@dataclass(frozen=True)
class _Die:
    face: int
    is_kept: bool


@dataclass(frozen=True)
class _Move:
    """An action as a person reads it: words, and the dice with those kept marked."""

    text: str
    dice: tuple[_Die, ...]


class _Wording:
    """Numbers, names and moves in one language and one dice skin."""

    def __init__(self, compiled: CompiledVariant, language: Language, skin: DiceSkin) -> None:
        self.compiled = compiled
        self.language = language
        self.skin = skin
        self.texts = texts(language)

    def number(self, value: float, digits: int = 2, *, sign: bool = False) -> str:
        """Format a number: decimal comma in Spanish and Portuguese, no minus zero."""
        return number(value, self.language, digits, sign=sign)

    def percent(self, value: float, digits: int = 1) -> str:
        return f"{self.number(100 * value, digits)} %"

    def say(self, key: str, **values: str) -> str:
        return self.texts[key].format(**values)

    def box(self, index: int) -> str:
        return box_name(self.compiled.variant.boxes[index], self.language, self.skin)

    def fate(self, fate: BoxStatus) -> str:
        return self.say("scored" if fate is BoxStatus.SCORED else "struck_share")

    def faces(self, throw: int) -> tuple[_Die, ...]:
        return tuple(_Die(face, False) for face in THROWS[throw])

    def move(self, card: int, throw: int, served: bool, action: int) -> _Move:
        if action < NUM_KEEP_ACTIONS:
            dice = tuple(
                _Die(face, bool(action >> position & 1)) for position, face in enumerate(THROWS[throw])
            )
            kept = KEEPS[KEEP_OF_MASK[throw, action]]
            return _Move(keep_text(kept, language=self.language, dice=self.skin), dice)
        box = action - NUM_KEEP_ACTIONS
        points = int(self.compiled.closing_points(card, box, int(served), throw))
        named = self.compiled.variant.boxes[box]
        return _Move(close_text(named, points, language=self.language, dice=self.skin), ())


def _distribution(evaluation: ExactEvaluation, optimal: ExactEvaluation, wording: _Wording) -> dict[str, Any]:
    """Return the paths and ticks of the chart of final scores."""
    most = max(evaluation.scores.max(), optimal.scores.max())
    # Only a penalty for winning makes scores below 0.
    least: int = BAND * min(0, math.floor(min(evaluation.scores.min(), optimal.scores.min()) / BAND))
    edges = np.arange(least, most + 2 * BAND, BAND)
    bands = [
        np.histogram(result.scores, edges, weights=result.score_probabilities)[0]
        for result in (optimal, evaluation)
    ]
    # Leave off the long tail that no one could see.
    shown = int(max(np.flatnonzero(band > 3e-4).max() for band in bands)) + 1
    edges, bands = edges[: shown + 1], [band[:shown] for band in bands]
    highest = max(float(band.max()) for band in bands)
    step = next(size for size in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if highest / size <= 5)

    def across(points: float) -> float:
        share = (points - least) / (float(edges[-1]) - least)
        return CHART_LEFT + (CHART_RIGHT - CHART_LEFT) * share

    def up(share: float) -> float:
        return CHART_BOTTOM - (CHART_BOTTOM - CHART_TOP) * share / highest

    def path(band: NDArray[np.float64]) -> str:
        parts = [f"M{CHART_LEFT:.1f},{CHART_BOTTOM:.1f}"]
        for share, right in zip(band.tolist(), edges[1:].tolist(), strict=True):
            parts.append(f"V{up(share):.1f}H{across(right):.1f}")
        return "".join(parts) + f"V{CHART_BOTTOM:.1f}"

    sizes = (size * 10**power for power in range(9) for size in (1, 2, 5))
    spacing = next(size for size in sizes if (float(edges[-1]) - least) / size <= MOST_TICKS)
    ticks = range(-(-least // spacing) * spacing, int(edges[-1]) + 1, spacing)
    return {
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "left": CHART_LEFT,
        "right": CHART_RIGHT,
        "bottom": CHART_BOTTOM,
        "top": CHART_TOP,
        "optimal": path(bands[0]),
        "agent": path(bands[1]),
        "means": (across(optimal.expected_score), across(evaluation.expected_score)),
        "x_ticks": [(across(points), str(points)) for points in ticks],
        "y_ticks": [
            (up(step * tick), wording.number(100 * step * tick, 0 if step >= 0.01 else 1))
            for tick in range(int(highest / step) + 1)
        ],
    }


def _bars(labels: list[str], values: list[float], wording: _Wording, notes: list[str] | None = None) -> Any:
    most = max(max(values), 1e-12)
    return [
        {
            "label": label,
            "value": wording.number(value, 3),
            "width": round(100 * value / most, 2),
            "note": notes[position] if notes else "",
        }
        for position, (label, value) in enumerate(zip(labels, values, strict=True))
    ]


def _breakdowns(evaluation: ExactEvaluation, wording: _Wording) -> list[dict[str, Any]]:
    num_boxes = evaluation.compiled.num_boxes
    throw, game_round = word("throw", wording.language), word("round", wording.language)
    by_box = evaluation.regret_by_box.sum(axis=1).tolist()
    box_labels = [wording.box(box) for box in range(num_boxes)]
    if by_box[-1] > 0:
        box_labels.append(word("instant_win", wording.language))
    return [
        {
            "title": wording.say("by_kind"),
            "bars": _bars(
                [wording.say(kind) for kind in MISTAKE_KINDS],
                evaluation.regret_by_kind.tolist(),
                wording,
                [
                    wording.say("times_per_game", times=wording.number(times))
                    for times in evaluation.mistakes_by_kind.tolist()
                ],
            ),
        },
        {
            "title": wording.say("by_throw"),
            "bars": _bars(
                [f"{throw} {number}" for number in (1, 2, 3)], evaluation.regret_by_throw.tolist(), wording
            ),
        },
        {
            "title": wording.say("by_box"),
            "bars": _bars(box_labels, by_box[: len(box_labels)], wording),
        },
        {
            "title": wording.say("by_round"),
            "bars": _bars(
                [f"{game_round} {number + 1}" for number in range(num_boxes)],
                evaluation.regret_by_round.tolist(),
                wording,
            ),
        },
    ]


def _heat_map(evaluation: ExactEvaluation, wording: _Wording) -> list[dict[str, Any]]:
    lost = evaluation.regret_by_box[:-1]
    most = max(float(lost.max()), 1e-12)
    return [
        {
            "label": wording.box(box),
            "cells": [
                {"text": wording.number(value, 3), "strength": round(100 * value / most)} for value in row
            ],
        }
        for box, row in enumerate(lost.tolist())
    ]


def _boxes(evaluation: ExactEvaluation, optimal: ExactEvaluation, wording: _Wording) -> list[dict[str, str]]:
    return [
        {
            "label": wording.box(box),
            "points": wording.number(evaluation.box_points[box]),
            "optimal_points": wording.number(optimal.box_points[box]),
            "difference": wording.number(evaluation.box_points[box] - optimal.box_points[box], sign=True),
            "struck": wording.percent(evaluation.box_struck[box]),
            "optimal_struck": wording.percent(optimal.box_struck[box]),
            "while_open": wording.number(evaluation.regret_by_open[box, 1], 3),
            "once_closed": wording.number(evaluation.regret_by_open[box, 0], 3),
        }
        for box in range(evaluation.compiled.num_boxes)
    ]


def _blunder(compiled: CompiledVariant, blunder: Blunder, wording: _Wording) -> dict[str, Any]:
    """Return what is shown of a mistake: the same figures as in ``blunder_summary``, in words."""
    card = compiled.card(blunder.card)
    remembered = [
        wording.say("box_fate", box=box_name(box, wording.language, wording.skin), fate=wording.fate(fate))
        for box, fate in card.fates().items()
    ]
    if card.is_bonus_taken:
        remembered.append(wording.say("bonus_taken"))
    frequency = blunder.frequency
    return {
        "dice": wording.faces(blunder.throw),
        "throw": f"{word('throw', wording.language)} {blunder.throw_number}",
        "served": blunder.served,
        "remembered": remembered,
        "locked": [face_label(face, wording.skin) for face in KEEPS[blunder.kept]],
        "open": [wording.box(box) for box in card.open_boxes()],
        "did": wording.move(blunder.card, blunder.throw, blunder.served, blunder.action),
        "right": wording.move(blunder.card, blunder.throw, blunder.served, blunder.best_action),
        "loses": wording.say("loses", points=wording.number(blunder.regret)),
        "happens": wording.say("happens", games=wording.number(1 / frequency, 0 if frequency < 0.1 else 1)),
        "costs": wording.say("costs", points=wording.number(blunder.cost, 4)),
    }


def _sample_game(trace: GameTrace, wording: _Wording) -> dict[str, Any]:
    turns: list[dict[str, Any]] = []
    for decision in trace.decisions:
        if len(turns) <= decision.turn:
            turns.append({"number": decision.turn + 1, "rows": [], "total": ""})
        where = (decision.card, decision.throw, decision.served)
        is_best = decision.regret < 1e-9
        turns[-1]["rows"].append(
            {
                "throw": decision.throw_number,
                "move": wording.move(*where, decision.action),
                "dice": wording.move(*where, decision.action).dice or wording.faces(decision.throw),
                "best": None if is_best else wording.move(*where, decision.best_action),
                "cost": "" if is_best else wording.number(decision.regret),
            }
        )
        turns[-1]["total"] = wording.number(decision.score, 0)
    ends = "ends_won" if trace.is_instant_win else "ends"
    return {
        "turns": turns,
        "ends": wording.say(ends, points=wording.number(trace.score, 0)),
        "won_dice": wording.faces(trace.winning_throw) if trace.is_instant_win else (),
        "lost": wording.number(sum(decision.regret for decision in trace.decisions)),
    }


def render_report(
    agent: Agent,
    evaluation: ExactEvaluation,
    *,
    language: Language | str = Language.EN,
    dice: DiceSkin | str = DiceSkin.STANDARD,
    seed: int = EVALUATION_SEED,
    deterministic: bool = True,
) -> str:
    """Return the report as HTML.

    Args:
        agent: Who was evaluated; it plays the sample game.
        evaluation: Its exact evaluation.
        language: ``es``, ``pt`` or ``en``.
        dice: ``standard`` or ``poker``.
        seed: Seed of the sample game's dice.
        deterministic: Whether the agent's best actions were evaluated.

    Raises:
        ValueError: The language or the dice are not known.
    """
    language, skin = Language(str(language)), DiceSkin(str(dice))
    compiled = evaluation.compiled
    wording = _Wording(compiled, language, skin)
    optimal = optimal_evaluation(evaluation)
    win = evaluation.instant_win_points
    trace = trace_game(agent, seed=seed, instant_win=instant_win_that_pays(win), deterministic=deterministic)
    number = wording.number
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(
        language=language.value,
        text=wording.texts,
        words={
            key: word(key, language) for key in ("box", "round", "throw", "served", "locked", "open", "total")
        },
        agent=agent.name,
        variant=compiled.variant.name,
        fingerprint=compiled.variant.fingerprint,
        version=__version__,
        is_sampling=agent.always_samples or not deterministic,
        optimality=wording.percent(evaluation.optimality, 2),
        rules=wording.say("win_plays_on")
        if win is None
        else wording.say("win_pays", points=f"{number(win, 0 if win.is_integer() else 2)}"),
        facts=[
            (wording.say("mean_score"), number(evaluation.expected_score, 3)),
            (wording.say("optimum"), number(evaluation.optimal_score, 3)),
            (wording.say("lost_per_game"), number(evaluation.regret, 3)),
            (wording.say("std"), number(evaluation.std_score)),
            *(
                []
                if win is None
                else [
                    (wording.say("instant_win_share"), wording.percent(evaluation.instant_win_probability, 2))
                ]
            ),
        ],
        exact_note=wording.say("exact_note", states=number(evaluation.num_states, 0)),
        chart=_distribution(evaluation, optimal, wording),
        chart_note=wording.say("distribution_note", width=str(BAND)),
        quantiles=wording.say(
            "one_in_twenty",
            low=number(evaluation.quantile(0.05), 0),
            high=number(evaluation.quantile(0.95), 0),
            best_low=number(optimal.quantile(0.05), 0),
            best_high=number(optimal.quantile(0.95), 0),
        ),
        where_lost_note=wording.say("where_lost_note", total=number(evaluation.regret, 3)),
        breakdowns=_breakdowns(evaluation, wording),
        heat_map=_heat_map(evaluation, wording),
        rounds=range(1, compiled.num_boxes + 1),
        boxes=_boxes(evaluation, optimal, wording),
        blunders=[_blunder(compiled, one, wording) for one in evaluation.blunders[:MOST_BLUNDERS]],
        unfolded=UNFOLDED_BLUNDERS,
        gravest=[_blunder(compiled, one, wording) for one in evaluation.gravest[:MOST_GRAVEST]],
        game=_sample_game(trace, wording),
        sample_note=wording.say("sample_note", seed=str(seed)),
        pips=PIPS,
        face_labels={face: face_label(face, skin) for face in PIPS},
        is_poker=skin is DiceSkin.POKER,
    )
