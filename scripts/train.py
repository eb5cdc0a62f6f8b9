"""Train an agent as a config says, into a run folder from which the run can be resumed and repeated."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from agents.cli import (
    add_config_set_argument,
    add_json_argument,
    add_seed_argument,
    add_variant_argument,
    positive_int,
    print_json,
    program,
    run_command,
)
from agents.config.explaining import config_schema
from agents.config.loading import ResolvedConfig, load_config
from agents.config.plan import plan_of
from agents.errors import UsageError
from agents.runs.folder import create_run_folder, log_folder, open_run_folder

EXIT_FAILED = 1
EPILOG = """\
examples:
  python scripts/train.py --config ppo.yaml
  python scripts/train.py --config ppo.yaml --set algorithm.clip_range=0.1 --seed 1
  python scripts/train.py --config ppo.yaml --variant doble --set generala_points=60
  python scripts/train.py --resume runs/ppo-ruibal-seed0

exit codes: 0 done, 1 the run cannot go on (disk full, NaN), 2 bad input,
130 and 143 stopped by Ctrl-C and SIGTERM after saving; --resume goes on exactly where it stopped
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", metavar="FILE", help="a path, or the name of a file in configs/")
    add_variant_argument(parser, default=None, note="; beats the file")
    add_config_set_argument(parser)
    add_seed_argument(parser, None, "all that is drawn; beats the file")
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help="a new folder for the run (default: a free name in runs/)"
    )
    parser.add_argument("--device", choices=("cpu", "cuda", "auto"), help="where the networks are")
    parser.add_argument(
        "--num-threads",
        type=positive_int,
        metavar="N",
        help="threads of torch; more pay on an idle machine only",
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="RUN_DIR",
        help="go on with a run, exactly where it was cut off",
    )
    parser.add_argument("--dry-run", action="store_true", help="check all, say what would happen, do nothing")
    parser.add_argument(
        "--print-config", action="store_true", help="print the config with the source of each value, and end"
    )
    parser.add_argument("--print-schema", action="store_true", help="print the configs' JSON schema, and end")
    add_json_argument(parser)
    return parser


def _say(text: str) -> None:
    tqdm.write(f"train.py: {text}", file=sys.stderr)


def _resolve(arguments: argparse.Namespace) -> ResolvedConfig:
    given = {
        "seed": ("--seed", arguments.seed),
        "device": ("--device", arguments.device),
        "num_threads": ("--num-threads", arguments.num_threads),
    }
    flags = {path: flag for path, flag in given.items() if flag[1] is not None}
    return load_config(arguments.config, arguments.overrides, flags, arguments.variant)


def _plan(resolved: ResolvedConfig, arguments: argparse.Namespace) -> dict[str, Any]:
    config = resolved.config
    plan = plan_of(config)
    if arguments.run_dir is not None and arguments.run_dir.exists():
        raise UsageError(f"--run-dir: {str(arguments.run_dir)!r} exists and is never overwritten")
    return {
        "config": config.to_dict(),
        "variant": config.rules.name,
        "fingerprint": config.rules.fingerprint,
        **asdict(plan),
        "warning": plan.warning,
        "run_dir": None if arguments.run_dir is None else str(arguments.run_dir),
    }


def _check_arguments(arguments: argparse.Namespace) -> None:
    if arguments.resume is not None:
        clashing = [
            flag
            for flag, given in (
                ("--config", arguments.config),
                ("--variant", arguments.variant),
                ("--set", arguments.overrides),
                ("--seed", arguments.seed is not None),
                ("--run-dir", arguments.run_dir),
                ("--device", arguments.device),
                ("--dry-run", arguments.dry_run),
            )
            if given
        ]
        if clashing:
            raise UsageError(
                f"--resume: goes on with the run's own config, so {clashing[0]} cannot be given too"
            )
    elif arguments.config is None:
        raise UsageError("--config: is missing; give a config such as ppo.yaml, or --resume RUN_DIR")


def _train(arguments: argparse.Namespace, resolved: ResolvedConfig | None) -> tuple[Path, dict[str, Any]]:
    # Training pulls in torch; a mistyped key should not wait for it.
    from agents.runs.lock import locked
    from agents.runs.training import TrainingRun, prepare

    if resolved is None:
        folder = arguments.resume
        config = open_run_folder(folder)
        if arguments.num_threads is not None:
            config = config.model_copy(update={"num_threads": arguments.num_threads})
        prepare(config)
    else:
        config = resolved.config
        prepare(config)
        if warning := plan_of(config).warning:
            _say(f"warning: {warning}")
        folder = create_run_folder(resolved, arguments.run_dir, sys.argv)
    with locked(folder, _say):
        run = TrainingRun(folder, config, _say)
        if arguments.resume is not None:
            run.restore()
        _say(f"run folder: {folder}")
        _say(f"curves: {program('tensorboard')} --logdir {log_folder(folder)}")
        run.train()
        return folder, run.finish()


def _print_result(folder: Path, result: dict[str, Any]) -> None:
    table = Table(title=f"{result['variant']}, {'exact' if result['exact'] else 'sampled'}")
    table.add_column("agent")
    table.add_column("mean score", justify="right")
    table.add_column("of optimum", justify="right")
    rows = {result["agent"]: result, **result["scale"]}
    for name, row in rows.items():
        table.add_row(name, f"{row['mean_score']:.3f}", f"{row['optimality']:.2%}")
    console = Console()
    console.print(table)
    for line in (
        f"trained for {result['num_timesteps']:,} steps in {_duration(result['wall_seconds'])}; "
        f"the best agent was that of step {result['selected_at']:,}",
        f"results:  {folder / 'evaluation.json'}",
        f"agent:    {program('python')} scripts/evaluate.py --agent {folder}",
        f"curves:   {program('tensorboard')} --logdir {log_folder(folder)}",
    ):
        console.print(line, highlight=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(seconds))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    if arguments.print_schema:
        print(json.dumps(config_schema(), indent=2, ensure_ascii=False))
        return 0
    _check_arguments(arguments)
    resolved = None
    if arguments.resume is None:
        resolved = _resolve(arguments)
        if arguments.print_config:
            if arguments.json:
                print_json({"config": resolved.config.to_dict(), "sources": resolved.leaf_sources()})
            else:
                print(resolved.to_yaml(with_sources=True), end="")
            return 0
        if arguments.dry_run:
            plan = _plan(resolved, arguments)
            if arguments.json:
                print_json(plan)
            else:
                print(resolved.to_yaml(with_sources=True), end="")
                print(
                    f"# would train {plan['num_timesteps']:,} steps on {plan['variant']} in "
                    f"{plan['num_updates']:,} updates, with at most {plan['num_evaluations']:,} evaluations "
                    f"and {plan['num_checkpoints']:,} checkpoints; nothing was written"
                )
                if plan["warning"]:
                    print(f"# warning: {plan['warning']}")
            return 0
    from agents.runs.training import Interrupted
    from agents.runs.watch import TrainingError

    try:
        folder, result = _train(arguments, resolved)
    except Interrupted as stop:
        _say(f"stopped and saved; go on with: {program('python')} scripts/train.py --resume {stop.folder}")
        return 128 + stop.signal
    except TrainingError as error:
        _say(f"error: {error}")
        return EXIT_FAILED
    if arguments.json:
        print_json(result)
    else:
        _print_result(folder, result)
    return 0


if __name__ == "__main__":
    run_command(main, None)
