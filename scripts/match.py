"""Let agents play Generala against each other, every seat rotation on the same dice."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.cli import (
    add_json_argument,
    add_seed_argument,
    add_store_argument,
    add_variant_arguments,
    instant_win_from,
    positive_int,
    print_json,
    run_command,
    variant_from,
)
from agents.errors import UsageError
from agents.evaluation.sampled import EVALUATION_SEED
from agents.matches.match import compare_agents
from agents.registry import agent_names, make_agent
from generala_env.envs.dealing import FirstSeat

DEFAULT_GAMES = 10_000


def _first_player(text: str) -> FirstSeat:
    if text == "variant":
        return "variant"
    if text.isascii() and text.isdigit():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither variant nor a seat, counted from 0")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="examples: python scripts/match.py --agents solo_optimal tips --variant doble --games 10000; "
        "python scripts/match.py --agents race solo_optimal tips random --players 2 --json",
    )
    parser.add_argument(
        "--agents",
        nargs="+",
        required=True,
        metavar="AGENT",
        help=f"two or more names or run folders; names: {', '.join(agent_names(2))}",
    )
    add_variant_arguments(parser)
    parser.add_argument(
        "--games",
        type=positive_int,
        default=DEFAULT_GAMES,
        metavar="N",
        help=f"games of each table, rounded up to whole seat rotations (default {DEFAULT_GAMES:,})",
    )
    parser.add_argument(
        "--players",
        type=positive_int,
        metavar="N",
        help="players of each table: every choice of N of the agents plays one table "
        "(default: all agents at one table)",
    )
    add_seed_argument(parser, EVALUATION_SEED, "the dice and of the agents")
    parser.add_argument(
        "--first-player",
        type=_first_player,
        default="variant",
        metavar="WHO",
        help="variant, for the rule of the variant (default), or the seat that starts every game",
    )
    parser.add_argument("--stochastic", action="store_true", help="let agents sample their actions")
    add_store_argument(parser, purpose="for duel_optimal")
    add_json_argument(parser)
    return parser


def run_match(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play the match that the arguments describe and return the result as JSON types."""
    variant = variant_from(arguments.variant, arguments.overrides)
    num_agents = len(arguments.agents)
    num_seats = num_agents if arguments.players is None else arguments.players
    if num_agents < 2:
        raise UsageError(f"--agents: {num_agents} agent cannot play a match; give two or more")
    if not 2 <= num_seats <= num_agents:
        raise UsageError(f"--players: {num_seats} is not from 2 to the number of agents, {num_agents}")
    agents = [
        make_agent(
            name,
            variant,
            num_players=num_seats,
            instant_win=instant_win_from(arguments.instant_win),
            seed=arguments.seed + index,
            store=arguments.store,
        )
        for index, name in enumerate(arguments.agents)
    ]
    try:
        return compare_agents(
            agents,
            arguments.games,
            num_seats=num_seats,
            seed=arguments.seed,
            first_player=arguments.first_player,
            deterministic=not arguments.stochastic,
            progress=True,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def _interval(value: dict[str, Any], *, percent: bool) -> str:
    scale, digits = (100.0, 2) if percent else (1.0, 2)
    half = (value["ci95"][1] - value["ci95"][0]) / 2 * scale
    return f"{value['mean'] * scale:.{digits}f} ± {half:.{digits}f}"


def _print(result: dict[str, Any], console: Console) -> None:
    for played in result["tables"]:
        title = f"{result['variant']}: {played['num_games']:,} games"
        table = Table(title=title, caption="± half a 95 % interval over deals; a draw is a shared win")
        table.add_column("agent", no_wrap=True)
        for heading in ("win share %", "draws %", "starting %", "mean score", "instant %"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in played["agents"]:
            starting = row["win_share_starting"]
            table.add_row(
                row["agent"],
                _interval(row["win_share"], percent=True),
                _interval(row["draws"], percent=True),
                "" if starting is None else f"{100 * starting:.2f}",
                _interval(row["score"], percent=False),
                f"{100 * row['instant_wins']:.2f}",
            )
        console.print(table)
        decided = ", ".join(f"{how} {count:,}" for how, count in played["decided_by"].items())
        console.print(f"decided by: {decided}")
    cross = Table(title="How often the row ends ahead of the column, % (points more per game)")
    cross.add_column("", no_wrap=True)
    for label in result["agents"]:
        cross.add_column(label, justify="right")
    cells = {}
    for pair in result["pairs"]:
        first, second = pair["agents"]
        ahead, margin = pair["ahead"], pair["score_difference"]["mean"]
        half = (ahead["ci95"][1] - ahead["ci95"][0]) / 2
        cells[first, second] = f"{100 * ahead['mean']:.2f} ± {100 * half:.2f} ({margin:+.2f})"
        cells[second, first] = f"{100 - 100 * ahead['mean']:.2f} ± {100 * half:.2f} ({-margin:+.2f})"
    for row in result["agents"]:
        cross.add_row(row, *(cells.get((row, column), "") for column in result["agents"]))
    console.print(cross)
    is_bounded = all(row["ci95"] is not None for row in result["ratings"])
    ratings = Table(
        title="Ratings of the field (Elo points, mean 0)",
        caption="maximum likelihood over all games; 400 points are odds of 10 to 1"
        if is_bounded
        else "somebody was ahead of others every time: no likelihood is largest, so every pair is given "
        "one more game, drawn, and no interval",
    )
    ratings.add_column("agent")
    ratings.add_column("rating", justify="right")
    for row in sorted(result["ratings"], key=lambda row: -row["rating"]):
        half = "" if row["ci95"] is None else f" ± {(row['ci95'][1] - row['ci95'][0]) / 2:.1f}"
        ratings.add_row(row["agent"], f"{row['rating']:+.1f}{half}")
    console.print(ratings)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    result = run_match(arguments)
    if arguments.json:
        print_json(result)
    else:
        _print(result, Console())


if __name__ == "__main__":
    run_command(main, None)
