"""The compiled loops against plain autograd, the engine's masks and dice they cannot influence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.learning.cards import kernels
from agents.learning.cards.dqn import QLearner, QSettings
from agents.learning.cards.learner import linear
from agents.learning.cards.networks import CardNetworkSettings
from agents.learning.cards.play import CardPlay, closed_column, padded
from agents.learning.cards.ppo import PPOLearner, PPOSettings
from agents.learning.cards.scoring import greedy_score
from agents.learning.cards.tables import CLOSED, NUM_OUTPUTS, AfterstateTables, afterstate_tables
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, TurnBatch, compile_variant
from generala_env.rules.dice import KEEP_OF_MASK, NUM_PARTIAL_KEEPS, throw_probabilities_after
from generala_env.rules.variants import PRESETS
from generala_env.solver.evaluation import evaluate_policy
from generala_env.solver.solo import solve_solo

SMALL = CardNetworkSettings(widths=(16,))
PPO_SETTINGS = PPOSettings(actor=SMALL, critic=SMALL, num_games=64, num_steps=6, epsilon=linear(0.3, 0.02))
DQN_SETTINGS = QSettings(network=SMALL, num_games=64, num_steps=6, epsilon=linear(0.3, 0.02))


def random_outputs(tables: AfterstateTables, seed: int = 0) -> NDArray[np.float32]:
    outputs = np.random.default_rng(seed).normal(0, 3, (tables.num_rows + 1, NUM_OUTPUTS)).astype(np.float32)
    outputs[-1] = 0.0
    return outputs


def batch_of(compiled: CompiledVariant, tables: AfterstateTables, decisions: kernels.Decisions) -> TurnBatch:
    number = decisions.number.ravel().astype(np.int64)
    kept = decisions.kept.ravel().astype(np.int64)
    served = tables.is_served[number - 1, (kept == 0).astype(int)].astype(bool)
    card = compiled.card_of_class[decisions.card.ravel()]
    return TurnBatch(card, decisions.throw.ravel(), number, served, kept)


def plain_values(
    compiled: CompiledVariant, batch: TurnBatch, masks: NDArray[np.bool_], outputs: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The points of every action and the output of its afterstate, by the variant's tables alone."""
    values = np.full(masks.shape, -np.inf)
    for state, action in np.argwhere(masks):
        card, throw = batch.card[state], int(batch.throw[state])
        if action < NUM_KEEP_ACTIONS:
            column = (batch.throw_number[state] - 1) * NUM_PARTIAL_KEEPS + KEEP_OF_MASK[throw, action]
            values[state, action] = outputs[compiled.class_of_card[card], column]
        else:
            box, served = action - NUM_KEEP_ACTIONS, int(batch.served[state])
            after = compiled.next_card(card, box, served, throw)
            values[state, action] = compiled.points[compiled.card_status[card], box, served, throw]
            if compiled.num_open[after] > 0:
                values[state, action] += outputs[compiled.class_of_card[after], CLOSED]
    return values


def played(variant: str, instant_win: str = "play_on") -> tuple[PPOLearner, TurnBatch, NDArray[np.bool_]]:
    learner = PPOLearner(variant, PPO_SETTINGS, instant_win=instant_win, seed=3)  # type: ignore[arg-type]
    for _ in range(6):
        learner.collect_and_learn_iteration(1.0)
    batch = batch_of(learner.compiled, learner.tables, learner.decisions)
    return learner, batch, learner.compiled.action_masks(batch)


