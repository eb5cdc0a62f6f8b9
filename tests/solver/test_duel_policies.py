"""Best responses to policies and exact matches of them, against recursion, sampling and the solved game."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.evaluation.exact import AgentPolicy
from agents.matches.match import compare_agents
from agents.registry import make_agent
from generala_env.rules.boxes import Box
from generala_env.rules.card import BoxStatus, Card
from generala_env.rules.compiled import TurnBatch, compile_variant
from generala_env.rules.variants import PRESETS, get_variant
from generala_env.solver.duel import DuelSolution, solve_duel
from generala_env.solver.duel_policies import solve_policies
from generala_env.solver.evaluation import best_actions, evaluate_policy
from generala_env.solver.policy_turns import Policy, turn_outcomes
from generala_env.solver.solo import solve_solo
from tests.solver.plain_duel import BestResponse

SMALL = ("clasica_obligada", "doble_obligada")


@cache
def for_points(name: str) -> Policy:
    solution = solve_solo(name, instant_win="play_on")
    return lambda batch, masks: best_actions(solution, batch, masks)


def at_random(_batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[Any]:
    return np.asarray(masks / masks.sum(axis=1, keepdims=True))


def named(variant_name: str, *boxes: Box) -> int:
    return sum(1 << get_variant(variant_name).boxes.index(box) for box in boxes)


def assert_never_below(
    response: DuelSolution, solution: DuelSolution, responder: int, precision: float
) -> float:
    """Check every value of a best response against the solved game; return the largest gain."""
    most = 0.0
    for number, (values, optimal) in enumerate(zip(response.values, solution.values, strict=True)):
        # The responder moves where the number of open boxes is even if it is first, odd if second.
        gain = np.asarray(values, dtype=np.float64) - optimal
        if number % 2 != responder:
            gain = -gain
        assert gain.min() > -precision, number
        most = max(most, float(gain.max()))
    return most


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        *[
            pytest.param(name, "points", marks=[] if name in (*SMALL, "ruibal") else [SLOW])
            for name in PRESETS
        ],
        *[(name, "random") for name in SMALL],
        *[
            pytest.param(name, "random", marks=[SLOW])
            for name in ("ruibal", "clasica", "doble", "doble_al_as")
        ],
    ],
)
def test_outcomes_of_turns_are_those_of_the_exact_evaluation(name: str, policy: str) -> None:
    compiled = compile_variant(name)
    chosen = for_points(name) if policy == "points" else at_random
    outcomes = turn_outcomes(compiled, chosen)
    evaluation = evaluate_policy(compiled, chosen, instant_win="perfect")
    visits, won = np.zeros(compiled.num_cards), 0.0
    visits[0] = 1.0
    values = np.zeros(compiled.num_cards)
    for card in range(compiled.num_cards):
        after, _, probability = outcomes.of(card)
        if compiled.num_open[card]:
            assert probability.sum() + outcomes.wins[card] == pytest.approx(1.0, abs=1e-12)
        np.add.at(visits, after, visits[card] * probability)
        won += visits[card] * outcomes.wins[card]
    assert won == pytest.approx(evaluation.instant_win_probability, abs=1e-12)
    np.testing.assert_allclose(visits, evaluation.card_visits, atol=1e-12)
    pays = compiled.perfect_score
    for card in reversed(range(compiled.num_cards)):
        after, points, probability = outcomes.of(card)
        values[card] = outcomes.wins[card] * pays + probability @ (points + values[after])
    assert values[0] == pytest.approx(evaluation.expected_score, rel=1e-9)


@pytest.mark.parametrize("responds_first", [True, False])
@pytest.mark.parametrize(
    ("mover_boxes", "other_boxes"),
    [
        ((Box.FULL,), ()),
        pytest.param((Box.GENERALA,), (Box.POKER,), marks=[SLOW]),
        pytest.param((Box.FIVES,), (Box.ESCALERA,), marks=[SLOW]),
    ],
)
def test_a_best_response_agrees_with_plain_recursion(
    mover_boxes: tuple[Box, ...], other_boxes: tuple[Box, ...], responds_first: bool
) -> None:
    name, solo = "ruibal", solve_solo("ruibal", instant_win="play_on")
    compiled = compile_variant(name)
    plain = BestResponse(get_variant(name), solo.policy, responds_first=responds_first)
    policies = (None, for_points(name)) if responds_first else (for_points(name), None)
    fate = BoxStatus.OPEN if Box.GENERALA in mover_boxes else BoxStatus.SCORED
    mover = Card(named(name, *mover_boxes), fate)
    other = Card(named(name, *other_boxes), BoxStatus.STRUCK)
    start = (compiled.index_of(mover), compiled.index_of(other))
    response = solve_policies(name, *policies, start=start)
    for difference in (0, -1, -4, -25, -45, 12):
        expected = plain.value(mover, other, difference)
        assert response.value(mover, other, difference) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("responder", [0, 1])
@pytest.mark.parametrize("name", SMALL)
def test_a_best_response_is_nowhere_below_optimal_play(name: str, responder: int) -> None:
    solution = solve_duel(name)
    policies = (None, for_points(name)) if responder == 0 else (for_points(name), None)
    most = assert_never_below(solve_policies(name, *policies), solution, responder, 1e-6)
    assert most > (1e-3 if name == "clasica_obligada" else 0.0)
    # Who plays at random loses more.
    policies = (None, at_random) if responder == 0 else (at_random, None)
    assert assert_never_below(solve_policies(name, *policies), solution, responder, 1e-6) > 0.1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_best_response_is_nowhere_below_optimal_play_in_ruibal() -> None:
    solution = solve_duel("ruibal")
    for responder, policies in enumerate(((None, for_points("ruibal")), (for_points("ruibal"), None))):
        most = assert_never_below(solve_policies("ruibal", *policies), solution, responder, 2e-6)
        assert most > 0.1


@pytest.mark.parametrize("name", SMALL)
def test_without_a_policy_it_is_the_solved_game(name: str) -> None:
    assert solve_policies(name).first_player_value == solve_duel(name).first_player_value


def test_a_match_is_as_exact_as_sampling_can_tell() -> None:
    name = "clasica_obligada"
    policies = [AgentPolicy(make_agent(one, name, instant_win="play_on")) for one in ("optimal", "tips")]
    pair = solve_policies(name, *policies).first_player_value
    swapped = solve_policies(name, *policies[::-1]).first_player_value
    exact = (pair + 1.0 - swapped) / 2.0
    agents = [make_agent(one, name, num_players=2) for one in ("solo_optimal", "tips")]
    result = compare_agents(agents, num_games=20_000, seed=3)
    sampled = result["tables"][0]["agents"][0]["win_share"]
    low, high = sampled["ci95"]
    assert abs(sampled["mean"] - exact) < high - low
    assert exact > 0.52


def test_cards_that_a_policy_tells_apart_stay_apart() -> None:
    """In ruibal the fate of the Generala box means nothing, but a policy may look at it."""
    name = "ruibal"
    compiled = compile_variant(name)
    boxes = named(name, Box.FULL)
    scored, struck = (
        compiled.index_of(Card(boxes, status)) for status in (BoxStatus.SCORED, BoxStatus.STRUCK)
    )
    assert compiled.class_of_card[scored] == compiled.class_of_card[struck]
    points = for_points(name)

    def moody(batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[Any]:
        gives_up = batch.card == struck
        return np.where(gives_up, masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1), points(batch, masks))

    last = compiled.index_of(Card(0, BoxStatus.SCORED))

    def value(card: int, policy: Policy) -> float:
        # With a box more to close, the mover is the second player.
        solution = solve_policies(name, None, policy, start=(card, last))
        assert (solution.compiled is compiled) == (policy is points)
        return solution.value(card, last, -10)

    alike = value(scored, points)
    assert value(struck, points) == alike
    assert value(scored, moody) == pytest.approx(alike, abs=1e-6)
    assert value(struck, moody) < alike - 0.01
