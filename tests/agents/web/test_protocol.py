"""What the page asks and is answered: games, advice, verdicts, reviews and the deal of the day."""

import dataclasses
import datetime
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from agents.games.record import GameRecord
from agents.web.daily import daily_table
from agents.web.server import Server, Settings
from generala_env.envs.dealing import DealtGame
from generala_env.rules.variants import PRESETS, get_variant
from generala_env.solver.solo import solve_solo
from tests.agents.web.conftest import HOST

KEYS = (f"{number:016x}" for number in itertools.count())
SMALL = ["boxes=ones sixes generala"]
DAILY_SEED = 98_398_859_146_827


def begin(page: TestClient, *seats: str, **values: Any) -> dict[str, Any]:
    message = {"key": next(KEYS), "seats": list(seats), "seed": 3, "overrides": SMALL, **values}
    answer = page.post("/api/games", json=message)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refused(answer: Any, status: int, reason: str, *words: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (status, reason)
    assert all(word in answer.json()["message"] for word in words), answer.text
    assert "\n" not in answer.json()["message"]


def played_out(page: TestClient, game: dict[str, Any]) -> dict[str, Any]:
    """Close the first box there is, whenever a person is to move."""
    path = f"/api/games/{game['id']}"
    while not game["is_over"]:
        if game["seats"][game["current_player"]]["is_person"]:
            move = {"at": game["at"], "action": game["closings"][0]["action"]}
            game = page.post(f"{path}/take", json=move).json()["game"]
        else:
            game = page.post(f"{path}/step", json={"at": game["at"]}).json()["game"]
    return game


# --- playing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", PRESETS)
def test_every_variant_is_played_to_its_end_and_the_record_says_so(
    page: TestClient, settings: Settings, variant: str
) -> None:
    game = played_out(page, begin(page, "me", "tips", variant=variant, overrides=[]))
    (path,) = settings.games.glob("*/*.jsonl")
    record = GameRecord.read(path)
    assert record.dealt.is_over
    assert list(record.dealt.state.scores) == game["scores"]
    assert list(record.dealt.state.winners) == game["winners"]
    assert game["decided_by"] is not None
    assert page.get(f"/api/games/{game['id']}/record").text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("seats", [("me",), ("me:Ana", "me:Luis", "race"), ("random", "tips", "race", "me")])
def test_from_one_to_four_sit_at_a_table(page: TestClient, seats: tuple[str, ...]) -> None:
    game = played_out(page, begin(page, *seats))
    assert len(game["scores"]) == len(seats)
    assert [seat["is_person"] for seat in game["seats"]] == [seat.startswith("me") for seat in seats]


def test_what_may_be_kept_is_the_engines_word(page: TestClient) -> None:
    game = begin(page, "me", variant="doble_fija", overrides=[])
    keep = next(mask for mask in range(1, 31) if game["keeps"][mask])
    path = f"/api/games/{game['id']}"
    after = page.post(f"{path}/take", json={"at": 0, "action": keep}).json()["game"]
    assert after["throw"] == 2
    kept = {place for place, is_kept in enumerate(after["kept"]) if is_kept}
    allowed = {mask for mask in range(32) if after["keeps"][mask]}
    # Locked dice stay, or all five are thrown again.
    assert kept
    assert 0 in allowed
    assert 31 not in allowed
    assert all(mask == 0 or len(kept) <= mask.bit_count() for mask in allowed)
    wrong = next(mask for mask in range(31) if mask not in allowed)
    refused(page.post(f"{path}/take", json={"at": 1, "action": wrong}), 400, "bad_request", "not allowed")
    assert page.get(path).json()["at"] == 1


def test_asking_twice_takes_one_action(page: TestClient) -> None:
    game = begin(page, "me", "me")
    move = {"at": 0, "action": game["closings"][0]["action"]}
    path = f"/api/games/{game['id']}/take"
    first, second = page.post(path, json=move).json(), page.post(path, json=move).json()
    assert first == second
    assert first["game"]["at"] == 1
    refused(page.post(path, json={"at": 0, "action": 0}), 409, "stale", "0 decisions", "1 were taken")
    refused(page.post(path, json={"at": 5, "action": 0}), 409, "stale")
    again = page.post("/api/games", json={"key": game["id"][5:], "seats": ["tips"]}).json()
    assert (again["id"], again["at"]) == (game["id"], 1)


def test_an_agent_takes_one_step_however_often_it_is_asked_for(page: TestClient) -> None:
    game = begin(page, "tips", "race")
    path = f"/api/games/{game['id']}/step"
    first, second = (page.post(path, json={"at": 0, "judge": True}).json() for _ in range(2))
    assert first == second
    assert first["game"]["at"] == 1
    assert first["verdict"]["cost"] >= 0


def test_people_and_agents_do_not_move_for_each_other(page: TestClient) -> None:
    mine, theirs = begin(page, "me", "me"), begin(page, "tips", "tips")
    refused(page.post(f"/api/games/{mine['id']}/step", json={"at": 0}), 400, "bad_request", "person")
    move = {"at": 0, "action": theirs["closings"][0]["action"]}
    refused(page.post(f"/api/games/{theirs['id']}/take", json=move), 400, "bad_request", "agent")


def test_the_same_table_again_has_other_dice(page: TestClient) -> None:
    game = begin(page, "me:Ana", "tips")
    again = page.post(f"/api/games/{game['id']}/again", json={"key": next(KEYS)}).json()
    assert again["id"] != game["id"]
    assert (again["seats"], again["variant"]) == (game["seats"], game["variant"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"variant": "rubial"}, ["rubial", "ruibal"]),
        ({"overrides": ["generala_pionts=3"]}, ["generala_pionts", "generala_points"]),
        ({"overrides": ["nonsense"]}, ["nonsense", "FIELD=VALUE"]),
        ({"overrides": ["order=[1"]}, ["order"]),
        ({"seats": ["me", "tipps"]}, ["tipps"]),
        ({"seats": ["race"]}, ["race", "cannot play alone"]),
        ({"seats": []}, ["seats"]),
        ({"seats": ["me"] * 5}, ["seats"]),
        ({"seats": "me"}, ["seats"]),
        ({"seed": -1}, ["seed"]),
        ({"seed": True}, ["seed"]),
        ({"key": "../../etc/passwd"}, ["key"]),
        ({"key": None}, ["key"]),
        ({"unknown": 1}, ["unknown"]),
    ],
)
def test_a_game_that_cannot_be_is_refused_in_one_line_and_leaves_nothing(
    page: TestClient, settings: Settings, change: dict[str, Any], words: list[str]
) -> None:
    message = {"key": next(KEYS), "seats": ["me", "tips"], **change}
    refused(page.post("/api/games", json=message), 400, "bad_request", *words)
    assert not list(settings.games.rglob("*.jsonl"))