@pytest.mark.parametrize("variant", PRESETS)
def test_actions_taken_are_legal_and_values_are_those_of_the_engines_tables(variant: str) -> None:
    learner, batch, masks = played(variant, "perfect")
    outputs = random_outputs(learner.tables)
    found = CardPlay(learner.compiled, outputs[:-1]).values(batch, masks)
    expected = plain_values(learner.compiled, batch, masks, outputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    # Every afterstate collected is that of a legal action.
    rows, columns = learner.decisions.row.ravel(), learner.decisions.column.ravel()
    for state in range(len(rows)):
        reached = set()
        for action in np.flatnonzero(masks[state]):
            card, throw = batch.card[state], int(batch.throw[state])
            if action < NUM_KEEP_ACTIONS:
                first = (int(batch.throw_number[state]) - 1) * NUM_PARTIAL_KEEPS
                reached.add(
                    (int(learner.compiled.class_of_card[card]), first + int(KEEP_OF_MASK[throw, action]))
                )
            else:
                after = learner.compiled.next_card(
                    card, int(action) - NUM_KEEP_ACTIONS, int(batch.served[state]), throw
                )
                row = int(learner.compiled.class_of_card[after])
                reached.add((min(row, learner.num_rows), CLOSED))
        assert (int(rows[state]), int(columns[state])) in reached


@pytest.mark.parametrize("variant", ["ruibal", "clasica", "doble_fija", "doble_obligada"])
def test_best_action_in_the_loops_is_the_best_of_all_masks(variant: str) -> None:
    learner, batch, masks = played(variant)
    outputs = random_outputs(learner.tables, 1)
    expected = plain_values(learner.compiled, batch, masks, outputs)
    closed = closed_column(outputs[:-1], len(learner.tables.status))
    for state in range(len(expected)):
        value, keep, box = best(
            learner.tables,
            outputs[:-1],
            closed,
            learner.compiled.class_of_card[batch.card[state]],
            int(batch.throw[state]),
            int(batch.throw_number[state]),
            int(batch.kept[state]),
            int(batch.served[state]),
        )
        action = int(expected[state].argmax())
        assert value == pytest.approx(expected[state, action], abs=1e-4)
        if action < NUM_KEEP_ACTIONS:
            assert keep == KEEP_OF_MASK[int(batch.throw[state]), action]
        else:
            assert box == action - NUM_KEEP_ACTIONS


def best(*arguments: object) -> tuple[float, int, int]:
    # An inlined function can be called from Python as well.
    value, keep, box = kernels._best(*arguments)  # type: ignore[arg-type]
    return float(value), int(keep), int(box)


@pytest.mark.parametrize("variant", ["ruibal", "doble_fija"])
@pytest.mark.parametrize("entropy_price", [0.0, 0.7])
def test_policy_gradient_is_that_of_plain_autograd(variant: str, entropy_price: float) -> None:
    learner, batch, masks = played(variant)
    tables = learner.tables
    old, values = random_outputs(tables, 1), random_outputs(tables, 2)
    new = old + 0.3 * random_outputs(tables, 3)
    old_scale, scale, clip = 0.7, 0.8, 0.2
    gradient = np.zeros_like(old)
    by_scale, loss, entropy, clipped = kernels.policy_gradient(
        tables, new, scale, old, old_scale, values, learner.decisions, 0, 64, clip, entropy_price, gradient
    )

    blank = np.zeros_like(old)
    points = torch.from_numpy(plain_values(learner.compiled, batch, masks, blank))
    points = torch.where(torch.from_numpy(masks), points, 0.0)
    gathered = index_table(learner, batch, masks)
    new_t = torch.from_numpy(new.astype(np.float64)).requires_grad_()
    scale_t = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    blocked = torch.from_numpy(~masks)

    def probabilities(outputs: torch.Tensor, factor: torch.Tensor | float) -> torch.Tensor:
        preferences = factor * points + outputs.reshape(-1)[gathered]
        return torch.softmax(preferences.masked_fill(blocked, -torch.inf), dim=1)

    q = probabilities(torch.from_numpy(old.astype(np.float64)), old_scale)
    worth = points + torch.from_numpy(values.astype(np.float64)).reshape(-1)[gathered]
    worth = worth.masked_fill(blocked, 0.0)
    advantage = worth - (q * worth).sum(dim=1, keepdim=True)
    p = probabilities(new_t, scale_t)
    bounded = torch.minimum(torch.maximum(p, (1 - clip) * q), (1 + clip) * q)
    surrogate = torch.minimum(p * advantage, bounded * advantage).masked_fill(blocked, 0.0).sum(dim=1)
    nats = -(p * torch.log(p.clamp_min(1e-300))).sum(dim=1)
    expected = (-surrogate - entropy_price * nats).mean()
    expected.backward()  # type: ignore[no-untyped-call]
    assert loss == pytest.approx(float(expected.detach()), abs=1e-4)
    assert entropy == pytest.approx(float(nats.mean().detach()), abs=1e-4)
    assert 0.0 < clipped < 1.0
    assert scale_t.grad is not None
    assert new_t.grad is not None
    assert by_scale == pytest.approx(float(scale_t.grad), abs=1e-3)
    plain = new_t.grad.numpy()
    # Complete cards have no preference to learn.
    plain[-1] = gradient[-1] = 0.0
    np.testing.assert_allclose(gradient, plain, atol=2e-6)


def index_table(learner: PPOLearner, batch: TurnBatch, masks: NDArray[np.bool_]) -> torch.Tensor:
    """(batch, num_actions): where in a padded table the output of an action's afterstate lies."""
    complete = learner.num_rows * NUM_OUTPUTS + CLOSED
    index = np.full(masks.shape, complete)
    compiled = learner.compiled
    for state, action in np.argwhere(masks):
        card, throw = batch.card[state], int(batch.throw[state])
        if action < NUM_KEEP_ACTIONS:
            column = (batch.throw_number[state] - 1) * NUM_PARTIAL_KEEPS + KEEP_OF_MASK[throw, action]
            index[state, action] = compiled.class_of_card[card] * NUM_OUTPUTS + column
        else:
            after = compiled.next_card(card, action - NUM_KEEP_ACTIONS, int(batch.served[state]), throw)
            if compiled.num_open[after] > 0:
                index[state, action] = compiled.class_of_card[after] * NUM_OUTPUTS + CLOSED
    return torch.from_numpy(index)


def test_value_gradient_is_that_of_plain_autograd() -> None:
    learner, _, _ = played("ruibal")
    values = random_outputs(learner.tables, 4)
    gradient = np.zeros_like(values)
    error = kernels.value_gradient(values, learner.decisions, 16, 48, 0.5, gradient)
    plain = torch.from_numpy(values.astype(np.float64)).requires_grad_()
    part = slice(16, 48)
    chosen = plain[
        torch.from_numpy(learner.decisions.row[part].astype(np.int64)),
        torch.from_numpy(learner.decisions.column[part].astype(np.int64)),
    ]
    expected = (chosen - torch.from_numpy(learner.decisions.target[part].astype(np.float64))).square().mean()
    (0.5 * expected).backward()  # type: ignore[no-untyped-call]
    assert plain.grad is not None
    assert error == pytest.approx(float(expected.detach()), rel=1e-5)
    np.testing.assert_allclose(gradient, plain.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("trace", [0.0, 0.6])
def test_ppo_targets_are_lambda_returns_of_expected_values(trace: float) -> None:
    """Replay the games written down, one decision at a time."""
    learner, _, _ = played("doble_fija")
    tables, decisions = learner.tables, learner.decisions
    preferences, values = random_outputs(tables, 5), random_outputs(tables, 6)
    preferences *= np.float32(0.2)
    kernels.collect_ppo(
        tables, preferences, 0.3, values, learner.rng, learner.games, 0.0, 0.2, trace, decisions
    )
    batch = batch_of(learner.compiled, tables, decisions)
    masks = learner.compiled.action_masks(batch)
    worth = CardPlay(learner.compiled, values[:-1]).values(batch, masks)
    liking = CardPlay(learner.compiled, preferences[:-1], 0.3).values(batch, masks).astype(np.float64)
    chances = np.exp(liking - liking.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    expected = (
        np.where(masks, chances * np.where(masks, worth, 0.0), 0.0).sum(axis=1).reshape(decisions.card.shape)
    )
    chosen = values[decisions.row, decisions.column]
    steps = decisions.card.shape[1]
    is_last = decisions.row >= learner.num_rows
    for step in range(steps - 1):
        beyond = decisions.target[:, step + 1] - chosen[:, step + 1]
        target = np.where(is_last[:, step], 0.0, expected[:, step + 1] + trace * beyond)
        np.testing.assert_allclose(decisions.target[:, step], target, rtol=1e-4, atol=1e-3)


def test_actions_drawn_uniformly_end_the_trace() -> None:
    learner, _, _ = played("ruibal")
    tables, decisions = learner.tables, learner.decisions
    preferences, values = random_outputs(tables, 5), random_outputs(tables, 6)
    kernels.collect_ppo(
        tables, preferences, 0.3, values, learner.rng, learner.games, 1.0, 0.0, 0.0, decisions
    )
    one_step = decisions.target.copy()
    # The same draws once more: with every action random, lambda changes nothing.
    learner, _, _ = played("ruibal")
    kernels.collect_ppo(
        tables, preferences, 0.3, values, learner.rng, learner.games, 1.0, 0.0, 0.9, learner.decisions
    )
    np.testing.assert_array_equal(learner.decisions.target, one_step)


def test_q_targets_of_an_afterstate_average_to_the_best_of_the_next_throw() -> None:
    compiled = compile_variant("clasica_fija")
    tables = afterstate_tables(compiled, "perfect")
    solution = solve_solo(compiled, instant_win="perfect")
    rows = tables.num_rows
    kept = solution.class_keep_values[:rows].reshape(rows, -1)
    values = np.concatenate([kept, solution.class_values[:rows, None]], axis=1).astype(np.float32)
    closed = solution.class_values.astype(np.float32)
    rng = np.array([7], dtype=np.uint64)
    games = kernels.Games(np.zeros(512, np.int32), *(np.zeros(512, np.int16) for _ in range(3)))
    kernels.start_games(tables, rng, 1.0, games)
    sums, counts = np.zeros_like(values), np.zeros_like(values)
    kernels.collect_q(tables, values, closed, rng, games, 1500, 0.1, 0.2, 0.0, sums, counts)
    assert counts.sum() <= 512 * 1500
    often = counts > 400
    error = sums[often] / counts[often] - values[often]
    # Optimal values are a fixed point: what is left is noise, a standard error of about 1 point.
    assert often.sum() > 100
    assert abs(error.mean()) < 0.2
    assert np.sqrt(np.square(error).mean()) < 2.0


@pytest.mark.parametrize("kept", [0, 3, 100, 209])
def test_dice_fall_with_their_probabilities(kept: int) -> None:
    tables = afterstate_tables(compile_variant("ruibal"))
    rng = np.array([5], dtype=np.uint64)
    num_rolls = 20_000
    found = np.bincount([int(kernels._roll(tables, rng, kept)) for _ in range(num_rolls)], minlength=252)
    expected = throw_probabilities_after(kept) * num_rolls
    assert (found[expected == 0] == 0).all()
    possible = expected > 0
    statistic = (np.square(found - expected)[possible] / expected[possible]).sum()
    freedom = possible.sum() - 1
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("instant_win", ["play_on", "perfect"])
@pytest.mark.parametrize("variant", ["clasica_obligada", "doble_obligada"])
def test_greedy_score_is_that_of_exact_evaluation(variant: str, instant_win: str) -> None:
    learner = QLearner(variant, DQN_SETTINGS, instant_win=instant_win, seed=1)  # type: ignore[arg-type]
    for step in range(30):
        learner.collect_and_learn_iteration(1.0 - step / 30)
    evaluation = evaluate_policy(
        learner.compiled,
        learner.play().best_actions,
        instant_win=instant_win,  # type: ignore[arg-type]
    )
    assert learner.play().exact_score(instant_win) == pytest.approx(evaluation.expected_score, abs=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["ruibal", "doble_fija", "clasica_obligada"])
def test_greedy_score_of_the_optimum_is_the_optimum(variant: str) -> None:
    compiled = compile_variant(variant)
    tables = afterstate_tables(compiled, "perfect")
    solution = solve_solo(compiled, instant_win="perfect")
    kept = solution.class_keep_values[: tables.num_rows].reshape(tables.num_rows, -1)
    values = np.concatenate([kept, solution.class_values[: tables.num_rows, None]], axis=1).astype(np.float32)
    score = greedy_score(tables, values, solution.class_values.astype(np.float32))
    assert score == pytest.approx(solution.expected_score, abs=1e-4)
    assert (padded(values)[-1] == 0).all()
