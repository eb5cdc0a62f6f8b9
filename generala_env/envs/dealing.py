"""Dice by key: the same game for the same key, whoever plays it and through whichever face.

Every throw at a table is a function of the game's key and of its own place: the stage, the
round, the throw and the seat. Two games with one key therefore meet the same dice, die by
die, whatever the players do, and the readable engine, the environments and batched play
agree on them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.actions import NUM_KEEP_ACTIONS, Action, Close, action_id, action_of, num_actions
from generala_env.rules.dice import keyed_uniforms
from generala_env.rules.game import Game, GameState, IllegalActionError, Phase
from generala_env.rules.variants import Variant

DiceKey = tuple[int, int]
"""What the dice of a game follow from: a seed and the number of the game."""

STAGE_FIRST_PLAYER: Final = 0

STAGE_TURNS: Final = 1

STAGE_PLAYOFF: Final = 2

FirstSeat = Literal["variant"] | int
"""Who starts: whoever the variant's rule finds, or a fixed seat."""


def dice_uniforms(
    seed: NDArray[Any] | int,
    game: NDArray[Any] | int,
    stage: NDArray[Any] | int,
    round_number: NDArray[Any] | int,
    throw_number: NDArray[Any] | int,
    seat: NDArray[Any] | int,
) -> NDArray[np.float64]:
    """Return the uniform draws that decide throws; arguments broadcast.

    Args:
        seed: First part of the dice key; its low 64 bits count.
        game: Second part of the dice key.
        stage: One of the ``STAGE`` constants.
        round_number: The round of a turn; how often the contest was repeated otherwise.
        throw_number: Which throw of the turn, from 1; 1 in a draw for the first player.
        seat: Who throws.
    """
    words = seed % 2**64 if isinstance(seed, int) else seed
    return keyed_uniforms(
        0, np.asarray(words, dtype=np.uint64), game, stage, round_number, throw_number, seat
    )


def check_first_seat(first_player: FirstSeat, num_players: int) -> None:
    """Check a ``first_player`` option.

    Raises:
        ValueError: It is neither ``"variant"`` nor a seat.
    """
    if first_player == "variant":
        return
    if type(first_player) is not int or not 0 <= first_player < num_players:
        raise ValueError(
            f"first_player: {first_player!r} is neither 'variant' nor a seat from 0 to {num_players - 1}"
        )


class DealtGame:
    """One game played through the readable engine, with the dice of a key.

    Attributes:
        game: The rules.
        state: The position: a decision, or the end.
        was_tied: Whether players were level on points when the last box was closed.
        last_boxes: By seat, the index of the box of the card that was closed last, where one was.
    """

    def __init__(self, variant: Variant, num_players: int, *, first_player: FirstSeat = "variant") -> None:
        """Set up a table.

        Args:
            variant: The rules.
            num_players: How many play; one alone may play any variant.
            first_player: Who starts.

        Raises:
            ValueError: The variant does not allow that many players, or there is no such seat.
        """
        self.game = Game(variant, num_players, solo=num_players == 1)
        check_first_seat(first_player, num_players)
        self._first_player = first_player
        self._key: DiceKey = (0, 0)
        self.state = self.game.initial_state()
        self.was_tied = False
        self.last_boxes: tuple[int | None, ...] = (None,) * num_players

    def start(self, key: DiceKey) -> None:
        """Begin a game and throw until somebody has to decide, or has won."""
        self._key = key
        self.was_tied = False
        self.last_boxes = (None,) * self.game.num_players
        self.state = self.game.initial_state()
        if self._first_player != "variant":
            seat = int(self._first_player)
            self.state = replace(
                self.state, phase=Phase.TURNS, contest=None, first_player=seat, current_player=seat
            )
        self._throw()

    def _throw(self) -> None:
        while self.game.is_chance(self.state):
            self.state = self.game.apply_chance(
                self.state, self.game.sample_chance(self.state, self.uniform(self.state))
            )

    def uniform(self, state: GameState) -> float:
        """Return the draw that decides what chance brings in a state."""
        repeats = 0 if state.contest is None else state.contest.repeats
        place = {
            Phase.FIRST_PLAYER: (STAGE_FIRST_PLAYER, repeats),
            Phase.PLAYOFF: (STAGE_PLAYOFF, repeats),
        }.get(state.phase, (STAGE_TURNS, state.round))
        return float(dice_uniforms(*self._key, *place, state.turn.throw, state.current_player)[0])

    def apply(self, action: Action | int) -> None:
        """Take the current player's action and throw on to the next decision or the end.

        Raises:
            IllegalActionError: The action is not legal; nothing has changed.
        """
        if not isinstance(action, Action):
            try:
                action = action_of(int(action), self.game.variant.num_boxes)
            except ValueError as error:
                raise IllegalActionError(str(error)) from None
        before = self.state
        self.state = self.game.apply(before, action)
        if before.phase is Phase.TURNS and isinstance(action, Close):
            seat = before.current_player
            self.last_boxes = (*self.last_boxes[:seat], action.box, *self.last_boxes[seat + 1 :])
        if before.phase is Phase.TURNS and self.state.phase is not Phase.TURNS:
            scores = self.state.scores
            self.was_tied = scores.count(max(scores)) > 1
        self._throw()

    def action_mask(self, *, canonical: bool = True) -> NDArray[np.bool_]:
        """Return which actions are legal for the current player; all false at the end."""
        mask = np.zeros(num_actions(self.game.variant.num_boxes), dtype=bool)
        mask[[action_id(action) for action in self.game.legal_actions(self.state, canonical=canonical)]] = (
            True
        )
        return mask

    @property
    def is_over(self) -> bool:
        """Whether the game is over."""
        return self.game.is_over(self.state)


def only_action(num_actions: int) -> NDArray[np.bool_]:
    """Return the mask offered when a game was won before its player could act: closing the first box."""
    mask = np.zeros(num_actions, dtype=bool)
    mask[NUM_KEEP_ACTIONS] = True
    return mask


def key_from(options: dict[str, Any] | None, generator: np.random.Generator) -> DiceKey:
    """Return the dice key of an episode: ``options["dice_key"]``, or one drawn from the generator.

    Raises:
        ValueError: The option is not two whole numbers, the second not negative.
    """
    # Drawn in any case, so that naming a key does not shift what is drawn afterwards.
    drawn = int(generator.integers(2**63))
    key = (options or {}).get("dice_key")
    if key is None:
        return (drawn, 0)
    is_pair = isinstance(key, list | tuple) and len(key) == 2
    if not is_pair or not all(isinstance(part, int | np.integer) for part in key) or key[1] < 0:
        raise ValueError(
            f"options['dice_key']: {key!r} is not (seed, game), two whole numbers, game not negative"
        )
    return (int(key[0]), int(key[1]))