# --- what lasts -----------------------------------------------------------------------------------


def test_a_server_that_was_restarted_goes_on_where_it_was(page: TestClient, settings: Settings) -> None:
    game = begin(page, "me", "tips")
    path = f"/api/games/{game['id']}"
    while not game["seats"][game["current_player"]]["is_person"]:
        game = page.post(f"{path}/step", json={"at": game["at"]}).json()["game"]
    game = page.post(f"{path}/take", json={"at": game["at"], "action": 0}).json()["game"]
    (file,) = settings.games.glob("*/*.jsonl")
    with file.open("a", encoding="utf-8") as cut_short:
        cut_short.write('{"seat": 0, "rou')
    later = TestClient(Server(settings).app(), base_url=HOST, cookies=dict(page.cookies))
    assert later.get(path).json() == game
    assert played_out(later, game)["is_over"]
    assert GameRecord.read(file).dealt.is_over


def test_two_servers_of_one_folder_see_each_others_moves(page: TestClient, settings: Settings) -> None:
    game = begin(page, "me", "me")
    other = TestClient(Server(settings).app(), base_url=HOST, cookies=dict(page.cookies))
    path = f"/api/games/{game['id']}"
    assert other.get(path).json()["at"] == 0
    page.post(f"{path}/take", json={"at": 0, "action": 0})
    assert other.post(f"{path}/take", json={"at": 1, "action": 0}).json()["game"]["at"] == 2
    assert page.get(path).json()["at"] == 2


