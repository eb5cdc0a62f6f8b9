"""Positions, choices and verdicts as JSON types; names and sentences are left to the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.games.advice import Adviser, Choice, worth
from agents.games.prospects import Prospect, prospect
from agents.games.record import GameRecord
from agents.games.seating import is_person
from agents.games.verdicts import Verdict
from generala_env.envs.board import is_kept
from generala_env.envs.closing import payment, pays_for_service
from generala_env.envs.dealing import DealtGame
from generala_env.envs.outcomes import how_ended
from generala_env.rules.actions import NUM_KEEP_ACTIONS, Keep, action_of
from generala_env.rules.dice import NUM_KEEP_MASKS, THROWS_PER_TURN, select
from generala_env.rules.game import GameState, Phase
from generala_env.rules.variants import DobleKind, Variant


def variant_view(variant: Variant) -> dict[str, Any]:
    """Return what the page shows of the rules."""
    return {
        "name": variant.name,
        "fingerprint": variant.fingerprint,
        "boxes": [box.value for box in variant.boxes],
        "has_bonus": variant.doble.kind is DobleKind.BONUS,
        "min_players": variant.min_players,
        "max_players": variant.max_players,
        "generala_points": variant.generala_points,
        "doble": variant.doble.kind.value,
        "doble_points": variant.doble.points,
        "served_bonus": variant.served_bonus,
        "served_generala_wins": variant.served_generala_wins.value,
        "kept_dice": variant.kept_dice.value,
        "order": variant.order.value,
        "tie_break": variant.tie_break.value,
    }


def action_view(variant: Variant, state: GameState, action: int) -> dict[str, Any]:
    """Return an action: the dice it keeps, or the box it closes and what that pays."""
    move = action_of(action, variant.num_boxes)
    if isinstance(move, Keep):
        return {"action": action, "keep": list(select(state.turn.dice, move.mask)), "mask": move.mask}
    paid = payment(variant, state, move.box)
    return {"action": action, "box": move.box, "points": paid.points, "bonus": paid.bonus}


def seat_views(seats: Sequence[str]) -> list[dict[str, Any]]:
    """Return who sits where; a person without a name is called by the page."""
    return [
        {"is_person": True, "name": seat.partition(":")[2]}
        if is_person(seat)
        else {"is_person": False, "name": Path(seat).name}
        for seat in seats
    ]


def game_view(identifier: str, record: GameRecord, dealt: DealtGame, at: int) -> dict[str, Any]:
    """Return a position of a game, and all that led to it.

    Args:
        identifier: The name of the game.
        record: The game.
        dealt: It, at the position.
        at: How many decisions came before.
    """
    variant, state = record.table.variant, dealt.state
    mask = dealt.action_mask(canonical=False)
    turn = state.turn
    return {
        "id": identifier,
        "variant": variant_view(variant),
        "seats": seat_views(record.table.seats),
        "at": at,
        "num_decisions": len(record.actions),
        "is_over": dealt.is_over,
        "is_playoff": state.phase is Phase.PLAYOFF,
        "round": state.round,
        "num_rounds": variant.num_boxes,
        "first_player": state.first_player,
        "current_player": state.current_player,
        "throw": turn.throw,
        "num_throws": THROWS_PER_TURN,
        "dice": list(turn.dice),
        "kept": list(is_kept(turn.dice, turn.kept)),
        "is_served": pays_for_service(variant, state),
        "sheets": [list(player.sheet) for player in state.players],
        "bonuses": [player.bonus for player in state.players],
        "scores": list(state.scores),
        "winners": list(state.winners),
        "decided_by": how_ended(variant, state, was_tied=dealt.was_tied) if dealt.is_over else None,
        # What may be kept, by the positions of the dice: bit 0 is the first die.
        "keeps": [keep < NUM_KEEP_ACTIONS and bool(mask[keep]) for keep in range(NUM_KEEP_MASKS)],
        "closings": [
            action_view(variant, state, NUM_KEEP_ACTIONS + box)
            for box in range(variant.num_boxes)
            if mask[NUM_KEEP_ACTIONS + box]
        ],
        "log": _log(record, at),
    }


def _log(record: GameRecord, at: int) -> list[dict[str, Any]]:
    variant = record.table.variant
    return [
        {
            "seat": state.current_player,
            "round": state.round,
            "throw": state.turn.throw,
            "dice": list(state.turn.dice),
            **action_view(variant, state, action),
        }
        for _, (state, action) in zip(range(at), record.history(), strict=False)
    ]


def choices_view(variant: Variant, state: GameState, choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Return choices, the best first, each with what it is worth and what it costs."""
    best = worth(choices[0])
    return [
        {
            **action_view(variant, state, choice.action),
            "win": choice.win,
            "points_to_come": choice.points,
            "cost": max(0.0, best - worth(choice)),
        }
        for choice in choices
    ]


def _prospect_view(found: Prospect | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "points": found.points,
        "wins": found.wins,
        "endings": [
            {"box": ending.box, "scored": ending.scored, "struck": ending.struck} for ending in found.endings
        ],
    }


def advice_view(
    variant: Variant, state: GameState, mask: NDArray[np.bool_], adviser: Adviser
) -> dict[str, Any]:
    """Return what every option of a decision is worth, and how the turn goes on after the best."""
    choices = adviser.choices(state, mask)
    return {
        "is_exact": adviser.is_exact,
        "choices": choices_view(variant, state, choices),
        "prospect": _prospect_view(prospect(state, choices[0].action, adviser)),
    }


def verdict_view(variant: Variant, verdict: Verdict) -> dict[str, Any]:
    """Return what a decision cost, and what would have been best."""
    state = verdict.state
    choices = choices_view(variant, state, verdict.choices)
    by_action = {choice["action"]: choice for choice in choices}
    return {
        "seat": state.current_player,
        "round": state.round,
        "throw": state.turn.throw,
        "is_playoff": state.phase is Phase.PLAYOFF,
        "dice": list(state.turn.dice),
        "cost": 0.0 if verdict.is_optimal else verdict.cost,
        "is_optimal": verdict.is_optimal,
        "did": by_action[verdict.action],
        "best": by_action[verdict.best],
    }


def explained_view(variant: Variant, verdict: Verdict, adviser: Adviser) -> dict[str, Any]:
    """Return a verdict with everything that could be done, and why the best is better."""
    return {
        **verdict_view(variant, verdict),
        "is_exact": adviser.is_exact,
        "choices": choices_view(variant, verdict.state, verdict.choices),
        "did_prospect": _prospect_view(prospect(verdict.state, verdict.action, adviser)),
        "best_prospect": _prospect_view(prospect(verdict.state, verdict.best, adviser)),
    }
