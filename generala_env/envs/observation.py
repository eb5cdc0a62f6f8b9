"""Observations: one float32 vector of named blocks, its layout, and the way back to a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.boxes import Box
from generala_env.rules.card import BoxStatus
from generala_env.rules.compiled import CompiledVariant, Status, TurnBatch
from generala_env.rules.dice import (
    COUNT_RADIX,
    KEEP_COUNTS,
    NUM_DICE,
    NUM_FACES,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROW_COUNTS,
    THROW_DICE,
    THROWS_PER_TURN,
    keep_of_code,
)
from generala_env.rules.variants import DobleKind


class BlockInfo(NamedTuple):
    """A kind of block.

    Attributes:
        meaning: What it shows, for people.
        is_default: Whether it is in the observation unless left out.
    """

    meaning: str
    is_default: bool


BLOCKS: Final[dict[str, BlockInfo]] = {
    "dice": BlockInfo("dice showing each face, ones first, divided by 5", True),
    "throw": BlockInfo("which throw of the turn lies on the table, one-hot", True),
    "served": BlockInfo("1 if closing a box now counts as served", True),
    "locked": BlockInfo("locked dice showing each face, divided by 5; only where dice lock", True),
    "open": BlockInfo("1 for each open box, in card order", True),
    "generala": BlockInfo("Generala box open, scored, struck, one-hot; only where there is one", True),
    "doble": BlockInfo("Doble box open, scored, struck, one-hot; or 1 once the Doble bonus was taken", True),
    "pays": BlockInfo(
        "points of closing each box now, divided by the most any box can pay; 0 if it may not be closed", True
    ),
    "dice_one_hot": BlockInfo("face of each die in ascending order, one-hot, 5 x 6", False),
    "counts_one_hot": BlockInfo("number of dice showing each face, one-hot, 6 x 6", False),
}
"""Every block there is, in the order in which they stand in an observation."""

DEFAULT_BLOCKS: Final = tuple(name for name, block in BLOCKS.items() if block.is_default)

_STATE_BLOCKS: Final = ("dice", "throw", "served", "locked", "open", "generala", "doble")
"""The blocks from which a state can be read back."""


class Block(NamedTuple):
    """One block of a layout.

    Attributes:
        name: Its name in ``BLOCKS``.
        start: The first index in the observation.
        stop: One past the last index.
    """

    name: str
    start: int
    stop: int

    @property
    def where(self) -> slice:
        """The block's place in an observation."""
        return slice(self.start, self.stop)


def _one_hot(values: NDArray[Any], size: int) -> NDArray[np.float32]:
    """Return (rows, columns * size) float32 from (rows, columns) integers."""
    hot = np.eye(size, dtype=np.float32)[values.astype(np.intp)]
    return np.asarray(hot.reshape(len(values), -1))


