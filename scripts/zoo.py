"""List, check, build and rebuild the trained agents that ship with the project."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from agents.cli import add_json_argument, print_json, run_command
from agents.zoo.entries import COLUMNS, PREFIX, overview, overview_as_markdown, read_card, zoo_names

EPILOG = """\
examples:
  python scripts/zoo.py list
  python scripts/zoo.py check
  python scripts/zoo.py build ruibal-ppo runs/ppo-long-ruibal-seed*
  python scripts/zoo.py rebuild ruibal-ppo
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="show every agent and its exact score")
    listing.add_argument("--markdown", action="store_true", help="as the table of README")
    checking = commands.add_parser("check", help="evaluate agents again, exactly; seconds each")
    checking.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    building = commands.add_parser("build", help="make an entry of the best of finished runs")
    building.add_argument("name", metavar="NAME", help="of the entry, such as ruibal-ppo")
    building.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders, one per seed")
    again = commands.add_parser("rebuild", help="train an entry again, with its config and all its seeds")
    again.add_argument("name", metavar="NAME", help="of the entry, such as ruibal-ppo")
    for command in (building, again):
        command.add_argument(
            "--duel",
            action="store_true",
            help="also its exact win share against points-optimal play and its exploitability: "
            "from seconds (obligada) over minutes (ruibal) to an hour (doble_fija)",
        )
    for command in (listing, checking, building, again):
        add_json_argument(command)
    return parser


def _full(name: str) -> str:
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"


def _list(arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json({"agents": [read_card(name) for name in zoo_names()]})
        return
    if arguments.markdown:
        print(overview_as_markdown(), end="")
        return
    table = Table()
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == COLUMNS[0] else "right")
    for row in overview():
        table.add_row(*row)
    Console().print(table)


def _check(arguments: argparse.Namespace) -> None:
    # torch takes seconds to import, and listing does without.
    from agents.runs.zoo_cards import check

    names = [_full(name) for name in arguments.names] or list(zoo_names())
    found = {}
    for name in tqdm(names, unit="agent", disable=None):
        found[name] = check(name)
        if not arguments.json:
            tqdm.write(f"{name}: {found[name]['mean_score']:.6f}, as its card says", file=sys.stdout)
    if arguments.json:
        print_json({"agents": found})


def _build(arguments: argparse.Namespace) -> None:
    from agents.runs.zoo_cards import build

    card = build(arguments.name.removeprefix(PREFIX), arguments.runs, with_duel=arguments.duel)
    _print_card(card, arguments)


def _rebuild(arguments: argparse.Namespace) -> None:
    from agents.runs.zoo_cards import rebuild

    def say(text: str) -> None:
        tqdm.write(f"zoo.py: {text}", file=sys.stderr)

    _print_card(rebuild(_full(arguments.name), say=say, with_duel=arguments.duel), arguments)


def _print_card(card: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json(card)
        return
    print(f"{card['name']}: {card['mean_score']:.3f} of {card['optimal_score']:.3f}, {card['bytes']:,} bytes")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    {"list": _list, "check": _check, "build": _build, "rebuild": _rebuild}[arguments.command](arguments)


if __name__ == "__main__":
    run_command(main, None)
