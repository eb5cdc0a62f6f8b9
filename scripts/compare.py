"""Compare training methods over seeds: means, interquartile means, intervals, learning curves.

Runs are grouped by their configuration, the seed left aside, or by the label that is put before
them. Intervals are over runs; methods with fewer than three have none.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agents.cli import add_json_argument, print_json, run_command
from agents.errors import UsageError
from agents.evaluation.figures import Interval, intervals_figure, learning_curves_figure, save_figure
from agents.runs.comparison import (
    Group,
    cautions_of,
    check_seeds,
    compare,
    comparison_markdown,
    estimate_text,
    group_runs,
    intervals_text,
    learning_curve,
)
from agents.runs.intervals import DEFAULT_CONFIDENCE
from generala_env.files import write_json, write_text


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python scripts/compare.py 'runs/ppo-seed*' 'runs/dqn-seed*' --out comparison\n"
        "  python scripts/compare.py 'low lambda=runs/a*' 'high lambda=runs/b*' --markdown",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="[LABEL=]RUN",
        help="a run folder, or a glob in quotes; all runs of one label are one method",
    )
    parser.add_argument(
        "--chosen-on",
        nargs="+",
        default=[],
        metavar="RUN",
        help="runs on which methods or settings were chosen: reporting one of their seeds is an error",
    )
    parser.add_argument(
        "--confidence",
        type=_confidence,
        default=DEFAULT_CONFIDENCE,
        metavar="SHARE",
        help="coverage of the intervals (default %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write comparison.md, comparison.json and the plots, as PNG and SVG, into this folder",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--markdown", action="store_true", help="print Markdown tables and nothing else")
    add_json_argument(output)
    return parser


def _print_table(result: dict[str, Any], console: Console) -> None:
    share = f"{100 * result['confidence']:g} %"
    table = Table(title=f"{result['variant']}, % of the optimum, {share} intervals over seeds")
    table.add_column("method", overflow="fold", min_width=8)
    for column in ("runs", "IQM", "mean"):
        table.add_column(column, justify="right")

    for group in result["groups"]:
        values = group["optimality"]
        table.add_row(
            group["label"],
            str(group["num_runs"]),
            estimate_text(values["iqm"], 100),
            estimate_text(values["mean"], 100),
        )
    console.print(table)
    for pair in result["probability_of_improvement"]:
        console.print(
            f"a run of {pair['first']} beats one of {pair['second']} with probability {estimate_text(pair)}"
        )
    for line in (intervals_text(result), *cautions_of(result)):
        console.print(line, highlight=False)


def _write(groups: Sequence[Group], result: dict[str, Any], folder: Path, confidence: float) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "comparison.json", result)
    write_text(folder / "comparison.md", comparison_markdown(result))
    written = [folder / "comparison.json", folder / "comparison.md"]
    curves = {group.label: learning_curve(group, scale=100, confidence=confidence) for group in groups}
    share = f"{100 * confidence:g} %"
    rows = []
    for row in result["groups"]:
        iqm = row["optimality"]["iqm"]
        values = [100 * value for value in row["optimality"]["values"]]
        interval = None if iqm["interval"] is None else [100 * end for end in iqm["interval"]]
        rows.append(Interval(row["label"], values, 100 * iqm["value"], interval))
    title = f"{result['variant']}: interquartile mean over seeds, {share} interval"
    written += save_figure(
        intervals_figure(rows, title=title, xlabel="share of the optimum (%)"), folder, "scores"
    )
    shown = {label: curve for label, curve in curves.items() if curve is not None}
    if shown:
        title = f"{result['variant']}: mean over seeds, {share} band"
        written += save_figure(learning_curves_figure(shown, title=title), folder, "learning_curves")
    return written


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    if arguments.out is not None and arguments.out.exists() and not arguments.out.is_dir():
        raise UsageError(f"--out: {str(arguments.out)!r} is a file, not a folder")
    groups = group_runs(arguments.runs)
    check_seeds(groups, arguments.chosen_on)
    result = compare(groups, confidence=arguments.confidence)
    written = []
    if arguments.out is not None:
        written = _write(groups, result, arguments.out, arguments.confidence)
    if arguments.json:
        print_json(result)
    elif arguments.markdown:
        print(comparison_markdown(result), end="")
    else:
        console = Console()
        _print_table(result, console)
        for path in written:
            console.print(str(path), soft_wrap=True, highlight=False)


if __name__ == "__main__":
    run_command(main, None)
