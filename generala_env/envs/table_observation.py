"""What a player at a table sees: the own card and dice first, then everything else on the table.

All cards are open. Seats are relative throughout: 0 is the observer, 1 the next in playing
order, and so on, so that one network or table plays from every seat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.envs.observation import Block, ObservationLayout, observation_layout
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.dice import EMPTY_KEEP, KEEP_INDEX, THROW_INDEX
from generala_env.rules.game import GameState, Phase
from generala_env.rules.playoff import playoff_tables


class TableBatch(NamedTuple):
    """Positions at tables of ``n`` players, each from one seat's view.

    Columns are relative seats: column 0 is the observer.

    Attributes:
        turn: The dice on the table and the observer's card; the empty card in the observer's
            own playoff turn, which is played on one.
        mover: (batch,) integer, the relative seat whose turn it is.
        starter: (batch,) integer, the relative seat that starts each round.
        round: (batch,) integer, from 1.
        cards: (batch, n) integer, index of each player's card.
        scores: (batch, n) integer, points made so far.
        is_playoff: (batch,) bool.
        candidates: (batch, n) bool, who is still in the playoff.
        made: (batch, n) bool, who has played this playoff turn.
        results: (batch, n) integer, what those made; 0 elsewhere.
    """

    turn: TurnBatch
    mover: NDArray[Any]
    starter: NDArray[Any]
    round: NDArray[Any]
    cards: NDArray[Any]
    scores: NDArray[Any]
    is_playoff: NDArray[np.bool_]
    candidates: NDArray[np.bool_]
    made: NDArray[np.bool_]
    results: NDArray[Any]

    def take(self, rows: NDArray[Any]) -> TableBatch:
        """Return some rows of the batch."""
        turn = TurnBatch(*(part[rows] for part in self.turn))
        return TableBatch(turn, *(part[rows] for part in self[1:]))


TABLE_BLOCKS: Final[dict[str, str]] = {
    "others_open": "1 for each open box of the other players, player by player in playing order",
    "others_generala": "the other players' Generala boxes open, scored, struck, one-hot",
    "others_doble": "their Doble boxes open, scored, struck, one-hot; or 1 once a bonus was taken",
    "score": "own points, divided by the most points a card can reach",
    "differences": "own points less those of each other player, divided likewise; from -1 to 1",
    "mover": "whose turn it is, one-hot by relative seat (own first)",
    "starter": "who starts each round, one-hot by relative seat",
    "round": "the round, divided by the number of boxes",
    "playoff": "1 in a playoff",
    "candidates": "1 for each player still in the playoff, own first",
    "made": "1 for each player who has played this playoff turn",
    "results": "what they made, divided by the most a playoff turn can make",
}
"""The blocks that follow those of the one-player observation, in order."""


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Which block stands where in the observation of a table.

    The blocks of the one-player observation come first, so an agent that plays alone reads
    the first ``solo.size`` numbers. Every value lies within [-1, 1]; only ``differences`` are
    ever negative. In the turn of another player ``pays`` is zero: nothing may be closed.

    Attributes:
        solo: The layout of the one-player part.
        num_players: How many play.
        blocks: All blocks in order.
    """

    solo: ObservationLayout
    num_players: int
    blocks: tuple[Block, ...]

    @property
    def compiled(self) -> CompiledVariant:
        """The variant's tables."""
        return self.solo.compiled

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
        raise ValueError(f"observation: no block {name!r} here; present: {', '.join(self.names)}")

    def encode(self, batch: TableBatch) -> NDArray[np.float32]:
        """Return the observations of a batch, (batch, size) float32."""
        compiled, solo = self.compiled, self.solo
        observations = np.empty((len(batch.mover), self.size), dtype=np.float32)
        observations[:, : solo.size] = solo.encode(batch.turn)
        if "pays" in solo.names:
            self._correct_pays(observations[:, solo.where("pays")], batch)
        scale = np.float32(compiled.perfect_score)
        players = np.eye(self.num_players, dtype=np.float32)
        most = np.float32(playoff_tables(compiled.variant).points.max())
        scores = np.asarray(batch.scores, dtype=np.float32)
        parts = {
            "score": scores[:, :1] / scale,
            "differences": (scores[:, :1] - scores[:, 1:]) / scale,
            "mover": players[np.asarray(batch.mover, dtype=np.intp)],
            "starter": players[np.asarray(batch.starter, dtype=np.intp)],
            "round": np.asarray(batch.round, dtype=np.float32)[:, None] / np.float32(compiled.num_boxes),
            "playoff": batch.is_playoff[:, None],
            "candidates": batch.candidates,
            "made": batch.made,
            "results": np.asarray(batch.results, dtype=np.float32) / most,
        }
        others = np.asarray(batch.cards, dtype=np.intp)[:, 1:]
        for name, start, stop in self.blocks[len(solo.blocks) :]:
            if name.startswith("others_"):
                table = _card_table(solo, name.removeprefix("others_"))
                observations[:, start:stop] = table[others].reshape(len(others), -1)
            else:
                observations[:, start:stop] = parts[name]
        return observations

    def _correct_pays(self, pays: NDArray[np.float32], batch: TableBatch) -> None:
        """Zero what another player's dice would pay; in a playoff leave the one box."""
        pays[np.asarray(batch.mover) != 0] = 0.0
        rows = np.flatnonzero(batch.is_playoff & (np.asarray(batch.mover) == 0))
        if len(rows):
            tables = playoff_tables(self.compiled.variant)
            where = (np.asarray(batch.turn.served[rows], dtype=np.intp), batch.turn.throw[rows])
            pays[rows] = 0.0
            pays[rows, tables.box[where]] = tables.points[where] / np.float32(self.compiled.points.max())

    def decode(self, observations: NDArray[Any]) -> TableBatch:
        """Read positions back from observations.

        The inverse of ``encode`` at decisions, where the observer is the one to move.

        Args:
            observations: (batch, size) float.

        Raises:
            ValueError: The shape is wrong, or the numbers are no observation of this table.
        """
        observations = np.asarray(observations)
        if observations.ndim != 2 or observations.shape[1] != self.size:
            raise ValueError(f"observations: shape {observations.shape} is not (batch, {self.size})")
        compiled, solo = self.compiled, self.solo
        turn = solo.decode(observations[:, : solo.size])
        scale = compiled.perfect_score
        own = np.rint(observations[:, self.where("score")] * scale).astype(np.int64)
        others = own - np.rint(observations[:, self.where("differences")] * scale).astype(np.int64)
        cards = np.empty((len(observations), self.num_players), dtype=np.intp)
        is_playoff = observations[:, self.where("playoff")][:, 0] > 0.5
        # In a playoff every card is complete: the others' cards tell which, the own one is not shown.
        cards[:, 0] = np.where(is_playoff, compiled.num_cards - 1, turn.card)
        for other in range(1, self.num_players):
            cards[:, other] = self._decode_card(observations, other - 1)
        most = int(playoff_tables(compiled.variant).points.max())
        return TableBatch(
            turn,
            observations[:, self.where("mover")].argmax(axis=1),
            observations[:, self.where("starter")].argmax(axis=1),
            np.rint(observations[:, self.where("round")][:, 0] * compiled.num_boxes).astype(np.int64),
            cards,
            np.concatenate([own, others], axis=1),
            is_playoff,
            observations[:, self.where("candidates")] > 0.5,
            observations[:, self.where("made")] > 0.5,
            np.rint(observations[:, self.where("results")] * most).astype(np.int64),
        )

    def _decode_card(self, observations: NDArray[Any], other: int) -> NDArray[np.intp]:
        """Read one other player's card, through the one-player layout's own decoder."""
        solo = self.solo
        shown = np.zeros((len(observations), solo.size), dtype=observations.dtype)
        # Any throw will do: only the card is read.
        shown[:, solo.where("dice")] = observations[:, solo.where("dice")]
        shown[:, solo.where("throw")] = observations[:, solo.where("throw")]
        for name in ("open", "generala", "doble"):
            if name in solo.names:
                part = solo.where(name)
                width = part.stop - part.start
                start = self.where(f"others_{name}").start + other * width
                shown[:, part] = observations[:, start : start + width]
        return np.asarray(solo.decode(shown).card, dtype=np.intp)

    def table(self) -> list[tuple[str, str, str]]:
        """Return the layout for people: name, indices, meaning."""
        rows = self.solo.table()
        for block in self.blocks[len(self.solo.blocks) :]:
            where = (
                f"{block.start}" if block.stop == block.start + 1 else f"{block.start} to {block.stop - 1}"
            )
            rows.append((block.name, where, TABLE_BLOCKS[block.name]))
        return rows


