"""The one-player game solved exactly: expected points by backward induction over the cards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from generala_env.compiling import kernel
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import (
    DEFAULT_INSTANT_WIN,
    CardTables,
    CompiledVariant,
    InstantWin,
    TurnBatch,
    compile_variant,
    instant_win_points,
)
from generala_env.rules.dice import KEEP_INDEX, KEEP_OF_MASK, NUM_PARTIAL_KEEPS, NUM_THROWS
from generala_env.rules.game import GameState
from generala_env.rules.variants import Variant
from generala_env.solver.turn import best_closings, keep_union_table, solve_turn
from generala_env.threads import in_shares, num_shares

_LEAST_TURNS: Final = 16  # that are worth a thread


@kernel()
def _solve_layer(
    share: int,
    num_shares: int,
    cards: NDArray[np.int64],
    tables: CardTables,
    win_values: NDArray[np.float64],
    union: NDArray[np.int16],
    future: NDArray[np.float64],
    turn_values: NDArray[np.float64],
    keep_values: NDArray[np.float64],
) -> None:
    """Solve a share of the turns of cards with equally many open boxes; values are by class."""
    for position in range(share, len(cards), num_shares):
        card = cards[position]
        closing = np.empty((2, NUM_THROWS))
        boxes = np.empty((2, NUM_THROWS), dtype=np.int64)
        best_closings(tables, card, future, closing, boxes)
        index = tables.class_of_card[card]
        turn_values[index] = solve_turn(closing, tables, win_values[card], union, keep_values[index])


@dataclass(frozen=True, eq=False)
class ActionValues:
    """What every action of every decision is worth, and the policy that takes the best.

    Values are points still to come.

    Attributes:
        compiled: The variant's tables.
        instant_win_points: What an instant win pays; ``None`` when the game plays on.
        class_values: (K,) float64; the value of each class of cards before a turn.
        class_keep_values: (K, 2, 210) float64; the value of keeping each multiset after the
            first and the second throw.
    """

    compiled: CompiledVariant
    instant_win_points: float | None
    class_values: NDArray[np.float64]
    class_keep_values: NDArray[np.float64]

    @property
    def card_values(self) -> NDArray[np.float64]:
        """(C,) float64: the value of each card before a turn."""
        return self.class_values[self.compiled.class_of_card]

    def closing_values(self, batch: TurnBatch) -> NDArray[np.float64]:
        """Return what closing each box is worth: its points and the card it leaves.

        Returns:
            (batch, B) float64, ``-inf`` where the box may not be closed.
        """
        compiled = self.compiled
        card = np.asarray(batch.card, dtype=np.intp)
        served = np.asarray(batch.served, dtype=np.intp)
        throw = np.asarray(batch.throw, dtype=np.intp)
        values = np.full((len(card), compiled.num_boxes), -np.inf)
        for box in range(compiled.num_boxes):
            rows = np.flatnonzero(compiled.closable[card, box])
            where = (card[rows], box, served[rows], throw[rows])
            after = compiled.class_of_card[compiled.next_card(*where)]
            values[rows, box] = compiled.closing_points(*where) + self.class_values[after]
        return values

    def q_values_batch(self, batch: TurnBatch, *, canonical: bool = True) -> NDArray[np.float64]:
        """Return the value of every action in every state of a batch.

        Returns:
            (batch, num_actions) float64, ``-inf`` where the action is not legal.
        """
        compiled = self.compiled
        throw_number = np.asarray(batch.throw_number, dtype=np.intp)
        throw = np.asarray(batch.throw, dtype=np.intp)
        kept = KEEP_OF_MASK[throw, :NUM_KEEP_ACTIONS].astype(np.intp)
        row = np.minimum(throw_number, 2) - 1
        group = compiled.class_of_card[np.asarray(batch.card, dtype=np.intp)]
        keeps = self.class_keep_values[group[:, None], row[:, None], kept]
        keeps = np.where(compiled.keep_masks(batch, canonical=canonical), keeps, -np.inf)
        return np.concatenate([keeps, self.closing_values(batch)], axis=1)

    def is_won(self, batch: TurnBatch) -> NDArray[np.bool_]:
        """Return where the throw on the table has won at once, so that nothing is decided.

        Returns:
            (batch,) bool; false everywhere when the game plays on.
        """
        if self.instant_win_points is None:
            return np.zeros(len(batch.card), dtype=bool)
        return self.compiled.wins_at_once(batch)

    def state_values(self, batch: TurnBatch) -> NDArray[np.float64]:
        """Return the value of every state of a batch, (batch,) float64."""
        values = self.q_values_batch(batch).max(axis=1)
        if self.instant_win_points is not None:
            values = np.where(self.is_won(batch), self.instant_win_points, values)
        return np.asarray(values)

    def q_values(self, state: GameState) -> NDArray[np.float64]:
        """Return the value of every action of the current player.

        Args:
            state: A position with dice on the table; only the current player's card counts.

        Returns:
            (num_actions,) float64, ``-inf`` where the action is not legal.

        Raises:
            ValueError: Nothing is to be decided in the state, or no line of play reaches it.
        """
        batch = self.compiled.turn_batch(state)
        if self.is_won(batch)[0]:
            raise ValueError("the throw on the table has won at once: nothing is to be decided")
        return np.asarray(self.q_values_batch(batch)[0])

    def state_value(self, state: GameState) -> float:
        """Return the expected points still to come for the current player.

        A state before the first throw of a turn has the value of its card, one before a later
        throw that of the keep; a throw that wins at once what the win pays, if it pays; a
        complete card 0.

        Raises:
            ValueError: No line of play reaches the card.
        """
        if state.card.is_complete:
            return 0.0
        if state.turn.dice:
            return float(self.state_values(self.compiled.turn_batch(state))[0])
        group = self.compiled.class_of_card[self.compiled.index_of(state.card)]
        if state.turn.throw == 1:
            return float(self.class_values[group])
        return float(self.class_keep_values[group, state.turn.throw - 2, KEEP_INDEX[state.turn.kept]])

    def actions(self, batch: TurnBatch) -> NDArray[np.int64]:
        """Return the optimal action of every state, the lowest id among equals; (batch,) int64."""
        return np.asarray(np.argmax(self.q_values_batch(batch), axis=1))

    def policy(self, state: GameState) -> int:
        """Return the optimal action id in a state, the lowest among equals.

        Raises:
            ValueError: Nothing is to be decided in the state.
        """
        return int(np.argmax(self.q_values(state)))


@dataclass(frozen=True, eq=False)
class SoloSolution(ActionValues):
    """The optimal one-player policy of a variant; values are expected points to the end."""

    @property
    def expected_score(self) -> float:
        """The expected points of optimal play from the empty card."""
        return float(self.class_values[self.compiled.class_of_card[0]])

    @property
    def perfect_score(self) -> int:
        """The most points that any line of play without an instant win reaches."""
        return self.compiled.perfect_score


def solve_solo(
    variant: str | Variant | CompiledVariant, *, instant_win: InstantWin = DEFAULT_INSTANT_WIN
) -> SoloSolution:
    """Solve the one-player game exactly.

    Args:
        variant: A preset's name, a variant, or its tables.
        instant_win: ``"perfect"``, ``"play_on"`` or the points that an instant win pays.

    Raises:
        ValueError: The variant or ``instant_win`` is not known.
    """
    compiled = compile_variant(variant)
    class_values = np.zeros(compiled.num_classes)
    return SoloSolution(*_solve(compiled, instant_win, class_values, class_values))


def solve_turn_greedy(
    variant: str | Variant | CompiledVariant, *, instant_win: InstantWin = DEFAULT_INSTANT_WIN
) -> ActionValues:
    """Return the values of a player who looks no further than the present turn.

    What closing a box is worth is what it pays, as if the game ended there; the turn itself is
    played to the best expected points.

    Args:
        variant: A preset's name, a variant, or its tables.
        instant_win: ``"perfect"``, ``"play_on"`` or the points that an instant win pays.

    Raises:
        ValueError: The variant or ``instant_win`` is not known.
    """
    compiled = compile_variant(variant)
    no_future = np.zeros(compiled.num_classes)
    return ActionValues(*_solve(compiled, instant_win, no_future, np.zeros(compiled.num_classes)))


def _solve(
    compiled: CompiledVariant,
    instant_win: InstantWin,
    future: NDArray[np.float64],
    turn_values: NDArray[np.float64],
) -> tuple[CompiledVariant, float | None, NDArray[np.float64], NDArray[np.float64]]:
    """Price all turns, layer by layer, and return the fields of ``ActionValues``.

    ``future`` (K,) values the card a closing leaves; ``turn_values`` (K,) is written. One
    array in both places is backward induction.
    """
    win_points = instant_win_points(compiled, instant_win)
    class_keep_values = np.zeros((compiled.num_classes, 2, NUM_PARTIAL_KEEPS))
    win_values = np.where(compiled.instant_win, math.nan if win_points is None else win_points, math.nan)
    num_open = compiled.num_open[compiled.card_of_class]
    for layer in range(1, compiled.num_boxes + 1):
        cards = compiled.card_of_class[num_open == layer].astype(np.int64)
        solve = partial(
            _solve_layer,
            cards=cards,
            tables=compiled.tables,
            win_values=win_values,
            union=keep_union_table(),
            future=future,
            turn_values=turn_values,
            keep_values=class_keep_values,
        )
        in_shares(solve, num_shares(len(cards), _LEAST_TURNS))
    future.setflags(write=False)
    class_keep_values.setflags(write=False)
    return compiled, win_points, future, class_keep_values
