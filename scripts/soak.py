"""Run things for long and check them all the while: random play, a trained agent, memory in training."""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from tqdm import tqdm

from agents.cli import (
    add_config_set_argument,
    add_json_argument,
    add_seed_argument,
    positive_int,
    print_json,
    run_command,
)
from agents.errors import UsageError
from agents.registry import make_agent
from agents.saving.agent_files import read_agent
from generala_env.envs.stepping import CARD, IS_WON, THROW_NUMBER
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.dice import THROWS_PER_TURN
from generala_env.rules.variants import PRESETS

EXIT_FAILED = 1
NUM_ENVS = 4_096
MEGABYTE = 2**20


class SoakError(Exception):
    """Something that must hold does not; told in one line."""


class Invariants:
    """What must hold after every step of a batch, counted independently of the environments."""

    def __init__(self, env: GeneralaVectorEnv) -> None:
        self.env = env
        self.total = np.zeros(env.num_envs)
        self.closed = np.zeros(env.num_envs, dtype=np.int64)
        self.length = np.zeros(env.num_envs, dtype=np.int64)
        self.episodes = self.wins = 0
        self.lowest, self.highest = np.inf, -np.inf

    def _demand(self, holds: Any, what: str) -> None:
        if not np.all(holds):
            index = int(np.argmin(np.broadcast_to(holds, self.env.num_envs)))
            raise SoakError(f"{self.env.variant.name}, environment {index}: {what}")

    def check(self, actions: NDArray[np.int64], observations: NDArray[np.float32]) -> None:
        env, batch, compiled = self.env, self.env.batch, self.env.compiled
        ended = batch.terminated
        self.total += batch.rewards
        self.length += 1
        self.closed += actions >= NUM_KEEP_ACTIONS
        self._demand(batch.masks.any(axis=1), "no legal action")
        self._demand(batch.rewards >= 0, "a negative reward")
        self._demand((batch.rewards == 0) | (actions >= NUM_KEEP_ACTIONS) | ended, "a keep was paid")
        self._demand((observations >= 0).all(axis=1) & (observations <= 1).all(axis=1), "outside [0, 1]")
        numbers = batch.state[:, THROW_NUMBER]
        self._demand((numbers >= 1) & (numbers <= THROWS_PER_TURN), "a throw that is none of the three")
        self._demand(batch.masks[numbers == THROWS_PER_TURN, :NUM_KEEP_ACTIONS] == 0, "a fourth throw")
        if ended.any():
            won = batch.final_state[:, IS_WON].astype(bool) & ended
            full = ended & ~won
            most = compiled.perfect_score + np.where(won, env.instant_win_points or 0.0, 0.0)
            self._demand(
                ~ended | np.isclose(batch.final_score, self.total), "the score is not the rewards' sum"
            )
            self._demand(~ended | (batch.final_score <= most + 1e-9), "more than the perfect score")
            self._demand(~full | (self.closed == compiled.num_boxes), "an end before the card was full")
            self._demand(~ended | (self.length == batch.final_length), "a length that was not played")
            longest = THROWS_PER_TURN * compiled.num_boxes + 1
            self._demand(~ended | (self.length <= longest), "too many steps")
            self.episodes += int(ended.sum())
            self.wins += int(won.sum())
            scores = batch.final_score[ended]
            self.lowest, self.highest = min(self.lowest, scores.min()), max(self.highest, scores.max())
            self.total[ended] = self.closed[ended] = self.length[ended] = 0
        still = ~batch.state[:, IS_WON].astype(bool)
        opened = compiled.num_open[batch.state[:, CARD]]
        self._demand(~still | (opened == compiled.num_boxes - self.closed), "boxes opened again")


