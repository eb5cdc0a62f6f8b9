"""Solve Generala exactly: one player for points, or two players for the probability of winning."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from agents.cli import (
    add_json_argument,
    add_store_argument,
    add_variant_arguments,
    instant_win_from,
    positive_int,
    print_json,
    run_command,
    variant_from,
)
from agents.errors import AgentError, UsageError
from agents.evaluation.exact import AgentPolicy
from agents.matches.duel_study import study_duel
from agents.registry import make_agent
from generala_env.rules.actions import Close, action_of, action_text
from generala_env.rules.compiled import compile_variant
from generala_env.rules.game import Game, GameState
from generala_env.rules.names import instant_win_text
from generala_env.rules.variants import Variant
from generala_env.solver.duel import DuelSolution, LayerSolver, open_duel, solve_duel, solve_layer_here
from generala_env.solver.duel_policies import solve_policies
from generala_env.solver.duel_ray import LOCAL, ray_solver
from generala_env.solver.policy_turns import Policy
from generala_env.solver.position import POSITION_HELP, PositionError, parse_position
from generala_env.solver.solo import solve_solo
from generala_env.solver.storage import StoreError, default_store

NUM_MOVES_SHOWN: Final = 10
SEATS: Final = ("first", "second")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="examples: python scripts/solve.py --variant ruibal --set generala_points=50 --json; "
        "python scripts/solve.py --players 2 --variant ruibal; python scripts/solve.py --players 2 "
        "--position 'me: 150, open fours poker; other: 131, open poker generala; dice 3 3 4 4 4; throw 2'; "
        "python scripts/solve.py --players 2 --first runs/NAME",
    )
    add_variant_arguments(parser)
    add_json_argument(parser)
    parser.add_argument(
        "--players",
        type=positive_int,
        choices=(1, 2),
        default=1,
        help="1: expected points, alone (default); 2: P(win) + P(draw)/2 of the player to move",
    )
    duel = parser.add_argument_group("two players")
    add_store_argument(
        duel,
        purpose="where this one is kept too; an interrupted solve continues from its finished layers "
        f"(default {default_store()})",
    )
    duel.add_argument(
        "--position",
        metavar="TEXT",
        help=f"print the best moves in a position instead: {POSITION_HELP} Taken from the stored "
        "solution where there is one; otherwise what follows from the position is solved first",
    )
    duel.add_argument(
        "--ray",
        nargs="?",
        const=LOCAL,
        metavar="ADDRESS",
        help="solve as Ray tasks, on a cluster or (without ADDRESS) on this machine's cores; needs the extra "
        "distributed",
    )
    for seat in SEATS:
        duel.add_argument(
            f"--{seat}",
            metavar="AGENT",
            help=f"the {seat} player follows an agent of the one-player game (a name, a run folder or an "
            "agent file), which sees its own card only. A player without an agent plays the best response; "
            "with both, the value is the exact result of a match. Nothing is stored",
        )
    duel.add_argument(
        "--stochastic",
        action="store_true",
        help="let the agents sample their actions instead of taking the best",
    )
    duel.add_argument(
        "--study",
        type=positive_int,
        metavar="GAMES",
        help="then play so many games of the optimal pair: how they end, and what the moves that are best "
        "for points alone would lose",
    )
    duel.add_argument(
        "--verify", action="store_true", help="compare every stored value with its checksum afterwards"
    )
    return parser


def solve_one_player(arguments: argparse.Namespace) -> dict[str, Any]:
    """Solve the game that the arguments describe and return the result as JSON types."""
    variant = variant_from(arguments.variant, arguments.overrides)
    start = time.perf_counter()
    compiled = compile_variant(variant)
    solution = solve_solo(compiled, instant_win=instant_win_from(arguments.instant_win))
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


def _print_one_player(result: dict[str, Any]) -> None:
    table = Table(title=f"One player, {result['variant']}", show_header=False)
    win = result["instant_win_points"]
    table.add_row("expected score", f"{result['expected_score']:.6f}")
    table.add_row("perfect score", str(result["perfect_score"]))
    table.add_row("instant win", instant_win_text(win))
    table.add_row("cards", f"{result['num_cards']:,}")
    table.add_row("seconds", f"{result['seconds']:.3f}")
    table.add_row("fingerprint", result["fingerprint"])
    Console().print(table)


def _solve(variant: Variant, arguments: argparse.Namespace, state: GameState | None) -> DuelSolution:
    store = arguments.store or default_store()
    if state is not None:
        solution = open_duel(variant, store)
        if solution is not None:
            return solution
    solver = nullcontext(solve_layer_here) if arguments.ray is None else ray_solver(arguments.ray)
    solve_layer: LayerSolver
    with solver as solve_layer:
        if state is None:
            return solve_duel(variant, store=store, solve_layer=solve_layer, progress=True)
        start = tuple(player.card for player in state.players)
        return solve_duel(variant, (start[0], start[1]), solve_layer=solve_layer, progress=True)


def _policies(variant: Variant, arguments: argparse.Namespace) -> list[Policy | None]:
    """Return what each seat follows; ``None`` where it plays the best response."""
    policies: list[Policy | None] = []
    for seat in SEATS:
        spec = getattr(arguments, seat)
        if spec is None:
            policies.append(None)
            continue
        try:
            agent = make_agent(spec, variant, instant_win=instant_win_from(arguments.instant_win))
        except AgentError as error:
            raise UsageError(f"--{seat}: {error}") from None
        policies.append(AgentPolicy(agent, deterministic=not arguments.stochastic))
    return policies


def solve_two_players(arguments: argparse.Namespace) -> dict[str, Any]:
    """Solve the game or the position that the arguments describe; return the result as JSON types."""
    variant = variant_from(arguments.variant, arguments.overrides)
    if variant.min_players > 2 or (variant.max_players is not None and variant.max_players < 2):
        raise UsageError(f"--players: {variant.name} is not for 2 players")
    state = (
        None if arguments.position is None else parse_position(compile_variant(variant), arguments.position)
    )
    policies = _policies(variant, arguments)
    follows = any(policy is not None for policy in policies)
    if not follows:
        for name, is_given in (
            ("stochastic", arguments.stochastic),
            ("instant-win", arguments.instant_win is not None),
        ):
            if is_given:
                raise UsageError(f"--{name}: with --players 2, is for agents (--first, --second)")
    else:
        for name in ("store", "position", "ray", "study", "verify"):
            if getattr(arguments, name):
                raise UsageError(f"--{name}: is not for players who follow an agent (--first, --second)")
    start = time.perf_counter()
    if follows:
        solution = solve_policies(variant, policies[0], policies[1], progress=True)
    else:
        solution = _solve(variant, arguments, state)
    seconds = time.perf_counter() - start
    if arguments.verify:
        solution.verify()
    result: dict[str, Any] = {
        "variant": variant.name,
        "fingerprint": variant.fingerprint,
        "players": 2,
        "num_card_pairs": solution.num_card_pairs,
        "num_values": solution.num_values,
        # Following agents takes a while of its own; nothing of it is stored.
        "seconds": seconds if follows else solution.seconds,
        "loaded": solution.is_loaded,
        "bytes": solution.num_bytes,
    }
    if follows:
        result |= {seat: getattr(arguments, seat) or "best response" for seat in SEATS}
    if state is None:
        result = {"first_player_value": solution.first_player_value, **result}
        if arguments.study is not None:
            with tqdm(total=arguments.study, unit="game", delay=1.0, disable=None) as bar:

                def report(num_games: int) -> None:
                    bar.update(num_games)

                result["study"] = study_duel(solution, arguments.study, report=report)
        return result
    return {**_moves(solution, state), **result}


def _moves(solution: DuelSolution, state: GameState) -> dict[str, Any]:
    """Return the value of a position and of its moves, the best first."""
    value = solution.state_value(state)
    if not state.turn.dice:
        return {"value": value, "moves": []}
    mover = solution.compiled.index_of(state.card)
    if solution.is_won(np.array([mover]), solution.compiled.turn_batch(state))[0]:
        return {"value": 1.0, "moves": [], "is_won": True}
    q_values = solution.q_values(state)
    legal = np.flatnonzero(np.isfinite(q_values))
    ordered = legal[np.argsort(-q_values[legal], kind="stable")].tolist()
    moves = [
        {"action": action, "move": _words(solution, state, action), "value": float(q_values[action])}
        for action in ordered
    ]
    return {"value": value, "moves": moves}


def _words(solution: DuelSolution, state: GameState, identifier: int) -> str:
    variant = solution.compiled.variant
    action = action_of(identifier, variant.num_boxes)
    points = None
    if isinstance(action, Close):
        after = Game(variant, 2).apply(state, action)
        seat = state.current_player
        points = after.players[seat].score - state.players[seat].score
    return action_text(identifier, state.turn.dice, variant.boxes, points)


def _print_two_players(result: dict[str, Any]) -> None:
    table = Table(title=f"Two players, {result['variant']}")
    if "moves" not in result:
        table = Table(title=f"Two players, {result['variant']}", show_header=False)
        table.add_row("first player", f"{result['first_player_value']:.6f}")
        if "second" in result:
            table.add_row("which follows", result["first"])
            table.add_row("against", result["second"])
        table.add_row("pairs of cards", f"{result['num_card_pairs']:,}")
        table.add_row("values", f"{result['num_values']:,}")
        table.add_row("seconds", _seconds_text(result["seconds"], is_loaded=result["loaded"]))
        table.add_row("bytes", f"{result['bytes']:,}")
        table.add_row("fingerprint", result["fingerprint"])
        Console().print(table)
        if "study" in result:
            _print_study(result["study"])
        return
    table.add_column("move")
    table.add_column("value", justify="right")
    table.add_column("loses", justify="right")
    for move in result["moves"][:NUM_MOVES_SHOWN]:
        lost = result["value"] - move["value"]
        table.add_row(move["move"], f"{move['value']:.6f}", f"{max(lost, 0.0):.6f}")
    if result["moves"]:
        more = len(result["moves"]) - NUM_MOVES_SHOWN
        table.caption = f"and {more} more moves" if more > 0 else None
        Console().print(table)
    elif result.get("is_won"):
        Console().print("These five dice have won the game.")
    else:
        Console().print(f"P(win) + P(draw)/2 before the throw: {result['value']:.6f}")


def _seconds_text(seconds: float | None, *, is_loaded: bool) -> str:
    if seconds is None:
        return "not known; loaded" if is_loaded else "not known"
    return f"{seconds:.1f}" + (" when it was solved; loaded" if is_loaded else "")


def _print_study(study: dict[str, Any]) -> None:
    table = Table(title=f"{study['games']:,} games of the optimal pair", show_header=False)
    sampled, error = study["first_player_sampled"], study["standard_error"]
    table.add_row("first player", f"{sampled:.4f} ± {1.96 * error:.4f}")
    table.add_row("won by a served Generala", f"{100 * study['instant_win_share']:.2f} %")
    table.add_row("level at the end", f"{100 * study['tied_share']:.2f} %")
    table.add_row("decisions where points mislead", f"{100 * study['differing_share']:.2f} %")
    table.add_row("what they would lose, a game", f"{study['loss_per_game']:.4f}")
    for number, loss in enumerate(study["loss_by_round"], start=1):
        table.add_row(f"  in round {number}", f"{loss:.5f}")
    for lead in study["loss_by_lead"]:
        name = f"  a decision, lead {lead['from']} to {lead['to']}"
        table.add_row(name, f"{lead['loss_per_decision']:.5f}")
    Console().print(table)
    dearest = Table("position", "best", "for points", "loses", title="The dearest decisions met")
    for one in study["dearest"]:
        dearest.add_row(one["position"], one["best"], one["for_points"], f"{one['loses']:.4f}")
    Console().print(dearest)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.players == 1:
        for name in ("store", "position", "ray", *SEATS, "stochastic", "study", "verify"):
            if getattr(arguments, name):
                raise UsageError(f"--{name}: is for --players 2")
        result = solve_one_player(arguments)
        show = _print_one_player
    else:
        try:
            result = solve_two_players(arguments)
        except PositionError as error:
            raise UsageError(f"--position: {str(error).removeprefix('position: ')}") from None
        except StoreError as error:
            raise UsageError(f"--store: {error}") from None
        except ModuleNotFoundError as error:
            if error.name != "ray":
                raise
            raise UsageError("--ray: Ray is not installed; pip install 'generala-env[distributed]'") from None
        except ConnectionError as error:
            raise UsageError(f"--ray: no cluster at {arguments.ray!r}: {error}") from None
        show = _print_two_players
    if arguments.json:
        print_json(result)
    else:
        show(result)


if __name__ == "__main__":
    run_command(main, None)