@dataclass(frozen=True, eq=False)
class ObservationLayout:
    """Which block stands where, and the tables that the blocks are gathered from.

    Every value lies within [0, 1].

    Attributes:
        compiled: The variant's tables.
        blocks: The blocks in order.
        tables: What each block is gathered from. The last axis is the block; the others are
            the dice (252), the throw (3), served (2), the locked dice (210), the card (C) or,
            for ``pays``, status, served and dice (S, 2, 252).
    """

    compiled: CompiledVariant
    blocks: tuple[Block, ...]
    tables: dict[str, NDArray[np.float32]]

    @property
    def size(self) -> int:
        """The length of an observation."""
        return self.blocks[-1].stop

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the blocks in order."""
        return tuple(block.name for block in self.blocks)

    def where(self, name: str) -> slice:
        """Return the place of a block.

        Raises:
            ValueError: The layout has no such block.
        """
        for block in self.blocks:
            if block.name == name:
                return block.where
        raise ValueError(f"observation_blocks: no block {name!r} here; present: {', '.join(self.names)}")

    def encode(self, batch: TurnBatch) -> NDArray[np.float32]:
        """Return the observations of a batch of states, (batch, size) float32."""
        card = np.asarray(batch.card, dtype=np.intp)
        throw = np.asarray(batch.throw, dtype=np.intp)
        served = np.asarray(batch.served, dtype=np.intp)
        observations = np.empty((len(card), self.size), dtype=np.float32)
        for name, start, stop in self.blocks:
            table = self.tables[name]
            part = observations[:, start:stop]
            if name in ("dice", "dice_one_hot", "counts_one_hot"):
                part[:] = table[throw]
            elif name == "throw":
                part[:] = table[np.asarray(batch.throw_number, dtype=np.intp) - 1]
            elif name == "served":
                part[:] = table[served]
            elif name == "locked":
                part[:] = table[np.asarray(batch.kept, dtype=np.intp)]
            elif name == "pays":
                part[:] = table[self.compiled.card_status[card], served, throw] * self.compiled.closable[card]
            else:
                part[:] = table[card]
        return observations

    def before_throw(self, observations: NDArray[Any], kept: NDArray[Any]) -> NDArray[np.float32]:
        """Return what was known before the dice on the table fell: the afterstates of decisions.

        The dice are those that were kept, nothing is served and no box pays; the throw is the one
        to be made, the card as it is.

        Args:
            observations: (batch, size) float32, of the states after the throw.
            kept: (batch,) integer, index in ``KEEPS`` of the dice kept before it; 0 where a turn
                began.

        Returns:
            (batch, size) float32, a copy.
        """
        known = np.array(observations, dtype=np.float32)
        tables = _kept_tables()
        for name, start, stop in self.blocks:
            if name in tables:
                known[:, start:stop] = tables[name][kept]
            elif name in ("served", "pays", "dice_one_hot"):
                known[:, start:stop] = 0.0
        return known

    def decode(self, observations: NDArray[Any]) -> TurnBatch:
        """Read the states back from observations.

        Args:
            observations: (batch, size) float.

        Raises:
            ValueError: A block that tells states apart was left out, the shape is wrong, or
                the numbers are no observation of this variant.
        """
        observations = np.asarray(observations)
        if observations.ndim != 2 or observations.shape[1] != self.size:
            raise ValueError(f"observations: shape {observations.shape} is not (batch, {self.size})")
        missing = [name for name in _needed_blocks(self.compiled) if name not in self.names]
        if missing:
            raise ValueError(f"observation_blocks: cannot tell states apart without {', '.join(missing)}")
        throw = _keeps_of(observations[:, self.where("dice")]) - NUM_PARTIAL_KEEPS
        throw_number = observations[:, self.where("throw")].argmax(axis=1) + 1
        if "served" in self.names:
            served = observations[:, self.where("served")][:, 0] > 0.5
        else:
            served = throw_number == 1
        kept = np.zeros(len(observations), dtype=np.int16)
        if "locked" in self.names:
            kept = _keeps_of(observations[:, self.where("locked")])
        card = self._decode_cards(observations)
        if ((card < 0) | (throw < 0) | (kept < 0) | (kept >= NUM_PARTIAL_KEEPS)).any():
            raise ValueError(f"observations: not observations of {self.compiled.variant.name}")
        return TurnBatch(card, throw, throw_number, served, kept)

    def _decode_cards(self, observations: NDArray[Any]) -> NDArray[np.intp]:
        compiled = self.compiled
        opened = (observations[:, self.where("open")] > 0.5) @ (1 << np.arange(compiled.num_boxes))
        generala = np.zeros(len(observations), dtype=np.intp)
        doble, bonus = generala, generala
        if "generala" in self.names:
            generala = observations[:, self.where("generala")].argmax(axis=1)
        if "doble" in self.names:
            part = observations[:, self.where("doble")]
            if part.shape[1] == 1:
                bonus = (part[:, 0] > 0.5).astype(np.intp)
            else:
                doble = part.argmax(axis=1)
        lookup = np.full((len(BoxStatus), len(BoxStatus), 2), -1)
        for index, status in enumerate(compiled.statuses):
            lookup[status.generala, status.doble, int(status.is_bonus_taken)] = index
        found = lookup[generala, doble, bonus]
        return np.where(found >= 0, compiled.card_index[opened, found], -1)

    def table(self) -> list[tuple[str, str, str]]:
        """Return the layout for people: name, indices, meaning."""
        return [
            (
                block.name,
                f"{block.start}" if block.stop == block.start + 1 else f"{block.start} to {block.stop - 1}",
                BLOCKS[block.name].meaning,
            )
            for block in self.blocks
        ]


class RowTables(NamedTuple):
    """The blocks of a layout, joined where one index gathers them; in the order of ``BLOCKS``.

    Attributes:
        turn: (3 * 2 * 252, width) float32, by throw number, served and dice.
        locked: (210, width) float32, by the locked dice.
        card: (C, width) float32.
        pays: (S * 2 * 252, B or 0) float32, by status, served and dice.
        closable: (C, B or 0) float32, what ``pays`` is multiplied by.
        dice: (252, width) float32.
    """

    turn: NDArray[np.float32]
    locked: NDArray[np.float32]
    card: NDArray[np.float32]
    pays: NDArray[np.float32]
    closable: NDArray[np.float32]
    dice: NDArray[np.float32]


@lru_cache(maxsize=32)
def row_tables(layout: ObservationLayout) -> RowTables:
    """Return the blocks of a layout, joined where one index gathers them."""

    def joined(rows: int, **index: NDArray[np.intp]) -> NDArray[np.float32]:
        parts = [layout.tables[name][where] for name, where in index.items() if name in layout.tables]
        table = np.hstack([np.empty((rows, 0), dtype=np.float32), *parts]).astype(np.float32)
        table.setflags(write=False)
        return table

    compiled = layout.compiled
    number, served, throw = (axis.ravel() for axis in np.indices((THROWS_PER_TURN, 2, NUM_THROWS)))
    cards, throws = np.arange(compiled.num_cards), np.arange(NUM_THROWS)
    num_pays = compiled.num_boxes if "pays" in layout.tables else 0
    pays = np.empty((0, 0), dtype=np.float32)
    if num_pays:
        pays = layout.tables["pays"].reshape(-1, num_pays)
    return RowTables(
        turn=joined(len(throw), dice=throw, throw=number, served=served),
        locked=joined(NUM_PARTIAL_KEEPS, locked=np.arange(NUM_PARTIAL_KEEPS)),
        card=joined(len(cards), open=cards, generala=cards, doble=cards),
        pays=pays,
        closable=compiled.closable[:, :num_pays].astype(np.float32),
        dice=joined(len(throws), dice_one_hot=throws, counts_one_hot=throws),
    )


@lru_cache(maxsize=32)
def keep_rows(compiled: CompiledVariant, canonical: bool) -> NDArray[np.int8]:
    """Return the keeps offered, by context and dice.

    Context 0, the third throw, offers none. Context ``1 + k`` offers those that contain the
    locked dice ``k``; without locked dice, and where the variant locks none, that is context 1.

    Returns:
        (2 or 211, 252, 31) int8, read-only.
    """
    contexts = NUM_PARTIAL_KEEPS + 1 if compiled.variant.is_locked else 2
    rows = np.zeros((contexts, NUM_THROWS, NUM_KEEP_ACTIONS), dtype=np.int8)
    whole = np.zeros(NUM_THROWS, dtype=np.intp)
    for context in range(1, contexts):
        batch = TurnBatch(whole, np.arange(NUM_THROWS), whole + 2, whole > 0, whole + context - 1)
        rows[context] = compiled.keep_masks(batch, canonical=canonical)
    rows.setflags(write=False)
    return rows


def _keeps_of(shares: NDArray[Any]) -> NDArray[np.int16]:
    """Return the keep that a block of dice shows, -1 where it shows none; (batch,) int16."""
    counts = np.rint(shares * NUM_DICE).astype(np.intp).clip(0, NUM_DICE)
    keeps: NDArray[np.int16] = keep_of_code()[counts @ COUNT_RADIX]
    return keeps


def _needed_blocks(compiled: CompiledVariant) -> tuple[str, ...]:
    needs_served = bool(compiled.is_served[1:].any())
    return tuple(
        name for name in _STATE_BLOCKS if _applies(name, compiled) and (name != "served" or needs_served)
    )


def _applies(name: str, compiled: CompiledVariant) -> bool:
    """Tell whether the variant has what the block shows."""
    variant = compiled.variant
    if name == "locked":
        return variant.is_locked
    if name == "generala":
        return Box.GENERALA in variant.boxes
    if name == "doble":
        return variant.doble.kind is not DobleKind.NONE
    return True


@lru_cache(maxsize=1)
def _kept_tables() -> dict[str, NDArray[np.float32]]:
    """Return what blocks of dice show of the keeps of up to four dice, by name of the block."""
    counts = KEEP_COUNTS[:NUM_PARTIAL_KEEPS]
    return {
        "dice": counts.astype(np.float32) / np.float32(NUM_DICE),
        "counts_one_hot": _one_hot(counts, NUM_DICE + 1),
    }


def _block_table(name: str, compiled: CompiledVariant) -> NDArray[np.float32]:
    """Return the table a block is gathered from: rows by dice, throw, kept dice or card."""
    statuses: Sequence[Status] = [compiled.statuses[status] for status in compiled.card_status]
    if name == "dice":
        return THROW_COUNTS.astype(np.float32) / np.float32(NUM_DICE)
    if name == "throw":
        return np.eye(THROWS_PER_TURN, dtype=np.float32)
    if name == "served":
        return np.array([[0.0], [1.0]], dtype=np.float32)
    if name == "locked":
        return _kept_tables()["dice"]
    if name == "open":
        boxes = np.arange(compiled.num_boxes)
        return (compiled.card_open[:, None] >> boxes & 1).astype(np.float32)
    if name == "generala":
        return _one_hot(np.array([[status.generala] for status in statuses]), len(BoxStatus))
    if name == "doble" and compiled.variant.doble.kind is DobleKind.BONUS:
        return np.array([[status.is_bonus_taken] for status in statuses], dtype=np.float32)
    if name == "doble":
        return _one_hot(np.array([[status.doble] for status in statuses]), len(BoxStatus))
    if name == "pays":
        # (S, B, 2, 252) to (S, 2, 252, B), so that one look-up gathers a whole block.
        points = np.moveaxis(compiled.points, 1, 3) / compiled.points.max()
        return np.ascontiguousarray(points, dtype=np.float32)
    if name == "dice_one_hot":
        return _one_hot(THROW_DICE - 1, NUM_FACES)
    return _one_hot(THROW_COUNTS, NUM_DICE + 1)


def observation_layout(compiled: CompiledVariant, blocks: Sequence[str] | None = None) -> ObservationLayout:
    """Return the layout of a variant's observations.

    Args:
        compiled: The variant's tables.
        blocks: Names of the blocks to include; ``None`` for the default ones. Their order
            does not matter, and blocks that the variant has no use for are left out.

    Raises:
        ValueError: A name is unknown or repeated, or nothing is left.
    """
    chosen = DEFAULT_BLOCKS if blocks is None else tuple(blocks)
    unknown = [name for name in chosen if name not in BLOCKS]
    if unknown:
        raise ValueError(f"observation_blocks: {unknown[0]!r} is not a block; known: {', '.join(BLOCKS)}")
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"observation_blocks: a block is repeated in {list(chosen)}")
    return _layout(compiled, tuple(name for name in BLOCKS if name in chosen and _applies(name, compiled)))


@lru_cache(maxsize=32)
def _layout(compiled: CompiledVariant, names: tuple[str, ...]) -> ObservationLayout:
    if not names:
        raise ValueError("observation_blocks: at least one block is needed")
    tables = {name: _block_table(name, compiled) for name in names}
    blocks: list[Block] = []
    start = 0
    for name, table in tables.items():
        table.setflags(write=False)
        blocks.append(Block(name, start, start + table.shape[-1]))
        start += table.shape[-1]
    return ObservationLayout(compiled, tuple(blocks), tables)
