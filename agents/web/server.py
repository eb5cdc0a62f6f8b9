"""The server of the page: what can be asked for, under which address."""

from __future__ import annotations

import datetime
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agents.errors import AgentError, UsageError
from agents.registry import agent_names
from agents.web.errors import Refused
from agents.web.guard import Guard, own_names, read_body, refusal
from agents.web.messages import (
    MAX_MESSAGE,
    MAX_RECORD,
    MAX_SEATS,
    DailyGame,
    Message,
    NewGame,
    SameAgain,
    SavedRecord,
    Step,
    Take,
    read_message,
)
from agents.web.open_game import OpenGame
from agents.web.sessions import Sessions, is_token, new_token
from agents.web.views import variant_view
from agents.web.words import page_words
from generala_env.files import is_disk_full
from generala_env.rules.game import IllegalActionError
from generala_env.rules.names import DiceSkin, Language
from generala_env.rules.variants import DEFAULT_VARIANT, FIELD_NAMES, PRESETS, VariantError

COOKIE: Final = "generala_session"

COOKIE_SECONDS: Final = 365 * 24 * 3600

PAGE: Final = Path(__file__).with_name("page")

_log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)

Endpoint = Callable[[Request], Awaitable[Response]]


def utc_today() -> datetime.date:
    """Return the day it is for everybody, by universal time."""
    return datetime.datetime.now(datetime.UTC).date()


@dataclass(frozen=True)
class Settings:
    """What the page is served with.

    Attributes:
        games: The folder of games.
        runs: The folder whose trained agents may be played against.
        store: Folder of solved two-player games; ``None`` is the default place.
        variant: The rules that are chosen first.
        overrides: Fields of them that are changed, each ``FIELD=VALUE``.
        language: The language at first; ``None`` is the browser's.
        dice: What the dice show at first.
        names: The names that the server answers to, in lower case.
        today: Says which day it is.
    """

    games: Path
    runs: Path
    store: Path | None = None
    variant: str = DEFAULT_VARIANT
    overrides: tuple[str, ...] = ()
    language: str | None = None
    dice: str = DiceSkin.STANDARD.value
    names: frozenset[str] = own_names("localhost")
    today: Callable[[], datetime.date] = utc_today


