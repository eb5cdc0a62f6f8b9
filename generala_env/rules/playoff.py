"""A playoff turn as tables: which box it closes and what it is worth."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.actions import Close
from generala_env.rules.dice import NUM_THROWS, THROWS, THROWS_PER_TURN
from generala_env.rules.game import Contest, Game, GameState, Phase, Turn
from generala_env.rules.variants import Variant


class PlayoffTables(NamedTuple):
    """What ending a playoff turn does, unserved (0) and served (1).

    Attributes:
        box: (2, 252) uint8, the only box that may be closed.
        points: (2, 252) int32, what it pays.
    """

    box: NDArray[np.uint8]
    points: NDArray[np.int32]


@lru_cache(maxsize=16)
def playoff_tables(variant: Variant) -> PlayoffTables:
    """Return the tables of playoff turns, produced by asking the engine about every throw."""
    game = Game(variant, 1, solo=True)
    players = game.initial_state().players
    box = np.empty((2, NUM_THROWS), dtype=np.uint8)
    points = np.empty((2, NUM_THROWS), dtype=np.int32)
    for throw, dice in enumerate(THROWS):
        # A last throw with one die set aside is never served; a first throw always is.
        for served, turn in enumerate((Turn(THROWS_PER_TURN, dice, dice[:1]), Turn(1, dice))):
            # Two turns to play, so that the result of the first stays to be read.
            state = GameState(Phase.PLAYOFF, players, first_player=0, turn=turn, contest=Contest((0, 0)))
            closing = game.legal_actions(state)[-1]
            assert isinstance(closing, Close)
            contest = game.apply(state, closing).contest
            assert contest is not None
            box[served, throw] = closing.box
            points[served, throw] = contest.results[0]
    box.setflags(write=False)
    points.setflags(write=False)
    return PlayoffTables(box, points)
