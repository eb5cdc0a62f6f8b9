"""The two-player game solved the slow way: recursion over the readable engine, without tables.

Only ``Game`` and ``GameState`` are asked what can happen. What a turn's throws and keeps lead to does
not depend on the cards, so those answers are asked for once and remembered by ``Turn``.
"""

from __future__ import annotations

import math
from dataclasses import replace

from generala_env.rules.actions import Close, Keep
from generala_env.rules.card import Card
from generala_env.rules.game import Game, GameState, Phase, Player, Turn
from generala_env.rules.variants import Variant


class PlainDuel:
    """P(win) + P(draw) / 2 of the player to move, by plain recursion."""

    def __init__(self, variant: Variant, playoff_value: float = math.nan) -> None:
        """Take the value of a playoff to its first player, which recursion cannot find."""
        self.game = Game(variant, 2)
        self.playoff_value = playoff_value
        self._values: dict[tuple[Card, Card, int, bool], float] = {}
        self._answers: dict[tuple[int, ...], float] = {}
        self._keeps: dict[Turn, list[Turn]] = {}
        self._throws: dict[Turn, list[tuple[Turn, float]]] = {}

    def state(self, mover: Card, other: Card, difference: int, *, turn: Turn | None = None) -> GameState:
        """Return the position in which seat 0 is to move."""
        boxes = self.game.variant.num_boxes
        players = tuple(
            Player(card, tuple(None if card.is_open(box) else 0 for box in range(boxes)), points)
            for card, points in ((mover, max(difference, 0)), (other, max(-difference, 0)))
        )
        first = 0 if mover.num_open == other.num_open else 1
        return GameState(
            Phase.TURNS, players, 0, first, boxes - mover.num_open + 1, turn if turn is not None else Turn()
        )

    def value(self, mover: Card, other: Card, difference: int) -> float:
        """Return the value before the first throw of a turn."""
        key = (mover, other, difference, mover.num_open == other.num_open)
        if key not in self._values:
            self._values[key] = self.turn_value(self.state(mover, other, difference))
        return self._values[key]

    def turn_value(self, state: GameState) -> float:
        """Return the value of any state within a turn, or of a playoff's turn."""
        closed: dict[tuple[tuple[int, ...], bool], float] = {}
        values: dict[Turn, float] = {}

        def closing(turn: Turn) -> float:
            now = replace(state, turn=turn)
            key = (turn.dice, self.game.is_served(now))
            if key not in closed:
                actions = [one for one in self.game.legal_actions(now) if isinstance(one, Close)]
                closed[key] = max(self.after(state, self.game.apply(now, action)) for action in actions)
            return closed[key]

        def of(turn: Turn) -> float:
            if turn not in values:
                if not turn.dice:
                    values[turn] = sum(weight * of(thrown) for thrown, weight in self.throws(state, turn))
                elif self._has_won(state, turn):
                    values[turn] = 1.0
                else:
                    options = [of(kept) for kept in self.keeps(state, turn)]
                    values[turn] = max([closing(turn), *options])
            return values[turn]

        return of(state.turn)

    def _has_won(self, state: GameState, turn: Turn) -> bool:
        if turn.dice[0] != turn.dice[-1]:
            return False
        before = replace(state, turn=replace(turn, dice=()))
        return self.game.is_over(self.game.apply_chance(before, turn.dice))

    def throws(self, state: GameState, turn: Turn) -> list[tuple[Turn, float]]:
        """Return the turns that a throw may lead to, with probabilities."""
        if turn not in self._throws:
            outcomes = self.game.chance_outcomes(replace(state, turn=turn))
            self._throws[turn] = [
                (replace(turn, dice=outcome), weight)
                for outcome, weight in outcomes
                if isinstance(outcome, tuple)
            ]
        return self._throws[turn]

    def keeps(self, state: GameState, turn: Turn) -> list[Turn]:
        """Return the turns that keeping dice may lead to."""
        if turn not in self._keeps:
            now = replace(state, turn=turn)
            actions = [one for one in self.game.legal_actions(now) if isinstance(one, Keep)]
            self._keeps[turn] = [self.game.apply(now, action).turn for action in actions]
        return self._keeps[turn]

    def after(self, before: GameState, state: GameState) -> float:
        """Return the value to the player who has just moved."""
        seat = before.current_player
        if state.phase is Phase.OVER:
            return (seat in state.winners) / len(state.winners)
        if state.phase is Phase.PLAYOFF:
            assert state.contest is not None
            first = state.contest.candidates[0]
            if not state.contest.results:
                # A playoff begins, or begins again.
                return self.playoff_value if seat == first else 1 - self.playoff_value
            results = state.contest.results
            if results not in self._answers:
                self._answers[results] = self.turn_value(state)
            return 1 - self._answers[results]
        assert state.current_player != seat
        mover, other = state.players[state.current_player], state.players[seat]
        return 1 - self.value(mover.card, other.card, mover.score - other.score)

    def playoff_turn(self) -> float:
        """Return what the first turn of a playoff is worth, if a repeated one is worth what was given."""
        nothing = Card(0)
        final = self.state(nothing, nothing, 0)
        contest_state = self.game._finish(final)
        assert contest_state.phase is Phase.PLAYOFF
        return self.turn_value(contest_state)