class Server:
    """Answers what the page asks."""

    def __init__(self, settings: Settings) -> None:
        """Open the folder of games."""
        self.settings = settings
        self.sessions = Sessions(settings.games, runs=settings.runs, store=settings.store)
        # Solvers and agents are not made for several threads, and answers take milliseconds.
        self._one_at_a_time = threading.Lock()

    def app(self) -> Starlette:
        """Return the application."""
        game = "/api/games/{game}"
        routes = [
            Route("/", self._page),
            Route("/favicon.ico", self._no_icon),
            Route("/api/words", self._get(self._words)),
            Route("/api/session", self._get(self._session)),
            Route("/api/games", self._get(lambda token, _: self.sessions.games(token))),
            Route("/api/games", self._post(NewGame, self._begin), methods=["POST"]),
            Route("/api/daily", self._post(DailyGame, self._begin_daily), methods=["POST"]),
            Route("/api/records", self._post(SavedRecord, self._take_in, MAX_RECORD), methods=["POST"]),
            Route(game, self._get(self._view)),
            Route(f"{game}/advice", self._get(lambda token, ask: self._game(token, ask).advice(_at(ask)))),
            Route(f"{game}/verdict", self._get(lambda token, ask: self._game(token, ask).verdict(_at(ask)))),
            Route(f"{game}/review", self._get(lambda token, ask: self._game(token, ask).review())),
            Route(f"{game}/record", self._record),
            Route(f"{game}/again", self._post(SameAgain, self._begin_again), methods=["POST"]),
            Route(f"{game}/take", self._post(Take, self._take), methods=["POST"]),
            Route(f"{game}/step", self._post(Step, self._step), methods=["POST"]),
            Mount("/page", StaticFiles(directory=PAGE)),
        ]
        return Starlette(routes=routes, middleware=[Middleware(Guard, names=self.settings.names)])

    # --- how a request is answered ----------------------------------------------------------------

    def _get(self, answer: Callable[[str, Request], Any]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return await self._answered(request, lambda token: answer(token, request))

        return endpoint

    def _post(
        self, kind: type[M], answer: Callable[[str, Request, M], Any], limit: int = MAX_MESSAGE
    ) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            try:
                message = read_message(await read_body(request, limit), kind)
            except Refused as error:
                return refusal(error)
            except ClientDisconnect:
                return Response(status_code=400)
            return await self._answered(request, lambda token: answer(token, request, message))

        return endpoint

    async def _answered(self, request: Request, answer: Callable[[str], Any]) -> Response:
        given = request.cookies.get(COOKIE)
        token = given if given is not None and is_token(given) else new_token()

        def locked() -> Any:
            with self._one_at_a_time:
                return answer(token)

        try:
            result = await run_in_threadpool(locked)
        except Refused as error:
            response: Response = refusal(error)
        except (AgentError, UsageError, VariantError, IllegalActionError) as error:
            response = refusal(Refused("bad_request", str(error)))
        except OSError as error:
            _log.error("%s %s: %s", request.method, request.url.path, error)
            full = is_disk_full(error)
            message = "no room is left on the disk" if full else "the game could not be written or read"
            response = JSONResponse({"error": "disk", "message": message}, 507 if full else 500)
        else:
            response = result if isinstance(result, Response) else JSONResponse(result)
        # Not with the page itself: a browser that follows a link from elsewhere leaves a strict cookie
        # out, and would be given a new one in the place of that which its games belong to.
        if token != given:
            response.set_cookie(
                COOKIE,
                token,
                max_age=COOKIE_SECONDS,
                httponly=True,
                samesite="strict",
                secure=request.url.scheme == "https",
            )
        return response

    # --- what is answered -------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        return Response((PAGE / "index.html").read_bytes(), media_type="text/html")

    async def _no_icon(self, request: Request) -> Response:
        return Response(status_code=204)

    def _words(self, token: str, request: Request) -> Any:
        language = request.query_params.get("lang", Language.EN.value)
        skin = request.query_params.get("dice", DiceSkin.STANDARD.value)
        try:
            return page_words(Language(language), DiceSkin(skin))
        except ValueError as error:
            raise Refused("bad_request", str(error)) from None

    def _session(self, token: str, request: Request) -> Any:
        settings = self.settings
        return {
            "language": settings.language,
            "languages": [language.value for language in Language],
            "dice": settings.dice,
            "skins": [skin.value for skin in DiceSkin],
            "today": settings.today().isoformat(),
            "variant": settings.variant,
            "overrides": list(settings.overrides),
            "variants": [variant_view(variant) for variant in PRESETS.values()],
            "fields": list(FIELD_NAMES),
            "agents": {count: agent_names(count) for count in range(1, MAX_SEATS + 1)},
            "runs": self.sessions.run_names(),
            "max_seats": MAX_SEATS,
        }

    def _game(self, token: str, request: Request) -> OpenGame:
        return self.sessions.game(token, request.path_params["game"])

    def _view(self, token: str, request: Request) -> Any:
        at = _at(request) if "at" in request.query_params else None
        return self._game(token, request).view(at)

    def _begin(self, token: str, request: Request, message: NewGame) -> Any:
        return self.sessions.begin(token, message).view()

    def _begin_again(self, token: str, request: Request, message: SameAgain) -> Any:
        return self.sessions.begin_again(token, request.path_params["game"], message).view()

    def _begin_daily(self, token: str, request: Request, message: DailyGame) -> Any:
        return self.sessions.begin_daily(token, message, self.settings.today()).view()

    def _take_in(self, token: str, request: Request, message: SavedRecord) -> Any:
        return self.sessions.take_in(token, message).view()

    def _take(self, token: str, request: Request, message: Take) -> Any:
        return self._moved(
            self._game(token, request),
            lambda game: game.take(message.at, message.action, judge=message.judge),
        )

    def _step(self, token: str, request: Request, message: Step) -> Any:
        return self._moved(
            self._game(token, request), lambda game: game.step(message.at, judge=message.judge)
        )

    def _moved(self, game: OpenGame, move: Callable[[OpenGame], Any]) -> Any:
        try:
            answer = move(game)
        except OSError:
            self.sessions.forget(game)
            raise
        self.sessions.keep(game)
        return answer

    async def _record(self, request: Request) -> Response:
        def answer(token: str) -> Response:
            game = self._game(token, request)
            assert game.record.path is not None
            name = f"generala-{game.identifier}.jsonl"
            headers = {"content-disposition": f'attachment; filename="{name}"'}
            return PlainTextResponse(game.record.path.read_text(encoding="utf-8"), headers=headers)

        return await self._answered(request, answer)


def _at(request: Request) -> int:
    text = request.query_params.get("at", "")
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise Refused("bad_request", f"at: {text[:20]!r} is not a whole number from 0")
    return int(text)
