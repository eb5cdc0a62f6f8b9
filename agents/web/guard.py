"""What comes in before anything is done with it: hosts, origins and sizes; and what every answer says."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.web.errors import STATUS, Refused

API: Final = "/api/"

ANSWER_HEADERS: Final = {
    # Scripts, styles and pictures come from here alone, and no other page may frame this one.
    "content-security-policy": "default-src 'self'; base-uri 'none'; object-src 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def refusal(error: Refused) -> JSONResponse:
    """Return the answer to something that is not done."""
    return JSONResponse({"error": error.reason, "message": str(error)}, STATUS[error.reason])


def is_own_host(host: str, names: frozenset[str]) -> bool:
    """Tell whether a ``Host`` header names this machine.

    A name that somebody else controls may be made to lead here (DNS rebinding), and a page of that name
    would then count as ours. Addresses cannot be rebound; names must be known.

    Args:
        host: The header, with or without a port.
        names: The names that this server answers to, in lower case.
    """
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not name or parts.username is not None or parts.path or parts.query or parts.fragment:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return True


def own_names(host: str) -> frozenset[str]:
    """Return the names under which a server on ``host`` may be asked."""
    return frozenset({"localhost", host.lower(), socket.gethostname().lower()})


class Guard:
    """Refuses what comes from elsewhere, and sets the headers of every answer."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        """Stand before an application.

        Args:
            app: The application.
            names: The names that this server answers to, in lower case.
        """
        self.app = app
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(ANSWER_HEADERS)
                headers["cache-control"] = "no-store" if scope["path"].startswith(API) else "no-cache"
            await send(message)

        try:
            self._check(scope)
        except Refused as error:
            await refusal(error)(scope, receive, answer)
            return
        await self.app(scope, receive, answer)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_own_host(hosts[0], self.names):
            raise Refused("foreign", "this server does not go by that name")
        if not scope["path"].startswith(API):
            return
        # A browser says where a request comes from, in one of these or in both.
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scope['scheme']}://{hosts[0].lower()}":
            raise Refused("foreign", "the request comes from another page")
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Refused("foreign", "the request comes from another page")
        if scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused("bad_request", f"content-type: {kind!r} is not application/json")


async def read_body(request: Request, limit: int) -> bytes:
    """Read the body of a request.

    Raises:
        Refused: It is longer than ``limit`` bytes; no more than that is read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise Refused("too_large", f"the message is longer than {limit} bytes")
    return bytes(body)
