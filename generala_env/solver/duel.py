"""The two-player game solved exactly: the probability of winning, plus half of drawing.

No bonus looks at the sum of a card, so the future depends on both cards, the difference in points and
who moves: the first player of a round when both have as many open boxes, the second when the mover has one
more. The pairs of cards fall into layers by the number of boxes open on both together; a turn closes
one, so a layer follows from the one below it, and its pairs are independent of each other.

For each pair a range of differences is kept. It ends where the game is decided on points (the outcome then
depends on instant wins only, and is the same for all differences beyond) or where no line of play
leads.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.card import Card
from generala_env.rules.compiled import CompiledVariant, TurnBatch, compile_variant
from generala_env.rules.dice import KEEP_INDEX, KEEP_OF_MASK, NUM_PARTIAL_KEEPS
from generala_env.rules.game import GameState, Phase
from generala_env.rules.variants import TieBreak, Variant
from generala_env.solver.duel_kernels import (
    BLOCK,
    Closings,
    LayerIndex,
    Pairs,
    PointRanges,
    group_closings,
    point_ranges,
    price_turns,
    solve_rows,
    subsets_table,
    throw_weights,
)
from generala_env.solver.playoff import NOTHING_YET, Playoff, playoff_of
from generala_env.solver.storage import DuelStore, StoreError
from generala_env.solver.turn import keep_union_table
from generala_env.threads import in_shares, num_shares

PAIRS_PER_TASK: Final = 2048
"""How many pairs are solved between two looks at the progress bar and at Ctrl-C."""

_LEAST_PAIRS: Final = 4  # that are worth a thread
_LEAST_TURNS: Final = 16

_FEWEST_CACHED: Final = 4096


@dataclass(frozen=True, eq=False)
class Layer:
    """The pairs of cards with equally many open boxes on both together.

    Attributes:
        movers: (M,) int64, classes of the player to move.
        others: (O,) int64, classes of the other.
        index: Where the values of each pair lie.
    """

    movers: NDArray[np.int64]
    others: NDArray[np.int64]
    index: LayerIndex

    @property
    def num_pairs(self) -> int:
        """The number of pairs of cards."""
        return len(self.movers) * len(self.others)

    @property
    def num_values(self) -> int:
        """The number of values, over pairs and differences."""
        return int(self.index.offsets[-1])

    @property
    def row_bounds(self) -> NDArray[np.int64]:
        """(M + 1,) int64: where the values of each mover's class start."""
        return self.index.offsets[:: len(self.others)]

    def pairs(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return movers and others of the pairs numbered from ``first`` up to ``last``."""
        pair = np.arange(first, last)
        return self.movers[pair // len(self.others)], self.others[pair % len(self.others)]


def difference_bounds(
    ranges: PointRanges, mover: NDArray[Any], other: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and last difference kept for pairs of classes; arguments broadcast."""
    low, high = -ranges.future[mover] - 1, ranges.future[other] + 1
    lowest = np.minimum(np.maximum(low, ranges.least[mover] - ranges.most[other]), high)
    highest = np.maximum(np.minimum(high, ranges.most[mover] - ranges.least[other]), low)
    return lowest, highest


class DuelPlan:
    """What is to be solved: the classes, the layers, and the value of a tie.

    Attributes:
        compiled: The variant's tables.
        ranges: How many points there can be, by class of cards.
        closings: What closing a box does.
        start: Classes of the mover and the other where the game starts.
        layers: By number of boxes open on both cards together, none first.
    """

    def __init__(self, compiled: CompiledVariant, start: tuple[int, int] | None = None) -> None:
        """Lay out the game from two classes of cards, or from the empty ones.

        Raises:
            ValueError: No player could be to move with those cards.
        """
        self.compiled = compiled
        self.ranges = point_ranges(compiled)
        self.closings = group_closings(compiled)
        empty = int(compiled.class_of_card[0])
        self.is_whole_game = start is None or start == (empty, empty)
        self.start = (empty, empty) if start is None else start
        num_open = compiled.num_open[compiled.card_of_class].astype(np.int64)
        mover_open, other_open = (int(num_open[one]) for one in self.start)
        if mover_open - other_open not in (0, 1):
            raise ValueError(
                f"the player to move has {mover_open} open boxes and the other {other_open}: "
                "the mover has as many (and is first in the round) or one more (and is second)"
            )
        reached = [self._reachable(one) for one in self.start]
        self.layers: list[Layer] = []
        for total in range(mover_open + other_open + 1):
            turns = mover_open + other_open - total
            movers, others = (reached[0], reached[1]) if turns % 2 == 0 else (reached[1], reached[0])
            self.layers.append(
                self._layer(
                    movers[num_open[movers] == (total + 1) // 2], others[num_open[others] == total // 2]
                )
            )

    def _reachable(self, start: int) -> NDArray[np.int64]:
        """Return the classes that follow from one, itself included, in ascending order."""
        tables, closings = self.compiled.tables, self.closings
        is_reached = np.zeros(self.compiled.num_classes, dtype=bool)
        is_reached[start] = True
        # Classes are numbered in card order, and play only ever moves up in it.
        for group, card in enumerate(tables.card_of_class.tolist()):
            if is_reached[group]:
                opened, status = int(tables.card_open[card]), tables.card_status[card]
                for box in np.flatnonzero(tables.closable[card]).tolist():
                    after = closings.after[status, box, : closings.num_after[status, box]]
                    is_reached[tables.successor[opened & ~(1 << box), after]] = True
        return np.flatnonzero(is_reached)

    def _layer(self, movers: NDArray[np.int64], others: NDArray[np.int64]) -> Layer:
        lowest, highest = difference_bounds(self.ranges, movers[:, None], others[None, :])
        offsets = np.concatenate([[0], np.cumsum(highest - lowest + 1)])
        mover_row = np.full(self.compiled.num_classes, -1, dtype=np.int32)
        mover_row[movers] = np.arange(len(movers))
        other_column = np.full(self.compiled.num_classes, -1, dtype=np.int32)
        other_column[others] = np.arange(len(others))
        return Layer(movers, others, LayerIndex(mover_row, other_column, offsets, len(others)))

    @property
    def num_pairs(self) -> int:
        """The number of pairs of cards."""
        return sum(layer.num_pairs for layer in self.layers)

    @property
    def num_values(self) -> int:
        """The number of values, over pairs and differences."""
        return sum(layer.num_values for layer in self.layers)

    @property
    def layout(self) -> str:
        """A digest of everything that decides where a value lies in the files."""
        digest = hashlib.sha256()
        tables, ranges = self.compiled.tables, self.ranges
        # As wide as in the first store that was written: the digest names the bytes.
        classes = (tables.card_open, tables.card_status)
        wide = (column[tables.card_of_class].astype(np.int64) for column in classes)
        offsets = (layer.index.offsets for layer in self.layers)
        for array in (*wide, ranges.future, ranges.least, ranges.most, *offsets):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def tie_value(self, mover: int, other: int) -> float:
        """Return what equal points at the end are worth to the first player of the round."""
        variant, compiled = self.compiled.variant, self.compiled
        if variant.tie_break is TieBreak.PLAYOFF:
            return playoff_of(compiled).first_player_value
        if variant.tie_break is TieBreak.MOST_GENERALAS:
            first, second = (
                int(compiled.num_generalas[compiled.card_of_class[one]]) for one in (mover, other)
            )
            return 0.5 if first == second else float(first > second)
        return 0.5

    def fill_final_layer(self, values: NDArray[Any]) -> None:
        """Write the values of complete cards: won, tied or lost."""
        layer = self.layers[0]
        for pair in range(layer.num_pairs):
            mover, other = (int(one[0]) for one in layer.pairs(pair, pair + 1))
            lowest, highest = difference_bounds(self.ranges, mover, other)  # type: ignore[arg-type]
            difference = np.arange(int(lowest), int(highest) + 1)
            won = np.where(difference == 0, self.tie_value(mover, other), difference > 0)
            values[layer.index.offsets[pair] : layer.index.offsets[pair + 1]] = won


class LayerTask:
    """Solves runs of pairs of one layer; a value that other processes can be sent.

    Attributes:
        number: The number of the layer.
        layer: Its pairs.
        ranges: How many points there can be, by class of cards.
        below: Where the values of the layer with one box fewer lie.
    """

    def __init__(self, plan: DuelPlan, number: int, dtype: type[Any]) -> None:
        """Take from the plan what the kernel reads."""
        self.number = number
        self.layer = plan.layers[number]
        self.tables = plan.compiled.tables
        self.ranges = plan.ranges
        self._closings: Closings = plan.closings
        self._weights = throw_weights(dtype)
        self.below = plan.layers[number - 1].index
        widths = np.diff(self.layer.index.offsets)
        self._most_window = int(widths.max()) + BLOCK + plan.closings.most_points

    @property
    def num_tasks(self) -> int:
        """Into how many runs of pairs the layer is divided."""
        return -(-self.layer.num_pairs // PAIRS_PER_TASK)

    def bounds(self, task: int) -> tuple[int, int]:
        """Return where the values of a run start and end."""
        offsets = self.layer.index.offsets
        first = task * PAIRS_PER_TASK
        return int(offsets[first]), int(offsets[min(first + PAIRS_PER_TASK, self.layer.num_pairs)])

    def pairs(self, task: int) -> Pairs:
        """Return the pairs of a run; their values start where they do in the run."""
        first = task * PAIRS_PER_TASK
        last = min(first + PAIRS_PER_TASK, self.layer.num_pairs)
        offsets = self.layer.index.offsets
        return Pairs(*self.layer.pairs(first, last), offsets[first:last] - offsets[first])

    def solve(self, task: int, previous: NDArray[Any], values: NDArray[Any]) -> None:
        """Write the values of a run of pairs.

        Args:
            task: Which run.
            previous: All values of the layer below.
            values: Exactly the values of the run, written.
        """
        pairs = self.pairs(task)

        def solve(share: int, shares: int) -> None:
            solve_rows(
                share,
                shares,
                pairs,
                self.tables,
                self.ranges,
                self._weights,
                self._closings,
                subsets_table(),
                self.below,
                previous,
                self._most_window,
                values,
            )

        in_shares(solve, num_shares(len(pairs.movers), _LEAST_PAIRS))


LayerSolver = Callable[[LayerTask, NDArray[Any], NDArray[Any], Callable[[int], None]], None]
"""Solves a whole layer: task, values below, values to write, and a call for every value done."""


def solve_layer_here(
    task: LayerTask, previous: NDArray[Any], values: NDArray[Any], report: Callable[[int], None]
) -> None:
    """Solve a layer in this process."""
    for number in range(task.num_tasks):
        first, last = task.bounds(number)
        task.solve(number, previous, values[first:last])
        report(last - first)


@dataclass(eq=False)
class _TurnCache:
    """Values of keeps by pair of cards and difference, of the latest batches.

    Attributes:
        keys: (N,) int64, ascending.
        keeps: (N, 2, 210) float64.
    """

    keys: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    keeps: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2, NUM_PARTIAL_KEEPS)))