def random_play(steps: int, seed: int) -> dict[str, Any]:
    """Play random legal actions over all presets."""
    results = {}
    start = time.perf_counter()
    batches = -(-steps // (NUM_ENVS * len(PRESETS)))
    with tqdm(total=batches * NUM_ENVS * len(PRESETS), unit="step", unit_scale=True, disable=None) as bar:
        for name in PRESETS:
            bar.set_description(name)
            env = GeneralaVectorEnv(NUM_ENVS, name, instant_win="perfect", autoreset_mode="SameStep")
            env.reset(seed=seed)
            rng = np.random.default_rng(seed)
            invariants = Invariants(env)
            for _ in range(batches):
                masks = env.batch.masks
                draws = rng.random(masks.shape, dtype=np.float32) + np.float32(1e-9)
                actions = (draws * masks).argmax(axis=1)
                invariants.check(actions, env.advance(actions))
                bar.update(NUM_ENVS)
            results[name] = {
                "steps": batches * NUM_ENVS,
                "episodes": invariants.episodes,
                "instant_wins": invariants.wins,
                "lowest_score": float(invariants.lowest),
                "highest_score": float(invariants.highest),
            }
    return {
        "steps": batches * NUM_ENVS * len(PRESETS),
        "seconds": time.perf_counter() - start,
        "presets": results,
    }


def agent_play(path: str, steps: int, seed: int) -> dict[str, Any]:
    """Let a trained agent play, half of the time on its best actions, half of the time sampling."""
    variant = read_agent(Path(path))[0].variant
    agent = make_agent(path, variant, seed=seed)
    env = GeneralaVectorEnv(
        1_024,
        variant,
        observation_blocks=agent.layout.names,
        autoreset_mode="SameStep",
        instant_win="perfect",
    )
    observations, _ = env.reset(seed=seed)
    invariants = Invariants(env)
    illegal = played = 0
    start = time.perf_counter()
    with tqdm(total=steps, unit="step", unit_scale=True, desc=agent.name, disable=None) as bar:
        while played < steps:
            masks = env.action_masks()
            actions = agent.act(observations, masks, deterministic=played < steps // 2)
            illegal += int((~masks[np.arange(len(actions)), actions]).sum())
            if illegal:
                raise SoakError(f"{agent.name}: an illegal action after {played} steps")
            observations = env.advance(actions)
            invariants.check(actions, observations)
            played += env.num_envs
            bar.update(env.num_envs)
    return {
        "agent": agent.name,
        "variant": variant.name,
        "steps": played,
        "illegal_actions": illegal,
        "episodes": invariants.episodes,
        "seconds": time.perf_counter() - start,
    }


def memory(config: str, minutes: float, overrides: Sequence[str]) -> dict[str, Any]:
    """Train for a while in a process of its own and watch the memory it holds."""
    script = Path(__file__).with_name("train.py")
    samples: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(script), "--config", config, "--run-dir", f"{folder}/run"]
        command += ["--set", "total_timesteps=1_000_000_000_000", *[f"--set={text}" for text in overrides]]
        with open(os.devnull, "w") as nowhere:
            process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        # However this ends, the training ends with it.
        atexit.register(process.kill)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        watched = psutil.Process(process.pid)
        # Importing and compiling are over once the first evaluation is written.
        while process.poll() is None and not (Path(folder) / "run/progress.jsonl").exists():
            time.sleep(0.1)
        start = time.monotonic()
        with tqdm(total=round(60 * minutes), unit="s", desc="memory", disable=None) as bar:
            while (seconds := time.monotonic() - start) < 60 * minutes:
                if process.poll() is not None:
                    raise SoakError(
                        f"the training ended with code {process.returncode} after {seconds:.0f} s"
                    )
                samples.append((seconds, watched.memory_info().rss / MEGABYTE))
                bar.update(round(seconds) - bar.n)
                time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        status = process.wait(600)
        rows = (Path(folder) / "run/progress.jsonl").read_text().count("\n")
    seconds, sizes = np.array(samples).T
    # The first third fills buffers and caches; growth after it is what would not end.
    settled = seconds >= seconds[-1] / 3
    slope = np.polyfit(seconds[settled] / 3600, sizes[settled], 1)[0]
    middle = len(sizes[settled]) // 2
    return {
        "config": config,
        "minutes": seconds[-1] / 60,
        "megabytes_at_a_third": float(sizes[settled][0]),
        "megabytes_at_the_end": float(sizes[-1]),
        "megabytes_highest": float(sizes.max()),
        "median_change_between_halves": float(
            np.median(sizes[settled][middle:]) - np.median(sizes[settled][:middle])
        ),
        "megabytes_per_hour": float(slope),
        "evaluations": rows,
        "exit_code": status,
    }


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python scripts/soak.py random --steps 100000000",
    )
    add_json_argument(parser)
    what = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    play = what.add_parser(
        "random", help="random legal actions over all presets, invariants checked each step"
    )
    play.add_argument(
        "--steps", type=positive_int, default=100_000_000, metavar="N", help="default %(default)s"
    )
    trained = what.add_parser("agent", help="a trained agent, its actions checked against the masks")
    trained.add_argument(
        "--agent", required=True, metavar="RUN_OR_FILE", help="a run folder or an agent file"
    )
    trained.add_argument(
        "--steps", type=positive_int, default=1_000_000, metavar="N", help="default %(default)s"
    )
    for parsed in (play, trained):
        add_seed_argument(parsed, 0, "the dice and of the actions")
    watch = what.add_parser("memory", help="the memory of a training run over time")
    watch.add_argument("--config", default="ppo.yaml", metavar="FILE", help="default %(default)s")
    watch.add_argument("--minutes", type=float, default=60.0, metavar="M", help="default %(default)s")
    add_config_set_argument(watch)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    try:
        if arguments.what == "random":
            result = random_play(arguments.steps, arguments.seed)
        elif arguments.what == "agent":
            result = agent_play(arguments.agent, arguments.steps, arguments.seed)
        else:
            if not arguments.minutes > 0:
                raise UsageError(f"--minutes: {arguments.minutes} is not above 0")
            result = memory(arguments.config, arguments.minutes, arguments.overrides)
    except SoakError as error:
        print(f"soak.py: failed: {error}", file=sys.stderr)
        return EXIT_FAILED
    if arguments.json:
        print_json(result)
    else:
        for key, value in result.items():
            print(f"{key}: {value}")
    return 0


if __name__ == "__main__":
    run_command(main, None)
