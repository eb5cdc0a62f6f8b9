"""The agent that plays the solved two-player game."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.errors import AgentError
from agents.players.seats import DuelOptimalAgent, SeatAgent, SoloOptimalAgent
from agents.registry import agent_names, make_agent
from generala_env.envs.games import TableGames
from generala_env.envs.table_observation import table_batch
from generala_env.rules.card import Card
from generala_env.rules.compiled import compile_variant
from generala_env.rules.dice import THROWS
from generala_env.rules.game import Contest, GameState, Phase, Player, Turn
from generala_env.rules.variants import get_variant
from generala_env.solver.duel import DuelPlan, solve_duel
from generala_env.solver.playoff import NOTHING_YET, playoff_of
from generala_env.solver.storage import DuelStore

MILLION = 1_000_000
BATCH = 50_000


def play(agents: tuple[SeatAgent, SeatAgent], num_games: int, seed: int) -> NDArray[np.float64]:
    """Return the share of each game that seat 0, which starts, has won; (num_games,) float64."""
    compiled = agents[0].compiled
    seeds = np.full(num_games, seed, dtype=np.uint64)
    games = TableGames(compiled, 2, seeds, np.arange(num_games), first_player=0)
    while not games.is_over.all():
        for seat, agent in enumerate(agents):
            rows = np.flatnonzero(~games.is_over & (games.current == seat))
            if len(rows):
                games.step(rows, agent.act_on(games.table_batch(rows), games.action_masks(rows)))
    return np.asarray(games.won[:, 0] / games.won.sum(axis=1))


def sampled(agents: tuple[SeatAgent, SeatAgent], num_games: int) -> tuple[float, float]:
    """Return the mean over games and its standard error."""
    parts = [play(agents, min(BATCH, num_games), seed) for seed in range(max(1, num_games // BATCH))]
    results = np.concatenate(parts)
    return float(results.mean()), float(results.std() / np.sqrt(len(results)))


def test_it_is_in_the_registry_and_says_what_it_needs(tmp_path: Path) -> None:
    assert "duel_optimal" in agent_names(2)
    agent = make_agent("duel_optimal", "doble_obligada", num_players=2, store=tmp_path)
    assert isinstance(agent, DuelOptimalAgent)
    with pytest.raises(AgentError, match=r"ruibal is not solved in .*--players 2 --variant ruibal"):
        make_agent("duel_optimal", "ruibal", num_players=2, store=tmp_path)
    with pytest.raises(AgentError, match="is for 2 players, not 3"):
        make_agent("duel_optimal", "clasica_obligada", num_players=3, store=tmp_path)


def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    solve_duel("doble_obligada", store=tmp_path)
    manifest = DuelStore.folder_of(tmp_path, get_variant("doble_obligada"), None) / "duel.json"
    manifest.write_text("{}")
    with pytest.raises(AgentError, match=r"duel_optimal: .*damaged"):
        make_agent("duel_optimal", "doble_obligada", num_players=2, store=tmp_path)


@pytest.mark.parametrize("name", ["clasica_obligada", "doble_obligada"])
def test_games_of_the_optimal_pair_reproduce_the_value(name: str) -> None:
    solution = solve_duel(name)
    agent = DuelOptimalAgent(solution)
    mean, error = sampled((agent, agent), 4_000)
    assert abs(mean - solution.first_player_value) < 4 * error
    assert error < 0.01


def test_it_takes_the_actions_of_the_solution() -> None:
    name = "doble_obligada"
    solution = solve_duel(name)
    agent = DuelOptimalAgent(solution)
    games = TableGames(solution.compiled, 2, np.zeros(50, dtype=np.uint64), np.arange(50), first_player=0)
    for _ in range(12):
        rows = np.flatnonzero(~games.is_over)
        seats = games.current[rows]
        batch = games.turn_batch(rows)
        mover, other = games.card[rows, seats], games.card[rows, 1 - seats]
        difference = games.score[rows, seats] - games.score[rows, 1 - seats]
        expected = solution.actions(mover, other, difference, batch)
        actions = agent.act_on(games.table_batch(rows), games.action_masks(rows))
        assert np.array_equal(actions, expected)
        observations = agent.layout.encode(games.table_batch(rows))
        assert np.array_equal(agent.act(observations, games.action_masks(rows)), expected)
        games.step(rows, actions)


def test_playoff_turns_are_those_of_the_solved_playoff() -> None:
    name = "clasica_obligada"
    compiled = compile_variant(name)
    playoff = playoff_of(name)
    agent = DuelOptimalAgent(solve_duel(name))
    full = Player(Card(0, *compiled.statuses[compiled.card_status[-1]]), (0,) * compiled.num_boxes)
    for first_result in (NOTHING_YET, 30, 40):
        results = () if first_result == NOTHING_YET else (first_result,)
        for dice in THROWS[5::40]:
            for throw in (1, 2, 3):
                kept = dice[1:3] if throw > 1 else ()
                state = GameState(
                    Phase.PLAYOFF,
                    (full, full),
                    len(results),
                    0,
                    compiled.num_boxes,
                    Turn(throw, dice, kept),
                    Contest((0, 1), results),
                )
                batch = table_batch(compiled, state, len(results))
                expected = playoff.q_values_batch(np.array([first_result]), batch.turn)
                legal = np.isfinite(expected)
                taken = agent.act_on(batch, legal)[0]
                assert expected[0, taken] == pytest.approx(expected.max(), abs=1e-12)


def test_a_best_response_to_solo_play_is_not_below_the_value_of_the_game() -> None:
    # Whoever plays for points alone gives the duel player at least what the game is worth to it.
    name = "clasica_obligada"
    solution = solve_duel(name)
    optimal, solo = DuelOptimalAgent(solution), SoloOptimalAgent(solution.compiled, 2)
    mean, error = sampled((optimal, solo), 6_000)
    assert mean > solution.first_player_value - 3 * error
    mean, error = sampled((solo, optimal), 6_000)
    assert mean < solution.first_player_value + 3 * error


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_million_games_of_the_optimal_pair_reproduce_the_value(tmp_path: Path) -> None:
    # A solved store may be named, to save the minutes of solving.
    store = Path(os.environ.get("GENERALA_STORE", tmp_path))
    solution = solve_duel("ruibal", store=store)
    agent = DuelOptimalAgent(solution)
    mean, error = sampled((agent, agent), MILLION)
    assert error < 0.0006
    assert abs(mean - solution.first_player_value) < 4 * error


def test_small_games_are_told_from_large_ones() -> None:
    sizes = {name: DuelPlan(compile_variant(name)).num_values for name in ("ruibal", "doble_obligada")}
    assert sizes["doble_obligada"] < 10_000 < 10_000_000 < sizes["ruibal"]
