"""Maps of a policy: what is kept of each throw, or which box is closed, on one card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agents.base import Agent
from agents.errors import UsageError
from agents.evaluation.figures import wrapped
from agents.evaluation.report_text import number, texts
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.card import Card
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, CompiledVariant, InstantWin, TurnBatch
from generala_env.rules.dice import (
    KEEP_INDEX,
    NUM_DICE,
    NUM_THROWS,
    THROW_DICE,
    THROWS,
    Dice,
    is_subset,
)
from generala_env.rules.names import DiceSkin, Language, box_name, face_label, word
from generala_env.solver.solo import solve_solo

NEGLIGIBLE: Final = 1e-9

COLUMNS: Final = 5

DIE: Final = 0.125
"""The side of a die, in inches."""

CELL_WIDTH, CELL_HEIGHT = 11.0, 1.75
"""A cell, in dice: five of them, and the name of a box or what is lost."""

MARGIN: Final = 0.35
HEAD: Final = 0.35
"""Around the cells, in inches."""

DARK, LIGHT = "0.15", "0.55"


@dataclass(frozen=True)
class PolicyMap:
    """What an agent and the optimum do with each throw of one card.

    Attributes:
        name: The agent's name.
        compiled: The tables of the variant.
        card: The index of the card.
        throw_number: Which throw of the turn lies on the table, 1 to 3.
        throws: (throws,) int64, indices in ``THROWS``.
        actions: (throws,) int64, what the agent does; -1 where the throw wins at once.
        best: (throws,) int64, what is right; -1 likewise.
        lost: (throws,) float64, the points that the agent's action loses.
    """

    name: str
    compiled: CompiledVariant
    card: int
    throw_number: int
    throws: NDArray[np.int64]
    actions: NDArray[np.int64]
    best: NDArray[np.int64]
    lost: NDArray[np.float64]

    @property
    def differs(self) -> NDArray[np.bool_]:
        """(throws,) bool: where the agent loses points."""
        return np.asarray(self.lost > NEGLIGIBLE)


def policy_map(
    agent: Agent,
    card: Card,
    throw_number: int = 1,
    *,
    kept: Dice | None = None,
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
) -> PolicyMap:
    """Ask an agent and the optimum about every throw on one card.

    Args:
        agent: Who decides.
        card: The card.
        throw_number: Which throw of the turn lies on the table, 1 to 3.
        kept: The dice kept before it, ascending: only throws that hold them are asked about.
            ``None`` asks about all, as after a keep of some dice.
        instant_win: How a served Generala that wins is treated.

    Raises:
        ValueError: No line of play reaches the card, or nothing is to be decided there.
        UsageError: Dice lock and ``kept`` was not given, or dice were kept before the first throw.
    """
    compiled = agent.compiled
    if card.is_complete:
        raise ValueError("the card is complete: nothing is to be decided")
    if throw_number == 1 and kept:
        raise UsageError("kept: nothing is kept before the first throw")
    if throw_number > 1 and kept is None and compiled.variant.is_locked:
        raise UsageError(f"kept: dice lock under {compiled.variant.name}, so say what was kept")
    throws = np.array(
        [index for index in range(NUM_THROWS) if is_subset(kept or (), THROWS[index])], dtype=np.int64
    )
    is_full = throw_number == 1 or kept == ()
    count = len(throws)
    batch = TurnBatch(
        np.full(count, compiled.index_of(card), dtype=np.int64),
        throws,
        np.full(count, throw_number, dtype=np.int64),
        np.full(count, compiled.is_served[throw_number - 1, int(is_full)]),
        np.full(count, KEEP_INDEX[kept or ()], dtype=np.int64),
    )
    solution = solve_solo(compiled, instant_win=instant_win)
    values = solution.q_values_batch(batch)
    masks = compiled.action_masks(batch)
    actions = agent.act(agent.layout.encode(batch), masks, deterministic=True)
    won = solution.is_won(batch)
    lost = values.max(axis=1) - values[np.arange(count), actions]
    return PolicyMap(
        agent.name,
        compiled,
        int(batch.card[0]),
        throw_number,
        throws,
        np.where(won, -1, actions),
        np.where(won, -1, values.argmax(axis=1)),
        np.where(won, 0.0, lost),
    )


def _places(count: int) -> NDArray[np.float64]:
    """Return the lower left corners of the cells, in dice, read down the columns; (count, 2)."""
    rows = -(-count // COLUMNS)
    index = np.arange(count)
    return np.stack([CELL_WIDTH * (index // rows), -CELL_HEIGHT * (index % rows + 1)], axis=1)


def _rectangle(corner: NDArray[np.float64], width: float, height: float) -> NDArray[np.float64]:
    return np.asarray(corner + np.array([[0, 0], [width, 0], [width, height], [0, height]]))


def _draw(
    axes: Axes,
    found: PolicyMap,
    actions: NDArray[np.int64],
    language: Language,
    skin: DiceSkin,
    shows_lost: bool,
) -> None:
    places = _places(len(found.throws))
    boxes = [box_name(box, language, skin) for box in found.compiled.variant.boxes]
    bits = np.arange(NUM_DICE)
    keeps = (actions >= 0) & (actions < NUM_KEEP_ACTIONS)
    is_kept = keeps[:, None] & ((np.where(keeps, actions, 0)[:, None] >> bits & 1) == 1)
    dice = THROW_DICE[found.throws]
    corners = places[:, None, :] + np.stack([bits, np.full(NUM_DICE, 0.38)], axis=1)
    axes.add_collection(
        PolyCollection([_rectangle(corner, 0.94, 1.0) for corner in corners[is_kept]], facecolors=DARK)
    )
    for face in range(1, 7):
        for shown, colour in ((is_kept, "white"), (~is_kept, LIGHT)):
            at = corners[shown & (dice == face)] + (0.47, 0.5)
            axes.scatter(
                at[:, 0], at[:, 1], s=22, marker=f"${face_label(face, skin)}$", color=colour, linewidths=0
            )
    for row in np.flatnonzero(~keeps).tolist():
        name = word("instant_win", language) if actions[row] < 0 else boxes[actions[row] - NUM_KEEP_ACTIONS]
        # Above what it loses, or beside the dice.
        height, place = (1.56, "top") if shows_lost and found.differs[row] else (0.85, "center_baseline")
        axes.text(places[row, 0] + 5.2, places[row, 1] + height, name, fontsize=5.2, va=place)
    if not shows_lost:
        return
    wrong = np.flatnonzero(found.differs)
    axes.add_collection(
        PolyCollection(
            [_rectangle(places[row] + (-0.15, 0.08), 10.6, 1.6) for row in wrong],
            facecolors="none",
            edgecolors="0.0",
            linewidths=0.9,
        )
    )
    for row in wrong.tolist():
        axes.text(
            places[row, 0] + 10.3,
            places[row, 1] + 0.24,
            number(-found.lost[row], language),
            fontsize=5.2,
            ha="right",
            weight="bold",
        )


def policy_map_figure(
    found: PolicyMap, *, language: Language = Language.EN, skin: DiceSkin = DiceSkin.STANDARD
) -> Figure:
    """Draw what is kept of each throw, or which box is closed: the agent beside the optimum.

    Args:
        found: From ``policy_map``.
        language: The language of what is written.
        skin: What the dice show.
    """
    say = texts(language)
    compiled = found.compiled
    rows = -(-len(found.throws) // COLUMNS)
    columns = -(-len(found.throws) // rows)
    wide, high = DIE * CELL_WIDTH * columns, DIE * CELL_HEIGHT * rows
    width, height = max(2 * wide + 3 * MARGIN, 9.0), high + HEAD + 2 * MARGIN
    figure = Figure(figsize=(width, height))
    opened = int(compiled.card_open[found.card])
    named = [box_name(box, language, skin) for i, box in enumerate(compiled.variant.boxes) if opened >> i & 1]
    boxes = say["all_boxes"] if len(named) == compiled.num_boxes else ", ".join(named)
    title = say["keeps_of"].format(
        agent=found.name, throw=word("throw", language), number=found.throw_number, boxes=boxes
    )
    figure.text(0.5, 1 - 0.1 / height, f"{compiled.variant.name}: {title}", ha="center", va="top")
    key = say["keeps_key"].format(differ=int(found.differs.sum()), throws=len(found.throws))
    figure.text(0.5, 0.1 / height, key, ha="center", va="bottom", fontsize=9)
    for side, (label, actions) in enumerate(((found.name, found.actions), (say["optimum"], found.best))):
        left = (MARGIN + side * (width - MARGIN) / 2) / width
        axes = figure.add_axes((left, MARGIN / height, wide / width, high / height))
        axes.set_xlim(-0.2, CELL_WIDTH * columns - 0.2)
        axes.set_ylim(-CELL_HEIGHT * rows - 0.05, 0.05)
        axes.axis("off")
        axes.set_title(wrapped(label), fontsize=10)
        _draw(axes, found, actions, language, skin, side == 0)
    return figure
