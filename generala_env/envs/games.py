"""Many tables at once, over the compiled tables: the game of ``rules.game`` in array form.

Each game waits at a decision of its own; ``step`` takes one action in each of any games, so
agents are asked in batches however far the games are from one another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from generala_env.envs.dealing import (
    STAGE_FIRST_PLAYER,
    STAGE_PLAYOFF,
    STAGE_TURNS,
    FirstSeat,
    check_first_seat,
    dice_uniforms,
)
from generala_env.envs.table_observation import TableBatch
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.dice import (
    EMPTY_KEEP,
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    KEEPS,
    NUM_FACES,
    NUM_ORDERED_THROWS,
    THROW_DICE,
    THROWS,
    next_throw_table,
)
from generala_env.rules.game import Contest, Game, GameState, Phase, Player, Turn
from generala_env.rules.playoff import playoff_tables
from generala_env.rules.variants import FirstPlayer, TieBreak


class TableGames:
    """A batch of ``G`` games of ``n`` players; columns are seats.

    Attributes:
        compiled: The variant's tables.
        num_players: How many play each game.
        card: (G, n) int32, index of each card.
        score: (G, n) int64, points made so far.
        sheet: (G, n, boxes) int16, points written in each box, -1 while it is open.
        bonus: (G, n) int64, points of the Doble bonus.
        last_box: (G, n) int64, the box of the card that was closed last, -1 before there is one.
        current: (G,) int64, the seat to decide.
        first: (G,) int64, the seat that starts each round.
        round: (G,) int64, from 1.
        throw_number: (G,) int64, 1 to 3.
        throw: (G,) int64, index of the dice on the table.
        kept: (G,) int64, index of the dice set aside before the throw.
        is_playoff: (G,) bool.
        candidates: (G, n) bool, who is still in the playoff.
        made: (G, n) bool, who has played this playoff turn.
        results: (G, n) int64, what those made.
        repeats: (G,) int64, how often the playoff was repeated.
        is_over: (G,) bool.
        won: (G, n) bool, the winners once a game is over.
        is_instant_win: (G,) bool.
        was_tied: (G,) bool, whether players were level when the last box was closed.
    """

    def __init__(
        self,
        compiled: CompiledVariant,
        num_players: int,
        seeds: NDArray[np.uint64],
        numbers: NDArray[Any],
        *,
        first_player: FirstSeat = "variant",
    ) -> None:
        """Begin games and throw in each until somebody has to decide, or has won.

        Args:
            compiled: The variant's tables.
            num_players: How many play each game.
            seeds: (G,) uint64, first parts of the dice keys.
            numbers: (G,) integer, second parts.
            first_player: Who starts.

        Raises:
            ValueError: The variant does not allow that many players, or there is no such seat.
        """
        Game(compiled.variant, num_players)  # checks the number of players
        check_first_seat(first_player, num_players)
        self.compiled = compiled
        self.num_players = num_players
        self._first_player = first_player
        self._playoff = playoff_tables(compiled.variant)
        games = len(seeds)
        shape = (games, num_players)
        self._seeds = np.array(seeds, dtype=np.uint64)
        self._numbers = np.array(numbers, dtype=np.uint64)
        self.card = np.zeros(shape, dtype=np.int32)
        self.score = np.zeros(shape, dtype=np.int64)
        self.sheet = np.full((*shape, compiled.num_boxes), -1, dtype=np.int16)
        self.bonus = np.zeros(shape, dtype=np.int64)
        self.last_box = np.full(shape, -1, dtype=np.int64)
        self.current = np.zeros(games, dtype=np.int64)
        self.first = np.zeros(games, dtype=np.int64)
        self.round = np.ones(games, dtype=np.int64)
        self.throw_number = np.ones(games, dtype=np.int64)
        self.throw = np.zeros(games, dtype=np.int64)
        self.kept = np.zeros(games, dtype=np.int64)
        self.is_playoff = np.zeros(games, dtype=bool)
        self.candidates = np.zeros(shape, dtype=bool)
        self.made = np.zeros(shape, dtype=bool)
        self.results = np.zeros(shape, dtype=np.int64)
        self.repeats = np.zeros(games, dtype=np.int64)
        self.is_over = np.zeros(games, dtype=bool)
        self.won = np.zeros(shape, dtype=bool)
        self.is_instant_win = np.zeros(games, dtype=bool)
        self.was_tied = np.zeros(games, dtype=bool)
        self.restart(np.arange(games))

    def restart(
        self,
        rows: NDArray[Any],
        seeds: NDArray[np.uint64] | None = None,
        numbers: NDArray[Any] | None = None,
    ) -> None:
        """Begin some of the games anew, with new dice keys where they are given."""
        if seeds is not None:
            self._seeds[rows] = seeds
        if numbers is not None:
            self._numbers[rows] = numbers
        for array in (self.card, self.score, self.bonus, self.results, self.repeats):
            array[rows] = 0
        self.sheet[rows] = self.last_box[rows] = -1
        for array in (self.candidates, self.made, self.won):
            array[rows] = False
        for array in (self.is_playoff, self.is_over, self.is_instant_win, self.was_tied):
            array[rows] = False
        self.round[rows] = 1
        self.first[rows] = self._starters(rows)
        self.current[rows] = self.first[rows]
        self._begin_turns(rows)

    def _uniforms(
        self, rows: NDArray[Any], stage: Any, number: Any, throw: Any, seat: Any
    ) -> NDArray[np.float64]:
        return dice_uniforms(self._seeds[rows], self._numbers[rows], stage, number, throw, seat)

    def _starters(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return who starts each game, drawing and repeating among the tied as the rule says."""
        rule = self.compiled.variant.first_player
        starters = np.zeros(len(rows), dtype=np.int64)
        if self._first_player != "variant":
            starters[:] = int(self._first_player)
            return starters
        if rule is FirstPlayer.SEAT:
            return starters
        if rule is FirstPlayer.RANDOM:
            draws = self._uniforms(rows, STAGE_FIRST_PLAYER, 0, 1, 0)
            return np.asarray((draws * self.num_players).astype(np.int64))
        in_it = np.ones((len(rows), self.num_players), dtype=bool)
        pending = np.arange(len(rows))
        repeats = 0
        while len(pending):
            results = np.empty((len(pending), self.num_players), dtype=np.int64)
            for seat in range(self.num_players):
                draws = self._uniforms(rows[pending], STAGE_FIRST_PLAYER, repeats, 1, seat)
                rolls = (draws * NUM_ORDERED_THROWS).astype(np.int64)
                if rule is FirstPlayer.HIGHEST_DIE:
                    results[:, seat] = rolls % NUM_FACES + 1
                else:
                    results[:, seat] = THROW_DICE[next_throw_table()[EMPTY_KEEP, rolls]].sum(axis=1)
            if rule is FirstPlayer.LOWEST_THROW:
                results = -results
            results[~in_it[pending]] = np.iinfo(np.int64).min
            tied = results == results.max(axis=1, keepdims=True)
            in_it[pending] = tied
            starters[pending] = tied.argmax(axis=1)
            pending = pending[tied.sum(axis=1) > 1]
            repeats += 1
        return starters

    def _begin_turns(self, rows: NDArray[Any]) -> None:
        self.kept[rows] = EMPTY_KEEP
        self.throw_number[rows] = 1
        self._make_throws(rows)

    def _playing_cards(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Return the cards the movers play on: empty ones in a playoff."""
        in_playoff = self.is_playoff[rows] & ~self.is_over[rows]
        return np.where(in_playoff, 0, self.card[rows, self.current[rows]])

    def served(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether closing a box now counts as served."""
        is_full = (self.kept[rows] == EMPTY_KEEP).astype(np.intp)
        return np.asarray(self.compiled.is_served[self.throw_number[rows] - 1, is_full])

    def _make_throws(self, rows: NDArray[Any]) -> None:
        stage = np.where(self.is_playoff[rows], STAGE_PLAYOFF, STAGE_TURNS)
        number = np.where(self.is_playoff[rows], self.repeats[rows], self.round[rows])
        draws = self._uniforms(rows, stage, number, self.throw_number[rows], self.current[rows])
        rolls = (draws * NUM_ORDERED_THROWS).astype(np.int64)
        self.throw[rows] = next_throw_table()[self.kept[rows], rolls]
        five = rows[IS_FIVE_EQUAL[self.throw[rows]]]
        wins = five[self.compiled.wins_at_once(self.turn_batch(five))]
        self.is_over[wins] = self.is_instant_win[wins] = True
        self.won[wins, self.current[wins]] = True

    def state(self, index: int) -> GameState:
        """Return the position of one game as the engine knows it."""
        first = int(self.first[index])
        phase = Phase.TURNS
        contest = None
        if self.is_over[index]:
            phase = Phase.OVER
        elif self.is_playoff[index]:
            phase = Phase.PLAYOFF
            order = [(first + offset) % self.num_players for offset in range(self.num_players)]
            candidates = tuple(seat for seat in order if self.candidates[index, seat])
            results = tuple(int(self.results[index, seat]) for seat in candidates if self.made[index, seat])
            contest = Contest(candidates, results, int(self.repeats[index]))
        players = tuple(
            Player(
                self.compiled.card(int(card)),
                tuple(None if points < 0 else points for points in sheet),
                int(bonus),
            )
            for card, sheet, bonus in zip(
                self.card[index], self.sheet[index].tolist(), self.bonus[index], strict=True
            )
        )
        return GameState(
            phase,
            players,
            current_player=int(self.current[index]),
            first_player=first,
            round=int(self.round[index]),
            turn=Turn(int(self.throw_number[index]), THROWS[self.throw[index]], KEEPS[self.kept[index]]),
            contest=contest,
            winners=tuple(np.flatnonzero(self.won[index]).tolist()) if phase is Phase.OVER else (),
            is_instant_win=bool(self.is_instant_win[index]),
        )

    def last_boxes(self, index: int) -> tuple[int | None, ...]:
        """Return, by seat, which box of the card was closed last, where one was."""
        return tuple(None if box < 0 else box for box in self.last_box[index].tolist())

    def turn_batch(self, rows: NDArray[Any]) -> TurnBatch:
        """Return the decisions of the movers as the one-player tables know them."""
        return TurnBatch(
            self._playing_cards(rows),
            self.throw[rows],
            self.throw_number[rows],
            self.served(rows),
            self.kept[rows],
        )

    def table_batch(self, rows: NDArray[Any], seats: NDArray[Any] | None = None) -> TableBatch:
        """Return what seats see; the movers where ``seats`` (one a row) is ``None``."""
        turn = self.turn_batch(rows)
        if seats is None:
            seats = self.current[rows]
        else:
            is_mover = seats == self.current[rows]
            turn = turn._replace(card=np.where(is_mover, turn.card, self.card[rows, seats]))
        order = (seats[:, None] + np.arange(self.num_players)) % self.num_players
        row = rows[:, None]
        is_playoff = self.is_playoff[rows] & ~self.is_over[rows]
        return TableBatch(
            turn,
            (self.current[rows] - seats) % self.num_players,
            (self.first[rows] - seats) % self.num_players,
            self.round[rows],
            self.card[row, order],
            self.score[row, order],
            is_playoff,
            self.candidates[row, order] & is_playoff[:, None],
            self.made[row, order] & is_playoff[:, None],
            self.results[row, order] * is_playoff[:, None],
        )

    def action_masks(self, rows: NDArray[Any], *, canonical: bool = True) -> NDArray[np.bool_]:
        """Return which actions are legal for the movers, (rows, num_actions) bool; none at the end."""
        batch = self.turn_batch(rows)
        masks = self.compiled.action_masks(batch, canonical=canonical)
        playoff = np.flatnonzero(self.is_playoff[rows])
        masks[playoff, NUM_KEEP_ACTIONS:] = False
        best = self._playoff.box[batch.served[playoff].astype(np.intp), batch.throw[playoff]]
        masks[playoff, NUM_KEEP_ACTIONS + best.astype(np.intp)] = True
        masks[self.is_over[rows]] = False
        return masks

    def step(self, rows: NDArray[Any], actions: NDArray[Any]) -> None:
        """Take one legal action in each of the games and throw on to the next decisions.

        Args:
            rows: Which games, none of them over.
            actions: Their actions, not checked.
        """
        keeps = actions < NUM_KEEP_ACTIONS
        throwers = rows[keeps]
        self.kept[throwers] = KEEP_OF_MASK[self.throw[throwers], actions[keeps]]
        self.throw_number[throwers] += 1
        self._make_throws(throwers)
        closers, boxes = rows[~keeps], actions[~keeps] - NUM_KEEP_ACTIONS
        in_playoff = self.is_playoff[closers]
        self._close_playoff_turns(closers[in_playoff])
        closers, boxes = closers[~in_playoff], boxes[~in_playoff]
        seats = self.current[closers]
        cards = self.card[closers, seats]
        where = (boxes, self.served(closers).astype(np.intp), self.throw[closers])
        paid = self.compiled.closing_points(cards, *where)
        self.score[closers, seats] += paid
        self.card[closers, seats] = after = self.compiled.next_card(cards, *where)
        status = self.compiled.card_status
        bonus = self.compiled.bonus[status[cards], status[after]]
        self.bonus[closers, seats] += bonus
        self.sheet[closers, seats, boxes] = paid - bonus
        self.last_box[closers, seats] = boxes
        following = (seats + 1) % self.num_players
        is_round_done = following == self.first[closers]
        is_last = is_round_done & (self.compiled.num_open[after] == 0)
        self._finish(closers[is_last])
        going_on = closers[~is_last]
        self.current[going_on] = following[~is_last]
        self.round[going_on] += is_round_done[~is_last]
        self._begin_turns(going_on)

    def _finish(self, rows: NDArray[Any]) -> None:
        scores = self.score[rows]
        tied = scores == scores.max(axis=1, keepdims=True)
        level = tied.sum(axis=1) > 1
        self.was_tied[rows] = level
        if self.compiled.variant.tie_break is TieBreak.PLAYOFF:
            self._start_playoffs(rows[level], tied[level])
            rows, tied = rows[~level], tied[~level]
        elif self.compiled.variant.tie_break is TieBreak.MOST_GENERALAS:
            generalas = np.where(tied, self.compiled.num_generalas[self.card[rows]].astype(np.int64), -1)
            tied &= generalas == generalas.max(axis=1, keepdims=True)
        self.is_over[rows] = True
        self.won[rows] = tied

    def _next_candidates(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the first seat in playing order that is still to play its playoff turn."""
        waiting = self.candidates[rows] & ~self.made[rows]
        offset = (np.arange(self.num_players) - self.first[rows, None]) % self.num_players
        return np.asarray(np.where(waiting, offset, self.num_players).argmin(axis=1))

    def _start_playoffs(self, rows: NDArray[Any], candidates: NDArray[np.bool_]) -> None:
        self.is_playoff[rows] = True
        self.candidates[rows] = candidates
        self.made[rows] = False
        self.results[rows] = 0
        self.current[rows] = self._next_candidates(rows)
        self._begin_turns(rows)

    def _close_playoff_turns(self, rows: NDArray[Any]) -> None:
        seats = self.current[rows]
        self.results[rows, seats] = self._playoff.points[self.served(rows).astype(np.intp), self.throw[rows]]
        self.made[rows, seats] = True
        is_done = (self.made[rows] == self.candidates[rows]).all(axis=1)
        going_on = rows[~is_done]
        self.current[going_on] = self._next_candidates(going_on)
        self._begin_turns(going_on)
        rows = rows[is_done]
        results = np.where(self.candidates[rows], self.results[rows], -1)
        best = results == results.max(axis=1, keepdims=True)
        is_tied = best.sum(axis=1) > 1
        self.repeats[rows[is_tied]] += 1
        self._start_playoffs(rows[is_tied], best[is_tied])
        self.is_over[rows[~is_tied]] = True
        self.won[rows[~is_tied]] = best[~is_tied]