def _card_table(solo: ObservationLayout, name: str) -> NDArray[np.float32]:
    return solo.tables[name]


def table_layout(
    compiled: CompiledVariant, num_players: int, blocks: Sequence[str] | None = None
) -> TableLayout:
    """Return the layout of a table's observations.

    Args:
        compiled: The variant's tables.
        num_players: How many play, at least 2.
        blocks: Names of the blocks of the one-player part; ``None`` for the default ones.

    Raises:
        ValueError: There are too few players, or a block is unknown or repeated.
    """
    if num_players < 2:
        raise ValueError(f"num_players: a table has at least 2, not {num_players}")
    return _layout(observation_layout(compiled, blocks), num_players)


@lru_cache(maxsize=64)
def _layout(solo: ObservationLayout, num_players: int) -> TableLayout:
    others = num_players - 1
    widths = {
        **{
            f"others_{name}": others * solo.tables[name].shape[-1]
            for name in ("open", "generala", "doble")
            if name in solo.names
        },
        "score": 1,
        "differences": others,
        "mover": num_players,
        "starter": num_players,
        "round": 1,
        "playoff": 1,
        "candidates": num_players,
        "made": num_players,
        "results": num_players,
    }
    blocks = list(solo.blocks)
    for name, width in widths.items():
        blocks.append(Block(name, blocks[-1].stop, blocks[-1].stop + width))
    return TableLayout(solo, num_players, tuple(blocks))


