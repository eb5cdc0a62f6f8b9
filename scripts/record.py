"""Record a game of an agent, alone: each decision with what it lost and what would have been right.

The ending of --out says what is written: a GIF or an MP4 (a film), or a PNG (all pictures side by side).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gymnasium.error import DependencyNotInstalled

from agents.cli import (
    add_face_arguments,
    add_json_argument,
    add_seed_argument,
    add_variant_arguments,
    print_json,
    run_command,
)
from agents.errors import UsageError
from agents.evaluation.film import FILM_SUFFIXES, episode_frames, write_film
from agents.evaluation.sampled import EVALUATION_SEED
from agents.evaluation.traces import GameTrace, trace_game
from agents.registry import agent_names, make_agent
from agents.runs.rules import rules_to_play
from generala_env.envs.picture import DEFAULT_SIZE, THEMES, check_picture, require_pillow
from generala_env.envs.showing import RENDER_FPS
from generala_env.rules.actions import action_text
from generala_env.rules.compiled import CompiledVariant
from generala_env.rules.dice import THROWS
from generala_env.rules.names import Language


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python scripts/record.py --agent runs/ppo --out game.gif\n"
        "  python scripts/record.py --agent tips --variant doble --lang es --theme dark --out game.png",
    )
    parser.add_argument(
        "--agent",
        required=True,
        metavar="NAME_OR_RUN",
        help=f"who plays: {', '.join(agent_names())}, or a run folder, which brings its rules along",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a .gif, .mp4 or .png file")
    add_variant_arguments(parser, default=None)
    add_seed_argument(parser, EVALUATION_SEED, "the dice")
    parser.add_argument(
        "--stochastic",
        action="store_true",
        help="let the agent sample its actions instead of taking the best",
    )
    add_face_arguments(parser)
    parser.add_argument(
        "--size",
        type=int,
        default=DEFAULT_SIZE,
        metavar="PIXELS",
        help="width of a picture (default %(default)s)",
    )
    parser.add_argument("--theme", choices=list(THEMES), default="light", help="colours (default light)")
    parser.add_argument(
        "--fps",
        type=float,
        default=RENDER_FPS / 2,
        metavar="N",
        help="pictures a second in a film (default %(default)s)",
    )
    add_json_argument(parser)
    return parser


def _check(arguments: argparse.Namespace) -> None:
    if arguments.out.suffix.lower() not in FILM_SUFFIXES:
        raise UsageError(f"--out: {str(arguments.out)!r} does not end in {', '.join(FILM_SUFFIXES)}")
    if not arguments.out.parent.is_dir():
        raise UsageError(f"--out: {str(arguments.out.parent)!r} is not a folder")
    if arguments.out.is_dir():
        raise UsageError(f"--out: {str(arguments.out)!r} is a folder, not a file to write")
    if not 0.1 <= arguments.fps <= 60:
        raise UsageError(f"--fps: {arguments.fps} is not from 0.1 to 60")
    try:
        check_picture(arguments.size, arguments.theme)
    except ValueError as error:
        raise UsageError(f"--size: {error}") from None


def _summary(agent: str, compiled: CompiledVariant, trace: GameTrace, out: Path) -> dict[str, Any]:
    boxes = compiled.variant.boxes
    return {
        "agent": agent,
        "variant": compiled.variant.name,
        "fingerprint": compiled.variant.fingerprint,
        "score": trace.score,
        "instant_win": trace.is_instant_win,
        "regret": sum(decision.regret for decision in trace.decisions),
        "decisions": [
            {
                "dice": list(THROWS[decision.throw]),
                "throw": decision.throw_number,
                "action": action_text(decision.action, THROWS[decision.throw], boxes),
                "best_action": action_text(
                    decision.best_action, THROWS[decision.throw], compiled.variant.boxes
                ),
                "regret": decision.regret,
            }
            for decision in trace.decisions
        ],
        "out": str(out),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    _check(arguments)
    try:
        require_pillow()
    except DependencyNotInstalled as error:
        raise UsageError(str(error)) from None
    rules = rules_to_play([arguments.agent], arguments.variant, arguments.overrides, arguments.instant_win)
    agent = make_agent(arguments.agent, rules.variant, instant_win=rules.instant_win, seed=arguments.seed)
    trace = trace_game(
        agent, seed=arguments.seed, instant_win=rules.instant_win, deterministic=not arguments.stochastic
    )
    frames = episode_frames(
        rules.variant,
        trace,
        language=Language(arguments.language),
        dice=arguments.dice,
        size=arguments.size,
        theme=arguments.theme,
    )
    try:
        write_film(arguments.out, frames, frames_per_second=arguments.fps)
    except DependencyNotInstalled as error:
        raise UsageError(str(error)) from None
    summary = _summary(agent.name, agent.compiled, trace, arguments.out)
    if arguments.json:
        print_json(summary)
        return
    lost = summary["regret"]
    print(f"{agent.name}: {trace.score:g} points in {len(trace.decisions)} decisions, {lost:.3f} lost")
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    run_command(main, None)
