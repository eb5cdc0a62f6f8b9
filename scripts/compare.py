"""Compare training methods over seeds: means, interquartile means, intervals, learning curves.

Runs are grouped by their configuration, the seed left aside, or by the label that is put before
them. Intervals are bootstrapped over runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from agents.cli import positive_int, print_json, run_command
from agents.errors import UsageError
from agents.evaluation.figures import intervals_figure, learning_curves_figure
from agents.runs.comparison import (
    DEFAULT_CONFIDENCE,
    DEFAULT_RESAMPLES,
    Group,
    check_seeds,
    compare,
    comparison_markdown,
    group_runs,
    learning_curve,
)

PLOT_FORMATS = ("png", "svg")


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value


def _parser() -> argparse.ArgumentParser:
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
        "--resamples",
        type=positive_int,
        default=DEFAULT_RESAMPLES,
        metavar="N",
        help="bootstrap resamples (default %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write comparison.md, comparison.json and the plots, as PNG and SVG, into this folder",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--markdown", action="store_true", help="print Markdown tables and nothing else")
    output.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _print_table(result: dict[str, Any], console: Console) -> None:
    share = f"{100 * result['confidence']:g} %"
    table = Table(title=f"{result['variant']}, % of the optimum, {share} intervals over seeds")
    table.add_column("method", overflow="fold", min_width=8)
    for column in ("runs", "IQM", "mean"):
        table.add_column(column, justify="right")

    def shown(estimate: dict[str, Any]) -> str:
        low, high = estimate["interval"]
        return f"{100 * estimate['value']:.2f} ({100 * low:.2f} to {100 * high:.2f})"

    for group in result["groups"]:
        values = group["optimality"]
        table.add_row(
            group["label"],
            str(group["num_runs"]),
            shown(values["iqm"]),
            shown(values["mean"]),
        )
    console.print(table)
    for pair in result["probability_of_improvement"]:
        low, high = pair["interval"]
        console.print(
            f"a run of {pair['first']} beats one of {pair['second']} with probability "
            f"{pair['value']:.2f} ({low:.2f} to {high:.2f})"
        )


def _write(groups: Sequence[Group], result: dict[str, Any], folder: Path, confidence: float) -> list[Path]:
    from generala_env.files import replacing, write_json, write_text

    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "comparison.json", result)
    write_text(folder / "comparison.md", comparison_markdown(result))
    written = [folder / "comparison.json", folder / "comparison.md"]
    curves = {}
    for group in groups:
        curve = learning_curve(group, confidence=confidence)
        if curve is not None:
            low, middle, high = (100 * part for part in (curve.low, curve.middle, curve.high))
            curves[group.label] = (curve.steps.tolist(), middle.tolist(), low.tolist(), high.tolist())
    share = f"{100 * confidence:g} %"
    rows = [
        (
            row["label"],
            [100 * value for value in row["optimality"]["values"]],
            100 * row["optimality"]["iqm"]["value"],
            *(100 * end for end in row["optimality"]["iqm"]["interval"]),
        )
        for row in result["groups"]
    ]
    figures = {
        "scores": intervals_figure(
            rows,
            title=f"{result['variant']}: interquartile mean over seeds, {share} interval",
            xlabel="share of the optimum (%)",
        )
    }
    if curves:
        figures["learning_curves"] = learning_curves_figure(
            curves, title=f"{result['variant']}: mean over seeds, {share} band"
        )
    # Equal results make equal files.
    with mpl.rc_context({"svg.hashsalt": "generala-env"}):
        for name, figure in figures.items():
            for suffix in PLOT_FORMATS:
                path = folder / f"{name}.{suffix}"
                with replacing(path) as temporary:
                    figure.savefig(
                        temporary,
                        format=suffix,
                        dpi=144,
                        metadata={"Date": None} if suffix == "svg" else {"Software": None},
                    )
                written.append(path)
    return written


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    if arguments.out is not None and arguments.out.exists() and not arguments.out.is_dir():
        raise UsageError(f"--out: {str(arguments.out)!r} is a file, not a folder")
    groups = group_runs(arguments.runs)
    check_seeds(groups, arguments.chosen_on)
    result = compare(groups, confidence=arguments.confidence, num_resamples=arguments.resamples)
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
