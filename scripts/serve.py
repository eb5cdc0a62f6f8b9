"""Serve Generala as a page in the browser: play, be coached, watch, review, and the deal of the day."""

from __future__ import annotations

import argparse
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from agents.cli import (
    add_face_arguments,
    add_json_argument,
    add_store_argument,
    add_variant_arguments,
    print_json,
    run_command,
    variant_from,
)
from agents.errors import UsageError
from agents.web.guard import own_names
from agents.web.server import Server, Settings

RECORDS = Path("runs/web")
RUNS = Path("runs")
BUSY_AT = 200
"""Connections at once from which on more are turned away."""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="examples: python scripts/serve.py --show; python scripts/serve.py --port 9000 --lang es "
        "--records ~/generala",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="NAME",
        help="the address to listen at (default 127.0.0.1: this machine alone can reach the page)",
    )
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="the port (default 8000; 0 takes any free one)"
    )
    # What the form of a new game holds at first.
    add_variant_arguments(parser, has_instant_win=False)
    add_face_arguments(parser, language=None, otherwise="the browser's")
    parser.add_argument(
        "--records",
        type=Path,
        default=RECORDS,
        metavar="DIR",
        help=f"where games are kept (default {RECORDS})",
    )
    parser.add_argument(
        "--runs",
        type=Path,
        default=RUNS,
        metavar="DIR",
        help=f"the trained agents that may be played against (default {RUNS})",
    )
    add_store_argument(parser, purpose="for exact chances of winning")
    add_json_argument(parser, condition="say where the page is in JSON: ")
    parser.add_argument("--show", action="store_true", help="open the page in a browser")
    return parser


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise UsageError(f"--port: {port} is not from 0 to 65535")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(f"--host, --port: cannot listen at {host}:{port}: {error.strerror}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    variant_from(arguments.variant, arguments.overrides)
    if arguments.records.exists() and not arguments.records.is_dir():
        raise UsageError(f"--records: {arguments.records} is not a folder")
    settings = Settings(
        games=arguments.records,
        runs=arguments.runs,
        store=arguments.store,
        variant=arguments.variant,
        overrides=tuple(arguments.overrides),
        language=arguments.language,
        dice=arguments.dice,
        names=own_names(arguments.host),
    )
    with _listen(arguments.host, arguments.port) as listening:
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        url = f"http://{host}:{listening.getsockname()[1]}/"
        config = uvicorn.Config(
            Server(settings).app(),
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=BUSY_AT,
            timeout_graceful_shutdown=5,
        )
        if arguments.json:
            print_json({"url": url, "records": str(arguments.records)})
            sys.stdout.flush()
        else:
            print(f"Generala: {url} (games in {arguments.records}; Ctrl-C ends)", flush=True)
        if arguments.show:
            webbrowser.open(url)
        uvicorn.Server(config).run(sockets=[listening])
    return 0


if __name__ == "__main__":
    run_command(main, None)
