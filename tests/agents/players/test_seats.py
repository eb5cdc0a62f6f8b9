"""Agents that look at the others: exact where they claim to be, and better at winning."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.errors import AgentError
from agents.matches.match import play_match
from agents.players.seats import SeatAgent
from agents.registry import agent_names, make_agent, register_agent
from generala_env.envs.dealing import DealtGame
from generala_env.envs.games import TableGames
from generala_env.rules import get_variant
from generala_env.rules.card import closable_boxes, close_box, is_instant_win
from generala_env.rules.compiled import CompiledVariant, compile_variant
from generala_env.rules.dice import (
    KEEP_INDEX,
    KEEPS,
    NUM_PARTIAL_KEEPS,
    THROWS,
    Dice,
    counts_of,
    is_subset,
    throw_probabilities_after,
)
from generala_env.rules.variants import PRESETS
from generala_env.solver.evaluation import evaluate_optimal
from generala_env.solver.playoff import playoff_turn_for_points, playoff_turn_for_winning
from generala_env.solver.race import race_tables


def test_names_include_everybody_who_plays_alone() -> None:
    assert set(agent_names()) < set(agent_names(2))
    assert {"race", "solo_optimal"} <= set(agent_names(2))
    with pytest.raises(ValueError, match="already"):
        register_agent("tips")
    with pytest.raises(AgentError, match=r"racer.*solo_optimal"):
        make_agent("racer", "ruibal")


@pytest.mark.parametrize("preset", ["clasica", "doble_fija"])
def test_points_to_come_are_distributed_as_exact_evaluation_says(preset: str) -> None:
    # With the instant win switched off in the rules, the two must be one distribution.
    variant = get_variant(preset).override(served_generala_wins="never")
    tables = race_tables(compile_variant(variant), instant_win="play_on")
    exact = evaluate_optimal(compile_variant(variant), "play_on")
    assert tables.futures.wins.max() == 0.0
    assert tables.futures.distribution.sum(axis=1) == pytest.approx(np.ones(len(tables.futures.distribution)))
    mean = tables.futures.distribution @ np.arange(tables.futures.distribution.shape[1])
    assert mean == pytest.approx(tables.solution.class_values, abs=1e-9)
    assert mean[0] == pytest.approx(exact.expected_score, abs=1e-9)
    spread = np.sqrt(
        tables.futures.distribution[0] @ (np.arange(tables.futures.distribution.shape[1]) - mean[0]) ** 2
    )
    assert spread == pytest.approx(exact.std_score, abs=1e-9)


@pytest.mark.parametrize("preset", PRESETS)
def test_instant_wins_and_points_to_come_are_everything_that_can_happen(preset: str) -> None:
    tables = race_tables(compile_variant(preset))
    assert tables.futures.distribution.sum(axis=1) + tables.futures.wins == pytest.approx(
        np.ones(len(tables.futures.wins))
    )
    assert 0.001 < tables.futures.wins[0] < 0.02


def last_turn_by_hand(compiled: CompiledVariant, card_index: int, own: int, target: int) -> float:
    """Return the probability of winning with one turn to come against a finished total.

    Ties count half. Plain recursion over throws and keeps of the readable rules, with no table
    of the solver.
    """
    variant = compiled.variant
    card = compiled.card(card_index)

    def served(throw_number: int, kept: Dice) -> bool:
        return bool(compiled.is_served[throw_number - 1, int(not kept)])

    @cache
    def decide(throw_number: int, dice: Dice, kept: Dice) -> float:
        is_served = served(throw_number, kept)
        if is_instant_win(variant, card, counts_of(dice), served=is_served):
            return 1.0
        best = 0.0
        for box in closable_boxes(variant, card):
            closing = close_box(variant, card, box, counts_of(dice), served=is_served)
            total = own + closing.points + closing.bonus
            best = max(best, 1.0 if total > target else 0.5 if total == target else 0.0)
        if throw_number < 3:
            for keep in KEEPS[:NUM_PARTIAL_KEEPS]:
                is_locked_out = variant.is_locked and keep and not is_subset(kept, keep)
                if is_subset(keep, dice) and not is_locked_out:
                    best = max(best, throw(throw_number + 1, keep))
        return best

    @cache
    def throw(throw_number: int, kept: Dice) -> float:
        probabilities = throw_probabilities_after(KEEP_INDEX[kept])
        return float(
            sum(probabilities[i] * decide(throw_number, THROWS[i], kept) for i in probabilities.nonzero()[0])
        )

    return throw(1, ())


@pytest.mark.parametrize("preset", ["ruibal", "clasica", "doble", "doble_fija"])
def test_the_last_turn_is_played_exactly(preset: str) -> None:
    compiled = compile_variant(preset)
    tables = race_tables(compiled)
    generator = np.random.default_rng(1)
    last = np.flatnonzero(compiled.num_open == 1)
    done = compiled.num_cards - 1
    for card in generator.choice(last, 1, replace=False).tolist():
        own, target = 100, 100 + int(generator.integers(0, 40))
        cards, scores = np.array([[card, done]]), np.array([[own, target]])
        keep_values = tables.turn_values(cards, scores)
        served = np.ones(len(THROWS), dtype=bool)
        rows = np.zeros(len(THROWS), dtype=int)
        closing = tables.closing_values(cards[rows], scores[rows], served, np.arange(len(THROWS)))
        best_close = closing.max(axis=1)
        value = 0.0
        for index, dice in enumerate(THROWS):
            chance = throw_probabilities_after(0)[index]
            if is_instant_win(compiled.variant, compiled.card(card), counts_of(dice), served=True):
                value += chance
                continue
            keeps = [k for k, keep in enumerate(KEEPS[:NUM_PARTIAL_KEEPS]) if is_subset(keep, dice)]
            value += chance * max(best_close[index], keep_values[0, 0, keeps].max())
        assert value == pytest.approx(last_turn_by_hand(compiled, card, own, target), abs=1e-9)


def test_race_wins_more_and_scores_less_than_playing_for_points() -> None:
    agents = [make_agent(name, "ruibal", num_players=2) for name in ("race", "solo_optimal")]
    match = play_match(agents, 150, seed=5)
    scores = match.scores.mean(axis=(0, 1))
    assert scores[0] < scores[1] - 2
    assert match.shares.mean(axis=(0, 1))[0] > 0.47


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "num_players"), [("ruibal", 2), ("doble", 3)])
def test_race_beats_playing_for_points_clearly(preset: str, num_players: int) -> None:
    names = ("race",) + ("solo_optimal",) * (num_players - 1)
    agents = [make_agent(name, preset, num_players=num_players) for name in names]
    shares = play_match(agents, 6_000 // num_players, seed=5).shares.mean(axis=1)[:, 0]
    assert shares.mean() - 2 * shares.std() / np.sqrt(len(shares)) > 1 / num_players


@pytest.mark.parametrize("name", ["race", "solo_optimal"])
@pytest.mark.parametrize("preset", PRESETS)
def test_actions_are_legal_and_the_same_through_observations(name: str, preset: str) -> None:
    agent = make_agent(name, preset, num_players=3)
    assert isinstance(agent, SeatAgent)
    variant = get_variant(preset)
    games = TableGames(compile_variant(variant), 3, np.full(6, 3, dtype=np.uint64), np.arange(6))
    generator = np.random.default_rng(0)
    while not games.is_over.all():
        rows = np.flatnonzero(~games.is_over)
        masks = games.action_masks(rows)
        batch = games.table_batch(rows)
        actions = agent.act_on(batch, masks)
        assert masks[np.arange(len(rows)), actions].all()
        assert np.array_equal(agent.act(agent.layout.encode(batch), masks), actions)
        stray = generator.random(len(rows)) < 0.2
        random = np.where(masks, generator.random(masks.shape), -1.0).argmax(axis=1)
        games.step(rows, np.where(stray, random, actions))


def simulate_playoff_turns(agent: SeatAgent, num_games: int) -> NDArray[np.float64]:
    """Return how a playoff of two ends: what the first to play made, and whether it won."""
    variant = agent.compiled.variant
    made = []
    for number in range(num_games):
        dealt = DealtGame(variant, 2)
        dealt.start((2, number))
        while not dealt.is_over:
            state = dealt.state
            mask = dealt.action_mask()
            dealt.apply(int(mask.nonzero()[0][-1]) if state.phase == "turns" else play(agent, dealt))
        if dealt.was_tied:
            made.append(float(0 in dealt.state.winners))
    return np.array(made)


def play(agent: SeatAgent, dealt: DealtGame) -> int:
    from generala_env.envs.table_observation import table_batch

    mask = dealt.action_mask()
    batch = table_batch(agent.compiled, dealt.state, dealt.state.current_player)
    return int(agent.act_on(batch, mask[None])[0])


def test_playoffs_are_won_equally_by_equal_players() -> None:
    variant = get_variant("clasica").override(
        boxes=["sixes", "full"], doble="none", served_generala_wins="never", first_player="seat"
    )
    agent = make_agent("solo_optimal", variant, num_players=2)
    assert isinstance(agent, SeatAgent)
    won = simulate_playoff_turns(agent, 250)
    assert len(won) > 60
    assert abs(won.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(won))


def test_a_playoff_turn_for_winning_beats_one_for_points() -> None:
    compiled = compile_variant("clasica")
    points = playoff_turn_for_points(compiled)
    assert 20 < points.value < 30
    most = len(points.distribution)
    assert points.distribution.sum() + 6 / 7776 == pytest.approx(1.0, abs=2e-4)
    for target in (0, 20, 40):
        winning = playoff_turn_for_winning(compiled, target, 1, 0)
        by_points = points.distribution[target + 1 : most].sum() + points.distribution[target] / 2
        missing = 1 - points.distribution.sum()
        assert winning.value >= by_points + missing - 1e-12
    # The last of equals to play knows what to beat, so the first is the one who guesses.
    assert playoff_turn_for_winning(compiled, -1, 0, 1).value > 0.5


def test_race_is_indifferent_to_a_common_lead() -> None:
    compiled = compile_variant("ruibal")
    tables = race_tables(compiled)
    cards = np.zeros((1, 2), dtype=int)
    level = tables.turn_values(cards, np.array([[0, 0]]))
    shifted = tables.turn_values(cards, np.array([[37, 37]]))
    assert level == pytest.approx(shifted, abs=1e-9)
    behind = tables.turn_values(cards, np.array([[0, 30]]))
    assert (behind[0, 0] < level[0, 0]).all()
