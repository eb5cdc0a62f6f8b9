"""The terminal game, driven through its input: moves, undo, hints, records, resuming, reviews."""

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from agents.errors import UsageError
from agents.games.advice import Adviser
from agents.games.record import GameRecord, RecordError, Table
from agents.games.seating import seat_names
from agents.games.verdicts import judge, review_json
from agents.terminal.game import Leave, TerminalGame
from agents.terminal.moves import NotUnderstood, parse_dice, parse_move
from agents.terminal.review import replay, review
from agents.terminal.screen import Screen
from agents.terminal.words import TEXT_KEYS, text
from generala_env.rules import get_variant
from generala_env.rules.actions import Close, Keep, action_id
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import Game, GameState
from generala_env.rules.names import Language
from scripts.play import main

ROOT = Path(__file__).parents[2]


class Input:
    """Hands out lines as if typed; the end of them is the end of input."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = iter(lines)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        try:
            return next(self.lines)
        except StopIteration:
            raise EOFError from None


def closing_everything() -> Iterable[str]:
    """Close the lowest box that is open, whatever the dice: tries every box again and again."""
    while True:
        for number in range(1, 12):
            yield f"c{number}"
            yield ""


def game(
    path: Path | None, lines: Iterable[str], seats: tuple[str, ...] = ("me", "tips"), **options: Any
) -> tuple[TerminalGame, io.StringIO]:
    variant = get_variant(options.pop("variant", "ruibal"))
    record = GameRecord.create(path, Table(variant, seats, options.pop("seed", 3)))
    out = io.StringIO()
    console = Console(file=out, width=100, height=60)
    return TerminalGame(record, console, read=Input(lines), **options), out


def on_the_table(variant: str, *moves: tuple[int, ...] | Keep) -> tuple[GameState, Any]:
    rules = Game(get_variant(variant).override(first_player="seat"), 2)
    state = rules.initial_state()
    for move in moves:
        state = rules.apply_chance(state, move) if isinstance(move, tuple) else rules.apply(state, move)
    mask = np.zeros(31 + rules.variant.num_boxes, dtype=bool)
    mask[[action_id(action) for action in rules.legal_actions(state)]] = True
    return state, mask


# --- reading moves --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "skin", "dice"),
    [
        ("4 4 4", "standard", (4, 4, 4)),
        ("6,1", "standard", (1, 6)),
        ("444", "standard", (4, 4, 4)),
        ("K k 10", "poker", (2, 5, 5)),
        ("1010Q", "poker", (2, 2, 4)),
        ("9A", "poker", (1, 6)),
        ("7", "standard", None),
        ("4x", "standard", None),
        ("", "standard", None),
        ("1", "poker", None),
    ],
)
def test_faces_are_read(typed: str, skin: str, dice: tuple[int, ...] | None) -> None:
    assert parse_dice(typed, skin) == dice


@pytest.mark.parametrize(
    ("typed", "language", "skin", "action"),
    [
        ("2 2", "en", "standard", Keep(0b00011)),
        ("#12", "en", "standard", Keep(0b00011)),
        ("#2 5", "en", "standard", Keep(0b10001)),
        ("-", "en", "standard", Keep(0)),
        ("c2", "en", "standard", Close(1)),
        ("C 7", "en", "standard", Close(6)),
        ("full", "es", "standard", Close(7)),
        ("straight", "en", "standard", Close(6)),
        ("escalera", "pt", "standard", Close(6)),
        ("sequ", "pt", "standard", Close(6)),
        ("póker", "es", "standard", Close(8)),
        ("10 10", "en", "poker", Keep(0b00011)),
        ("tens", "en", "poker", Close(1)),
    ],
)
def test_moves_are_read(typed: str, language: str, skin: str, action: Keep | Close) -> None:
    state, mask = on_the_table("ruibal", (2, 2, 3, 4, 6))
    move = parse_move(typed, get_variant("ruibal"), state, mask, language, skin)
    assert move == action_id(action)


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("5 5", "no_such_dice"),
        ("2 2 3 4 6", "all_five"),
        ("c11", "not_open"),
        ("c0", "not_open"),
        ("#6", "not_understood"),
        ("#11", "not_understood"),
        ("what", "not_understood"),
    ],
)
@pytest.mark.parametrize("language", Language)
def test_what_cannot_be_done_is_explained(typed: str, key: str, language: str) -> None:
    state, mask = on_the_table("ruibal", (2, 2, 3, 4, 6))
    with pytest.raises(NotUnderstood) as raised:
        parse_move(typed, get_variant("ruibal"), state, mask, language, "standard")
    assert str(raised.value) == text(key, language, text=typed)


def test_the_beginning_of_two_names_is_no_box() -> None:
    state, mask = on_the_table("ruibal", (2, 2, 3, 4, 6))
    with pytest.raises(NotUnderstood, match="'fo'"):
        parse_move("fo", get_variant("ruibal"), state, mask, "en", "standard")


def test_locked_dice_and_the_last_throw_are_explained() -> None:
    keep = Keep(0b00011)
    state, mask = on_the_table("doble_fija", (2, 2, 3, 4, 6), keep, (2, 2, 3, 5, 5))
    with pytest.raises(NotUnderstood, match="locked"):
        parse_move("5 5", get_variant("doble_fija"), state, mask, "en", "standard")
    state, mask = on_the_table("ruibal", (2, 2, 3, 4, 6), keep, (2, 2, 3, 5, 5), keep, (2, 2, 3, 5, 5))
    with pytest.raises(NotUnderstood, match="no throws"):
        parse_move("5 5", get_variant("ruibal"), state, mask, "en", "standard")


def test_every_text_exists_in_every_language() -> None:
    for key in TEXT_KEYS:
        texts = {text(key, language, **dict.fromkeys(FIELDS, 1)) for language in Language}
        assert all(texts)


FIELDS = (
    "what",
    "count",
    "points",
    "name",
    "dice",
    "why",
    "text",
    "path",
    "command",
    "good",
    "cost",
    "value",
)


def test_seats_are_called_by_their_names() -> None:
    assert seat_names(("me", "me:Ana", "tips", "me", "runs/ppo"), "es") == [
        "jugador 1",
        "Ana",
        "tips",
        "jugador 2",
        "ppo",
    ]
    assert seat_names(("me", "tips"), "es") == ["vos", "tips"]


# --- playing --------------------------------------------------------------------------------------


def test_a_game_is_played_to_its_end_and_recorded(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    played, out = game(
        path, closing_everything(), ("me", "tips", "solo_optimal"), variant="doble", language="es"
    )
    played.play()
    state = played.record.dealt.state
    assert played.record.dealt.is_over
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["format"] == "generala-game"
    assert lines[0]["fingerprint"] == get_variant("doble").fingerprint
    assert [line["action"] for line in lines[1:-1]] == played.record.actions
    assert lines[-1]["result"]["scores"] == list(state.scores)
    assert "fin de la partida" in out.getvalue()
    assert "Doble Generala" in out.getvalue()


def test_nothing_happens_before_a_move_is_confirmed_and_undo_takes_it_back() -> None:
    played, _ = game(None, ["-", "u", "c1", "u"])
    with pytest.raises(Leave):
        played.play()
    own = [seat for seat, agent in enumerate(played.seating.agents) if agent is None]
    assert not [state for state, _ in played.record.history() if state.current_player in own]
    assert "undo" in "".join(played.read.prompts)  # type: ignore[attr-defined]
    assert "throw all five" in "".join(played.read.prompts)  # type: ignore[attr-defined]


def test_kept_dice_and_positions_reach_the_game() -> None:
    played, _ = game(None, ["#1 2", "", "x"])
    with pytest.raises(Leave):
        played.play()
    state = played.record.dealt.state
    assert state.turn.throw == 2
    assert len(state.turn.kept) == 2


def test_a_hint_names_what_the_solver_would_do() -> None:
    played, out = game(None, ["?", "x"], ("me",), variant="ruibal")
    with pytest.raises(Leave):
        played.play()
    shown = out.getvalue()
    assert "what is best" in shown
    dealt = played.record.dealt
    best = played.adviser.choices(dealt.state, dealt.action_mask())[0]
    assert played.screen.move(dealt.state, best.action) in shown
    assert f"{best.points:.2f}" in shown
    assert "wins" not in shown


def test_hints_at_a_table_show_chances_of_winning() -> None:
    played, out = game(None, ["?", "x"], ("me", "tips", "random"), language="pt")
    with pytest.raises(Leave):
        played.play()
    assert "ganha %" in out.getvalue()
    assert "estimado" in out.getvalue()


def test_two_players_with_a_solved_game_get_exact_hints() -> None:
    variant = get_variant("ruibal").override(boxes=["fives", "sixes", "generala"])
    adviser = Adviser(compile_variant(variant), 2)
    dealt = Table(variant, ("me", "me"), 1).deal()
    choices = adviser.choices(dealt.state, dealt.action_mask())
    assert adviser.is_exact
    assert choices[0].win is not None
    assert 0 < choices[0].win < 1


def test_poker_dice_show_their_labels_and_are_typed_so() -> None:
    played, out = game(None, ["h", "kings", "", "x"], skin="poker", seed=8)
    with pytest.raises(Leave):
        played.play()
    shown = out.getvalue()
    assert "Kings" in shown
    assert "●" not in shown
    assert any(state.current_player == 0 for state, _ in played.record.history())


def test_a_table_of_people_only_needs_no_agent(tmp_path: Path) -> None:
    played, _ = game(tmp_path / "g.jsonl", closing_everything(), ("me:Ana", "me:Luis"), variant="clasica")
    played.play()
    assert played.screen.names == ["Ana", "Luis"]
    assert played.record.dealt.is_over


def test_one_person_alone_plays_any_variant() -> None:
    played, _ = game(None, closing_everything(), ("me",), variant="clasica_obligada")
    played.play()
    assert played.record.dealt.is_over


# --- what is seen ---------------------------------------------------------------------------------


def frames(
    lines: Iterable[str], seats: tuple[str, ...], *, width: int, height: int, **options: Any
) -> list[list[str]]:
    """Play on a terminal of a size and return what stood on it at each prompt, line by line."""
    record = GameRecord.create(None, Table(get_variant(options.pop("variant", "doble")), seats, 5))
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=True, color_system=None)

    typed = Input(lines)

    def read(prompt: str) -> str:
        out.write(prompt)
        return typed(prompt)

    with contextlib.suppress(Leave):
        TerminalGame(record, console, read=read, **options).play()
    cleared = out.getvalue().split("\x1b[2J\x1b[H")[1:]
    return [frame.splitlines() for frame in cleared]


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (120, 24)])
@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("variant", ["doble", "clasica"])
def test_the_title_the_names_and_the_dice_stay_on_a_small_terminal(
    size: tuple[int, int], language: str, variant: str
) -> None:
    width, height = size
    seats = ("me", "me:Maximiliano", "solo_optimal", "tips")
    shown = frames(
        ["u", "zzz", "c1", "u", "-", "", "c2", ""],
        seats,
        width=width,
        height=height,
        variant=variant,
        language=language,
    )
    assert len(shown) > 8
    for frame in shown:
        text_shown = "\n".join(frame)
        # The terminal breaks long lines itself, as the prompt may be.
        assert sum(max(1, -(-len(line) // width)) for line in frame) <= height, text_shown
        assert max(map(len, frame[:-1])) <= width, text_shown
        assert "…" not in text_shown
        assert all(name in text_shown for name in seat_names(seats, language)), text_shown
        assert f"Generala · {variant}" in text_shown


def test_a_hint_takes_the_room_of_the_sheet_and_gives_it_back() -> None:
    hinted, after = frames(["?", ""], ("me",), width=60, height=20)[1:3]
    assert any("what is best" in line for line in hinted)
    assert len(hinted) <= 20
    assert not any("Straight" in line for line in hinted if "close" not in line and "strike" not in line)
    assert any("Straight" in line for line in after)


@pytest.mark.parametrize(("typed", "key"), [("u", "nothing_to_undo"), ("", "nothing_to_confirm")])
def test_what_has_nothing_to_act_on_says_so(typed: str, key: str) -> None:
    _, answered = frames([typed], ("me", "tips"), width=80, height=24, language="es")[-2:]
    assert text(key, "es") in "\n".join(answered)


def test_another_move_at_the_confirmation_takes_the_place_of_the_first() -> None:
    played, _ = game(None, ["c1", "c2", "", "x"], ("me",))
    with pytest.raises(Leave):
        played.play()
    assert played.record.actions == [action_id(Close(1))]


@pytest.mark.parametrize("typed", ["nonsense", "h", "u"])
def test_nothing_is_done_by_the_line_after_one_that_is_no_confirmation(typed: str) -> None:
    played, _ = game(None, ["c1", typed, "", "x"], ("me",))
    with pytest.raises(Leave):
        played.play()
    assert not played.record.actions


def test_served_is_said_where_a_box_pays_for_it() -> None:
    table = Table(get_variant("ruibal"), ("me",), 0)
    screen = Screen(Console(file=io.StringIO()), table, language="es", skin="standard")
    for dice, is_said in (((1, 1, 2, 3, 6), False), ((1, 2, 3, 4, 5), True)):
        rules = Game(table.variant, 1, solo=True)
        screen.console.file = out = io.StringIO()
        screen.draw(rules.apply_chance(rules.initial_state(), dice))
        assert ("servido" in out.getvalue()) is is_said


@pytest.mark.parametrize(
    ("language", "starts"), [("es", "salís vos"), ("pt", "você começa"), ("en", "you go first")]
)
def test_the_person_is_addressed_in_whole_sentences(language: str, starts: str, finished: Path) -> None:
    shown = frames([], ("me", "tips"), width=80, height=40, variant="ruibal", language=language)
    assert starts in "\n".join(shown[-1])
    out = io.StringIO()
    record = GameRecord.read(finished)
    screen = Screen(Console(file=out, width=120), record.table, language=language, skin="standard")
    review(record, screen, Adviser(compile_variant("ruibal"), 2))
    assert text("review_title_you", language) in out.getvalue()
    assert f" {seat_names(('me',), language)[0]} que" not in out.getvalue()


@pytest.mark.parametrize(("language", "cost"), [("es", r"\d+,\d\d % de prob"), ("en", r"\d+\.\d\d % chance")])
def test_a_review_says_of_what_its_costs_are_and_that_they_are_estimates(
    language: str, cost: str, finished: Path, tmp_path: Path
) -> None:
    out = io.StringIO()
    record = GameRecord.read(finished)
    screen = Screen(Console(file=out, width=200), record.table, language=language, skin="standard")
    review(record, screen, Adviser(compile_variant("ruibal"), 2, tmp_path))
    assert re.search(cost, out.getvalue())
    assert text("estimate_note", language) in out.getvalue()
    assert text("unit_win", language) in out.getvalue()
    for name in screen.names:
        assert re.search(rf"^{name}: \d+ .*\d %", out.getvalue(), re.MULTILINE)
    # An estimate does not tell what is optimal.
    assert "optimal;" not in out.getvalue()
    assert "óptimas" not in out.getvalue()


@pytest.mark.parametrize("language", Language)
def test_a_review_is_not_cut_on_a_narrow_terminal(language: str) -> None:
    played, _ = game(None, closing_everything(), ("me", "random"), variant="doble")
    played.play()
    out = io.StringIO()
    screen = Screen(Console(file=out, width=60), played.record.table, language=language, skin="standard")
    review(played.record, screen, played.adviser)
    assert "…" not in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 60


def test_a_name_is_shown_as_it_was_given() -> None:
    played, out = game(None, closing_everything(), ("me:[/b]", "random"))
    played.play()
    review(played.record, played.screen, played.adviser)
    lines = out.getvalue().splitlines()
    name = re.escape("[/b]")
    for told in (rf"box .*{name}", rf"[12]\. +{name}", f"decisions of {name} that"):
        assert any(re.search(told, line) for line in lines), told


def test_hints_have_the_decimal_sign_of_their_language() -> None:
    played, out = game(None, ["?", "x"], ("me",), language="es")
    with pytest.raises(Leave):
        played.play()
    dealt = played.record.dealt
    best = played.adviser.choices(dealt.state, dealt.action_mask())[0]
    assert f"{best.points:.2f}".replace(".", ",") in out.getvalue()


def test_a_game_ends_with_places_and_by_how_much_it_was_won() -> None:
    played, out = game(None, closing_everything(), ("me", "solo_optimal"), language="es")
    played.play()
    state = played.record.dealt.state
    mine, other = state.scores
    assert other > mine
    shown = out.getvalue()
    assert re.search(rf"1\. +solo_optimal +{other} +\+{other - mine} ", shown)
    assert re.search(rf"2\. +vos +{mine} +\N{{MINUS SIGN}}{other - mine} ", shown)


# --- records --------------------------------------------------------------------------------------


def test_a_resumed_game_is_the_game_that_was_not_interrupted(tmp_path: Path) -> None:
    whole, _ = game(tmp_path / "whole.jsonl", closing_everything(), ("me", "race"), variant="clasica")
    whole.play()
    lines = [line for _, line in zip(range(7), closing_everything(), strict=False)]
    path = tmp_path / "cut.jsonl"
    cut, _ = game(path, lines, ("me", "race"), variant="clasica")
    with pytest.raises(Leave):
        cut.play()
    # A crash while a line is written leaves part of it.
    with path.open("a", encoding="utf-8") as file:
        file.write('{"seat": 1, "rou')
    record = GameRecord.read(path)
    record.resume()
    assert record.actions == whole.record.actions[: len(record.actions)]
    assert 0 < len(record.actions) < len(whole.record.actions)
    again = TerminalGame(record, Console(file=io.StringIO()), read=Input(closing_everything()))
    again.play()
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert GameRecord.read(path).dealt.state == whole.record.dealt.state


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    path = tmp_path / "finished.jsonl"
    game(path, closing_everything(), ("me", "solo_optimal"))[0].play()
    return path


def change(path: Path, number: int, **values: Any) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    line = {**json.loads(lines[number]), **values}
    lines[number] = json.dumps(line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("number", "values", "message"),
    [
        (0, {"format": "chess"}, r':1: format "chess"'),
        (0, {"version": 2}, r":1: version 2"),
        (0, {"fingerprint": "0"}, r':1: fingerprint "0"'),
        (0, {"seed": "x"}, r":1: seed"),
        (0, {"seats": []}, r":1: seats"),
        (0, {"seats": ["me"] * 9}, r":1: num_players"),
        (0, {"variant": {"name": "x"}}, r":1: variant"),
        (0, {"language": "xx"}, r":1: language: 'xx' is not one of es, pt, en"),
        (0, {"dice": ["poker"]}, r":1: dice: \['poker'\] is not one of standard, poker"),
        (0, {"seed": 4}, r":2: dice .* do not follow from seed 4"),
        (3, {"dice": [1, 1, 1, 1, 1]}, r":4: dice"),
        (3, {"action": 99}, r":4: action 99"),
        (3, {"action": "keep"}, r':4: action: "keep"'),
    ],
)
def test_changed_records_are_refused_with_their_line(
    finished: Path, number: int, values: dict[str, Any], message: str
) -> None:
    change(finished, number, **values)
    with pytest.raises(RecordError, match=message):
        GameRecord.read(finished)


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(RecordError, match="cannot be read"):
        GameRecord.read(path)
    path.write_bytes(b"")
    with pytest.raises(RecordError, match="is empty"):
        GameRecord.read(path)
    path.write_bytes(b"\x80\x04pickle\n")
    with pytest.raises(RecordError, match=":1: is not a line of JSON"):
        GameRecord.read(path)


def test_an_existing_file_is_never_overwritten(finished: Path) -> None:
    before = finished.read_bytes()
    with pytest.raises(RecordError, match="exists already"):
        GameRecord.create(finished, Table(get_variant("ruibal"), ("me",), 1))
    assert finished.read_bytes() == before


def test_a_misspelt_agent_leaves_no_file_behind(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    with pytest.raises(ValueError, match="did you mean tips"):
        main(["--seats", "me", "tipps", "--record", str(path)])
    assert not path.exists()


# --- afterwards -----------------------------------------------------------------------------------


def test_a_replay_shows_every_position(finished: Path) -> None:
    record = GameRecord.read(finished)
    out = io.StringIO()
    screen = Screen(Console(file=out, width=120), record.table, language="en", skin="standard")
    steps: list[None] = []
    replay(record, screen, lambda: steps.append(None))
    assert len(steps) == len(record.actions)
    assert out.getvalue().count("Generala · ruibal") == len(record.actions) + 1
    assert "game over" in out.getvalue()


def test_a_review_finds_no_fault_with_optimal_play_alone_and_some_with_mine(tmp_path: Path) -> None:
    perfect, _ = game(tmp_path / "a.jsonl", [], ("optimal",))
    perfect.play()
    adviser = Adviser(compile_variant("ruibal"), 1)
    (verdicts,) = judge(perfect.record, adviser)
    assert len(verdicts) > 10
    assert sum(verdict.cost for verdict in verdicts) == pytest.approx(0.0, abs=1e-9)
    mine, _ = game(tmp_path / "b.jsonl", closing_everything(), ("me",))
    mine.play()
    report = review_json(mine.record, adviser, ["me"])
    (seat,) = report["seats"]
    assert report["unit"] == "points"
    assert seat["total_cost"] > 50
    assert seat["mistakes"][0]["cost"] == max(mistake["cost"] for mistake in seat["mistakes"])
    assert seat["num_optimal"] < seat["num_decisions"]


def test_race_is_its_own_judge_where_nothing_better_is_known() -> None:
    played, _ = game(None, [], ("race", "tips", "tips"))
    played.play()
    report = review_json(played.record, Adviser(compile_variant("ruibal"), 3), ["race", "a", "b"])
    assert not report["is_exact"]
    race, *others = report["seats"]
    assert race["total_cost"] == pytest.approx(0.0, abs=1e-6)
    assert all(seat["total_cost"] > 0.01 for seat in others)


# --- the command ----------------------------------------------------------------------------------


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "scripts/play.py", *arguments],
        cwd=ROOT,
        encoding="utf-8",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Jobs that a shell starts in the background ignore Ctrl-C, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_the_command_plays_replays_and_reviews(
    finished: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--replay", str(finished), "--lang", "es"]) == 0
    assert "fin de la partida" in capsys.readouterr().out
    assert main(["--review", str(finished), "--store", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "decisions as the estimate prefers" in out
    assert main(["--review", str(finished), "--json", "--store", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["variant"] == "ruibal"
    assert len(report["seats"]) == 2
    for arguments, message in ((["--json"], "--json"), (["--pause", "-1"], "--pause")):
        with pytest.raises(UsageError, match=message):
            main(arguments)


def test_a_game_is_taken_up_again_in_its_language_and_with_its_dice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "a game.jsonl"
    new = ["--seats", "me", "tips", "--seed", "3", "--pause", "0", "--record", str(path)]
    commands = []
    for arguments in (
        [*new, "--lang", "es", "--dice", "poker"],
        ["--resume", str(path)],
        ["--resume", str(path), "--lang", "en", "--dice", "standard"],
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO("x\n"))
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert ("para seguir" in out) is (arguments[-1] != "standard")
        assert ("Reyes" in out) is (arguments[-1] != "standard")
        commands.append(shlex.split(out[out.rindex("--resume") :]))
    assert commands == [
        ["--resume", str(path), "--lang", "es", "--dice", "poker"],
        ["--resume", str(path), "--lang", "es", "--dice", "poker"],
        ["--resume", str(path), "--lang", "en", "--dice", "standard"],
    ]
    assert main(["--replay", str(path)]) == 0
    assert "ronda 1/10" in capsys.readouterr().out


def test_ctrl_c_leaves_a_record_that_can_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    process = start("--seats", "me", "tips", "--seed", "3", "--pause", "0", "--record", str(path))
    assert process.stdin is not None
    process.stdin.write("-\n\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and '"does": "keep nothing"' not in (
        path.read_text(encoding="utf-8") if path.exists() else ""
    ):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    # communicate() closes standard input, and a game that sees its end leaves by another way.
    process.wait(timeout=60)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert f"--resume {path}" in out
    assert "Traceback" not in err
    before = path.read_bytes()
    assert b"keep nothing" in before
    resumed = start("--resume", str(path), "--pause", "0")
    out, err = resumed.communicate("c1\n\nx\n", timeout=60)
    assert resumed.returncode == 0, err
    after = path.read_bytes()
    assert after.startswith(before)
    assert b"close ones" in after[len(before) :]
