"""Making an entry of the zoo out of finished runs, and checking one by evaluating it again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from agents.base import Agent, AgentRequest
from agents.config.loading import parse_config
from agents.evaluation.exact import AgentPolicy, exact_evaluation, exact_summary
from agents.learning.trained import load_agent
from agents.registry import make_agent
from agents.runs.folder import create_run_folder, read_about, read_config, read_result
from agents.runs.lock import locked
from agents.runs.training import TrainingRun, prepare
from agents.saving.agent_files import WEIGHTS, Arrays, read_agent, write_file
from agents.zoo.entries import CARD_FORMAT, PREFIX, ZOO_FOLDER, ZooError, agent_path, file_digest, read_card
from generala_env.files import write_json
from generala_env.rules.compiled import CompiledVariant, compile_variant
from generala_env.rules.variants import Variant
from generala_env.solver.duel_policies import solve_policies

SAME_SCORE: Final = 1e-4
"""Points by which an agent evaluated again may differ: processors add up products in orders of their own."""

MOST_BYTES: Final = 1_000_000


def build(
    name: str, runs: Sequence[Path], *, with_duel: bool = False, folder: Path = ZOO_FOLDER
) -> dict[str, Any]:
    """Make an entry of the best of some runs, which differ in nothing but their seed.

    Exact scores choose it, so no luck is chosen with it; all of them are in the card.

    Args:
        name: Of the entry, without the prefix.
        runs: Folders of finished runs.
        with_duel: Whether to compute its exact play against the points-optimal player and its
            exploitability, which take minutes to an hour by the preset.
        folder: Where the zoo is.

    Returns:
        The card.

    Raises:
        ZooError: The runs differ in more than their seed, or one was not judged exactly.
    """
    configs = {path: {**read_config(path), "seed": None} for path in runs}
    results = {path: read_result(path) for path in runs}
    first = runs[0]
    for path in runs[1:]:
        if configs[path] != configs[first]:
            raise ZooError(f"{path}: was not made from the config of {first}: only seeds may differ")
    for path, result in results.items():
        if not result["exact"]:
            raise ZooError(f"{path}: was not judged exactly, so which run is the best is not known")
    best = max(runs, key=lambda path: (results[path]["mean_score"], str(path)))
    blueprint, weights = read_agent(best)
    compiled = compile_variant(blueprint.variant)
    path = folder / f"{name}.safetensors"
    content = {**blueprint.to_dict(), "name": f"{PREFIX}{name}", "evaluation": results[best]}
    write_file(path, "agent", content, {f"{WEIGHTS}{key}": array for key, array in _played(weights).items()})
    if path.stat().st_size > MOST_BYTES:
        raise ZooError(f"{path}: has {path.stat().st_size:,} bytes; at most {MOST_BYTES:,}")
    agent = load_agent(path, AgentRequest(compiled, blueprint.instant_win))  # type: ignore[arg-type]
    summary = _summary(agent, blueprint.instant_win)
    about = read_about(best)
    card = {
        "format": CARD_FORMAT,
        "name": f"{PREFIX}{name}",
        "sha256": file_digest(path),
        "bytes": path.stat().st_size,
        "algorithm": blueprint.algorithm,
        "variant": blueprint.variant.to_dict(),
        "fingerprint": blueprint.variant.fingerprint,
        "instant_win": blueprint.instant_win,
        "config": read_config(best),
        "seed": blueprint.seed,
        "scores_by_seed": {str(read_config(run)["seed"]): results[run]["mean_score"] for run in runs},
        "num_timesteps": results[best]["num_timesteps"],
        "minutes": round(results[best]["wall_seconds"] / 60, 2),
        "processor": about.get("processor"),
        "commit": about.get("commit"),
        "mean_score": summary["mean_score"],
        "optimal_score": summary["optimal_score"],
        "optimality": summary["optimality"],
        "regret": summary["regret"],
        "regret_by_throw": summary["regret_by_throw"],
        "regret_by_kind": summary["regret_by_kind"],
        "duel": _duel(agent, compiled) if with_duel else None,
    }
    write_json(folder / f"{name}.json", card)
    return card


def _played(weights: Arrays) -> Arrays:
    """Return what playing needs: of networks of cards, the averages of what chooses."""
    averaged = {name: array for name, array in weights.items() if name.startswith("averaged.")}
    return {name: array for name, array in averaged.items() if ".critic." not in name} or weights


def _summary(agent: Agent, instant_win: Any) -> dict[str, Any]:
    evaluation = exact_evaluation(agent, instant_win=instant_win, num_blunders=0)
    return exact_summary(agent.name, evaluation, num_blunders=0)


def _duel(agent: Agent, compiled: CompiledVariant) -> dict[str, float]:
    """Return exact shares of wins, draws counting half, seats alternated."""
    policy = AgentPolicy(agent)
    optimal = AgentPolicy(make_agent("optimal", compiled, instant_win="play_on"))
    against = [
        solve_policies(compiled, policy, optimal).first_player_value,
        1.0 - solve_policies(compiled, optimal, policy).first_player_value,
    ]
    beaten = [
        solve_policies(compiled, None, policy).first_player_value,
        1.0 - solve_policies(compiled, policy, None).first_player_value,
    ]
    return {
        "win_share_against_solo_optimal": math.fsum(against) / 2,
        "win_share_of_best_response": math.fsum(beaten) / 2,
        "exploitability": math.fsum(beaten) / 2 - 0.5,
    }


def check(name: str, folder: Path = ZOO_FOLDER) -> dict[str, float]:
    """Evaluate an agent of the zoo again.

    Args:
        name: With the prefix.
        folder: Where the zoo is.

    Returns:
        The score found and the score on the card.

    Raises:
        ZooError: The file is not the card's, or the score is not the one on the card.
    """
    card = read_card(name, folder)
    path = agent_path(name, folder)
    compiled = compile_variant(Variant.from_dict(card["variant"]))
    agent = load_agent(path, AgentRequest(compiled, card["instant_win"]))
    found = _summary(agent, card["instant_win"])["mean_score"]
    if abs(found - card["mean_score"]) > SAME_SCORE:
        raise ZooError(f"{name}: scores {found:.6f}; its card says {card['mean_score']:.6f}")
    return {"mean_score": found, "on_card": card["mean_score"]}


def rebuild(
    name: str, *, say: Callable[[str], None], with_duel: bool = False, folder: Path = ZOO_FOLDER
) -> dict[str, Any]:
    """Train an entry again, with the config and all the seeds of its card, into ``runs/``, and build it.

    Args:
        name: With the prefix.
        say: Tells a person something.
        with_duel: See ``build``.
        folder: Where the zoo is.

    Raises:
        ZooError: There is no such entry.
        TrainingError: A run could not be finished.
    """
    card = read_card(name, folder)
    runs = []
    for seed in card["scores_by_seed"]:
        text = json.dumps({**card["config"], "seed": int(seed)})
        resolved = parse_config(text, f"{name}: its config", name.removeprefix(PREFIX))
        prepare(resolved.config)
        run_folder = create_run_folder(resolved, None, ["zoo.py", "rebuild", name])
        say(f"training with seed {seed} in {run_folder}")
        with locked(run_folder, say):
            run = TrainingRun(run_folder, resolved.config, say)
            run.train()
            run.finish()
        runs.append(run_folder)
    return build(name.removeprefix(PREFIX), runs, with_duel=with_duel, folder=folder)
