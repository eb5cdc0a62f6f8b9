"""A position of the one-player game: as the environments hold it, and as the engine knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from generala_env.rules.compiled import CompiledVariant
from generala_env.rules.dice import KEEPS, NUM_DICE, THROWS, THROWS_PER_TURN, is_subset
from generala_env.rules.game import GameState, Phase, Player, Turn


class Position(NamedTuple):
    """A position as indices into the tables; also the columns of ``stepping.Batch.state``.

    Attributes:
        card: Index of the card.
        throw: Index of the dice on the table.
        throw_number: Which throw of the turn, 1 to 3.
        served: Whether closing a box now counts as served.
        kept: Index of the dice set aside before the throw.
        is_over: Whether the episode is over.
        is_won: Whether the throw on the table has won at once.
        bonus: Points of the Doble bonus so far.
    """

    card: int
    throw: int
    throw_number: int
    served: int
    kept: int
    is_over: int
    is_won: int
    bonus: int


def game_state(compiled: CompiledVariant, position: Position, sheet: Sequence[int | None]) -> GameState:
    """Return a position as the engine knows it.

    Args:
        compiled: The variant's tables.
        position: The position.
        sheet: (B,) the points in each box, ``None`` while it is open.
    """
    card = compiled.card(position.card)
    is_over = bool(position.is_over or position.is_won)
    return GameState(
        Phase.OVER if is_over else Phase.TURNS,
        (Player(card, tuple(sheet), position.bonus),),
        first_player=0,
        round=min(compiled.num_boxes - card.num_open + 1, compiled.num_boxes),
        turn=Turn(position.throw_number, THROWS[position.throw], KEEPS[position.kept]),
        winners=(0,) if is_over else (),
        is_instant_win=bool(position.is_won),
    )


def position_of(compiled: CompiledVariant, state: GameState, *, wins_at_once: bool) -> Position:
    """Return a position of the engine as indices into the tables.

    Args:
        compiled: The variant's tables.
        state: The position: a decision, or the end.
        wins_at_once: Whether a served Generala that wins ends the game.

    Raises:
        ValueError: The environment cannot be in that position; the message says why.
    """
    if len(state.players) != 1:
        raise ValueError(f"state: {len(state.players)} players instead of 1")
    turn, (player,), is_over = state.turn, state.players, state.phase is Phase.OVER
    if not is_over and state.phase is not Phase.TURNS:
        raise ValueError(f"state: the phase {state.phase} has no place in a game played alone")
    if turn.dice not in THROWS:
        raise ValueError(f"state: {turn.dice} are not {NUM_DICE} dice on the table in ascending order")
    if turn.throw not in range(1, THROWS_PER_TURN + 1):
        raise ValueError(f"state: throw {turn.throw} is not from 1 to {THROWS_PER_TURN}")
    is_kept = turn.kept in KEEPS and len(turn.kept) < NUM_DICE and is_subset(turn.kept, turn.dice)
    if not is_kept or (turn.kept and turn.throw == 1):
        raise ValueError(f"state: {turn.kept} cannot have been kept before throw {turn.throw} {turn.dice}")
    opened = tuple(points is None for points in player.sheet)
    if opened != tuple(player.card.is_open(box) for box in range(compiled.num_boxes)):
        raise ValueError(f"state: the sheet {player.sheet} does not fit the open boxes of {player.card}")
    if player.card.is_complete and not is_over:
        raise ValueError("state: the card is complete, and the game is not over")
    card = compiled.index_of(player.card)
    served = bool(compiled.is_served[turn.throw - 1, int(not turn.kept)])
    is_won = state.is_instant_win
    if not is_over:
        is_won = wins_at_once and served and len(set(turn.dice)) == 1 and bool(compiled.instant_win[card])
    return Position(
        card,
        THROWS.index(turn.dice),
        turn.throw,
        served,
        KEEPS.index(turn.kept),
        is_over,
        is_won,
        player.bonus,
    )
