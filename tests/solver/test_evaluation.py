"""Exact policy evaluation against the readable engine, the solver and its own parts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from generala_env.rules.actions import NUM_KEEP_ACTIONS, action_id, action_of
from generala_env.rules.answers import AnswerError
from generala_env.rules.compiled import CompiledVariant, InstantWin, TurnBatch, compile_variant
from generala_env.rules.dice import keyed_uniforms
from generala_env.rules.game import Game, GameState, IllegalActionError
from generala_env.rules.variants import PRESETS, get_variant
from generala_env.solver.evaluation import (
    MISTAKE_KINDS,
    ExactEvaluation,
    action_regrets,
    best_actions,
    evaluate_optimal,
    evaluate_policy,
)
from generala_env.solver.policy_turns import turn_outcomes
from generala_env.solver.solo import solve_solo

SMALL = {
    "instant win, struck Generala": {"base": "clasica", "boxes": "sixes generala"},
    "Doble box": {"base": "doble", "boxes": "generala doble_generala"},
    "locked": {"base": "doble_fija", "boxes": "generala doble_generala"},
    "forced": {"base": "clasica_obligada", "boxes": "full generala"},
    "locked, served on any full throw": {"base": "clasica_fija", "boxes": "poker generala"},
}


def whimsical(compiled: CompiledVariant, seed: int, *, is_random: bool) -> Callable[[TurnBatch, Any], Any]:
    """A policy made of hashed preferences: of no merit, but a function of the decision."""

    def policy(batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[Any]:
        kept = np.asarray(batch.kept) if compiled.variant.is_locked else np.zeros(len(masks), dtype=int)
        columns = (batch.card, batch.throw, batch.throw_number, np.asarray(batch.served, dtype=int), kept)
        keys = [np.asarray(column)[:, None] for column in columns]
        liking = np.where(masks, keyed_uniforms(seed, *keys, np.arange(masks.shape[1])[None]), -1.0)
        if not is_random:
            return np.asarray(liking.argmax(axis=1))
        liked = np.sort(liking, axis=1)[:, -3:-2]
        weights = np.where((liking >= liked) & masks, liking, 0.0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    return policy


class Played:
    """The distribution of what is still to come, by recursion over the readable engine."""

    def __init__(self, compiled: CompiledVariant, policy: Callable[..., Any], win: float | None) -> None:
        variant = compiled.variant
        if win is None:
            variant = variant.override(served_generala_wins="never")
        self.compiled, self.policy, self.win = compiled, policy, win
        self.game = Game(variant, 1, solo=True)
        self.known: dict[Any, dict[float, float]] = {}

    def to_come(self, state: GameState) -> dict[float, float]:
        if self.game.is_over(state):
            return {float(self.win or 0.0) if state.is_instant_win else 0.0: 1.0}
        key: Any = (state.card, state.turn)
        if state.turn.dice and not self.compiled.variant.is_locked:
            key = (state.card, state.turn.throw, state.turn.dice, self.game.is_served(state))
        if key not in self.known:
            total: dict[float, float] = defaultdict(float)
            if self.game.is_chance(state):
                for outcome, probability in self.game.chance_outcomes(state):
                    for points, share in self.to_come(self.game.apply_chance(state, outcome)).items():
                        total[points] += probability * share
            else:
                for action, probability in self.choices(state):
                    after = self.game.apply(state, action_of(action, self.compiled.num_boxes))
                    gained = after.players[0].score - state.players[0].score
                    # Only the card and the turn tell states apart here, not the points so far.
                    for points, share in self.to_come(after).items():
                        total[points + gained] += probability * share
            self.known[key] = dict(total)
        return self.known[key]

    def choices(self, state: GameState) -> list[tuple[int, float]]:
        batch = self.compiled.turn_batch(state)
        masks = np.zeros((1, self.compiled.num_actions), dtype=bool)
        masks[0, [action_id(action) for action in self.game.legal_actions(state)]] = True
        answer = self.policy(batch, masks)
        if answer.ndim == 1:
            return [(int(answer[0]), 1.0)]
        return [(int(action), float(answer[0, action])) for action in np.flatnonzero(answer[0])]


def check_sums(evaluation: ExactEvaluation) -> None:
    """What must hold of every evaluation."""
    regret = evaluation.optimal_score - evaluation.expected_score
    assert evaluation.regret == pytest.approx(regret, abs=1e-9)
    for table in (evaluation.regret_by_round, evaluation.regret_by_kind, evaluation.regret_by_box):
        assert table.sum() == pytest.approx(regret, abs=1e-9)
        assert (table >= 0).all()
    assert evaluation.regret_by_open.sum(axis=1) == pytest.approx(regret, abs=1e-9)
    assert evaluation.regret_by_box.sum(axis=0) == pytest.approx(evaluation.regret_by_round, abs=1e-9)
    assert evaluation.score_probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    mean = evaluation.scores @ evaluation.score_probabilities
    assert mean == pytest.approx(evaluation.expected_score, abs=1e-9)
    won = evaluation.instant_win_probability
    points = evaluation.box_points.sum() + won * (evaluation.instant_win_points or 0.0)
    assert points == pytest.approx(evaluation.expected_score, abs=1e-9)
    unclosed = 1.0 - evaluation.box_scored - evaluation.box_struck
    assert (unclosed >= -1e-12).all()
    assert (unclosed <= won + 1e-12).all()
    assert evaluation.card_visits[evaluation.compiled.num_open == 0].sum() == pytest.approx(
        1.0 - won, abs=1e-12
    )


@pytest.mark.parametrize(
    ("name", "instant_win", "is_random"),
    [
        ("instant win, struck Generala", 17.5, True),
        ("Doble box", "play_on", False),
        ("forced", 17.5, False),
        ("locked", "play_on", False),
        pytest.param("locked", 17.5, True, marks=pytest.mark.slow),
        pytest.param("locked, served on any full throw", 17.5, False, marks=pytest.mark.slow),
        pytest.param("locked, served on any full throw", "play_on", True, marks=pytest.mark.slow),
    ],
)
def test_the_engine_agrees(name: str, instant_win: InstantWin, is_random: bool) -> None:
    compiled = compile_variant(get_variant(SMALL[name]))
    policy = whimsical(compiled, 5, is_random=is_random)
    evaluation = evaluate_policy(compiled, policy, instant_win=instant_win, states_at_once=1000)
    played = Played(compiled, policy, evaluation.instant_win_points)
    expected = played.to_come(played.game.initial_state())
    found = dict(zip(evaluation.scores.tolist(), evaluation.score_probabilities.tolist(), strict=True))
    assert found.keys() == {points for points, share in expected.items() if share > 0}
    assert found == pytest.approx(expected, abs=1e-12)
    mean = math.fsum(points * share for points, share in expected.items())
    assert evaluation.expected_score == pytest.approx(mean, abs=1e-12)
    spread = math.fsum((points - mean) ** 2 * share for points, share in expected.items())
    assert evaluation.std_score == pytest.approx(math.sqrt(spread), abs=1e-9)
    check_sums(evaluation)


@pytest.mark.parametrize("instant_win", ["play_on", "perfect"])
@pytest.mark.parametrize("name", ["ruibal", "clasica", "doble_obligada"])
def test_optimal_play_is_worth_what_the_solver_says(name: str, instant_win: InstantWin) -> None:
    compiled = compile_variant(name)
    evaluation = evaluate_optimal(compiled, instant_win)
    solution = solve_solo(compiled, instant_win=instant_win)
    assert evaluation.expected_score == pytest.approx(solution.expected_score, abs=1e-9)
    assert evaluation.regret == 0.0
    assert evaluation.blunders == ()
    reached = evaluation.card_visits > 0
    assert evaluation.card_values[reached] == pytest.approx(solution.card_values[reached], abs=1e-9)
    check_sums(evaluation)


@pytest.mark.slow
@pytest.mark.parametrize("instant_win", ["play_on", "perfect"])
@pytest.mark.parametrize("name", PRESETS)
def test_optimal_play_on_every_preset(name: str, instant_win: InstantWin) -> None:
    evaluation = evaluate_optimal(compile_variant(name), instant_win)
    assert evaluation.expected_score == pytest.approx(evaluation.optimal_score, abs=1e-9)
    check_sums(evaluation)


@pytest.mark.parametrize(
    "name", ["ruibal", "doble_obligada", pytest.param("doble_fija", marks=pytest.mark.slow)]
)
def test_parts_of_the_regret_add_up(name: str) -> None:
    compiled = compile_variant(name)
    evaluation = evaluate_policy(compiled, whimsical(compiled, 1, is_random=False))
    assert evaluation.regret > 20
    check_sums(evaluation)
    costs = [blunder.cost for blunder in evaluation.blunders]
    assert len(costs) == 20
    assert costs == sorted(costs, reverse=True)


def test_blunders_tell_the_decision() -> None:
    """Optimal play but for one decision of the first throw, which must be the one blunder."""
    compiled = compile_variant("ruibal")
    solution = solve_solo(compiled)
    dice = 100

    def policy(batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        actions = best_actions(solution, batch, masks)
        here = (np.asarray(batch.card) == 0) & (np.asarray(batch.throw) == dice)
        here &= np.asarray(batch.throw_number) == 1
        return np.where(here, NUM_KEEP_ACTIONS, actions)

    evaluation = evaluate_policy(compiled, policy)
    (blunder,) = evaluation.blunders
    assert (blunder.card, blunder.throw, blunder.throw_number, blunder.served) == (0, dice, 1, True)
    assert blunder.action == NUM_KEEP_ACTIONS
    state = TurnBatch(*(np.array([value]) for value in (0, dice, 1, True, 0)))
    q_values = solution.q_values_batch(state)[0]
    assert blunder.best_action == q_values.argmax()
    assert blunder.regret == pytest.approx(q_values.max() - q_values[NUM_KEEP_ACTIONS], abs=1e-12)
    assert blunder.cost == pytest.approx(evaluation.regret, abs=1e-12)
    assert evaluation.regret == pytest.approx(evaluation.optimal_score - evaluation.expected_score, abs=1e-9)
    assert evaluation.regret_by_kind[MISTAKE_KINDS.index("closed_early")] == pytest.approx(evaluation.regret)
    assert evaluation.regret_by_round[0] == pytest.approx(evaluation.regret)
    assert evaluation.regret_by_box[0, 0] == pytest.approx(evaluation.regret)
    assert evaluation.regret_by_open[:, 1] == pytest.approx(evaluation.regret)


@pytest.mark.parametrize("name", ["clasica", "clasica_fija"])
def test_priced_actions_are_those_of_the_solution(name: str) -> None:
    compiled = compile_variant(name)
    solution = solve_solo(compiled)
    asked: list[TurnBatch] = []

    def policy(batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        if len(asked) < 12:
            q_values = solution.q_values_batch(batch)
            assert (np.isfinite(q_values) == masks).all()
            best = best_actions(solution, batch, masks)
            assert (best == q_values.argmax(axis=1)).all()
            lost = action_regrets(solution, batch, masks, masks.argmax(axis=1))
            first = q_values[np.arange(len(masks)), masks.argmax(axis=1)]
            assert lost == pytest.approx(q_values.max(axis=1) - first, abs=1e-12)
            asked.append(batch)
        return best_actions(solution, batch, masks)

    evaluate_policy(compiled, policy, states_at_once=2000)
    assert len(asked) == 12


def lowest_or_wrong(batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Play the lowest legal action, but on one póker of ones an action that is not there."""
    return np.where(batch.throw == 1, 1000, masks.argmax(axis=1))


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (lowest_or_wrong, r"lowest_or_wrong: action 1000 .*dice 1 1 1 1 2, throw 1, open .*; legal: \[0, "),
        (lambda _, masks: (~masks).argmax(axis=1), r"action \d+ \((keep|close) .*\) is not legal"),
        (lambda _, masks: np.full(masks.shape, 1 / masks.shape[1]), r"action \d+ \(.*\) is not legal"),
    ],
)
def test_illegal_answers_are_refused_by_agent_decision_and_action(policy: Any, named: str) -> None:
    compiled = compile_variant(get_variant(SMALL["instant win, struck Generala"]))
    with pytest.raises(IllegalActionError, match=named):
        evaluate_policy(compiled, policy)
    with pytest.raises(IllegalActionError, match=named):
        turn_outcomes(compiled, policy)


