"""The two-player game solved the slow way: recursion over the readable engine, without tables.

Only ``Game`` and ``GameState`` are asked what can happen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from generala_env.rules.actions import Action, Close, Keep, action_of
from generala_env.rules.card import Card
from generala_env.rules.game import Game, GameState, Phase, Player, Turn
from generala_env.rules.variants import Variant, get_variant


class TurnTree(NamedTuple):
    """Everything that can happen in a turn before a box is closed, consequences first."""

    nodes: list[tuple[Turn, list[tuple[int, float]], list[int]]]
    """The turn, where each throw leads with its probability, and where each keep leads."""
    place: dict[Turn, int]


@cache
def turn_tree(is_locked: bool) -> TurnTree:
    """Ask the engine once for all throws and keeps: they depend on nothing but locked dice."""
    game = Game(get_variant({"base": "ruibal", "kept_dice": "locked" if is_locked else "free"}), 2)
    state = game.initial_state()
    tree = TurnTree([], {})

    def add(turn: Turn) -> int:
        if turn not in tree.place:
            now, throws, keeps = replace(state, turn=turn), [], []
            if not turn.dice:
                for outcome, weight in game.chance_outcomes(now):
                    assert isinstance(outcome, tuple)
                    throws.append((add(replace(turn, dice=outcome)), weight))
            else:
                actions = [action for action in game.legal_actions(now) if isinstance(action, Keep)]
                keeps = [add(game.apply(now, action).turn) for action in actions]
            tree.place[turn] = len(tree.nodes)
            tree.nodes.append((turn, throws, keeps))
        return tree.place[turn]

    add(Turn())
    return tree


class PlainDuel:
    """P(win) + P(draw) / 2 of the player to move, by plain recursion."""

    def __init__(self, variant: Variant, playoff_value: float = math.nan) -> None:
        """Take the value of a playoff to its first player, which recursion cannot find."""
        self.game = Game(variant, 2)
        self.playoff_value = playoff_value
        self._values: dict[tuple[Card, Card, int, bool], float] = {}
        self._answers: dict[tuple[int, ...], float] = {}

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
        tree = turn_tree(self.game.variant.is_locked)
        closed: dict[tuple[tuple[int, ...], bool], float] = {}
        values: list[float] = []
        for turn, throws, keeps in tree.nodes[: tree.place[state.turn] + 1]:
            if not turn.dice:
                values.append(sum(weight * values[place] for place, weight in throws))
                continue
            now = replace(state, turn=turn)
            key = (turn.dice, self.game.is_served(now))
            if key not in closed:
                closed[key] = self._closing(state, now)
            values.append(max([closed[key], *[values[place] for place in keeps]]))
        return values[-1]

    def _closing(self, state: GameState, now: GameState) -> float:
        """Return the value of the best box, or of having won with this very throw."""
        before = replace(now, turn=replace(now.turn, dice=()))
        if self.game.is_over(self.game.apply_chance(before, now.turn.dice)):
            return 1.0
        actions = [action for action in self.game.legal_actions(now) if isinstance(action, Close)]
        return max(self.after(state, self.game.apply(now, action)) for action in actions)

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


class BestResponse(PlainDuel):
    """The value of the best play against an opponent with a fixed policy; no playoffs.

    Values are those of the player to move, whoever that is, so the responder's is one less
    the fixed player's.
    """

    def __init__(self, variant: Variant, policy: Callable[[GameState], int], *, responds_first: bool) -> None:
        """Take the policy, and whether the responder is the first player of each round."""
        super().__init__(variant)
        self._policy = policy
        self._responds_first = responds_first
        self._chosen: dict[tuple[Card, Turn], Action] = {}

    def _choice(self, state: GameState) -> Action:
        # A policy for points sees its own card and dice only, so it is asked once for each.
        key = (state.card, state.turn)
        if key not in self._chosen:
            self._chosen[key] = action_of(self._policy(state), self.game.variant.num_boxes)
        return self._chosen[key]

    def turn_value(self, state: GameState) -> float:
        """Return the value of a turn: the best one, or that of the fixed policy."""
        if (state.first_player == state.current_player) == self._responds_first:
            return super().turn_value(state)
        tree = turn_tree(self.game.variant.is_locked)
        values: list[float] = []
        for turn, throws, _ in tree.nodes[: tree.place[state.turn] + 1]:
            now = replace(state, turn=turn)
            if not turn.dice:
                values.append(sum(weight * values[place] for place, weight in throws))
                continue
            before = replace(now, turn=replace(turn, dice=()))
            if self.game.is_over(self.game.apply_chance(before, turn.dice)):
                values.append(1.0)
                continue
            action = self._choice(now)
            after = self.game.apply(now, action)
            is_keep = isinstance(action, Keep)
            values.append(values[tree.place[after.turn]] if is_keep else self.after(state, after))
        return values[-1]