def table_batch(compiled: CompiledVariant, state: GameState, seat: int) -> TableBatch:
    """Return a position of the engine as one seat sees it, a batch of one.

    Args:
        compiled: The variant's tables.
        state: A position with dice on the table, the end of a game included.
        seat: The observer.

    Raises:
        ValueError: There are no dice on the table.
    """
    if not state.turn.dice:
        raise ValueError("the state has no dice on the table: nothing is to be seen")
    num_players = len(state.players)
    order = [(seat + offset) % num_players for offset in range(num_players)]
    cards = [compiled.index_of(state.players[player].card) for player in order]
    is_playoff = state.phase is Phase.PLAYOFF
    candidates = state.contest.candidates if is_playoff and state.contest is not None else ()
    results = dict(zip(candidates, state.contest.results, strict=False)) if state.contest is not None else {}
    own = 0 if is_playoff and state.current_player == seat else cards[0]
    served = compiled.is_served[state.turn.throw - 1, int(state.turn.is_full_throw)]
    return TableBatch(
        TurnBatch(
            np.array([own]),
            np.array([THROW_INDEX[state.turn.dice]]),
            np.array([state.turn.throw]),
            np.array([served]),
            np.array([KEEP_INDEX[state.turn.kept] if state.turn.kept else EMPTY_KEEP]),
        ),
        np.array([order.index(state.current_player)]),
        np.array([order.index(state.first_player or 0)]),
        np.array([state.round]),
        np.array([cards]),
        np.array([[state.players[player].score for player in order]]),
        np.array([is_playoff]),
        np.array([[player in candidates for player in order]]),
        np.array([[player in results for player in order]]),
        np.array([[results.get(player, 0) for player in order]]),
    )
