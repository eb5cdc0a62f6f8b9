"""What must not get in: other sites, other sessions, other folders, messages of the wrong kind."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from agents.errors import AgentError
from agents.web.errors import Refused
from agents.web.guard import is_own_host, own_names
from agents.web.messages import MAX_MESSAGE, MAX_RECORD
from agents.web.server import COOKIE, Server, Settings
from agents.web.sessions import Sessions

GAME = {"key": "0123456789abcdef", "seats": ["me"]}


def begin(page: TestClient) -> str:
    return str(page.post("/api/games", json=GAME).json()["id"])


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("LOCALHOST:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("192.168.1.7", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("evil@localhost", False),
        ("localhost:port", False),
        ("localhost/..", False),
        ("", False),
    ],
)
def test_only_names_of_this_machine_are_answered(page: TestClient, host: str, is_own: bool) -> None:
    assert is_own_host(host, own_names("127.0.0.1")) is is_own
    if host:
        answer = page.get("/", headers={"host": host})
        assert answer.status_code == (200 if is_own else 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost:9999"},
        {"origin": "https://localhost"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://localhost", "sec-fetch-site": "cross-site"},
    ],
)
def test_other_sites_are_refused_whatever_they_ask(page: TestClient, headers: dict[str, str]) -> None:
    game = begin(page)
    asked = [
        page.get("/api/session", headers=headers),
        page.get(f"/api/games/{game}", headers=headers),
        page.post("/api/games", json=GAME, headers=headers),
        page.post(f"/api/games/{game}/take", json={"at": 0, "action": 0}, headers=headers),
    ]
    assert [answer.status_code for answer in asked] == [403] * 4
    assert all(answer.json()["error"] == "foreign" for answer in asked)
    assert page.get(f"/api/games/{game}").json()["at"] == 0


def test_our_own_page_is_answered(page: TestClient) -> None:
    headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert page.post("/api/games", json=GAME, headers=headers).status_code == 200


def test_a_form_of_another_site_cannot_pass_for_a_message(page: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = page.post("/api/games", content=json.dumps(GAME), headers={"content-type": kind})
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")


def test_the_cookie_is_kept_from_scripts_and_other_sites_and_lasts(page: TestClient) -> None:
    answer = page.get("/api/session")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(COOKIE)
    for part in ("httponly", "samesite=strict", "path=/", "max-age=31536000"):
        assert part in cookie
    assert "set-cookie" not in page.get("/api/session").headers


def test_the_page_itself_sets_no_cookie(page: TestClient) -> None:
    # A link from elsewhere opens it without the strict cookie; a new one would lose the games.
    assert "set-cookie" not in page.get("/").headers
    assert "set-cookie" not in page.get("/page/main.js").headers


def test_sessions_cannot_see_each_others_games(browser: Callable[[], TestClient]) -> None:
    mine, theirs = browser(), browser()
    game = begin(mine)
    assert mine.cookies[COOKIE] != theirs.get("/api/session").cookies[COOKIE]
    assert theirs.get("/api/games").json() == []
    for answer in (
        theirs.get(f"/api/games/{game}"),
        theirs.get(f"/api/games/{game}/record"),
        theirs.get(f"/api/games/{game}/advice?at=0"),
        theirs.get(f"/api/games/{game}/review"),
        theirs.post(f"/api/games/{game}/take", json={"at": 0, "action": 0}),
        theirs.post(f"/api/games/{game}/step", json={"at": 0}),
        theirs.post(f"/api/games/{game}/again", json={"key": GAME["key"]}),
    ):
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    # The same name in another session is another game.
    assert begin(theirs) == game
    mine.post(f"/api/games/{game}/take", json={"at": 0, "action": 0})
    assert theirs.get(f"/api/games/{game}").json()["at"] == 0


@pytest.mark.parametrize("token", ["x", "../" * 14 + "x", "a" * 44, "ñ" * 43, ""])
def test_a_made_up_token_is_replaced(settings: Settings, token: str) -> None:
    page = TestClient(Server(settings).app(), base_url="http://localhost")
    headers = [(b"cookie", f"{COOKIE}={token}".encode())]
    answer = page.get("/api/session", headers=headers)
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", answer.cookies[COOKIE])


def test_the_folder_of_games_does_not_tell_the_tokens(page: TestClient, settings: Settings) -> None:
    begin(page)
    token = page.cookies[COOKIE]
    written = list(settings.games.rglob("*"))
    assert written
    assert not any(token in str(path) for path in written)
    assert not any(token in path.read_text("utf-8") for path in written if path.is_file())


@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2fsecret",
        "%2e%2e/%2e%2e/secret",
        "game-0123456789abcdef.jsonl",
        "game-0123456789abcdef%00",
        "game-0123456789abcdef%0a",
        "GAME-0123456789ABCDEF",
        "game-" + "a" * 500,
        "\\..\\secret",
    ],
)
def test_a_game_is_no_path(page: TestClient, settings: Settings, name: str) -> None:
    begin(page)
    (settings.games.parent / "secret.jsonl").write_text("{}\n", encoding="utf-8")
    for path in (f"/api/games/{name}", f"/api/games/{name}/record", f"/api/games/{name}/review"):
        answer = page.get(path)
        assert answer.status_code == 404
        assert "secret" not in answer.text


@pytest.mark.parametrize(
    "path", ["../server.py", "%2e%2e/server.py", "..%2fserver.py", "/etc/passwd", "", "..\\server.py", "x.js"]
)
def test_only_the_files_of_the_page_are_served(page: TestClient, path: str) -> None:
    assert page.get(f"/page/{path}").status_code in (404, 405)


def test_runs_outside_their_folder_are_refused(settings: Settings, tmp_path: Path) -> None:
    inside, outside = settings.runs / "mine", tmp_path / "theirs"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "agent.safetensors").write_bytes(b"")
    (settings.runs / "link").symlink_to(outside)
    sessions = Sessions(settings.games, runs=settings.runs)
    assert sessions.agent_at("mine") == str(inside)
    assert sessions.agent_at(str(inside)) == str(inside)
    assert sessions.agent_at("tips") == "tips"
    for bad in ("link", "../theirs", str(outside), str(settings.runs), ".", "/", "mine/../../theirs"):
        with pytest.raises(Refused, match="not inside"):
            sessions.agent_at(bad)
    for unknown in ("nothing", "a\0b", "x" * 5000):
        with pytest.raises(AgentError, match="neither a known agent nor a run"):
            sessions.agent_at(unknown)


def test_a_record_from_elsewhere_cannot_make_agents_of_any_path(page: TestClient, tmp_path: Path) -> None:
    outside = tmp_path / "theirs"
    outside.mkdir()
    (outside / "agent.safetensors").write_bytes(b"")
    game = begin(page)
    header = json.loads(page.get(f"/api/games/{game}/record").text)
    text = json.dumps({**header, "seats": [str(outside)]}) + "\n"
    taken = page.post("/api/records", json={"key": "00000000000000aa", "text": text}).json()
    answer = page.post(f"/api/games/{taken['id']}/step", json={"at": 0})
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert "not inside" in answer.json()["message"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 10_000,
        b'{"at": NaN, "action": 0}',
        b'{"at": 1e400, "action": 0}',
        b'{"at": "0", "action": 0}',
        b'{"at": 0}',
        b'{"at": 0, "action": 0, "more": 1}',
        b'{"at": 0, "action": ' + b"9" * 5000 + b"}",
        b'{"at": 0, "action": 99999}',
        b'{"at": 0, "action": -1}',
        b'{"at": 0, "action": true}',
    ],
)
def test_broken_messages_are_refused_and_change_nothing(page: TestClient, raw: bytes) -> None:
    game = begin(page)
    headers = {"content-type": "application/json"}
    answer = page.post(f"/api/games/{game}/take", content=raw, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), answer.text
    assert "\n" not in answer.json()["message"]
    assert page.get(f"/api/games/{game}").json()["at"] == 0


@pytest.mark.parametrize(("path", "limit"), [("/api/games", MAX_MESSAGE), ("/api/records", MAX_RECORD)])
def test_messages_that_are_too_long_are_refused_also_without_a_length(
    page: TestClient, path: str, limit: int
) -> None:
    headers = {"content-type": "application/json"}
    asked = 0

    def endless() -> Iterator[bytes]:
        nonlocal asked
        while asked < 100 * limit:
            asked += 4096
            yield b" " * 4096

    for content in (b" " * (limit + 1), endless()):
        answer: Any = page.post(path, content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (413, "too_large")


def test_a_session_keeps_only_so_many_games(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.web.sessions.MAX_GAMES", 2)
    for number in range(2):
        assert page.post("/api/games", json={**GAME, "key": f"{number:016x}"}).status_code == 200
    answer = page.post("/api/games", json={**GAME, "key": f"{2:016x}"})
    assert (answer.status_code, answer.json()["error"]) == (429, "too_many")
    assert len(page.get("/api/games").json()) == 2


def test_every_answer_forbids_what_the_page_does_not_need(page: TestClient) -> None:
    for path in ("/", "/page/main.js", "/api/session", "/api/games/none", "/nowhere"):
        headers = page.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-store" if path.startswith("/api/") else "no-cache")
    assert "access-control-allow-origin" not in page.options("/api/session").headers
