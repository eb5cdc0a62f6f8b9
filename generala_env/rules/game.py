"""The readable engine: Generala for any number of players, with explicit chance.

A ``Game`` holds the rules and the number of players; a ``GameState`` is an immutable value
that holds no generator. At a chance state the caller picks one of ``chance_outcomes`` (an
environment samples it, a solver sums over them); elsewhere it picks one of
``legal_actions``. This module is the specification that every table is checked against.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from generala_env.rules.actions import NUM_KEEP_ACTIONS, Action, Close, Keep
from generala_env.rules.boxes import Box
from generala_env.rules.card import (
    Card,
    box_points,
    closable_boxes,
    close_box,
    is_instant_win,
    is_served,
)
from generala_env.rules.dice import (
    FACES,
    IS_CANONICAL_MASK,
    KEEP_INDEX,
    NUM_FACES,
    THROW_INDEX,
    THROWS,
    THROWS_PER_TURN,
    Dice,
    counts_of,
    is_subset,
    next_throw_table,
    roll_of,
    select,
    throw_probabilities_after,
)
from generala_env.rules.variants import FirstPlayer, TieBreak, Variant


class IllegalActionError(ValueError):
    """An action that the rules do not allow in this state."""


class Phase(StrEnum):
    """What is going on at the table."""

    FIRST_PLAYER = "first_player"
    TURNS = "turns"
    PLAYOFF = "playoff"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Turn:
    """The state of one turn.

    Attributes:
        throw: Which throw lies on the table or is about to be made, 1 to 3.
        dice: The five dice in ascending order; empty while the throw is still to be made.
        kept: The dice that were set aside before this throw; empty when all five are thrown.
    """

    throw: int = 1
    dice: Dice = ()
    kept: Dice = ()

    @property
    def is_full_throw(self) -> bool:
        """Whether all five dice were in this throw."""
        return not self.kept


@dataclass(frozen=True, slots=True)
class Player:
    """One player's side of the table.

    Attributes:
        card: What the rules remember.
        sheet: The points written in each box; ``None`` while it is open.
        bonus: Points of the Doble bonus.
    """

    card: Card
    sheet: tuple[int | None, ...]
    bonus: int = 0

    @property
    def score(self) -> int:
        """The points made so far."""
        return sum(points for points in self.sheet if points is not None) + self.bonus


@dataclass(frozen=True, slots=True)
class Contest:
    """A roll-off for the first seat, or a playoff: candidates and what they have made.

    Attributes:
        candidates: Players still in it, in order.
        results: What the first of them have made so far.
        repeats: How often it was repeated among the tied.
    """

    candidates: tuple[int, ...]
    results: tuple[int, ...] = ()
    repeats: int = 0


@dataclass(frozen=True, slots=True)
class GameState:
    """A position; immutable, hashable, without randomness.

    Attributes:
        phase: What is going on.
        players: Every player by seat.
        current_player: The seat that throws or decides.
        first_player: The seat that starts each round; ``None`` before it is known.
        round: Which round is being played, from 1.
        turn: The current turn.
        contest: The roll-off or the playoff, while there is one.
        winners: The winning seats once the game is over; several after a draw.
        is_instant_win: Whether a served Generala ended the game.
    """

    phase: Phase
    players: tuple[Player, ...]
    current_player: int = 0
    first_player: int | None = None
    round: int = 1
    turn: Turn = Turn()
    contest: Contest | None = None
    winners: tuple[int, ...] = ()
    is_instant_win: bool = False

    @property
    def card(self) -> Card:
        """The card of the current player."""
        return self.players[self.current_player].card

    @property
    def scores(self) -> tuple[int, ...]:
        """The points of every seat."""
        return tuple(player.score for player in self.players)


Outcome = Dice | int
"""What chance brings: the dice on the table after a throw, or the seat that was drawn."""


class Game:
    """The rules of one table.

    Args:
        variant: The rules.
        num_players: How many play.
        solo: Allow a card filled alone, whatever ``min_players`` says.

    Raises:
        ValueError: The variant does not allow that many players.
    """

    def __init__(self, variant: Variant, num_players: int, *, solo: bool = False) -> None:
        """Check the number of players."""
        fewest = 1 if solo else variant.min_players
        most = variant.max_players
        if type(num_players) is not int:
            raise ValueError(f"num_players: {num_players!r} is not a whole number")
        if num_players < fewest or (most is not None and num_players > most):
            limit = "any number" if most is None else most
            raise ValueError(f"num_players: {variant.name} is for {fewest} to {limit}, not {num_players}")
        self.variant = variant
        self.num_players = num_players

    def initial_state(self) -> GameState:
        """Return the state before anything is thrown."""
        empty = Player(Card.empty(self.variant), (None,) * self.variant.num_boxes)
        players = (empty,) * self.num_players
        if self.num_players == 1 or self.variant.first_player is FirstPlayer.SEAT:
            return GameState(Phase.TURNS, players, first_player=0)
        return GameState(Phase.FIRST_PLAYER, players, contest=Contest(tuple(range(self.num_players))))

    # --- chance -----------------------------------------------------------------------

    def is_chance(self, state: GameState) -> bool:
        """Tell whether dice, or a seat, are to be drawn."""
        return state.phase is not Phase.OVER and not state.turn.dice

    def is_over(self, state: GameState) -> bool:
        """Tell whether the game is over."""
        return state.phase is Phase.OVER

    def chance_outcomes(self, state: GameState) -> list[tuple[Outcome, float]]:
        """List what chance may bring, with probabilities that sum to 1.

        Raises:
            ValueError: The state is not a chance state.
        """
        self._require_chance(state)
        if state.phase is Phase.FIRST_PLAYER:
            if self.variant.first_player is FirstPlayer.RANDOM:
                return [(seat, 1 / self.num_players) for seat in range(self.num_players)]
            if self.variant.first_player is FirstPlayer.HIGHEST_DIE:
                return [((face,), 1 / NUM_FACES) for face in FACES]
        probabilities = throw_probabilities_after(KEEP_INDEX[state.turn.kept])
        return [(THROWS[index], float(probabilities[index])) for index in probabilities.nonzero()[0]]

    def sample_chance(self, state: GameState, uniform: float) -> Outcome:
        """Turn one uniform draw from [0, 1) into an outcome with the right probability.

        Equal draws mean equal dice: the draw is a roll of five dice (see
        ``next_throw_table``) of which a throw uses as many as are not kept.

        Raises:
            ValueError: The state is not a chance state.
        """
        self._require_chance(state)
        if state.phase is Phase.FIRST_PLAYER:
            if self.variant.first_player is FirstPlayer.RANDOM:
                return roll_of(uniform, self.num_players)
            if self.variant.first_player is FirstPlayer.HIGHEST_DIE:
                return (roll_of(uniform) % NUM_FACES + 1,)
        return THROWS[next_throw_table()[KEEP_INDEX[state.turn.kept], roll_of(uniform)]]

    def apply_chance(self, state: GameState, outcome: Outcome) -> GameState:
        """Return the state after chance brought ``outcome``.

        Raises:
            ValueError: The state is not a chance state, or the outcome not one of its own.
        """
        self._require_chance(state)
        if state.phase is Phase.FIRST_PLAYER:
            return self._after_roll_off(state, outcome)
        if (
            not isinstance(outcome, tuple)
            or outcome not in THROW_INDEX
            or not is_subset(state.turn.kept, outcome)
        ):
            raise ValueError(f"{outcome!r} is not five ascending dice that contain {state.turn.kept}")
        after = replace(state, turn=replace(state.turn, dice=outcome))
        card = Card.empty(self.variant) if state.phase is Phase.PLAYOFF else state.card
        if is_instant_win(self.variant, card, counts_of(outcome), served=self.is_served(after)):
            return replace(
                after, phase=Phase.OVER, contest=None, winners=(state.current_player,), is_instant_win=True
            )
        return after

    def _after_roll_off(self, state: GameState, outcome: Outcome) -> GameState:
        contest = state.contest
        assert contest is not None
        if outcome not in [possible for possible, _ in self.chance_outcomes(state)]:
            raise ValueError(f"{outcome!r} is not an outcome of the draw for the first player")
        if isinstance(outcome, int):
            return self._start(state, outcome)
        results = (*contest.results, sum(outcome))
        if len(results) < len(contest.candidates):
            following = contest.candidates[len(results)]
            return replace(state, contest=replace(contest, results=results), current_player=following)
        best = min(results) if self.variant.first_player is FirstPlayer.LOWEST_THROW else max(results)
        tied = tuple(seat for seat, result in zip(contest.candidates, results, strict=True) if result == best)
        if len(tied) == 1:
            return self._start(state, tied[0])
        repeated = Contest(tied, repeats=contest.repeats + 1)
        return replace(state, contest=repeated, current_player=tied[0])

    def _start(self, state: GameState, seat: int) -> GameState:
        return replace(state, phase=Phase.TURNS, contest=None, first_player=seat, current_player=seat)

    def _require_chance(self, state: GameState) -> None:
        if not self.is_chance(state):
            raise ValueError("the state is not a chance state")

    # --- decisions --------------------------------------------------------------------

    def is_served(self, state: GameState) -> bool:
        """Tell whether closing a box now counts as served."""
        return is_served(self.variant, state.turn.throw, is_full_throw=state.turn.is_full_throw)

    def legal_actions(self, state: GameState, *, canonical: bool = True) -> tuple[Action, ...]:
        """Return the scoring actions allowed now, by ascending id; none at chance or the end.

        Deliberate strikes of fitting dice are legal too but not listed: they never help.

        Args:
            state: The position.
            canonical: Name each kept multiset once, by its lowest mask.
        """
        if state.phase is Phase.OVER or self.is_chance(state):
            return ()
        masks: Iterable[int] = range(NUM_KEEP_ACTIONS)
        if canonical:
            is_canonical = IS_CANONICAL_MASK[THROW_INDEX[state.turn.dice]].tolist()
            masks = [mask for mask in masks if is_canonical[mask]]
        keeps = [Keep(mask) for mask in masks if self._may_keep(state.turn, mask)]
        if state.phase is Phase.PLAYOFF:
            return (*keeps, Close(self._playoff_box(state)))
        return (*keeps, *(Close(box) for box in closable_boxes(self.variant, state.card)))

    def _may_keep(self, turn: Turn, mask: int) -> bool:
        if turn.throw == THROWS_PER_TURN or not 0 <= mask < NUM_KEEP_ACTIONS:
            return False
        kept = select(turn.dice, mask)
        return not self.variant.is_locked or not kept or is_subset(turn.kept, kept)

    def apply(self, state: GameState, action: Action) -> GameState:
        """Return the state after the current player's action.

        Raises:
            IllegalActionError: The action is not legal here.
        """
        if state.phase is Phase.OVER or self.is_chance(state):
            raise IllegalActionError(f"{action} where nothing is to be decided: phase {state.phase}")
        if isinstance(action, Keep):
            if not self._may_keep(state.turn, action.mask):
                raise IllegalActionError(f"{action} is not allowed on {state.turn}")
            kept = select(state.turn.dice, action.mask)
            return replace(state, turn=Turn(state.turn.throw + 1, (), kept))
        if state.phase is Phase.PLAYOFF:
            return self._close_playoff_turn(state, action)
        if action.box not in closable_boxes(self.variant, state.card):
            raise IllegalActionError(
                f"{action} is not allowed; closable boxes: {closable_boxes(self.variant, state.card)}"
            )
        player = state.players[state.current_player]
        closing = close_box(
            self.variant,
            player.card,
            action.box,
            counts_of(state.turn.dice),
            served=self.is_served(state),
            strike=action.strike,
        )
        sheet = (*player.sheet[: action.box], closing.points, *player.sheet[action.box + 1 :])
        after = Player(closing.card, sheet, player.bonus + closing.bonus)
        seat = state.current_player
        players = (*state.players[:seat], after, *state.players[seat + 1 :])
        return self._pass_turn(replace(state, players=players))

    def _pass_turn(self, state: GameState) -> GameState:
        following = (state.current_player + 1) % self.num_players
        if following != state.first_player:
            return replace(state, current_player=following, turn=Turn())
        if all(player.card.is_complete for player in state.players):
            return self._finish(state)
        return replace(state, current_player=following, turn=Turn(), round=state.round + 1)

    # --- the end ----------------------------------------------------------------------

    def playing_order(self, state: GameState) -> tuple[int, ...]:
        """Return the seats in the order in which they play, the starter first."""
        first = state.first_player or 0
        return tuple((first + offset) % self.num_players for offset in range(self.num_players))

    def _finish(self, state: GameState) -> GameState:
        best = max(state.scores)
        tied = tuple(seat for seat in self.playing_order(state) if state.scores[seat] == best)
        if len(tied) > 1 and self.variant.tie_break is TieBreak.PLAYOFF:
            return self._start_playoff(state, Contest(tied))
        if len(tied) > 1 and self.variant.tie_break is TieBreak.MOST_GENERALAS:
            most = max(state.players[seat].card.num_generalas for seat in tied)
            tied = tuple(seat for seat in tied if state.players[seat].card.num_generalas == most)
        return replace(state, phase=Phase.OVER, winners=tuple(sorted(tied)))

    def _start_playoff(self, state: GameState, contest: Contest) -> GameState:
        seat = contest.candidates[0]
        return replace(state, phase=Phase.PLAYOFF, contest=contest, current_player=seat, turn=Turn())

    def _playoff_points(self, state: GameState, box: int) -> int:
        kind = self.variant.boxes[box]
        if kind is Box.DOBLE_GENERALA:
            return 0
        counts = counts_of(state.turn.dice)
        return box_points(self.variant, Card.empty(self.variant), kind, counts, served=self.is_served(state))

    def _playoff_box(self, state: GameState) -> int:
        return max(range(self.variant.num_boxes), key=lambda box: (self._playoff_points(state, box), -box))

    def _close_playoff_turn(self, state: GameState, action: Close) -> GameState:
        contest = state.contest
        assert contest is not None
        best_box = self._playoff_box(state)
        if action != Close(best_box):
            raise IllegalActionError(f"{action}: a playoff turn is worth its best box, Close({best_box})")
        results = (*contest.results, self._playoff_points(state, best_box))
        if len(results) < len(contest.candidates):
            following = contest.candidates[len(results)]
            contest = replace(contest, results=results)
            return replace(state, contest=contest, current_player=following, turn=Turn())
        best = max(results)
        tied = tuple(seat for seat, result in zip(contest.candidates, results, strict=True) if result == best)
        if len(tied) > 1:
            return self._start_playoff(state, Contest(tied, repeats=contest.repeats + 1))
        return replace(state, phase=Phase.OVER, contest=None, winners=tied)
