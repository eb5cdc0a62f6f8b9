"""The command ``record``: films and strips of a game, with what each decision lost."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from agents.errors import UsageError
from agents.evaluation.film import episode_frames, write_film
from agents.evaluation.sampled import EVALUATION_SEED
from agents.evaluation.traces import trace_game
from agents.registry import make_agent
from generala_env.envs import picture
from generala_env.rules import get_variant
from generala_env.rules.names import Language
from scripts.record import main

ROOT = Path(__file__).parents[2]
SHAPE = (442, 320, 3)
"""A picture of 320 pixels with two lines below it."""


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    main([*map(str, arguments), "--json"])
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_a_gif_shows_every_decision_and_the_end(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "game.gif"
    result = as_json(capsys, "--agent", "tips", "--size", 320, "--fps", 4, "--out", out)
    with Image.open(out) as film:
        assert film.size == (320, 442)
        assert film.n_frames == len(result["decisions"]) + 1
        assert film.info["duration"] == 250
    trace = trace_game(make_agent("tips", "ruibal"), seed=EVALUATION_SEED)
    assert result["score"] == trace.score
    assert result["regret"] == pytest.approx(sum(decision.regret for decision in trace.decisions))
    assert result["regret"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["game.gif"]


@pytest.mark.parametrize("size", [320, 321])
def test_an_mp4_can_be_read_back(size: int, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "game.mp4"
    arguments = ("--agent", "turn_greedy", "--size", size, "--out", out, "--variant", "doble", "--seed", 5)
    result = as_json(capsys, *arguments)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(out))
    # The last picture stays for three.
    assert count == seconds == len(result["decisions"]) + 3


def test_a_png_holds_all_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "game.png"
    result = as_json(
        capsys,
        "--agent",
        "optimal",
        "--size",
        320,
        "--out",
        out,
        "--set",
        "generala_points=50",
        "--lang",
        "pt",
    )
    assert result["regret"] == pytest.approx(0, abs=1e-9)
    with Image.open(out) as strip:
        columns, rows = (strip.width + 8) // 328, (strip.height + 8) // 450
    assert columns * rows >= len(result["decisions"]) + 1 > columns * (rows - 1)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is written."""
    said: list[str] = []
    text = picture._Pen.text

    def note(pen: Any, x: float, y: float, words: str, *rest: Any) -> None:
        said.append(words)
        text(pen, x, y, words, *rest)

    monkeypatch.setattr(picture._Pen, "text", note)
    return said


def test_beside_each_decision_stands_what_it_lost_and_what_was_right(words: list[str]) -> None:
    trace = trace_game(make_agent("random", "clasica", seed=1), seed=1, instant_win="play_on")
    variant = get_variant("clasica")
    frames = episode_frames(variant, trace, language=Language.ES, size=320)
    assert {frame.shape for frame in frames} == {SHAPE}
    assert len({frame.tobytes() for frame in frames}) == len(frames)
    did = [said for said in words if said.startswith("Hizo: ")]
    best = [said for said in words if said.startswith("Jugada óptima: ")]
    assert len(did) == len(best) == len(trace.decisions) == len(frames) - 1
    for decision, move, better in zip(trace.decisions, did, best, strict=True):
        lost = f" · pierde {decision.regret:.3f}".replace(".", ",")
        assert move.endswith(lost) == (decision.regret >= 0.0005)
        assert decision.regret < 0.0005 or better != "Jugada óptima: la misma"
    assert f"Puntaje final: {trace.score:g}." in words


@pytest.mark.parametrize("instant_win", ["perfect", "play_on"])
def test_a_served_generala_ends_the_film_only_where_it_ended_the_game(
    instant_win: Any, words: list[str]
) -> None:
    agent = make_agent("optimal", "ruibal", instant_win="perfect")
    game = next(
        game for game in range(2_000) if trace_game(agent, game=game, instant_win="perfect").is_instant_win
    )
    trace = trace_game(
        make_agent("optimal", "ruibal", instant_win=instant_win), game=game, instant_win=instant_win
    )
    assert trace.is_instant_win == (instant_win == "perfect")
    frames = episode_frames(get_variant("ruibal"), trace, size=320)
    assert len(frames) == len(trace.decisions) + 1
    wins = f"A served Generala wins at once. Final score: {trace.score:g}."
    assert (wins in words) == trace.is_instant_win


def test_what_stood_there_stays_where_writing_fails(tmp_path: Path) -> None:
    out = tmp_path / "game.gif"
    out.write_text("older")
    with pytest.raises(TypeError):
        write_film(out, [np.zeros(SHAPE, np.complex128)], frames_per_second=1)
    assert out.read_text() == "older"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "game.txt"], "--out: 'game.txt' does not end in .gif, .mp4, .png"),
        (["--out", "nowhere/game.gif"], "--out: 'nowhere' is not a folder"),
        (["--out", "game.gif", "--size", "100"], "--size: .* 100 is not a whole number of pixels from 320"),
        (["--out", "game.gif", "--fps", "0"], "--fps: 0.0 is not from 0.1 to 60"),
        (["--out", "game.gif", "--fps", "nan"], "--fps: nan is not from 0.1 to 60"),
        (["--out", "game.gif", "--variant", "chess"], "chess"),
    ],
)
def test_bad_input_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises((UsageError, ValueError), match=message):
        main(["--agent", "tips", *arguments])


def test_bad_input_ends_with_one_line_and_2() -> None:
    command = [sys.executable, "scripts/record.py", "--agent", "nobody", "--out", "game.gif"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "nobody" in done.stderr
