"""Positions that tests look at."""

from generala_env.rules import get_variant
from generala_env.rules.actions import Close, Keep
from generala_env.rules.game import Game, GameState


def after(variant: str, *moves: tuple[int, ...] | Keep | Close, num_players: int = 2) -> GameState:
    """Return the state after throws (tuples) and actions, from a game that seat 0 starts."""
    game = Game(get_variant(variant).override(first_player="seat"), num_players)
    state = game.initial_state()
    for move in moves:
        state = game.apply_chance(state, move) if isinstance(move, tuple) else game.apply(state, move)
    return state
