"""Evaluate agents on the one-player game: how many points, and what share of the optimum."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.base import Agent, agent_names, make_agent
from agents.cli import UsageError, add_variant_arguments, positive_int, print_json, run_command, variant_from
from agents.evaluation import DEFAULT_GAMES, EVALUATION_SEED, evaluate_sampled
from agents.run_folder import RunRules, read_rules
from generala_env.rules.variants import DEFAULT_VARIANT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python scripts/evaluate.py --agent optimal turn_greedy runs/ppo --variant ruibal",
    )
    parser.add_argument(
        "--agent",
        dest="agents",
        action="extend",
        nargs="+",
        required=True,
        metavar="NAME_OR_RUN",
        help=f"who plays: {', '.join(agent_names())}, or a run folder; several make a table",
    )
    add_variant_arguments(parser, default=None)
    parser.set_defaults(instant_win=None)
    parser.add_argument(
        "--games",
        type=positive_int,
        default=DEFAULT_GAMES,
        metavar="N",
        help="games to play (default %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=EVALUATION_SEED,
        metavar="N",
        help="seed of the dice (default %(default)s)",
    )
    parser.add_argument(
        "--stochastic", action="store_true", help="let agents sample their actions instead of taking the best"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _rules(arguments: argparse.Namespace) -> RunRules:
    """Return the game to play: as given, else that of the first run folder, else the default."""
    run: RunRules | None = None
    if arguments.variant is None:
        folders = [Path(agent) for agent in arguments.agents if agent not in agent_names()]
        run = next((read_rules(folder) for folder in folders if folder.is_dir()), None)
    if run is not None:
        variant = run.variant if not arguments.overrides else variant_from(run.variant, arguments.overrides)
        return RunRules(variant, run.instant_win if arguments.instant_win is None else arguments.instant_win)
    variant = variant_from(arguments.variant or DEFAULT_VARIANT, arguments.overrides)
    return RunRules(variant, "perfect" if arguments.instant_win is None else arguments.instant_win)


def _print_table(results: Sequence[dict[str, Any]]) -> None:
    first = results[0]
    win = first["instant_win_points"]
    table = Table(
        title=f"{first['variant']}, a served Generala that wins "
        + ("plays on" if win is None else f"pays {win:g}"),
        caption=f"{first['num_games']:,} games with the same dice; optimum {first['optimal_score']:.3f}",
    )
    table.add_column("agent", overflow="fold")
    for column in ("mean score", "95 % interval", "of optimum", "st. dev.", "illegal"):
        table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        low, high = result["ci95"]
        table.add_row(
            result["agent"],
            f"{result['mean_score']:.3f}",
            f"{low:.2f} to {high:.2f}",
            f"{100 * result['optimality']:.2f} %",
            f"{result['std_score']:.2f}",
            str(result["illegal_actions"]),
        )
    Console().print(table)


def _evaluate(agent: Agent, arguments: argparse.Namespace, rules: RunRules) -> dict[str, Any]:
    return evaluate_sampled(
        agent,
        arguments.games,
        seed=arguments.seed,
        instant_win=rules.instant_win,
        deterministic=not arguments.stochastic,
        progress=sys.stderr.isatty(),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    if arguments.games < 2:
        raise UsageError(f"--games: {arguments.games} is too few for a confidence interval; give at least 2")
    rules = _rules(arguments)
    # All are made before the first plays, so that a mistake in the last costs no time.
    made = [
        make_agent(spec, rules.variant, instant_win=rules.instant_win, seed=arguments.seed)
        for spec in arguments.agents
    ]
    results = [_evaluate(agent, arguments, rules) for agent in made]
    if not arguments.json:
        _print_table(results)
    elif len(results) == 1:
        print_json(results[0])
    else:
        print_json({"agents": results})


if __name__ == "__main__":
    run_command(main, None)
