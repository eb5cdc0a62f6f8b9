"""``solve.py --players 2``: what it prints, and how it refuses."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agents.errors import UsageError
from scripts.solve import main

POSITION = "me: 50, open poker; other: 80, open none; dice 33334; throw 2"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    main(["--players", "2", "--json", *arguments])
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_a_game_is_solved_stored_and_opened(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ("--variant", "doble_obligada", "--store", str(tmp_path))
    first = run(capsys, *arguments)
    assert first["players"] == 2
    assert first["bytes"] == 4 * first["num_values"]
    assert first["num_card_pairs"] == 28
    assert 0.49 < first["first_player_value"] < 0.51
    again = run(capsys, *arguments, "--verify")
    assert first["seconds"] > 0
    # The seconds are those of the solve, whoever prints them.
    assert again == {**first, "loaded": True}
    assert first["loaded"] is False
    main(["--players", "2", *arguments])
    assert f"{first['seconds']:.1f} when it was solved; loaded" in capsys.readouterr().out


def test_a_store_that_does_not_say_what_solving_took_is_not_guessed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("--variant", "doble_obligada", "--store", str(tmp_path))
    run(capsys, *arguments)
    # As earlier versions wrote it.
    (path,) = tmp_path.glob("*/duel.json")
    body = json.loads(path.read_text())
    del body["checksum"]
    for entry in body["layers"].values():
        del entry["seconds"]
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**body, "checksum": digest}))
    again = run(capsys, *arguments)
    assert again["loaded"] is True
    assert again["seconds"] is None
    main(["--players", "2", *arguments])
    assert "not known; loaded" in capsys.readouterr().out


def test_a_position_lists_its_moves_the_best_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    result = run(capsys, "--position", POSITION, "--store", str(tmp_path))
    moves = result["moves"]
    # 40 points win; four threes stay a poker, so keeping them is as good as closing now.
    best = {move["move"] for move in moves if move["value"] == pytest.approx(1.0, abs=1e-12)}
    assert best == {"close poker for 40", "keep 3 3 3 3"} == {move["move"] for move in moves[:2]}
    assert [move["value"] for move in moves] == sorted((move["value"] for move in moves), reverse=True)
    assert result["value"] == pytest.approx(1.0, abs=1e-12)
    assert not list(tmp_path.iterdir())


def test_a_stored_game_answers_positions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ("--variant", "doble_obligada", "--store", str(tmp_path))
    whole = run(capsys, *arguments)
    start = "me: 0, open all; other: 0, open all"
    result = run(capsys, *arguments, "--position", start)
    assert result["value"] == whole["first_player_value"]
    assert result["moves"] == []
    won = run(capsys, *arguments, "--position", f"{start}; dice 44444")
    assert won["is_won"] is True
    assert won["moves"] == []


def test_tables_are_printed_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["--players", "2", "--variant", "clasica_obligada", "--store", str(tmp_path)])
    assert "first player" in capsys.readouterr().out
    main(["--players", "2", "--position", POSITION])
    assert "close poker for 40" in capsys.readouterr().out


def test_a_study_of_optimal_games_agrees_with_the_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ("--variant", "clasica_obligada", "--store", str(tmp_path), "--study", "3000")
    result = run(capsys, *arguments)
    study = result["study"]
    assert abs(study["first_player_sampled"] - result["first_player_value"]) < 4 * study["standard_error"]
    assert 0 < study["instant_win_share"] < 0.2
    assert 0 < study["differing_share"] < 1
    assert study["loss_per_game"] == pytest.approx(sum(study["loss_by_round"]))
    worst = study["dearest"][0]
    moves = run(capsys, *arguments[:4], "--position", worst["position"])["moves"]
    assert moves[0]["value"] == pytest.approx(worst["value"])
    # The command says how many points a box pays; the study only names it.
    lost = [
        moves[0]["value"] - move["value"] for move in moves if worst["for_points"] in _plain(move["move"])
    ]
    assert lost == pytest.approx([worst["loses"]])
    main(["--players", "2", *arguments])
    assert "The dearest decisions met" in capsys.readouterr().out


def _plain(move: str) -> set[str]:
    words = move.replace("strike", "close").split(" for ")
    return {words[0]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--position", POSITION), "--position: is for --players 2"),
        (("--players", "2", "--position", "me: 5"), "--position: other: missing"),
        (("--players", "2", "--set", "min_players=3", "--set", "max_players=4"), "--players: ruibal"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        main(arguments)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_damaged_store_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--players", "2", "--variant", "clasica_obligada", "--store", str(tmp_path), "--json"]
    main(arguments)
    capsys.readouterr()
    next(tmp_path.rglob("duel.json")).write_text("{}")
    with pytest.raises(UsageError, match=r"--store: .*damaged"):
        main(arguments)


def test_a_seat_follows_an_agent(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--variant", "clasica_obligada", "--instant-win", "play_on")
    against = run(capsys, *arguments, "--second", "optimal")
    assert (against["first"], against["second"]) == ("best response", "optimal")
    both = run(capsys, *arguments, "--first", "optimal", "--second", "optimal")
    assert both["first_player_value"] < against["first_player_value"] - 1e-4
    sampling = run(capsys, *arguments, "--second", "random", "--stochastic")
    assert sampling["first_player_value"] > against["first_player_value"] + 0.1
    main(["--players", "2", "--variant", "doble_obligada", "--first", "turn_greedy"])
    assert "best response" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stochastic",), "--stochastic: with --players 2, is for agents"),
        (("--instant-win", "play_on"), "--instant-win: with --players 2, is for agents"),
        (("--first", "optimum"), "--first: agent: 'optimum' is neither .* did you mean optimal"),
        (("--first", "optimal", "--study", "10"), "--study: is not for players who follow an agent"),
        (("--first", "optimal", "--store", "here"), "--store: is not for players who follow an agent"),
    ],
)
def test_what_does_not_go_with_an_agent_is_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        main(["--players", "2", *arguments])
