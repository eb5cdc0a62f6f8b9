"""Evaluate agents on the one-player game: how many points, and what share of the optimum.

Games are sampled unless --exact is given, which asks an agent about every decision that its play
can meet: the exact mean and distribution of scores, and where every lost point is lost.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.base import Agent
from agents.cli import (
    add_face_arguments,
    add_json_argument,
    add_seed_argument,
    add_variant_arguments,
    positive_int,
    print_json,
    run_command,
)
from agents.errors import UsageError
from agents.evaluation.exact import exact_evaluation, exact_summary
from agents.evaluation.sampled import (
    DEFAULT_GAMES,
    EVALUATION_SEED,
    SampledGames,
    paired_difference,
    play_games,
    sampled_summary,
)
from agents.registry import agent_names, make_agent
from agents.runs.folder import RunRules
from agents.runs.rules import rules_of_each
from generala_env.rules.names import instant_win_text
from generala_env.solver.evaluation import DEFAULT_BLUNDERS, ExactEvaluation


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python scripts/evaluate.py --agent optimal turn_greedy runs/ppo --variant ruibal\n"
        "  python scripts/evaluate.py --agent runs/ppo --exact --report ppo.html",
    )
    parser.add_argument(
        "--agent",
        dest="agents",
        action="extend",
        nargs="+",
        required=True,
        metavar="NAME_OR_RUN",
        help=f"who plays: {', '.join(agent_names())}, or a run folder, which brings its rules along; "
        "several make a table",
    )
    add_variant_arguments(parser, default=None)
    parser.add_argument(
        "--games",
        type=positive_int,
        default=DEFAULT_GAMES,
        metavar="N",
        help="games to play (default %(default)s)",
    )
    add_seed_argument(parser, EVALUATION_SEED, "the dice, the same for all agents")
    parser.add_argument("--exact", action="store_true", help="evaluate exactly instead of sampling games")
    parser.add_argument(
        "--stochastic", action="store_true", help="let agents sample their actions instead of taking the best"
    )
    parser.add_argument(
        "--blunders",
        type=positive_int,
        default=DEFAULT_BLUNDERS,
        metavar="N",
        help="how many of the worst decisions an exact evaluation lists (default %(default)s)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write a self-contained HTML page on the agent; implies --exact",
    )
    add_face_arguments(parser)
    add_json_argument(parser)
    return parser


def _check(arguments: argparse.Namespace) -> None:
    if arguments.games < 2:
        raise UsageError(f"--games: {arguments.games} is too few for a confidence interval; give at least 2")
    if arguments.report is None:
        return
    if len(arguments.agents) > 1:
        raise UsageError(f"--report: a report is on one agent, and {len(arguments.agents)} were given")
    if not arguments.report.parent.is_dir():
        raise UsageError(f"--report: {str(arguments.report.parent)!r} is not a folder")
    if arguments.report.is_dir():
        raise UsageError(f"--report: {str(arguments.report)!r} is a folder, not a file to write")


def _title(result: dict[str, Any]) -> str:
    treatment = instant_win_text(result["instant_win_points"])
    return f"{result['variant']}, a served Generala that wins {treatment}"


def _titles(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the results by the game they are of: a table each."""
    games: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        games.setdefault(f"{_title(result)} ({result['fingerprint']})", []).append(result)
    return {_title(game[0]) if len(games) == 1 else title: game for title, game in games.items()}


def _add_columns(table: Table, *columns: str) -> None:
    for column in columns:
        table.add_column(column, justify="right")


def _with_interval(mean: float, interval: Sequence[float]) -> str:
    return f"{mean:.3f} ± {(interval[1] - interval[0]) / 2:.3f}"


def _print_sampled(title: str, results: Sequence[dict[str, Any]], console: Console) -> None:
    first = results[0]
    table = Table(
        title=title,
        caption=f"{first['num_games']:,} games with the same dice, 95 % intervals; optimum "
        f"{first['optimal_score']:.3f}. The score is the mean without the luck of the dice, "
        "the plain mean is with it.",
    )
    table.add_column("agent", overflow="fold", min_width=11)
    _add_columns(table, "score", "of optimum", "plain mean")
    for result in results:
        table.add_row(
            result["agent"],
            _with_interval(result["mean_score"], result["ci95"]),
            f"{100 * result['optimality']:.2f} %",
            _with_interval(result["plain_mean_score"], result["plain_ci95"]),
        )
    console.print(table)
    for result in results[1:]:
        paired = result.get("difference_to_first")
        if paired is None:
            continue
        console.print(
            f"{result['agent']} less {first['agent']}, game by game, without their luck: "
            f"{_with_interval(paired['mean'], paired['ci95'])} points"
        )