def test_what_masks_leave_is_played_and_rounding_is_taken_away() -> None:
    compiled = compile_variant(get_variant(SMALL["instant win, struck Generala"]))
    spread = evaluate_policy(compiled, lambda _, masks: masks / masks.sum(axis=1, keepdims=True))
    rounded = evaluate_policy(
        compiled, lambda _, masks: np.where(masks, 1 / masks.sum(axis=1, keepdims=True), 1e-9)
    )
    check_sums(spread)
    assert rounded.expected_score == pytest.approx(spread.expected_score, abs=1e-12)


def _drawing(_: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    draws = np.random.default_rng().random(masks.shape)
    return np.asarray(np.where(masks, draws, -1.0).argmax(axis=1))


def _by_position(_: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Answer by the place in the batch: the same for the same batch, and no function of a decision."""
    last = masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)
    return np.asarray(np.where(np.arange(len(masks)) % 2, masks.argmax(axis=1), last))


class _Counting:
    name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        self.calls += 1
        shares = np.where(masks, 1 + (np.arange(masks.shape[1]) + self.calls) % 3, 0.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (_drawing, "_drawing: .*asked twice.*throw 1"),
        (_by_position, "_by_position: .*in another batch"),
        (_Counting(), "counting: .*asked twice"),
    ],
)
def test_policies_that_are_no_function_of_the_decision_are_refused(policy: Any, named: str) -> None:
    compiled = compile_variant(get_variant(SMALL["instant win, struck Generala"]))
    with pytest.raises(AnswerError, match=named):
        evaluate_policy(compiled, policy)
    with pytest.raises(AnswerError, match=named):
        turn_outcomes(compiled, policy)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda masks: np.zeros(len(masks) + 1, dtype=int), "actions"),
        (lambda masks: np.zeros(len(masks)), "actions"),
        (lambda masks: np.ones((len(masks), 3)), "shape"),
        (lambda masks: masks.astype(float) * 2, "rows must sum to 1"),
        (lambda masks: np.full(masks.shape, np.nan), "rows must sum to 1"),
    ],
)
def test_answers_that_are_none_are_refused(answer: Callable[..., Any], named: str) -> None:
    compiled = compile_variant(get_variant(SMALL["Doble box"]))
    with pytest.raises(ValueError, match=named):
        evaluate_policy(compiled, lambda _, masks: answer(masks))
