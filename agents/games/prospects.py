"""Why a choice is worth what it is worth: how the turn goes on after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agents.games.advice import Adviser
from generala_env.envs.closing import payment
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import TurnBatch
from generala_env.rules.dice import (
    IS_FIVE_EQUAL,
    KEEP_OF_MASK,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROW_INDEX,
    THROWS_PER_TURN,
)
from generala_env.rules.game import GameState, Phase
from generala_env.solver.policy_turns import throw_dice, throws_at


@dataclass(frozen=True)
class Ending:
    """One way for the turn to end.

    Attributes:
        box: The index of the box that is closed.
        scored: The probability that it is closed with points.
        struck: The probability that it is struck.
    """

    box: int
    scored: float
    struck: float


@dataclass(frozen=True)
class Prospect:
    """How the turn ends after a choice, if the rest of it is played as well as can be.

    Attributes:
        points: The points that the turn brings on average, the Doble bonus included.
        wins: The probability that a served Generala wins the game within the turn.
        endings: The boxes it may end in, the likeliest first.
    """

    points: float
    wins: float
    endings: tuple[Ending, ...]


def prospect(state: GameState, action: int, adviser: Adviser) -> Prospect | None:
    """Follow the rest of a turn after a choice.

    Args:
        state: A position with dice on the table.
        action: What is done in it, an id.
        adviser: Says how the rest of the turn is played.

    Returns:
        The prospect; ``None`` in a playoff, whose turn closes no box of the card.
    """
    if state.phase is Phase.PLAYOFF:
        return None
    compiled = adviser.compiled
    if action >= NUM_KEEP_ACTIONS:
        box = action - NUM_KEEP_ACTIONS
        points = sum(payment(compiled.variant, state, box))
        return Prospect(float(points), 0.0, (Ending(box, float(points > 0), float(points == 0)),))
    card = compiled.index_of(state.card)
    closing = np.zeros((compiled.num_boxes, 2, NUM_THROWS))
    keep_mass = np.zeros((1, NUM_PARTIAL_KEEPS))
    keep_mass[0, KEEP_OF_MASK[THROW_INDEX[state.turn.dice], action]] = 1.0
    wins = 0.0
    for number in range(state.turn.throw + 1, THROWS_PER_TURN + 1):
        throws = throws_at(compiled, number)
        mass = throw_dice(throws, keep_mass)
        is_won = compiled.instant_win[card] & (throws.served == 1) & IS_FIVE_EQUAL[throws.throw]
        wins += float(mass[0, is_won].sum())
        places = np.flatnonzero((mass[0] > 0) & ~is_won)
        shares, throw = mass[0, places], throws.throw[places]
        turns = TurnBatch(
            np.full(len(places), card),
            throw,
            np.full(len(places), number),
            throws.served[places].astype(np.bool_),
            throws.kept[places],
        )
        actions = adviser.best_actions(state, turns)
        keeps = actions < NUM_KEEP_ACTIONS
        keep_mass = np.zeros_like(keep_mass)
        np.add.at(keep_mass[0], KEEP_OF_MASK[throw[keeps], actions[keeps]], shares[keeps])
        where = (actions[~keeps] - NUM_KEEP_ACTIONS, throws.served[places][~keeps], throw[~keeps])
        np.add.at(closing, where, shares[~keeps])
    paid = compiled.points[compiled.card_status[card]]
    scored = (closing * (paid > 0)).sum(axis=(1, 2))
    struck = (closing * (paid == 0)).sum(axis=(1, 2))
    boxes = np.flatnonzero(scored + struck).tolist()
    endings = [Ending(box, float(scored[box]), float(struck[box])) for box in boxes]
    endings.sort(key=lambda one: -(one.scored + one.struck))
    return Prospect(float((closing * paid).sum()), wins, tuple(endings))