def _print_exact(title: str, results: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table(title=title, caption=f"exact values; optimum {results[0]['optimal_score']:.6f}")
    table.add_column("agent", overflow="fold", min_width=11)
    _add_columns(table, "score", "st. dev.", "of optimum", "lost")
    for result in results:
        table.add_row(
            result["agent"],
            f"{result['mean_score']:.3f}",
            f"{result['std_score']:.3f}",
            f"{100 * result['optimality']:.3f} %",
            f"{result['regret']:.3f}",
        )
    console.print(table)


def _open_boxes(opened: Sequence[str], boxes: Sequence[str]) -> str:
    closed = [box for box in boxes if box not in opened]
    if not closed:
        return "all"
    return "all but " + " ".join(closed) if len(closed) < len(opened) else " ".join(opened)


def _print_details(result: dict[str, Any], console: Console) -> None:
    """Print where one agent loses its points."""
    table = Table(title="by box")
    table.add_column("box")
    _add_columns(table, "points", "scored", "struck", "lost in its turns", "lost while open")
    for box, points in result["points_by_box"].items():
        table.add_row(
            box,
            f"{points:.3f}",
            f"{100 * result['scored_by_box'][box]:.2f} %",
            f"{100 * result['struck_by_box'][box]:.2f} %",
            f"{result['regret_by_box'][box]:.4f}",
            f"{result['regret_while_box_open'][box]:.4f}",
        )
    console.print(table)
    kinds = (f"{kind.replace('_', ' ')} {lost:.4f}" for kind, lost in result["regret_by_kind"].items())
    console.print(f"points lost by kind: {', '.join(kinds)}")
    by_throw = ", ".join(f"{lost:.4f}" for lost in result["regret_by_throw"])
    console.print(f"points lost by throw: {by_throw}")
    console.print(f"points lost by round: {', '.join(f'{lost:.4f}' for lost in result['regret_by_round'])}")
    if not result["blunders"]:
        return
    table = Table(title="costliest decisions")
    for column in ("dice", "throw", "open", "did", "better"):
        table.add_column(column)
    _add_columns(table, "loses", "a game")
    for blunder in result["blunders"]:
        locked = " ".join(map(str, blunder["locked"]))
        table.add_row(
            " ".join(map(str, blunder["dice"])) + (f" (locked {locked})" if locked else ""),
            str(blunder["throw"]) + (" served" if blunder["served"] else ""),
            "; ".join(
                [
                    _open_boxes(blunder["open_boxes"], list(result["points_by_box"])),
                    *blunder["remembered"],
                ]
            ),
            blunder["action"],
            blunder["best_action"],
            f"{blunder['regret']:.3f}",
            f"{blunder['cost']:.5f}",
        )
    console.print(table)


def _sample(
    made: Sequence[Agent], arguments: argparse.Namespace, rules: Sequence[RunRules]
) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    first: SampledGames | None = None
    for agent, own in zip(made, rules, strict=True):
        games = play_games(
            agent,
            arguments.games,
            seed=arguments.seed,
            instant_win=own.instant_win,
            deterministic=not arguments.stochastic,
            progress=True,
        )
        result = sampled_summary(
            agent,
            games,
            seed=arguments.seed,
            instant_win=own.instant_win,
            deterministic=not arguments.stochastic,
        )
        if first is None:
            first = games
        elif (
            own.variant.fingerprint == rules[0].variant.fingerprint
            and own.instant_win == rules[0].instant_win
        ):
            # Games of other rules met other dice: there is nothing to pair.
            paired = paired_difference(games.adjusted_scores, first.adjusted_scores)
            result["difference_to_first"] = {
                "mean": paired.mean,
                "ci95": list(paired.ci95),
                "variance_ratio": paired.variance_ratio,
            }
        results.append(result)
    return results


def _evaluate_exactly(
    agent: Agent, arguments: argparse.Namespace, rules: RunRules, num_blunders: int
) -> ExactEvaluation:
    return exact_evaluation(
        agent,
        instant_win=rules.instant_win,
        deterministic=not arguments.stochastic,
        num_blunders=num_blunders,
        progress=True,
    )


def _write_report(agent: Agent, arguments: argparse.Namespace, rules: RunRules) -> ExactEvaluation:
    from agents.evaluation.report import MOST_BLUNDERS, render_report
    from generala_env.files import write_text

    evaluation = _evaluate_exactly(agent, arguments, rules, max(MOST_BLUNDERS, arguments.blunders))
    page = render_report(
        agent,
        evaluation,
        language=arguments.language,
        dice=arguments.dice,
        seed=arguments.seed,
        deterministic=not arguments.stochastic,
    )
    write_text(arguments.report, page)
    return evaluation


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    _check(arguments)
    rules = rules_of_each(arguments.agents, arguments.variant, arguments.overrides, arguments.instant_win)
    # All are made before the first plays, so that a mistake in the last costs no time.
    made = [
        make_agent(spec, own.variant, instant_win=own.instant_win, seed=arguments.seed)
        for spec, own in zip(arguments.agents, rules, strict=True)
    ]
    is_exact = arguments.exact or arguments.report is not None
    if is_exact:
        evaluations = [
            _write_report(agent, arguments, own)
            if arguments.report is not None
            else _evaluate_exactly(agent, arguments, own, arguments.blunders)
            for agent, own in zip(made, rules, strict=True)
        ]
        results = [
            exact_summary(
                agent.name,
                evaluation,
                deterministic=not arguments.stochastic,
                num_blunders=arguments.blunders,
            )
            for agent, evaluation in zip(made, evaluations, strict=True)
        ]
    else:
        results = _sample(made, arguments, rules)
    if arguments.json:
        print_json(results[0] if len(results) == 1 else {"agents": results})
        return
    console = Console()
    for title, game in _titles(results).items():
        (_print_exact if is_exact else _print_sampled)(title, game, console)
    if is_exact and len(results) == 1:
        _print_details(results[0], console)
    if arguments.report is not None:
        console.print(f"report: {arguments.report}", soft_wrap=True)


if __name__ == "__main__":
    run_command(main, None)
