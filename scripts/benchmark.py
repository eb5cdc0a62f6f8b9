"""Measure how fast everything is, beside peers in the same run.

Each section measures some figures and, where there is a peer, the ratio to it: absolute figures depend
on the machine and on what else it does, ratios much less. Peers that are not installed are named
and left out (pip install "generala-env[bench]"). Every figure is the best of several tries. What runs
on one thread is timed in processor seconds, which other processes lengthen little; the rest by the clock.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import generala_env
from agents.cli import (
    add_json_argument,
    positive_int,
    print_json,
    run_command,
)
from agents.config.loading import CONFIG_FOLDER, load_config
from agents.errors import UsageError
from agents.evaluation.exact import exact_evaluation
from agents.learning.cards.algorithms import CardAlgorithm, CardPPO
from agents.learning.dqn import MaskableDQN
from agents.learning.learners import make_learner
from agents.learning.ppo import PPO
from agents.learning.vec_env import GeneralaVecEnv
from agents.registry import make_agent
from generala_env.envs.observation import observation_layout
from generala_env.envs.solo import GeneralaEnv
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules import PRESETS, compile_variant
from generala_env.rules.compiled import TurnBatch
from generala_env.solver.duel import open_duel, solve_duel
from generala_env.solver.duel_kernels import operations_per_difference
from generala_env.solver.evaluation import evaluate_policy
from generala_env.solver.solo import solve_solo

ENV_ID: Final = "generala_env/Generala-v0"
NUM_ENVS = 1_024
"""How many environments the rows on batches have."""
SIZES = (1, 8, 64, 512, 1_024, 4_096, 16_384)
"""How many the drawing has."""


@dataclass
class Effort:
    """How much to measure.

    Attributes:
        seconds: About how long one try takes.
        tries: How many there are; the best counts.
        num_threads: Threads of the batched environment in the rows that use several.
    """

    seconds: float = 1.0
    tries: int = 3
    num_threads: int = 2


@dataclass
class Figure:
    """One row.

    Attributes:
        name: What was measured.
        value: How much.
        unit: Of what.
        peer: The name of the row it is compared to.
        ratio: How many times better than the peer it is.
    """

    name: str
    value: float
    unit: str
    peer: str | None = None
    ratio: float | None = None


@dataclass
class Section:
    """The figures of a section, and what could not be measured.

    Attributes:
        figures: The rows.
        missing: Peers that were left out, and why.
        curves: By label, the points (environments, steps per second) of a drawing.
    """

    figures: list[Figure] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def add(self, name: str, value: float, unit: str, peer: str | None = None) -> float:
        """Add a row, compared to an earlier one if it is there."""
        ratio = None
        for other in self.figures:
            if other.name == peer:
                ratio = other.value / value if unit == "s" else value / other.value
        self.figures.append(Figure(name, value, unit, peer if ratio is not None else None, ratio))
        return value

    def peer(self, name: str) -> Any:
        """Import an optional peer; ``None``, and a note, where that is impossible."""
        # pygame, which PettingZoo's peer draws with, greets on standard output.
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return import_module(name)
        except ImportError as error:
            self.missing.append(f"{name} ({error})")
            return None


Clock = Callable[[], float]


def rate(steps: Callable[[int], int], effort: Effort, clock: Clock = time.process_time) -> float:
    """Return the best number of steps per second.

    Args:
        steps: Does about as many steps as it is told, and returns how many it did.
        effort: How long and how often.
        clock: What tells the time.
    """
    amount, took = 1, 0.0
    while took < effort.seconds / 10:
        start = clock()
        done = steps(amount)
        took = clock() - start
        amount = max(2 * amount, done)
    amount = max(1, int(amount / 2 * effort.seconds / took))
    best = 0.0
    for _ in range(effort.tries):
        start = clock()
        done = steps(amount)
        best = max(best, done / max(clock() - start, 1e-9))
    return best


def seconds_of(action: Callable[[], object], effort: Effort) -> float:
    """Return the fewest seconds of some tries, after a first that warms up."""
    action()
    best = float("inf")
    for _ in range(effort.tries):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


# --- one environment -----------------------------------------------------------------------------------


def masked_steps(env: gym.Env[Any, Any]) -> Callable[[int], int]:
    """Return a player that takes the first action of the mask in ``info``."""
    state = {"info": env.reset(seed=0)[1]}

    def steps(amount: int) -> int:
        info = state["info"]
        for _ in range(amount):
            _, _, terminated, _, info = env.step(int(info["action_mask"].argmax()))
            if terminated:
                _, info = env.reset()
        state["info"] = info
        return amount

    return steps


def cart_pole_steps(env: gym.Env[Any, Any]) -> Callable[[int], int]:
    env.reset(seed=0)

    def steps(amount: int) -> int:
        for number in range(amount):
            _, _, terminated, truncated, _ = env.step(number & 1)
            if terminated or truncated:
                env.reset()
        return amount

    return steps


def open_spiel_steps(pyspiel: Any) -> Callable[[int], int]:
    game = pyspiel.load_game("yacht(players=1)")
    rng = np.random.default_rng(0)

    def steps(amount: int) -> int:
        state = game.new_initial_state()
        for _ in range(amount):
            if state.is_terminal():
                state = game.new_initial_state()
            while state.is_chance_node():
                outcomes = state.chance_outcomes()
                state.apply_action(outcomes[int(rng.random() * len(outcomes))][0])
            if not state.is_terminal():
                state.apply_action(state.legal_actions()[0])
        return amount

    return steps


def petting_zoo_steps(module: Any) -> Callable[[int], int]:
    env = module.env()
    env.reset(seed=0)

    def steps(amount: int) -> int:
        for _ in range(amount):
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.reset()
            else:
                env.step(int(observation["action_mask"].argmax()))
        return amount

    return steps


def environment(effort: Effort) -> Section:
    """One environment, with observation and mask, as gym.make gives it."""
    section = Section()
    cart_pole = "Gymnasium CartPole-v1"
    section.add(cart_pole, rate(cart_pole_steps(gym.make("CartPole-v1")), effort), "steps/s")
    if pyspiel := section.peer("pyspiel"):
        section.add("OpenSpiel yacht", rate(open_spiel_steps(pyspiel), effort), "steps/s")
    if tictactoe := section.peer("pettingzoo.classic.tictactoe_v3"):
        section.add("PettingZoo tic-tac-toe", rate(petting_zoo_steps(tictactoe), effort), "steps/s")
    for name in ("ruibal", "doble_fija"):
        made = gym.make(ENV_ID, variant=name)
        section.add(f"Generala-v0 {name}", rate(masked_steps(made), effort), "steps/s", cart_pole)
    return section


# --- many environments -----------------------------------------------------------------------------------


def legal_actions(masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    chosen: NDArray[np.int64] = (rng.random(masks.shape, dtype=np.float32) * masks).argmax(axis=1)
    return chosen


def batch_rate(
    effort: Effort, num_envs: int, num_threads: int, variant: str = "ruibal", *, through_sb3: bool = False
) -> float:
    """Return steps per second of the batched environment, observations and masks written.

    Random legal actions are drawn beforehand and played again from the same state, so that
    only the environment is measured.
    """
    env = GeneralaVectorEnv(num_envs, variant, num_threads=num_threads)
    step: Callable[[NDArray[np.int64]], object] = env.step
    if through_sb3:
        sb3 = GeneralaVecEnv(num_envs, variant, num_threads=num_threads)
        sb3.reset()
        env, step = sb3.env, sb3.step
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(40):  # games begin together; spread them out
        env.advance(legal_actions(env.action_masks(), rng))
    start, recorded = env.get_state(), []
    for _ in range(max(4, min(60, 200_000 // num_envs))):
        recorded.append(legal_actions(env.action_masks(), rng))
        env.advance(recorded[-1])
    best = 0.0
    clock: Clock = time.process_time if num_threads == 1 else time.perf_counter
    deadline = time.perf_counter() + effort.seconds * effort.tries
    while time.perf_counter() < deadline:
        env.set_state(start)
        begin = clock()
        for actions in recorded:
            step(actions)
        best = max(best, num_envs * len(recorded) / max(clock() - begin, 1e-9))
    return best


def side_by_side(effort: Effort, count: int) -> float:
    """Return what processes that share nothing make together: the most that this machine's cores allow."""
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(batch_rate, [Effort(0.1, 1)] * count, [NUM_ENVS] * count, [1] * count))  # warm up
        return sum(pool.map(batch_rate, [effort] * count, [NUM_ENVS] * count, [1] * count))