class DuelSolution:
    """Optimal play of the two-player game, and what every decision is worth.

    Values are P(win) + P(draw) / 2 of the player to move.

    Attributes:
        plan: What was solved.
        values: The values of each layer, by number of boxes open on both cards together.
        store: Where they are kept; ``None`` in memory.
        seconds: What solving took, over all processes that worked on it; ``None`` where the store that it
            was loaded from does not say.
        is_loaded: Whether all of it was found solved in the store.
    """

    def __init__(
        self,
        plan: DuelPlan,
        values: list[NDArray[Any]],
        store: DuelStore | None,
        *,
        seconds: float | None,
        is_loaded: bool,
    ) -> None:
        """Hold the solved layers."""
        self.seconds = seconds
        self.is_loaded = is_loaded
        self.plan = plan
        self.values = values
        self.store = store
        self._cache = _TurnCache()

    @property
    def compiled(self) -> CompiledVariant:
        """The variant's tables."""
        return self.plan.compiled

    @property
    def num_card_pairs(self) -> int:
        """The number of pairs of cards that were solved."""
        return self.plan.num_pairs

    @property
    def num_values(self) -> int:
        """The number of values, over pairs and differences."""
        return self.plan.num_values

    @property
    def num_bytes(self) -> int:
        """How many bytes the values take."""
        return sum(int(values.nbytes) for values in self.values)

    @property
    def first_player_value(self) -> float:
        """The value of the game to the player who starts it.

        Raises:
            ValueError: Only an endgame was solved.
        """
        if not self.plan.is_whole_game:
            raise ValueError("only an endgame was solved: ask for the value of its cards and a difference")
        return float(self._lookup(*(np.array([one]) for one in (*self.plan.start, 0)))[0])

    @property
    def playoff(self) -> Playoff | None:
        """The playoff between tied players; ``None`` where the rules have none."""
        if self.compiled.variant.tie_break is not TieBreak.PLAYOFF:
            return None
        return playoff_of(self.compiled)

    # --- before a turn ------------------------------------------------------------------

    def _layer_numbers(self, mover: NDArray[Any], other: NDArray[Any]) -> NDArray[np.int64]:
        """Return the layer of each pair of classes, (batch,) int64.

        Raises:
            ValueError: A pair is not among those solved.
        """
        compiled = self.compiled
        num_open = compiled.num_open[compiled.card_of_class].astype(np.int64)
        mover_open, other_open = num_open[mover], num_open[other]
        wrong = (mover_open - other_open < 0) | (mover_open - other_open > 1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"the player to move has {mover_open[row]} open boxes and the other {other_open[row]}: "
                "the mover has as many (and is first in the round) or one more (and is second)"
            )
        numbers: NDArray[np.int64] = mover_open + other_open
        for number in np.unique(numbers).tolist():
            rows = numbers == number
            is_solved = number < len(self.plan.layers)
            if is_solved:
                index = self.plan.layers[number].index
                is_solved = bool((index.mover_row[mover[rows]] >= 0).all())
                is_solved &= bool((index.other_column[other[rows]] >= 0).all())
            if not is_solved:
                raise ValueError("these cards do not follow from the start that was solved")
        return numbers

    def _check_rows(self, number: int, movers: NDArray[Any]) -> None:
        if self.store is not None:
            layer = self.plan.layers[number]
            rows = layer.index.mover_row[movers]
            self.store.check_rows(number, self.values[number], layer.row_bounds, rows)

    def _lookup(
        self, mover: NDArray[Any], other: NDArray[Any], difference: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the value to the mover for classes of cards, all (batch,)."""
        numbers = self._layer_numbers(mover, other)
        lowest, highest = difference_bounds(self.plan.ranges, mover, other)
        found = np.empty(len(mover))
        for number in np.unique(numbers).tolist():
            rows = np.flatnonzero(numbers == number)
            self._check_rows(number, mover[rows])
            index = self.plan.layers[number].index
            pair = (
                index.mover_row[mover[rows]].astype(np.int64) * index.num_others
                + index.other_column[other[rows]]
            )
            place = np.clip(difference[rows], lowest[rows], highest[rows]) - lowest[rows]
            found[rows] = self.values[number][index.offsets[pair] + place]
        return found

    def _class_of(self, card: Card | int) -> int:
        index = self.compiled.index_of(card) if isinstance(card, Card) else card
        return int(self.compiled.class_of_card[index])

    def value(self, mover_card: Card | int, other_card: Card | int, difference: int) -> float:
        """Return the value to the player to move, before the first throw of the turn.

        Args:
            mover_card: The card of the player to move, or its index.
            other_card: The other's card, or its index.
            difference: Points of the mover less points of the other.

        Raises:
            ValueError: The cards are not reachable, do not fit together or were not solved, or no line of
                play has that difference with them.
        """
        mover, other = self._class_of(mover_card), self._class_of(other_card)
        ranges = self.plan.ranges
        least, most = ranges.least[mover] - ranges.most[other], ranges.most[mover] - ranges.least[other]
        if not least <= difference <= most:
            raise ValueError(
                f"difference {difference} is not from {least} to {most}, which these cards allow"
            )
        return float(self._lookup(np.array([mover]), np.array([other]), np.array([difference]))[0])

    # --- within a turn ------------------------------------------------------------------

    def _keep_values(
        self, mover: NDArray[np.int64], other: NDArray[np.int64], difference: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return the values of keeps of each different turn, and which turn each state is in.

        Returns:
            (T, 2, 210) float64 by the throw after which is kept, and (batch,) integer.
        """
        ranges = self.plan.ranges
        low, high = -ranges.future[mover] - 1, ranges.future[other] + 1
        clamped = np.clip(difference, low, high)
        span = 2 * int(ranges.future.max()) + 3
        classes = self.compiled.num_classes
        keys = (mover * classes + other) * span + clamped + span // 2
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        cache = self._cache
        place = np.atleast_1d(np.searchsorted(cache.keys, unique))
        known = np.asarray(place < len(cache.keys))
        known[known] = cache.keys[place[known]] == unique[known]
        fresh = first[~known]
        keeps = np.empty((len(unique), 2, NUM_PARTIAL_KEEPS))
        keeps[known] = cache.keeps[place[known]]
        if len(fresh):
            keeps[~known] = self._price(mover[fresh], other[fresh], clamped[fresh])
            if len(cache.keys) + len(fresh) > max(_FEWEST_CACHED, 2 * len(unique)):
                self._cache = _TurnCache(unique, keeps)
            else:
                merged = np.concatenate([cache.keys, unique[~known]])
                order = np.argsort(merged)
                together = np.concatenate([cache.keeps, keeps[~known]])
                self._cache = _TurnCache(merged[order], together[order])
        return keeps, inverse

    def _price(
        self, mover: NDArray[np.int64], other: NDArray[np.int64], difference: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the values of every keep of turns, (turns, 2, 210) float64."""
        plan = self.plan
        numbers = self._layer_numbers(mover, other)
        keeps = np.empty((len(mover), 2, NUM_PARTIAL_KEEPS))
        for number in np.unique(numbers).tolist():
            rows = np.flatnonzero(numbers == number)
            self._check_rows(number - 1, other[rows])
            priced = np.empty((len(rows), 2, NUM_PARTIAL_KEEPS))
            price = partial(
                price_turns,
                movers=mover[rows],
                others=other[rows],
                differences=difference[rows],
                tables=plan.compiled.tables,
                ranges=plan.ranges,
                closings=plan.closings,
                union=keep_union_table(),
                index=plan.layers[number - 1].index,
                previous=self.values[number - 1],
                keep_values=priced,
            )
            in_shares(price, num_shares(len(rows), _LEAST_TURNS))
            keeps[rows] = priced
        return keeps

    def q_values_batch(
        self,
        mover_card: NDArray[Any],
        other_card: NDArray[Any],
        difference: NDArray[Any],
        batch: TurnBatch,
        *,
        canonical: bool = True,
    ) -> NDArray[np.float64]:
        """Return the value of every action in every state of a batch.

        Args:
            mover_card: (batch,) integer, index of the mover's card (``batch.card`` is not read).
            other_card: (batch,) integer, index of the other's card.
            difference: (batch,) integer, points of the mover less points of the other.
            batch: The dice.
            canonical: Value each kept multiset once, at its lowest mask.

        Returns:
            (batch, num_actions) float64, ``-inf`` where the action is not legal.
        """
        compiled = self.compiled
        card = np.asarray(mover_card, dtype=np.int64)
        mover = compiled.class_of_card[card].astype(np.int64)
        other = compiled.class_of_card[np.asarray(other_card, dtype=np.int64)].astype(np.int64)
        difference = np.asarray(difference, dtype=np.int64)
        throw = np.asarray(batch.throw, dtype=np.intp)
        served = np.asarray(batch.served, dtype=np.intp)
        values = np.full((len(card), compiled.num_actions), -np.inf)
        if not len(card):
            return values
        keeps_matter = np.flatnonzero(np.asarray(batch.throw_number) < 3)
        if len(keeps_matter):
            rows = keeps_matter
            keeps, turn = self._keep_values(mover[rows], other[rows], difference[rows])
            kept = KEEP_OF_MASK[throw[rows], :NUM_KEEP_ACTIONS].astype(np.intp)
            later = np.asarray(batch.throw_number, dtype=np.intp)[rows] - 1
            offered = keeps[turn[:, None], later[:, None], kept]
            legal = compiled.keep_masks(batch._replace(card=card), canonical=canonical)[rows]
            values[rows, :NUM_KEEP_ACTIONS] = np.where(legal, offered, -np.inf)
        for box in range(compiled.num_boxes):
            rows = np.flatnonzero(compiled.closable[card, box])
            if len(rows):
                where = (card[rows], box, served[rows], throw[rows])
                points = compiled.closing_points(*where)
                after = compiled.class_of_card[compiled.next_card(*where)].astype(np.int64)
                passed = self._lookup(other[rows], after, -(difference[rows] + points))
                values[rows, NUM_KEEP_ACTIONS + box] = 1.0 - passed
        return values

    def actions(
        self, mover_card: NDArray[Any], other_card: NDArray[Any], difference: NDArray[Any], batch: TurnBatch
    ) -> NDArray[np.int64]:
        """Return the optimal action of every state, the lowest id among equals; (batch,) int64."""
        values = self.q_values_batch(mover_card, other_card, difference, batch)
        return np.asarray(np.argmax(values, axis=1))

    def is_won(self, mover_card: NDArray[Any], batch: TurnBatch) -> NDArray[np.bool_]:
        """Return where the throw on the table has won at once, (batch,) bool."""
        return self.compiled.wins_at_once(batch._replace(card=mover_card))

    # --- states of the readable engine ----------------------------------------------------

    def _sides(self, state: GameState) -> tuple[int, int, int]:
        """Return indices of the mover's and the other's card, and the difference in points.

        Raises:
            ValueError: The table does not have two players, or nobody is to move.
        """
        if len(state.players) != 2:
            raise ValueError(f"the duel is for 2 players, not {len(state.players)}")
        if state.phase is not Phase.TURNS:
            raise ValueError(f"nothing of the cards is decided in the phase {state.phase}")
        mover, other = (state.players[seat] for seat in (state.current_player, 1 - state.current_player))
        index_of = self.compiled.index_of
        return index_of(mover.card), index_of(other.card), mover.score - other.score

    @staticmethod
    def _first_result(state: GameState) -> int:
        assert state.contest is not None
        return state.contest.results[0] if state.contest.results else NOTHING_YET

    def q_values(self, state: GameState) -> NDArray[np.float64]:
        """Return the value of every action of the current player.

        Args:
            state: A position of a game of two with dice on the table, in a turn or a playoff.

        Returns:
            (num_actions,) float64, ``-inf`` where the action is not legal.

        Raises:
            ValueError: Nothing is to be decided in the state, or it was not solved.
        """
        if state.phase is Phase.PLAYOFF and self.playoff is not None:
            batch = self._playoff_batch(state)
            values = self.playoff.q_values_batch(np.array([self._first_result(state)]), batch)
            return np.asarray(values[0])
        mover, other, difference = self._sides(state)
        batch = self.compiled.turn_batch(state)
        sides = np.array([[mover], [other], [difference]])
        return np.asarray(self.q_values_batch(sides[0], sides[1], sides[2], batch)[0])

    def _playoff_batch(self, state: GameState) -> TurnBatch:
        empty = state.players[state.current_player]
        players = tuple(
            type(empty)(Card.empty(self.compiled.variant), empty.sheet, empty.bonus) for _ in state.players
        )
        turn = GameState(Phase.TURNS, players, state.current_player, state.first_player, turn=state.turn)
        return self.compiled.turn_batch(turn)

    def policy(self, state: GameState) -> int:
        """Return the optimal action id in a state, the lowest among equals.

        Raises:
            ValueError: Nothing is to be decided in the state, or it was not solved.
        """
        return int(np.argmax(self.q_values(state)))

    def state_value(self, state: GameState) -> float:
        """Return the value to the current player, of any state but the draw for the first player.

        Raises:
            ValueError: Nobody is to move yet, or the cards were not solved.
        """
        if state.phase is Phase.OVER:
            if state.current_player not in state.winners:
                return 0.0
            return 1.0 / len(state.winners)
        if state.turn.dice:
            return float(self.q_values(state).max())
        keep = KEEP_INDEX[state.turn.kept]
        if state.phase is Phase.PLAYOFF and self.playoff is not None:
            playoff = self.playoff
            row = playoff._rows(np.array([self._first_result(state)]))[0]
            if state.turn.throw == 1:
                return float(playoff.turns[row])
            return float(playoff.keeps[row, state.turn.throw - 2, keep])
        mover, other, difference = self._sides(state)
        if state.turn.throw == 1:
            return self.value(mover, other, difference)
        classes = [np.array([self._class_of(card)], dtype=np.int64) for card in (mover, other)]
        keeps, _ = self._keep_values(classes[0], classes[1], np.array([difference], dtype=np.int64))
        return float(keeps[0, state.turn.throw - 2, keep])

    def verify(self) -> None:
        """Compare every stored row with its checksum.

        Raises:
            StoreError: A row is damaged.
        """
        for number, layer in enumerate(self.plan.layers):
            self._check_rows(number, layer.movers)


def _start_classes(
    compiled: CompiledVariant, start: tuple[Card | int, Card | int] | None
) -> tuple[int, int] | None:
    if start is None:
        return None
    mover, other = (
        int(compiled.class_of_card[compiled.index_of(card) if isinstance(card, Card) else card])
        for card in start
    )
    return mover, other


def _layer_values(
    plan: DuelPlan,
    finished: list[NDArray[Any]],
    kept: DuelStore | None,
    dtype: type[Any],
    solve_layer: LayerSolver,
    report: Callable[[int], None],
) -> NDArray[Any]:
    """Return the values of the layer after those that are finished, solved or read from the store."""
    number = len(finished)
    layer = plan.layers[number]
    if kept is not None and number in kept.layers:
        if kept.layers[number]["num_values"] != layer.num_values:
            raise StoreError(f"{kept.folder}: layer {number} has another number of values")
        stored = kept.values(number)
        if number + 1 < len(plan.layers) and number + 1 not in kept.layers:
            kept.check_rows(number, stored, layer.row_bounds, np.arange(len(layer.movers)))
        return stored

    def fill(values: NDArray[Any]) -> None:
        if number == 0:
            plan.fill_final_layer(values)
            report(len(values))
        else:
            solve_layer(LayerTask(plan, number, dtype), finished[-1], values, report)

    if kept is not None:
        return kept.write_layer(number, layer.num_values, layer.row_bounds, fill)
    values = np.empty(layer.num_values, dtype=dtype)
    fill(values)
    values.setflags(write=False)
    return values


def solve_duel(
    variant: str | Variant | CompiledVariant,
    start: tuple[Card | int, Card | int] | None = None,
    *,
    store: str | Path | None = None,
    dtype: type[Any] = np.float32,
    solve_layer: LayerSolver = solve_layer_here,
    progress: bool = False,
) -> DuelSolution:
    """Solve the two-player game exactly, or the part of it that follows from two cards.

    Args:
        variant: A preset's name, a variant, or its tables.
        start: Cards of the player to move and of the other; the empty ones if ``None``.
        store: The folder in which solutions are kept, and from whose finished layers a solve
            continues; ``None`` keeps the values in memory.
        dtype: ``numpy.float32``, or ``numpy.float64`` in memory.
        solve_layer: How a layer is solved: in this process, or see ``duel_ray.ray_solver``.
        progress: Show a progress bar on standard error.

    Raises:
        ValueError: The variant is not known, or the cards do not fit together.
        StoreError: The folder is damaged, or its tables are for something else.
    """
    compiled = compile_variant(variant)
    plan = DuelPlan(compiled, _start_classes(compiled, start))
    if store is not None and dtype is not np.float32:
        raise ValueError("dtype: values are stored as float32")
    kept: DuelStore | None = None
    if store is not None:
        root, key = Path(store), None if plan.is_whole_game else plan.start
        kept = DuelStore.open(root, compiled.variant, plan.layout, key)
        if kept is None:
            kept = DuelStore.create(root, compiled.variant, plan.layout, key)
    finished: list[NDArray[Any]] = []
    is_loaded = kept is not None and len(kept.layers) == len(plan.layers)
    stored = 0 if kept is None else sum(entry["num_values"] for entry in kept.layers.values())
    bar = tqdm(
        total=plan.num_values,
        initial=stored,
        unit="value",
        unit_scale=True,
        disable=None if progress else True,  # None: on a terminal alone
        delay=1.0,
    )

    def report(num_values: int) -> None:
        bar.update(num_values)

    start_time = time.perf_counter()
    with bar:
        for number in range(len(plan.layers)):
            bar.set_description(f"layer {number} of {len(plan.layers) - 1}", refresh=False)
            finished.append(_layer_values(plan, finished, kept, dtype, solve_layer, report))
    seconds = time.perf_counter() - start_time if kept is None else kept.seconds
    return DuelSolution(plan, finished, kept, seconds=seconds, is_loaded=is_loaded)


def open_duel(variant: str | Variant | CompiledVariant, store: str | Path) -> DuelSolution | None:
    """Open a solution that was kept on disk.

    Args:
        variant: A preset's name, a variant, or its tables.
        store: The folder in which solutions are kept.

    Returns:
        The solution, or ``None`` where the whole game is not stored.

    Raises:
        StoreError: The folder is damaged, or its tables are for something else.
    """
    compiled = compile_variant(variant)
    if not DuelStore.folder_of(Path(store), compiled.variant, None).exists():
        return None
    plan = DuelPlan(compiled)
    kept = DuelStore.open(Path(store), compiled.variant, plan.layout, None)
    if kept is None or len(kept.layers) < len(plan.layers):
        return None
    values = [kept.values(number) for number in range(len(plan.layers))]
    return DuelSolution(plan, values, kept, seconds=kept.seconds, is_loaded=True)