def test_what_could_not_be_written_did_not_happen(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    game = begin(page, "me", "me")
    path = f"/api/games/{game['id']}"

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(GameRecord, "_append", full)
        answer = page.post(f"{path}/take", json={"at": 0, "action": 0})
    refused(answer, 507, "disk", "no room")
    assert page.get(path).json()["at"] == 0
    assert page.post(f"{path}/take", json={"at": 0, "action": 0}).json()["game"]["at"] == 1


def test_the_games_of_a_session_are_listed_and_a_damaged_one_says_so(
    page: TestClient, settings: Settings
) -> None:
    first = begin(page, "me", "tips")
    second = begin(page, "me")
    played_out(page, second)
    (damaged,) = settings.games.glob(f"*/{first['id']}.jsonl")
    damaged.write_text("{}\n", encoding="utf-8")
    listed = {entry["id"]: entry for entry in page.get("/api/games").json()}
    assert listed[second["id"]]["is_over"]
    assert "format" in listed[first["id"]]["damaged"]
    refused(page.get(f"/api/games/{first['id']}"), 400, "bad_request", "format")


# --- what choices are worth -----------------------------------------------------------------------


@pytest.mark.parametrize(("seats", "is_exact"), [(("me",), True), (("me", "me"), True), (("me",) * 3, False)])
def test_advice_and_verdict_agree(page: TestClient, seats: tuple[str, ...], is_exact: bool) -> None:
    game = begin(page, *seats)
    path = f"/api/games/{game['id']}"
    advice = page.get(f"{path}/advice?at=0").json()
    assert advice["is_exact"] is is_exact
    choices = advice["choices"]
    assert [choice["cost"] for choice in choices] == sorted(choice["cost"] for choice in choices)
    assert (choices[0]["win"] is None) == (len(seats) == 1)
    worst = choices[-1]
    answer = page.post(f"{path}/take", json={"at": 0, "action": worst["action"], "judge": True}).json()
    verdict = answer["verdict"]
    assert verdict["did"] == worst
    assert verdict["best"] == choices[0]
    assert verdict["cost"] == pytest.approx(worst["cost"])
    assert verdict["best_prospect"] == advice["prospect"]
    assert page.get(f"{path}/verdict?at=0").json() == verdict
    refused(page.get(f"{path}/advice?at=0"), 409, "stale")
    refused(page.get(f"{path}/verdict?at=1"), 404, "not_found")
    refused(page.get(f"{path}/verdict?at=-1"), 400, "bad_request", "-1")


def test_a_review_sums_what_every_decision_cost(page: TestClient) -> None:
    game = played_out(page, begin(page, "me", "solo_optimal"))
    path = f"/api/games/{game['id']}"
    review = page.get(f"{path}/review").json()
    assert len(review["decisions"]) == game["num_decisions"]
    for seat, total in enumerate(review["seats"]):
        own = [one for one in review["decisions"] if one is not None and one["seat"] == seat]
        assert total["num_decisions"] == len(own)
        assert total["total_cost"] == pytest.approx(sum(one["cost"] for one in own))
    for at, decision in enumerate(review["decisions"]):
        verdict = page.get(f"{path}/verdict?at={at}").json()
        assert (verdict is None) == (decision is None)
        if decision is not None:
            assert {key: verdict[key] for key in decision} == decision
            before = page.get(f"{path}?at={at}").json()
            assert (before["dice"], before["current_player"]) == (decision["dice"], decision["seat"])


def test_a_saved_record_is_taken_in_and_reviewed(page: TestClient, browser: Callable[[], TestClient]) -> None:
    game = played_out(page, begin(page, "me", "tips"))
    text = page.get(f"/api/games/{game['id']}/record").text
    other = browser()
    taken = other.post("/api/records", json={"key": next(KEYS), "text": text}).json()
    assert taken["scores"] == game["scores"]
    theirs = other.get(f"/api/games/{taken['id']}/review").json()
    assert theirs == page.get(f"/api/games/{game['id']}/review").json()


def test_no_record_is_refused_and_nothing_is_kept(page: TestClient, settings: Settings) -> None:
    game = begin(page, "me")
    text = page.get(f"/api/games/{game['id']}/record").text
    many = json.loads(text) | {"seats": ["me"] * 5000}
    for bad, word in (
        ("", "empty"),
        ("\0\n", "JSON"),
        ("[" * 100_000 + "\n", "JSON"),
        ('{"format": "chess"}\n', "chess"),
        (text.replace('"seed": 3', '"seed": 4').replace("game", "gime"), "gime"),
        (json.dumps(many) + "\n", "5000"),
    ):
        refused(page.post("/api/records", json={"key": next(KEYS), "text": bad}), 400, "bad_request", word)
    assert len(list(settings.games.rglob("*.jsonl"))) == 1


# --- the deal of the day --------------------------------------------------------------------------


def daily(page: TestClient, **values: Any) -> dict[str, Any]:
    answer = page.post("/api/daily", json={"overrides": SMALL, **values})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_the_deal_of_a_day_is_the_same_for_everybody_and_differs_by_day_and_rules(
    browser: Callable[[], TestClient],
) -> None:
    one, other = browser(), browser()
    assert daily(one, day="2026-11-30") == daily(other, day="2026-11-30")
    assert daily(one, day="2026-11-30")["id"] != daily(one, day="2026-11-29")["id"]
    seeds = {
        daily_table(day, get_variant(variant)).seed
        for day in (datetime.date(2026, 12, 1), datetime.date(2026, 12, 2))
        for variant in PRESETS
    }
    assert len(seeds) == 2 * len(PRESETS)
    # Fixed for good: who played a day may compare with whoever plays it later.
    assert daily_table(datetime.date(2026, 12, 1), get_variant("ruibal")).seed == DAILY_SEED


def test_the_deal_is_scored_against_the_optimum_with_luck_told_apart(page: TestClient) -> None:
    game = played_out(page, daily(page))
    result = game["daily"]
    solution = solve_solo(
        get_variant({"base": "ruibal", "boxes": "ones sixes generala"}), instant_win="perfect"
    )
    assert result["expected"] == pytest.approx(solution.expected_score)
    assert result["score"] == game["scores"][0]
    assert result["luck"] == pytest.approx(result["score"] - result["expected"] + result["regret"])
    table = daily_table(datetime.date.fromisoformat(game["id"][6:16]), solution.compiled.variant)
    dealt: DealtGame = table.deal()
    while not dealt.is_over:
        dealt.apply(solution.policy(dealt.state))
    assert result["optimal_score"] == dealt.state.scores[0]


def test_optimal_play_of_the_deal_has_no_regret(page: TestClient) -> None:
    game = daily(page)
    solution = solve_solo(
        get_variant({"base": "ruibal", "boxes": "ones sixes generala"}), instant_win="perfect"
    )
    dealt = daily_table(datetime.date.fromisoformat(game["id"][6:16]), solution.compiled.variant).deal()
    while not game["is_over"]:
        action = solution.policy(dealt.state)
        dealt.apply(action)
        move = {"at": game["at"], "action": action}
        game = page.post(f"/api/games/{game['id']}/take", json=move).json()["game"]
    assert game["daily"]["regret"] == pytest.approx(0.0, abs=1e-9)
    assert game["daily"]["score"] == game["daily"]["optimal_score"]


def test_the_deal_is_played_once_and_without_help(page: TestClient) -> None:
    game = daily(page)
    path = f"/api/games/{game['id']}"
    for ask in ("advice?at=0", "verdict?at=0", "review"):
        refused(page.get(f"{path}/{ask}"), 403, "not_now")
    move = {"at": 0, "action": game["closings"][0]["action"], "judge": True}
    assert page.post(f"{path}/take", json=move).json()["verdict"] is None
    assert daily(page)["at"] == 1
    played_out(page, daily(page))
    assert page.get(f"{path}/review").status_code == 200


def test_a_day_to_come_is_refused(settings: Settings) -> None:
    frozen = dataclasses.replace(settings, today=lambda: datetime.date(2026, 12, 1))
    page = TestClient(Server(frozen).app(), base_url=HOST)
    assert daily(page)["id"].startswith("daily-2026-12-01-")
    refused(page.post("/api/daily", json={"day": "2026-12-02"}), 400, "bad_request", "2026-12-02")
    refused(page.post("/api/daily", json={"day": "soon"}), 400, "bad_request", "day")