def cart_pole_batch_rate(effort: Effort, num_envs: int) -> float:
    env = gym.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    actions = np.arange(num_envs) % 2

    def steps(amount: int) -> int:
        for _ in range(max(1, amount // num_envs)):
            env.step(actions)
        return max(1, amount // num_envs) * num_envs

    return rate(steps, effort)


def envpool_rate(envpool: Any, effort: Effort, num_envs: int, num_threads: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its spaces are given in double precision
        env = envpool.make_gymnasium("CartPole-v1", num_envs=num_envs, num_threads=num_threads)
        env.reset()
    actions = (np.arange(num_envs) % 2).astype(np.int32)

    def steps(amount: int) -> int:
        for _ in range(max(1, amount // num_envs)):
            env.step(actions)
        return max(1, amount // num_envs) * num_envs

    return rate(steps, effort, time.perf_counter)  # its threads wait by spinning


def batched(effort: Effort) -> Section:
    """Many environments at once, with observations and masks; and how that scales."""
    section = Section()
    cart_pole = f"Gymnasium CartPole-v1 vector, {NUM_ENVS}"
    section.add(cart_pole, cart_pole_batch_rate(effort, NUM_ENVS), "steps/s")
    if envpool := section.peer("envpool"):
        value = envpool_rate(envpool, effort, NUM_ENVS, 1)
        section.add(f"EnvPool CartPole-v1, {NUM_ENVS}, 1 thread", value, "steps/s")
    one = f"Generala-v0 make_vec, {NUM_ENVS}, 1 thread"
    section.add(one, batch_rate(effort, NUM_ENVS, 1), "steps/s", cart_pole)
    value = batch_rate(effort, NUM_ENVS, 1, through_sb3=True)
    section.add(f"Generala-v0 GeneralaVecEnv (SB3), {NUM_ENVS}, 1 thread", value, "steps/s", cart_pole)
    value = batch_rate(effort, NUM_ENVS, 1, "doble_fija")
    section.add(f"Generala-v0 doble_fija, {NUM_ENVS}, 1 thread", value, "steps/s", cart_pole)
    threads = effort.num_threads
    if threads > 1:
        value = batch_rate(effort, NUM_ENVS, threads)
        section.add(f"Generala-v0 make_vec, {NUM_ENVS}, {threads} threads", value, "steps/s", one)
        value = side_by_side(effort, threads)
        section.add(f"the same as {threads} processes of 1 thread, together", value, "steps/s", one)
    short = Effort(effort.seconds / 3, effort.tries, threads)
    for count in sorted({1, threads}):
        label = f"Generala-v0, {count} thread{'s' if count > 1 else ''}"
        section.curves[label] = [(size, batch_rate(short, size, count)) for size in SIZES]
    label = "Gymnasium CartPole-v1 vector"
    section.curves[label] = [(size, cart_pole_batch_rate(short, size)) for size in SIZES]
    return section


# --- training --------------------------------------------------------------------------------------------


def training_rate(model: Any, steps: int, tries: int, clock: Clock = time.process_time) -> float:
    """Return the best number of steps per second of collecting and learning, after a warm-up."""
    model.learn(steps)
    best = 0.0
    for _ in range(tries):
        start, before = clock(), model.num_timesteps
        model.learn(steps, log_interval=None, reset_num_timesteps=False)
        best = max(best, (model.num_timesteps - before) / (clock() - start))
    return best


def generala_dummies() -> DummyVecEnv:
    return DummyVecEnv([lambda: GeneralaEnv(illegal_action="penalty") for _ in range(64)])


def training(effort: Effort) -> Section:
    """Collecting and learning, on one thread, against the stock algorithms at the same settings."""
    section = Section()
    torch.set_num_threads(1)
    for batch_size, n_epochs in ((1_024, 4), (64, 10)):
        settings: dict[str, Any] = {
            "n_steps": 64,
            "batch_size": batch_size,
            "n_epochs": n_epochs,
            "device": "cpu",
            "seed": 0,
        }
        steps = 64 * 64 * max(1, round(effort.seconds))
        label = f"64 envs, 64x64, batch {batch_size}, {n_epochs} epochs"
        stock = f"stock MaskablePPO, {label}"
        value = training_rate(MaskablePPO("MlpPolicy", generala_dummies(), **settings), steps, effort.tries)
        section.add(stock, value, "steps/s")
        model = PPO("MlpPolicy", GeneralaVecEnv(64), **settings)
        section.add(f"PPO, {label}", training_rate(model, steps, effort.tries), "steps/s", stock)
    settings = {
        "buffer_size": 100_000,
        "learning_starts": 1_000,
        "batch_size": 1_024,
        "train_freq": 1,
        "target_update_interval": 64,
        "policy_kwargs": {"net_arch": [64, 64]},
        "device": "cpu",
        "seed": 0,
    }
    steps = 64 * 64 * max(1, round(effort.seconds))
    stock = "stock DQN (no masks), 64 envs, 64x64, batch 1024"
    value = training_rate(DQN("MlpPolicy", generala_dummies(), **settings), steps, effort.tries)
    section.add(stock, value, "steps/s")
    value = training_rate(MaskableDQN("MlpPolicy", GeneralaVecEnv(64), **settings), steps, effort.tries)
    section.add("MaskableDQN, 64 envs, 64x64, batch 1024", value, "steps/s", stock)
    for config in ("ppo.yaml", "dqn.yaml", "ppo-observation.yaml", "dqn-observation.yaml"):
        value = training_rate(learner_of(config), 32_768, effort.tries)
        section.add(f"as in configs/{config}", value, "steps/s")
    return section


def learner_of(config: str) -> Any:
    """Return the learner of a file of configs/, ready to learn from its first steps on."""
    model = make_learner(load_config(CONFIG_FOLDER / config).config)
    if isinstance(model, MaskableDQN):
        model.learning_starts = model.batch_size
    return model


# --- learning ---------------------------------------------------------------------------------------------

SHARES: Final = (0.97, 0.99, 0.995)
"""Of the optimum; what is measured is how long learners take to reach them."""
LEARNING_SECONDS: Final = 150
"""Processor seconds that a learner gets, for each second of the effort."""
LOOKS: Final = 25
"""How often a learner is looked at in that time."""


class Reaching(BaseCallback):
    """Notes after how many processor seconds of learning a share of the optimum is first reached.

    Attributes:
        reached: Seconds by share, of those that were reached.
    """

    def __init__(self, score: Callable[[Any], float], limit: float) -> None:
        """Look with ``score``, which gives shares of the optimum, until ``limit`` seconds are over."""
        super().__init__()
        self.score, self.limit = score, limit
        self.reached: dict[float, float] = {}
        self.learned, self.next_look = 0.0, limit / LOOKS

    def _on_training_start(self) -> None:
        self.clock = time.process_time()

    def _on_step(self) -> bool:
        now = time.process_time()
        self.learned += now - self.clock
        if self.learned >= self.next_look:
            self.next_look += self.limit / LOOKS
            share = self.score(self.model)
            self.reached |= {one: self.learned for one in SHARES if share >= one and one not in self.reached}
        self.clock = time.process_time()  # looking is not learning
        return self.learned < self.limit and len(self.reached) < len(SHARES)


def exact_share(model: Any) -> float:
    """Return the exact score of a model's best actions on ``ruibal``, as a share of the optimum."""
    compiled = compile_variant("ruibal")
    optimum = solve_solo(compiled).expected_score
    if isinstance(model, CardAlgorithm):
        return model.learner.play().exact_score() / optimum
    layout = observation_layout(compiled)

    def policy(batch: TurnBatch, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        observations = layout.encode(batch)
        if isinstance(model, DQN):
            with torch.no_grad():
                values = model.q_net(torch.from_numpy(observations)).numpy()
            actions: NDArray[np.int64] = np.where(masks, values, -np.inf).argmax(axis=1)
            return actions
        chosen, _ = model.predict(observations, deterministic=True, action_masks=masks)
        return np.asarray(chosen, dtype=np.int64)

    return evaluate_policy(compiled, policy, num_blunders=0).expected_score / optimum


def learning(effort: Effort) -> Section:
    """Processor seconds until shares of the optimum of ``ruibal`` are reached: the median over seeds."""
    section = Section()
    torch.set_num_threads(1)
    limit = LEARNING_SECONDS * effort.seconds

    def stock(kind: Any) -> Callable[[int], Any]:
        return lambda seed: kind("MlpPolicy", generala_dummies(), device="cpu", seed=seed)

    def ours(config: str) -> Callable[[int], Any]:
        return lambda seed: make_learner(load_config(CONFIG_FOLDER / config, [f"seed={seed}"]).config)

    learners = {
        "stock MaskablePPO, its defaults, 64 envs": stock(MaskablePPO),
        "stock DQN, its defaults, 64 envs": stock(DQN),
        "PPO as in configs/ppo.yaml": ours("ppo.yaml"),
        "DQN as in configs/dqn.yaml": ours("dqn.yaml"),
    }
    for label, make in learners.items():
        runs = []
        for seed in range(effort.tries):
            model = make(seed)
            watch = Reaching(exact_share, limit)
            steps = load_config(CONFIG_FOLDER / "dqn.yaml").config.total_timesteps
            if isinstance(model, CardPPO):
                steps = load_config(CONFIG_FOLDER / "ppo.yaml").config.total_timesteps
            model.learn(steps, callback=watch, log_interval=None)
            runs.append(watch.reached)
        for share in SHARES:
            times = sorted(run.get(share, math.inf) for run in runs)
            middle = times[len(times) // 2]
            name = f"{label}: to {share:.1%}"
            if math.isfinite(middle):
                section.add(name, middle, "s")
            else:
                section.missing.append(f"{name}: never within {limit:.0f} s")
    return section


def load(effort: Effort) -> Section:
    """Training beside other busy processes, one for each core: the default must not collapse."""
    section = Section()
    torch.set_num_threads(1)
    model, wall = learner_of("ppo-observation.yaml"), time.perf_counter
    alone = "PPO alone, 1 thread (the default)"
    section.add(alone, training_rate(model, 32_768, effort.tries, wall), "steps/s")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        value = training_rate(model, 32_768, effort.tries, wall)
        section.add("PPO beside busy cores, 1 thread", value, "steps/s", alone)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return section


# --- exact answers -----------------------------------------------------------------------------------------


def solver(effort: Effort) -> Section:
    """The one-player game solved, in a warm process."""
    section = Section()
    for name in PRESETS:
        compiled = compile_variant(name)
        section.add(f"solve_solo {name}", seconds_of(partial(solve_solo, compiled), effort), "s")
    return section


def evaluation(effort: Effort) -> Section:
    """An agent of the one-player game evaluated exactly, every decision that it can meet."""
    section = Section()
    once = Effort(effort.seconds, 1)  # an evaluation takes long enough to be one try
    for name in ("tips", "turn_greedy"):
        agent = make_agent(name, "ruibal", instant_win="play_on")
        value = seconds_of(partial(exact_evaluation, agent, instant_win="play_on"), once)
        section.add(f"exact evaluation of {name}, ruibal", value, "s")
    return section


_WITH_PEAK_MEMORY: Final = """\
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)"""
"""Runs a command and says its peak memory in KiB.

A small process in between: what Linux tells of a child begins with the size of the process it came from.
"""


def duel(effort: Effort) -> Section:
    """The two-player game solved: a card of five boxes here, the whole of ruibal by its command."""
    section = Section()
    variant = PRESETS["ruibal"].override(boxes=["fives", "sixes", "full", "poker", "generala"])
    solution = solve_duel(variant)
    seconds = seconds_of(partial(solve_duel, variant), effort)
    section.add("solve_duel, five boxes of ruibal", seconds, "s")
    section.add("values solved", solution.num_values / seconds, "values/s")
    operations = solution.num_values * operations_per_difference(solution.compiled)
    section.add("arithmetic a turn must do", operations / seconds / 1e9, "10^9 operations/s")
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, str(Path(__file__).with_name("solve.py")), "--players", "2", "--json"]
        command += ["--variant", "ruibal", "--store", store]
        done = subprocess.run(
            [sys.executable, "-c", _WITH_PEAK_MEMORY, *command], check=True, capture_output=True, text=True
        )
        result, peak = json.loads(done.stdout), int(done.stderr.split()[-1])
        section.add("ruibal, the whole game", result["seconds"], "s")
        section.add("its values", result["num_values"] / result["seconds"], "values/s")
        section.add("its peak memory", peak / 2**20, "GiB")
        section.add("opening it", seconds_of(partial(open_duel, "ruibal", store), effort), "s")
    return section


def start(effort: Effort) -> Section:
    """What a user waits for before anything happens, each in a new process."""
    section = Section()
    first = f"gym.make_vec('{ENV_ID}', num_envs=64).reset(seed=0)"
    commands = {
        "import gymnasium": "import gymnasium",
        "import generala_env": "import generala_env",
        "a batch made and reset": f"import gymnasium as gym, generala_env; {first}",
    }
    for name, code in commands.items():
        taken = seconds_of(partial(subprocess.run, [sys.executable, "-c", code], check=True), effort)
        section.add(name, taken, "s")
    return section


def pictures(effort: Effort) -> Section:
    """One picture of a game in progress, beside Gymnasium's own pictures."""
    section = Section()
    cart_pole = "Gymnasium CartPole-v1"
    if section.peer("pygame"):
        made = gym.make("CartPole-v1", render_mode="rgb_array")
        made.reset(seed=0)
        section.add(cart_pole, seconds_of(made.render, effort), "s")
    if section.peer("PIL"):
        for size in (320, 480, 1200):
            env = GeneralaEnv("doble", render_mode="rgb_array", render_size=size)
            env.reset(seed=0)
            env.step(31)
            section.add(f"board {size} pixels wide", seconds_of(env.render, effort), "s", cart_pole)
    return section


SECTIONS: Final[dict[str, Callable[[Effort], Section]]] = {
    "start": start,
    "environment": environment,
    "batched": batched,
    "pictures": pictures,
    "training": training,
    "learning": learning,
    "load": load,
    "solver": solver,
    "evaluation": evaluation,
    "duel": duel,
}
"""The sections by name; each takes the effort and returns its figures."""


# --- printing ------------------------------------------------------------------------------------------


def draw(curves: dict[str, list[tuple[int, float]]], path: Path) -> None:
    """Draw steps per second over the number of environments."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for label, points in curves.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="environments", ylabel="steps per second")
    axes.set_title("Steps per second, observations and masks written")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    temporary = path.with_name(f".{path.name}.tmp")
    figure.savefig(temporary, format=path.suffix.lstrip("."), dpi=120)
    temporary.replace(path)
    pyplot.close(figure)


def number(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.2f} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3f}"


def table_of(sections: dict[str, Section]) -> Table:
    table = Table(title="generala-env", caption="ratio: how many times better than the row named")
    table.add_column("section")
    table.add_column("what", overflow="fold")
    table.add_column("figure", justify="right")
    table.add_column("unit")
    table.add_column("ratio", justify="right")
    table.add_column("to", overflow="fold")
    for name, section in sections.items():
        for row, figure in enumerate(section.figures):
            table.add_row(
                name if row == 0 else "",
                figure.name,
                number(figure.value),
                figure.unit,
                "" if figure.ratio is None else f"{figure.ratio:.2f}",
                figure.peer or "",
            )
        table.add_section()
    return table


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "versions": {
            "generala_env": generala_env.__version__,
            "gymnasium": gym.__version__,
            "numpy": np.__version__,
            "torch": torch.__version__,
        },
    }


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="SECTION",
        help=f"what to measure (default: all): {', '.join(SECTIONS)}",
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a try takes (default 1)")
    parser.add_argument("--tries", type=positive_int, default=3, help="tries, the best counts (default 3)")
    parser.add_argument(
        "--num-threads",
        type=positive_int,
        default=os.cpu_count() or 1,
        help="threads of the batched environment in the rows with several (default: all cores)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the scaling (.png, .svg or .pdf)")
    add_json_argument(parser)
    return parser


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line and check what one option says against another."""
    arguments = build_parser().parse_args(argv)
    unknown = [name for name in arguments.sections if name not in SECTIONS]
    if unknown:
        raise UsageError(f"section: {unknown[0]!r} is not one of {', '.join(SECTIONS)}")
    if not 0 < arguments.seconds < 3600:
        raise UsageError(f"--seconds: {arguments.seconds} is not above 0 and below 3600")
    if arguments.plot is not None:
        if arguments.plot.suffix not in (".png", ".svg", ".pdf"):
            raise UsageError(f"--plot: {arguments.plot} does not end in .png, .svg or .pdf")
        if arguments.sections and "batched" not in arguments.sections:
            raise UsageError("--plot: the scaling is measured by the section batched, which is left out")
        if not arguments.plot.parent.is_dir():
            raise UsageError(f"--plot: there is no folder {arguments.plot.parent}")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse(argv)
    effort = Effort(arguments.seconds, arguments.tries, arguments.num_threads)
    result = machine()
    sections: dict[str, Section] = {}
    chosen = arguments.sections or list(SECTIONS)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=len(chosen))
        for name in chosen:
            progress.update(task, description=name)
            sections[name] = SECTIONS[name](effort)
            progress.advance(task)
    if arguments.plot is not None:
        draw(sections["batched"].curves, arguments.plot)
    if arguments.json:
        print_json({**result, "sections": {name: asdict(section) for name, section in sections.items()}})
        return 0
    console = Console()
    console.print(table_of(sections))
    console.print(
        f"{result['date']}, {result['cores']} cores, load average {result['load_average']} at the start"
    )
    for section in sections.values():
        for missing in section.missing:
            console.print(f"left out: {missing}")
    return 0


if __name__ == "__main__":
    run_command(main, None)
