"""Matches: the engine's games, seat rotations on equal dice, and sums that must come out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.errors import AgentError
from agents.matches.match import (
    MatchGames,
    Player,
    compare_agents,
    labels_of,
    play_match,
    seats_of_agents,
)
from agents.matches.ratings import rate
from agents.registry import make_agent
from generala_env import table_v0
from generala_env.envs.dealing import DealtGame
from generala_env.envs.duel import GeneralaDuelEnv
from generala_env.envs.duel_vector import GeneralaDuelVectorEnv
from generala_env.envs.games import TableGames
from generala_env.envs.opponents import ask
from generala_env.envs.table_observation import table_batch
from generala_env.rules import get_variant
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import GameState, IllegalActionError
from generala_env.rules.variants import PRESETS

FIELDS = {2: ("tips", "race"), 3: ("turn_greedy", "race", "tips")}


def field(variant: str, names: tuple[str, ...]) -> list[Player]:
    return [make_agent(name, variant, num_players=len(names), seed=3) for name in names]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[int]]:
    """Record the actions of every row of every batch of games."""
    actions: dict[int, list[int]] = {}
    original = TableGames.step

    def step(self: TableGames, rows: NDArray[Any], chosen: NDArray[Any]) -> None:
        for row, action in zip(rows.tolist(), chosen.tolist(), strict=True):
            actions.setdefault(row, []).append(action)
        original(self, rows, chosen)

    monkeypatch.setattr(TableGames, "step", step)
    return actions


def decide(agent: Player, variant: str, state: GameState, mask: NDArray[np.bool_]) -> int:
    """Ask an agent about one position, through its observations; not where nothing is to choose."""
    if mask.sum() == 1:
        return int(mask.argmax())
    batch = table_batch(compile_variant(variant), state, state.current_player)
    return int(ask(agent, batch, mask[None], deterministic=True)[0])


@pytest.mark.parametrize(
    ("variant", "num_players"), [*((preset, 2) for preset in PRESETS), ("clasica", 3), ("doble_fija", 3)]
)
def test_engine_table_and_match_are_the_same_game_action_by_action(
    variant: str, num_players: int, log: dict[int, list[int]]
) -> None:
    agents = field(variant, FIELDS[num_players])
    match = play_match(agents, 1, seed=21)
    table = table_v0.raw_env(num_players=num_players, variant=variant)
    for row in range(num_players):
        deal, rotation = divmod(row, num_players)
        seats = seats_of_agents(num_players)[rotation]
        by_seat = {int(seat): agent for seat, agent in zip(seats, agents, strict=True)}
        dealt = DealtGame(get_variant(variant), num_players)
        dealt.start((21, deal))
        table.reset(options={"dice_key": (21, deal)})
        for action in log[row]:
            seat = dealt.state.current_player
            assert table.agent_selection == f"player_{seat}"
            assert decide(by_seat[seat], variant, dealt.state, dealt.action_mask()) == action
            dealt.apply(action)
            table.step(action)
        assert dealt.is_over
        assert table.state_of_game == dealt.state
        won = match.won[deal, rotation]
        assert {int(seats[index]) for index in np.flatnonzero(won)} == set(dealt.state.winners)
        assert match.scores[deal, rotation].tolist() == [dealt.state.scores[seat] for seat in seats]
        assert match.is_instant_win[deal, rotation] == dealt.state.is_instant_win
        assert match.starters[deal, rotation] == seats.tolist().index(dealt.state.first_player)


@pytest.mark.parametrize("variant", ["clasica", "doble_fija"])
def test_the_duel_environment_plays_the_matchs_game(variant: str, log: dict[int, list[int]]) -> None:
    learner, opponent = field(variant, ("solo_optimal", "race"))
    play_match([learner, opponent], 2, seed=4)
    for deal in range(2):
        for rotation in range(2):
            env = GeneralaDuelEnv(variant, opponent=opponent, seat=int(seats_of_agents(2)[rotation, 0]))
            env.reset(options={"dice_key": (4, deal)})
            taken, terminated = [], False
            while not terminated:
                before = env.state
                action = decide(learner, variant, before, env.action_masks())
                taken.append(action)
                _, _, terminated, _, _ = env.step(action)
            in_match = log[2 * deal + rotation]
            dealt = DealtGame(get_variant(variant), 2)
            dealt.start((4, deal))
            own = []
            for action in in_match:
                if dealt.state.current_player == env.seat:
                    own.append(action)
                dealt.apply(action)
            assert taken == own
            assert env.state == dealt.state


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_identical_agents_win_equally_once_seats_are_rotated(num_players: int) -> None:
    match = play_match(field("ruibal", ("turn_greedy",) * num_players), 200)
    # Rotations share their dice, so each agent gets exactly what the others got.
    assert np.allclose(match.shares.mean(axis=(0, 1)), 1 / num_players, atol=1e-12)
    assert np.array_equal(match.scores[:, 0, 0], match.scores[:, 1, 1])


def test_identical_agents_that_sample_win_equally_within_the_interval() -> None:
    agents = [make_agent("random", "clasica", seed=seed) for seed in range(3)]
    shares = play_match(agents, 700).shares.mean(axis=1)
    error = shares.std(axis=0) / np.sqrt(len(shares))
    assert (np.abs(shares.mean(axis=0) - 1 / 3) < 4 * error).all()


@pytest.mark.parametrize("variant", PRESETS)
def test_win_shares_sum_to_one_and_ends_are_counted(variant: str) -> None:
    agents = field(variant, ("random", "turn_greedy"))
    report = compare_agents(agents, 120, seed=8)
    (table,) = report["tables"]
    assert sum(row["win_share"]["mean"] for row in table["agents"]) == pytest.approx(1.0)
    assert table["num_games"] == 120
    ends = table["decided_by"]
    assert sum(ends.values()) == 120
    first, second = table["agents"]
    draws = first["draws"]["mean"]
    assert draws == second["draws"]["mean"] == pytest.approx(ends["draw"] / 120)
    assert first["wins"]["mean"] + second["wins"]["mean"] + draws == pytest.approx(1.0)
    assert report["fingerprint"] == get_variant(variant).fingerprint


@pytest.mark.parametrize("tie_break", ["draw", "playoff"])
def test_tie_breaks_are_counted(tie_break: str) -> None:
    variant = get_variant("clasica").override(
        boxes=["ones"], doble="none", served_generala_wins="never", tie_break=tie_break
    )
    agents = [make_agent("random", variant, seed=seed) for seed in range(2)]
    (table,) = compare_agents(agents, 300)["tables"]
    ends = table["decided_by"]
    if tie_break == "playoff":
        assert ends["playoff"] > 50
        assert ends["draw"] == 0
    else:
        assert ends["draw"] > 50
    assert sum(ends.values()) == 300


def test_better_play_is_told_from_worse_and_rated_higher() -> None:
    report = compare_agents(field("ruibal", ("random", "solo_optimal", "turn_greedy")), 240, num_seats=2)
    assert len(report["tables"]) == 3
    pair = {tuple(entry["agents"]): entry for entry in report["pairs"]}
    assert pair["random", "solo_optimal"]["ahead"]["ci95"][1] < 0.1
    assert pair["random", "solo_optimal"]["score_difference"]["mean"] < -100
    rated = {entry["agent"]: entry["rating"] for entry in report["ratings"]}
    assert rated["random"] < rated["turn_greedy"] < rated["solo_optimal"]


def test_the_cross_table_has_every_pair_also_at_tables_of_three() -> None:
    report = compare_agents(field("doble", ("random", "tips", "turn_greedy", "random")), 60, num_seats=3)
    assert report["agents"] == ["random#1", "tips", "turn_greedy", "random#2"]
    assert len(report["tables"]) == 4
    assert len(report["pairs"]) == 6
    for table in report["tables"]:
        assert sum(row["win_share"]["mean"] for row in table["agents"]) == pytest.approx(1.0)


class Stubborn:
    """Names an action out of the mask every time it is asked."""

    def __init__(self, variant: str) -> None:
        self.inner = make_agent("turn_greedy", variant)
        self.name, self.layout, self.compiled = "stubborn", self.inner.layout, self.inner.compiled

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        return np.asarray((~np.asarray(action_masks, dtype=bool)).argmax(axis=1))


def test_an_illegal_action_ends_the_match_with_agent_decision_and_action() -> None:
    stubborn: Any = Stubborn("ruibal")
    named = r"stubborn: action \d+ \(.*\) is not legal in ruibal, dice .*, throw 1, open .*; legal: "
    with pytest.raises(IllegalActionError, match=named):
        play_match([stubborn, make_agent("turn_greedy", "ruibal")], 10)
    env = GeneralaDuelEnv("ruibal", opponent=stubborn, seat=1)
    with pytest.raises(IllegalActionError, match=named):
        env.reset(seed=0)
    envs = GeneralaDuelVectorEnv(2, "ruibal", opponent=stubborn, seat=1)
    with pytest.raises(IllegalActionError, match=named):
        envs.reset(seed=0)


def test_places_rank_the_field_and_ratings_follow_them() -> None:
    scores = np.array([[[10, 20, 30]] * 3] * 60)
    won = scores == 30
    flags = np.zeros((60, 3), dtype=bool)
    games = MatchGames(scores, won, flags, flags, flags, np.zeros((60, 3), dtype=int))
    assert games.places[0, 0].tolist() == [2, 1, 0]
    ratings = rate([((0, 1, 2), games.places)], 3)
    assert ratings.values[0] < ratings.values[1] < ratings.values[2]


def test_agents_of_different_rules_do_not_meet() -> None:
    with pytest.raises(AgentError, match=r"ruibal.*doble"):
        play_match([make_agent("random", "ruibal"), make_agent("random", "doble")], 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda agents: compare_agents(agents[:1], 10), "seats"),
        (lambda agents: compare_agents(agents, 2), "too few"),
        (lambda agents: compare_agents(agents, 20, num_seats=3), "seats"),
        (lambda agents: play_match(agents * 3, 2), "2 to 4"),
    ],
)
def test_bad_matches_are_refused(call: Callable[[list[Any]], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call([make_agent("random", "ruibal"), make_agent("tips", "ruibal")])


def test_labels_tell_equal_agents_apart() -> None:
    agents = [make_agent(name, "ruibal") for name in ("tips", "random", "tips")]
    assert labels_of(agents) == ["tips#1", "random", "tips#2"]
