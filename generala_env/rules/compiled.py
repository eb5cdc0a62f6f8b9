"""A variant as arrays: the reachable cards and what closing a box does to them.

``compile_variant`` enumerates the readable engine; no rule is written here a second time.
Everything fast (the batched environment, the solvers, exact evaluation) reads these tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.actions import NUM_KEEP_ACTIONS, num_actions
from generala_env.rules.card import (
    BoxStatus,
    Card,
    closable_boxes,
    close_box,
    is_instant_win,
    is_served,
)
from generala_env.rules.dice import (
    IS_CANONICAL_MASK,
    IS_FIVE_EQUAL,
    KEEP_INDEX,
    KEEP_OF_MASK,
    KEEPS,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROW_COUNTS,
    THROW_INDEX,
    THROWS_PER_TURN,
    counts_of,
    is_subset,
)
from generala_env.rules.game import GameState, Phase
from generala_env.rules.variants import Variant, get_variant

NO_STATUS = 255
"""Marks entries of ``next_status`` that no reachable card uses."""


InstantWin = Literal["perfect", "play_on"] | int | float
"""How the one-player game treats a served Generala that wins: end the game and pay the
perfect score, play on, or end the game and pay that many points."""

DEFAULT_INSTANT_WIN: Final[InstantWin] = "play_on"
"""The pure scoring problem, on whose scale all scores are compared unless another is asked for."""


class Status(NamedTuple):
    """What a card remembers beside its open boxes."""

    generala: BoxStatus
    doble: BoxStatus
    is_bonus_taken: bool


class TurnBatch(NamedTuple):
    """Decision states of many cards at once, as indices into the tables.

    Attributes:
        card: (batch,) integer, index of the card.
        throw: (batch,) integer, index of the dice on the table in ``THROWS``.
        throw_number: (batch,) integer, which throw of the turn, 1 to 3.
        served: (batch,) bool, whether closing a box now counts as served.
        kept: (batch,) integer, index in ``KEEPS`` of the dice set aside before the throw;
            read only where the variant locks kept dice.
    """

    card: NDArray[Any]
    throw: NDArray[Any]
    throw_number: NDArray[Any]
    served: NDArray[Any]
    kept: NDArray[Any]


class CardTables(NamedTuple):
    """The arrays of a variant that every compiled loop reads, in one argument.

    Shapes and meanings are those of the fields of ``CompiledVariant``.

    Attributes:
        card_open: (C,) uint16.
        card_status: (C,) uint8.
        card_index: (2**B, S) int32.
        closable: (C, B) bool.
        points: (S, B, 2, 252) int32.
        next_status: (S, B, 2, 252) uint8.
        instant_win: (C,) bool.
        is_served: (3, 2) bool.
        is_locked: Whether kept dice are locked.
        class_of_card: (C,) int32.
        card_of_class: (K,) int32.
        successor: (2**B, S) int32, the class of the card with those open boxes and status, or -1.
    """

    card_open: NDArray[np.uint16]
    card_status: NDArray[np.uint8]
    card_index: NDArray[np.int32]
    closable: NDArray[np.bool_]
    points: NDArray[np.int32]
    next_status: NDArray[np.uint8]
    instant_win: NDArray[np.bool_]
    is_served: NDArray[np.bool_]
    is_locked: bool
    class_of_card: NDArray[np.int32]
    card_of_class: NDArray[np.int32]
    successor: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CompiledVariant:
    """The card game of a variant as read-only arrays.

    ``C`` cards (the empty one first, then by falling number of open boxes), ``B`` boxes,
    ``S`` statuses. Closing box ``b`` of card ``c`` with throw ``t`` pays
    ``points[card_status[c], b, served, t]`` and leads to card
    ``card_index[card_open[c] & ~(1 << b), next_status[card_status[c], b, served, t]]``.

    Attributes:
        variant: The rules.
        statuses: What each status means.
        card_open: (C,) uint16, bit ``b`` set while box ``b`` is open.
        card_status: (C,) uint8, index into ``statuses``.
        card_index: (2**B, S) int32, the card with those open boxes and status, or -1.
        num_open: (C,) uint8, open boxes.
        closable: (C, B) bool, the boxes that may be closed.
        points: (S, B, 2, 252) int32, points of closing unserved and served, with the bonus.
        next_status: (S, B, 2, 252) uint8, the status afterwards, or ``NO_STATUS``.
        instant_win: (C,) bool, whether a served throw of five equal dice wins at once.
        num_generalas: (C,) uint8, Generala and Doble boxes closed with points.
        is_served: (3, 2) bool, by throw (0 is the first) and by whether all dice were thrown.
        class_of_card: (C,) int32, cards that the rules cannot tell apart share a class: from
            them on, the same dice and actions give the same points, wins and tie-breaks.
        card_of_class: (K,) int32, the first card of each class, in card order.
        perfect_score: The most points that any line of play without an instant win reaches.
    """

    variant: Variant
    statuses: tuple[Status, ...]
    card_open: NDArray[np.uint16]
    card_status: NDArray[np.uint8]
    card_index: NDArray[np.int32]
    num_open: NDArray[np.uint8]
    closable: NDArray[np.bool_]
    points: NDArray[np.int32]
    next_status: NDArray[np.uint8]
    instant_win: NDArray[np.bool_]
    num_generalas: NDArray[np.uint8]
    is_served: NDArray[np.bool_]
    class_of_card: NDArray[np.int32]
    card_of_class: NDArray[np.int32]
    perfect_score: int

    @property
    def num_boxes(self) -> int:
        """The number of boxes of the card."""
        return self.variant.num_boxes

    @property
    def num_cards(self) -> int:
        """The number of reachable cards."""
        return len(self.card_open)

    @property
    def num_classes(self) -> int:
        """The number of cards that the rules can tell apart."""
        return len(self.card_of_class)

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return num_actions(self.num_boxes)

    @cached_property
    def tables(self) -> CardTables:
        """What compiled loops read, made once."""
        successor = np.where(self.card_index >= 0, self.class_of_card[self.card_index], -1)
        return CardTables(
            card_open=self.card_open,
            card_status=self.card_status,
            card_index=self.card_index,
            closable=self.closable,
            points=self.points,
            next_status=self.next_status,
            instant_win=self.instant_win,
            is_served=self.is_served,
            is_locked=self.variant.is_locked,
            class_of_card=self.class_of_card,
            card_of_class=self.card_of_class,
            successor=_frozen(successor.astype(np.int32)),
        )

    @cached_property
    def bonus(self) -> NDArray[np.int32]:
        """(S, S) int32: the Doble bonus that going from one status to another pays."""
        is_taken = np.array([status.is_bonus_taken for status in self.statuses])
        takes = ~is_taken[:, None] & is_taken
        return _frozen(np.where(takes, self.variant.doble.points, 0).astype(np.int32))

    def index_of(self, card: Card) -> int:
        """Return the index of a card.

        Raises:
            ValueError: No line of play reaches that card.
        """
        status = Status(card.generala, card.doble, card.is_bonus_taken)
        index = -1
        if status in self.statuses and 0 <= card.open_mask < len(self.card_index):
            index = int(self.card_index[card.open_mask, self.statuses.index(status)])
        if index < 0:
            raise ValueError(f"{card} is not reachable under {self.variant.name}")
        return index

    def card(self, index: int) -> Card:
        """Return the card with that index."""
        return Card(int(self.card_open[index]), *self.statuses[self.card_status[index]])

    def turn_batch(self, *states: GameState) -> TurnBatch:
        """Return the decision states of the current players as a batch.

        Raises:
            ValueError: Nothing is to be decided in a state: it has no dice on the table, its
                card is complete, or it is in a playoff, which has no tables.
        """
        for state in states:
            if not state.turn.dice:
                raise ValueError("the state has no dice on the table: nothing is to be decided")
            if state.phase is Phase.PLAYOFF or state.card.is_complete:
                raise ValueError(f"the card is complete (phase {state.phase}): no box is to be closed")
        return TurnBatch(
            np.array([self.index_of(state.card) for state in states], dtype=np.int32),
            np.array([THROW_INDEX[state.turn.dice] for state in states], dtype=np.uint8),
            np.array([state.turn.throw for state in states], dtype=np.int8),
            np.array(
                [self.is_served[state.turn.throw - 1, int(state.turn.is_full_throw)] for state in states]
            ),
            np.array([KEEP_INDEX[state.turn.kept] for state in states], dtype=np.int16),
        )

    def closing_points(
        self,
        card: NDArray[Any] | int,
        box: NDArray[Any] | int | slice,
        served: NDArray[Any] | int,
        throw: NDArray[Any] | int,
    ) -> NDArray[np.int32]:
        """Return what closing ``box`` pays, with the Doble bonus; arguments broadcast.

        A ``slice`` of boxes gives the last axis of the result.
        """
        return np.asarray(self.points[self.card_status[card], box, served, throw])

    def wins_at_once(self, batch: TurnBatch) -> NDArray[np.bool_]:
        """Return where the throw on the table is a served Generala that wins; (batch,) bool."""
        five_equal = IS_FIVE_EQUAL[np.asarray(batch.throw, dtype=np.intp)]
        wins = self.instant_win[np.asarray(batch.card, dtype=np.intp)]
        return np.asarray(np.asarray(batch.served, dtype=bool) & five_equal & wins)

    def next_card(
        self,
        card: NDArray[Any],
        box: NDArray[Any] | int,
        served: NDArray[Any] | int,
        throw: NDArray[Any] | int,
    ) -> NDArray[np.int32]:
        """Return the cards after closing ``box``; arguments broadcast."""
        status = self.next_status[self.card_status[card], box, served, throw]
        opened = self.card_open[card] & ~(np.uint16(1) << np.asarray(box, dtype=np.uint16))
        after: NDArray[np.int32] = self.card_index[opened, status]
        return after

    def keep_masks(self, batch: TurnBatch, *, canonical: bool = True) -> NDArray[np.bool_]:
        """Return which keep actions are legal.

        Returns:
            (batch, 31) bool.
        """
        legal = _keep_table(canonical)[np.asarray(batch.throw, dtype=np.intp)]
        if self.variant.is_locked:
            kept = np.where(np.asarray(batch.throw_number) > 1, batch.kept, 0)
            legal = legal & _locked_table()[kept.astype(np.intp), np.asarray(batch.throw, dtype=np.intp)]
        return np.asarray(legal & (np.asarray(batch.throw_number) < THROWS_PER_TURN)[:, None])

    def action_masks(self, batch: TurnBatch, *, canonical: bool = True) -> NDArray[np.bool_]:
        """Return which actions are legal.

        Returns:
            (batch, num_actions) bool.
        """
        keeps = self.keep_masks(batch, canonical=canonical)
        return np.concatenate([keeps, self.closable[np.asarray(batch.card, dtype=np.intp)]], axis=1)


def instant_win_points(compiled: CompiledVariant, instant_win: InstantWin) -> float | None:
    """Return the points an instant win pays; ``None`` when the game plays on.

    Raises:
        ValueError: ``instant_win`` is none of ``"perfect"``, ``"play_on"`` or a number.
    """
    if instant_win == "perfect":
        return float(compiled.perfect_score)
    if instant_win == "play_on":
        return None
    is_number = isinstance(instant_win, int | float) and not isinstance(instant_win, bool)
    if is_number and math.isfinite(instant_win):
        return float(instant_win)
    raise ValueError(f"instant_win: {instant_win!r} is not 'perfect', 'play_on' or a finite number of points")


def instant_win_that_pays(points: float | None) -> InstantWin:
    """Return the treatment whose ``instant_win_points`` these are; ``None`` is playing on."""
    return "play_on" if points is None else points


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


@lru_cache(maxsize=2)
def _keep_table(canonical: bool) -> NDArray[np.bool_]:
    """(252, 31) bool: keeps offered on a throw, while dice are free."""
    table = IS_CANONICAL_MASK[:, :NUM_KEEP_ACTIONS]
    return table if canonical else _frozen(np.ones_like(table))


@lru_cache(maxsize=1)
def _locked_table() -> NDArray[np.bool_]:
    """(210, 252, 31) bool: keeps that contain the locked dice, or throw all five again."""
    contains = np.array([[is_subset(locked, kept) for kept in KEEPS] for locked in KEEPS[:NUM_PARTIAL_KEEPS]])
    contains[:, KEEP_INDEX[()]] = True
    return _frozen(contains[:, KEEP_OF_MASK[:, :NUM_KEEP_ACTIONS]])


def compile_variant(variant: str | Variant | CompiledVariant) -> CompiledVariant:
    """Return the tables of a variant; equal rules share one (cached) object.

    Args:
        variant: A preset's name, a variant, or its tables, which are returned as they are.

    Raises:
        ValueError: The variant is not known.
    """
    return variant if isinstance(variant, CompiledVariant) else _compile(get_variant(variant))


@lru_cache(maxsize=16)
def _compile(variant: Variant) -> CompiledVariant:
    outcomes = _Outcomes(variant)
    cards = _enumerate_cards(variant, outcomes)
    num_boxes, num_statuses = variant.num_boxes, len(outcomes.statuses)
    card_index = np.full((1 << num_boxes, num_statuses), -1, dtype=np.int32)
    statuses = {status: index for index, status in enumerate(outcomes.statuses)}
    card_status = np.array(
        [statuses[Status(card.generala, card.doble, card.is_bonus_taken)] for card in cards], dtype=np.uint8
    )
    card_open = np.array([card.open_mask for card in cards], dtype=np.uint16)
    card_index[card_open, card_status] = np.arange(len(cards))
    closable = np.zeros((len(cards), num_boxes), dtype=bool)
    for index, card in enumerate(cards):
        closable[index, list(closable_boxes(variant, card))] = True
    five_equal = counts_of((1,) * 5)
    instant_win = np.array([is_instant_win(variant, card, five_equal, served=True) for card in cards])
    num_generalas = np.array([card.num_generalas for card in cards], dtype=np.uint8)
    points, next_status = outcomes.tables()
    class_of_card = _classes(
        outcomes, card_index, card_open, card_status, closable, instant_win, num_generalas
    )
    card_of_class = np.unique(class_of_card, return_index=True)[1].astype(np.int32)
    served = np.array(
        [
            [is_served(variant, throw, is_full_throw=is_full) for is_full in (False, True)]
            for throw in range(1, THROWS_PER_TURN + 1)
        ]
    )
    return CompiledVariant(
        variant=variant,
        statuses=tuple(outcomes.statuses),
        card_open=_frozen(card_open),
        card_status=_frozen(card_status),
        card_index=_frozen(card_index),
        num_open=_frozen(np.array([card.num_open for card in cards], dtype=np.uint8)),
        closable=_frozen(closable),
        points=_frozen(points),
        next_status=_frozen(next_status),
        instant_win=_frozen(instant_win),
        num_generalas=_frozen(num_generalas),
        is_served=_frozen(served),
        class_of_card=_frozen(class_of_card),
        card_of_class=_frozen(card_of_class),
        perfect_score=_perfect_score(
            card_index, card_open, card_status, closable, points, next_status, instant_win
        ),
    )


class _Outcomes:
    """What closing a box does, asked of the engine once per status and box.

    The engine's answer depends on the card through its status and on the box being
    closable, so one card of a status speaks for all of them (checked card by card in the
    tests).
    """

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.statuses: list[Status] = []
        self.entries: dict[tuple[int, int], tuple[NDArray[np.int32], NDArray[np.uint8]]] = {}

    def status_index(self, card: Card) -> int:
        status = Status(card.generala, card.doble, card.is_bonus_taken)
        if status not in self.statuses:
            self.statuses.append(status)
        return self.statuses.index(status)

    def of(self, card: Card, box: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return points and next status, both (2, 252) by served and throw."""
        key = (self.status_index(card), box)
        if key not in self.entries:
            points = np.empty((2, NUM_THROWS), dtype=np.int32)
            after = np.empty((2, NUM_THROWS), dtype=np.uint8)
            for throw, row in enumerate(THROW_COUNTS.tolist()):
                for served in (False, True):
                    closing = close_box(self.variant, card, box, tuple(row), served=served)
                    points[int(served), throw] = closing.points + closing.bonus
                    after[int(served), throw] = self.status_index(closing.card)
            self.entries[key] = (points, after)
        return self.entries[key]

    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        shape = (len(self.statuses), self.variant.num_boxes, 2, NUM_THROWS)
        points = np.zeros(shape, dtype=np.int32)
        after = np.full(shape, NO_STATUS, dtype=np.uint8)
        for (status, box), (paid, reached) in self.entries.items():
            points[status, box] = paid
            after[status, box] = reached
        return points, after


