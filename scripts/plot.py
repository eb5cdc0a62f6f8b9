"""Draw pictures, as PNG and SVG: learning curves, distributions of scores, regret, maps of policies.

Trained agents bring their rules along; --variant, --set and --instant-win override them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from agents.base import Agent
from agents.cli import (
    add_face_arguments,
    add_json_argument,
    add_seed_argument,
    add_variant_arguments,
    print_json,
    run_command,
)
from agents.errors import UsageError
from agents.evaluation.exact import exact_evaluation
from agents.evaluation.figures import (
    learning_curves_figure,
    regret_bars_figure,
    save_figure,
    score_distribution_figure,
)
from agents.evaluation.policy_map import policy_map, policy_map_figure
from agents.evaluation.sampled import EVALUATION_SEED
from agents.registry import agent_names, make_agent
from agents.runs.comparison import AXES, Group, group_runs, learning_curve
from agents.runs.rules import rules_to_play
from generala_env.rules.boxes import Box
from generala_env.rules.card import BoxStatus, Card
from generala_env.rules.compiled import InstantWin
from generala_env.rules.dice import FACES, THROWS_PER_TURN
from generala_env.rules.names import DiceSkin, Language
from generala_env.rules.variants import Variant
from generala_env.solver.evaluation import ExactEvaluation

DEFAULT_OUT: Final = Path("plots")

HEIGHTS: Final = {"optimality": ("share of the optimum (%)", 100.0), "mean_score": ("mean score", 1.0)}

OVER: Final = {
    "steps": "environment steps",
    "minutes": "minutes, evaluations included",
    "processor_minutes": "minutes of processors, all threads added up",
}


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  python scripts/plot.py curves 'runs/ppo-*' 'runs/dqn-*' --over minutes\n"
        "  python scripts/plot.py scores --agent runs/ppo turn_greedy --lang es\n"
        "  python scripts/plot.py regret --agent runs/ppo tips\n"
        "  python scripts/plot.py policy --agent runs/ppo --throw 2 --open poker generala",
    )
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")

    curves = kinds.add_parser("curves", help="learning curves of runs, with bands over seeds")
    curves.add_argument(
        "runs", nargs="+", metavar="[LABEL=]RUN", help="a finished run, or a glob in quotes; as in compare.py"
    )
    curves.add_argument("--over", choices=list(OVER), default="steps", help="what is drawn to the right")
    curves.add_argument(
        "--metric",
        choices=list(HEIGHTS),
        default="optimality",
        help="what is drawn upwards (default %(default)s)",
    )
    scores = kinds.add_parser("scores", help="the exact distributions of final scores beside the optimum's")
    regret = kinds.add_parser("regret", help="points lost to the optimum, by throw and by box, exactly")
    policy = kinds.add_parser("policy", help="what is kept of each throw on one card, beside the optimum")
    for kind in (scores, regret, policy):
        kind.add_argument(
            "--agent",
            dest="agents",
            nargs=1 if kind is policy else "+",
            required=True,
            metavar="NAME_OR_RUN",
            help=f"who plays: {', '.join(agent_names())}, or a run folder",
        )
        add_variant_arguments(kind, default=None)
        add_seed_argument(kind, EVALUATION_SEED, "agents that draw")
        add_face_arguments(kind)
    policy.add_argument(
        "--throw", type=int, choices=range(1, THROWS_PER_TURN + 1), default=1, help="which throw of the turn"
    )
    policy.add_argument(
        "--open",
        nargs="+",
        metavar="BOX",
        help="the boxes that are open (default: all), such as poker generala",
    )
    policy.add_argument(
        "--struck",
        nargs="+",
        default=[],
        metavar="BOX",
        help="closed boxes that were struck; it matters for generala and doble_generala",
    )
    policy.add_argument(
        "--kept",
        type=int,
        nargs="*",
        choices=FACES,
        metavar="FACE",
        help="the dice kept before the throw: only throws with them are drawn; none for a throw of all five",
    )
    for kind in (curves, scores, regret, policy):
        kind.add_argument(
            "--out", type=Path, default=DEFAULT_OUT, metavar="FOLDER", help="where to (default %(default)s/)"
        )
        add_json_argument(kind)
    return parser


def _references(groups: Sequence[Group], metric: str, scale: float) -> dict[str, float]:
    """Return the levels of the optimum and of those evaluated beside the runs for scale."""
    result = groups[0].runs[0].result
    scored = {"optimum": result["scale"]["optimal"], **result["scale"]} if "scale" in result else {}
    return {name: scale * row[metric] for name, row in scored.items() if name != "optimal"}


def _curves(arguments: argparse.Namespace) -> tuple[Figure, str, dict[str, Any]]:
    groups = group_runs(arguments.runs)
    ylabel, scale = HEIGHTS[arguments.metric]
    found = {
        group.label: learning_curve(group, arguments.metric, scale=scale, over=arguments.over)
        for group in groups
    }
    missing = [label for label, curve in found.items() if curve is None]
    if missing:
        raise UsageError(
            f"curves: {missing[0]}: a run of it has fewer than two evaluations with "
            f"{AXES[arguments.over].key}, or they overlap nowhere"
        )
    curves = {label: curve for label, curve in found.items() if curve is not None}
    references = _references(groups, arguments.metric, scale)
    bands = " and 95 % band" if any(curve.band is not None for curve in curves.values()) else ""
    figure = learning_curves_figure(
        curves,
        references=references,
        title=f"{groups[0].runs[0].result.get('variant', '')}: mean over seeds{bands}",
        xlabel=OVER[arguments.over],
        ylabel=ylabel,
    )
    drawn = {
        "curves": {
            label: {
                "over": curve.over.tolist(),
                "mean": curve.middle.tolist(),
                "band": None if curve.band is None else [end.tolist() for end in curve.band],
            }
            for label, curve in curves.items()
        },
        "references": references,
    }
    return figure, f"learning_curves_over_{arguments.over}", drawn


def _made(arguments: argparse.Namespace) -> tuple[list[Agent], InstantWin]:
    rules = rules_to_play(arguments.agents, arguments.variant, arguments.overrides, arguments.instant_win)
    agents = [
        make_agent(spec, rules.variant, instant_win=rules.instant_win, seed=arguments.seed)
        for spec in arguments.agents
    ]
    names = [agent.name for agent in agents]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"--agent: {repeated!r} is given twice")
    return agents, rules.instant_win


def _evaluations(arguments: argparse.Namespace) -> dict[str, ExactEvaluation]:
    agents, instant_win = _made(arguments)
    return {
        agent.name: exact_evaluation(agent, instant_win=instant_win, num_blunders=0, progress=True)
        for agent in agents
    }


def _scores(arguments: argparse.Namespace) -> tuple[Figure, str, dict[str, Any]]:
    evaluations = _evaluations(arguments)
    drawn = {
        name: {"scores": found.scores.tolist(), "probabilities": found.score_probabilities.tolist()}
        for name, found in evaluations.items()
    }
    figure = score_distribution_figure(evaluations, language=Language(arguments.language))
    return figure, "score_distribution", {"agents": drawn}


def _regret(arguments: argparse.Namespace) -> tuple[Figure, str, dict[str, Any]]:
    evaluations = _evaluations(arguments)
    drawn = {
        name: {
            "by_throw": found.regret_by_throw.tolist(),
            "by_box": dict(
                zip(
                    [box.value for box in found.compiled.variant.boxes],
                    found.regret_by_box[:-1].sum(axis=1).tolist(),
                    strict=True,
                )
            ),
        }
        for name, found in evaluations.items()
    }
    return regret_bars_figure(evaluations, **_face(arguments)), "regret", {"agents": drawn}


def _face(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"language": Language(arguments.language), "skin": DiceSkin(arguments.dice)}


def _boxes(flag: str, names: Sequence[str], variant: Variant) -> list[int]:
    known = [box.value for box in variant.boxes]
    for name in names:
        if name not in known:
            raise UsageError(f"{flag}: {name!r} is not a box of {variant.name}; known: {', '.join(known)}")
    return [known.index(name) for name in names]


def _card(arguments: argparse.Namespace, variant: Variant) -> Card:
    if arguments.open is None:
        if arguments.struck:
            raise UsageError(f"--struck: {arguments.struck[0]!r} is open; say with --open which boxes are")
        return Card.empty(variant)
    opened = set(_boxes("--open", arguments.open, variant))
    struck = set(_boxes("--struck", arguments.struck, variant))
    both = sorted(opened & struck)
    if both:
        raise UsageError(f"--struck: {variant.boxes[both[0]].value!r} is open, so it was not struck")

    def status(box: Box) -> BoxStatus:
        if box not in variant.boxes or variant.boxes.index(box) in opened:
            return BoxStatus.OPEN
        return BoxStatus.STRUCK if variant.boxes.index(box) in struck else BoxStatus.SCORED

    return Card(sum(1 << box for box in opened), status(Box.GENERALA), status(Box.DOBLE_GENERALA))


def _policy(arguments: argparse.Namespace) -> tuple[Figure, str, dict[str, Any]]:
    (agent,), instant_win = _made(arguments)
    kept = None if arguments.kept is None else tuple(sorted(arguments.kept))
    if kept is not None and len(kept) > 4:
        raise UsageError("--kept: five dice kept leave nothing to throw; give at most four")
    try:
        found = policy_map(
            agent,
            _card(arguments, agent.compiled.variant),
            arguments.throw,
            kept=kept,
            instant_win=instant_win,
        )
    except ValueError as error:
        raise UsageError(f"--open: {error}") from None
    figure = policy_map_figure(found, **_face(arguments))
    drawn = {
        "throws": found.throws.tolist(),
        "actions": found.actions.tolist(),
        "best": found.best.tolist(),
        "lost": found.lost.tolist(),
    }
    return figure, f"policy_throw_{arguments.throw}", drawn


KINDS: Final = {"curves": _curves, "scores": _scores, "regret": _regret, "policy": _policy}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    if arguments.out.exists() and not arguments.out.is_dir():
        raise UsageError(f"--out: {str(arguments.out)!r} is a file, not a folder")
    figure, name, drawn = KINDS[arguments.kind](arguments)
    written = [str(path) for path in save_figure(figure, arguments.out, name)]
    if arguments.json:
        print_json({"files": written, **drawn})
    else:
        print("\n".join(written))


if __name__ == "__main__":
    run_command(main, None)
