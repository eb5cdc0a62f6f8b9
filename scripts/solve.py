"""Solve the one-player game of a variant exactly and print what optimal play is worth."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.cli import add_variant_arguments, print_json, run_command, variant_from
from generala_env.rules.compiled import compile_variant
from generala_env.solver.solo import solve_solo


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python scripts/solve.py --variant ruibal --set generala_points=50 --json",
    )
    add_variant_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def solve_one_player(arguments: argparse.Namespace) -> dict[str, Any]:
    """Solve the game that the arguments describe and return the result as JSON types."""
    variant = variant_from(arguments.variant, arguments.overrides)
    start = time.perf_counter()
    compiled = compile_variant(variant)
    solution = solve_solo(compiled, instant_win=arguments.instant_win)
    return {
        "variant": variant.name,
        "fingerprint": variant.fingerprint,
        "players": 1,
        "instant_win_points": solution.instant_win_points,
        "expected_score": solution.expected_score,
        "perfect_score": solution.perfect_score,
        "num_cards": compiled.num_classes,
        "seconds": time.perf_counter() - start,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    result = solve_one_player(arguments)
    if arguments.json:
        print_json(result)
        return
    table = Table(title=f"One player, {result['variant']}", show_header=False)
    win = result["instant_win_points"]
    table.add_row("expected score", f"{result['expected_score']:.6f}")
    table.add_row("perfect score", str(result["perfect_score"]))
    table.add_row("instant win", "plays on" if win is None else f"pays {win:g}")
    table.add_row("cards", f"{result['num_cards']:,}")
    table.add_row("seconds", f"{result['seconds']:.3f}")
    table.add_row("fingerprint", result["fingerprint"])
    Console().print(table)


if __name__ == "__main__":
    run_command(main, None)