def _enumerate_cards(variant: Variant, outcomes: _Outcomes) -> list[Card]:
    """Return every reachable card, by falling number of open boxes."""
    layer = [Card.empty(variant)]
    cards: list[Card] = []
    while layer:
        cards.extend(layer)
        following: dict[Card, None] = {}
        for card in layer:
            for box in closable_boxes(variant, card):
                _, after = outcomes.of(card, box)
                for status in np.unique(after):
                    opened = card.open_mask & ~(1 << box)
                    following[Card(opened, *outcomes.statuses[status])] = None
        layer = sorted(
            following, key=lambda card: (-card.open_mask, card.generala, card.doble, card.is_bonus_taken)
        )
    return cards


def _classes(
    outcomes: _Outcomes,
    card_index: NDArray[np.int32],
    card_open: NDArray[np.uint16],
    card_status: NDArray[np.uint8],
    closable: NDArray[np.bool_],
    instant_win: NDArray[np.bool_],
    num_generalas: NDArray[np.uint8],
) -> NDArray[np.int32]:
    """Group cards that have the same future: the coarsest bisimulation of the card graph.

    A card's signature is its open boxes, its instant win (while a turn is to come) and, for
    each box it may close, the points by throw and the class reached by throw. Cards with
    fewer open boxes come first, so one pass from the last card to the first is enough.
    """
    most_generalas = outcomes.variant.tie_break == "most_generalas"
    interned: dict[bytes, int] = {}
    signatures: dict[tuple[object, ...], int] = {}
    group = np.empty(len(card_open), dtype=np.int32)
    reached: dict[tuple[int, int, bytes], int] = {}
    for card in reversed(range(len(card_open))):
        status, opened = int(card_status[card]), int(card_open[card])
        parts: list[object] = [opened, opened and bool(instant_win[card])]
        if most_generalas:
            parts.append(int(num_generalas[card]))
        for box in np.flatnonzero(closable[card]).tolist():
            points, after = outcomes.entries[status, box]
            successors = card_index[opened & ~(1 << box)]
            class_of = np.where(successors >= 0, group[successors], -1)
            key = (status, box, class_of.tobytes())
            if key not in reached:
                content = points.tobytes() + class_of[after].tobytes()
                reached[key] = interned.setdefault(content, len(interned))
            parts.append(reached[key])
        group[card] = signatures.setdefault(tuple(parts), len(signatures))
    # Number the classes in card order.
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse], dtype=np.int32)


def _perfect_score(
    card_index: NDArray[np.int32],
    card_open: NDArray[np.uint16],
    card_status: NDArray[np.uint8],
    closable: NDArray[np.bool_],
    points: NDArray[np.int32],
    next_status: NDArray[np.uint8],
    instant_win: NDArray[np.bool_],
) -> int:
    """Return the most points over all lines of play in which no throw wins at once."""
    best = np.zeros(len(card_open), dtype=np.int64)
    wins = np.stack([np.zeros(NUM_THROWS, dtype=bool), IS_FIVE_EQUAL])
    for card in reversed(range(len(card_open))):
        status, opened = int(card_status[card]), int(card_open[card])
        for box in np.flatnonzero(closable[card]).tolist():
            successors = card_index[opened & ~(1 << box)]
            totals = points[status, box] + best[successors[next_status[status, box]]]
            if instant_win[card]:
                totals = np.where(wins, -1, totals)
            best[card] = max(best[card], totals.max())
    return int(best[0])
