"""A training run: its folder, its loop, its evaluations, and how it survives being cut off.

A run does everything it does beside training at *boundaries*, the moments between the update
of the networks and the next decision. There, nothing is half done: the collected decisions are
used up and the next ones not begun. A checkpoint written at a boundary holds all that decides how
the run goes on, so a run that is cut off at any moment and resumed from it ends with the same
weights, bit for bit, on the same machine with the same number of threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import HParam, Logger, TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from agents.base import Agent
from agents.config.model import RunConfig
from agents.errors import UsageError
from agents.learning.cards.policies import CardAgent, CardPolicy
from agents.learning.learners import make_learner, policy_settings
from agents.learning.network_agent import NetworkAgent
from agents.learning.operations import operations_per_step
from agents.runs.folder import (
    EVALUATION_FILE,
    PROGRESS_FILE,
    RunError,
    event_files,
    events_folder,
    flattened,
    read_result,
)
from agents.runs.judging import Judge, Judgement
from agents.runs.learner_state import learner_state, set_learner_state, set_weights, weights_of
from agents.runs.watch import FiniteWatch, NonFiniteError, TrainingError
from agents.saving.agent_files import (
    AGENT_FILE,
    CHECKPOINT_FOLDER,
    WEIGHTS,
    Arrays,
    Blueprint,
    FileError,
    checkpoint_files,
    read_agent,
    read_file,
    weights_hash,
    write_file,
)
from agents.saving.packing import pack, unpack
from agents.saving.provenance import provenance
from generala_env.envs.observation import observation_layout
from generala_env.files import flush_to_disk, is_disk_full, remove_leftovers, write_json
from generala_env.rules.compiled import compile_variant

SPEED_SECONDS: Final = 3.0
"""Seconds of training after which a run says how long it will take."""

NUM_LOG_POINTS: Final = 500
"""About how many points the curves of the algorithm's own figures have."""


class Interrupted(Exception):  # noqa: N818 - nothing went wrong
    """The run was asked to stop, and has saved.

    Attributes:
        signal: The signal that asked.
        folder: The run folder.
    """

    def __init__(self, signal_number: int, folder: Path) -> None:
        """Name the signal."""
        super().__init__(signal.Signals(signal_number).name)
        self.signal = signal_number
        self.folder = folder


def prepare(config: RunConfig) -> None:
    """Set what a run needs of the process: threads, and the device's being there.

    Raises:
        UsageError: There is no such device.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("device: cuda is not available here; allowed: cpu, auto")
    torch.set_num_threads(config.num_threads)
    torch.set_float32_matmul_precision(config.matmul_precision)


# --- the loop -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _quiet_about_full_disks() -> Iterator[None]:
    """Keep the thread that writes the curves from printing a traceback where the run says it in one line."""
    before = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is None or not is_disk_full(arguments.exc_value):
            before(arguments)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


@dataclass
class Progress:
    """What a run remembers beside its learner; part of every checkpoint.

    Attributes:
        wall_seconds: Seconds of training, over all processes that worked on it.
        processor_seconds: Seconds that processors worked on it, all threads added up; ``None`` if the run
            was begun by a version that did not count them.
        evaluation_seconds: Those spent on evaluations.
        last_evaluation_seconds: Those of the last evaluation.
        next_evaluation: Steps after which the next evaluation is due.
        next_checkpoint: Steps after which the next checkpoint is due.
        next_log: Steps after which the algorithm's figures are written next.
        is_finished: Whether the training is complete.
    """

    wall_seconds: float = 0.0
    processor_seconds: float | None = 0.0
    evaluation_seconds: float = 0.0
    last_evaluation_seconds: float = 0.0
    next_evaluation: int = 0
    next_checkpoint: int = 0
    next_log: int = 0
    is_finished: bool = False


@dataclass
class TrainingRun:
    """A run in its folder.

    Attributes:
        folder: The run folder.
        config: Its config.
        say: Tells a person something, above the progress bar.
        is_shown: Whether there is a progress bar, in a terminal, or a line for each evaluation, in a log.
    """

    folder: Path
    config: RunConfig
    say: Callable[[str], None]
    is_shown: bool = True
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.compiled = compile_variant(self.config.rules)
        self.judge = Judge(
            self.compiled,
            self.config.env.instant_win,
            self.config.evaluation,
            asks_states=self.config.policy.kind == "card",
        )
        self.best: dict[str, Any] | None = None
        self.latest: Judgement | None = None
        self.stop_signal: int | None = None
        self._start_clocks()
        self.last_boundary = -1
        self.speed_told = False
        self.timed_from: tuple[float, int] | None = None
        self.curves: Curves | None = None
        self.bar: tqdm[Any] = tqdm(disable=True)
        self.model: BaseAlgorithm = make_learner(self.config)
        self.watch = FiniteWatch(self.model)
        self.layout = observation_layout(self.compiled, self.config.env.observation_blocks)

    # --- going on ---

    def restore(self) -> None:
        """Go on from the last checkpoint that is whole; from the start if there is none yet."""
        remove_leftovers(self.folder, of_the_living=True)
        for path in reversed(checkpoint_files(self.folder)):
            try:
                content, arrays = read_file(path, "checkpoint")
                self._load(content, arrays)
            except FileError as error:
                self.say(f"{error}; going back to the one before")
                continue
            self.say(f"resuming from step {self.model.num_timesteps:,}")
            return
        # Nothing is left of the steps so far, and the same seed makes them again.
        self._cut_logs({}, 0)
        (self.folder / AGENT_FILE).unlink(missing_ok=True)
        self.say("there is no checkpoint yet: starting from the beginning")

    def _load(self, content: Mapping[str, Any], arrays: Arrays) -> None:
        if content["fingerprint"] != self.compiled.variant.fingerprint:
            raise FileError(
                f"checkpoint: was made for rules with fingerprint {content['fingerprint']}, "
                f"not {self.compiled.variant.fingerprint}"
            )
        changed = _changed_since(content)
        if changed:
            self.say(f"warning: the checkpoint was made with {changed}: the run goes on, but bits may differ")
        if content["num_threads"] != torch.get_num_threads():
            self.say(
                f"the checkpoint was made with {content['num_threads']} threads, this process has "
                f"{torch.get_num_threads()}: the run goes on, but not bit for bit"
            )
        set_weights(self.model, arrays)
        state = unpack(content["state"], arrays)
        set_learner_state(self.model, state["learner"])
        self.progress = Progress(**{"processor_seconds": None, **state["progress"]})
        self.best = state["best"]
        self._cut_logs(state["tensorboard"], state["progress_bytes"])
        self._adopt_best()

    def _adopt_best(self) -> None:
        """Keep the best agent on disk if it is better than the checkpoint knew."""
        with contextlib.suppress(FileError, KeyError):
            content, _ = read_file(self.folder / AGENT_FILE, "agent")
            found = content["evaluation"]
            if self.best is None or found["mean_score"] > self.best["mean_score"]:
                self.best = found

    def _cut_logs(self, sizes: Mapping[str, int], progress_bytes: int) -> None:
        """Drop what was logged after the checkpoint, as it will be logged again."""
        for path in event_files(self.folder):
            if path.name not in sizes:
                path.unlink()
            elif path.stat().st_size > sizes[path.name]:
                os.truncate(path, sizes[path.name])
        progress_file = self.folder / PROGRESS_FILE
        if progress_file.exists() and progress_file.stat().st_size > progress_bytes:
            os.truncate(progress_file, progress_bytes)

    # --- training ---

    @contextlib.contextmanager
    def _full_disk_told(self) -> Iterator[None]:
        try:
            with _quiet_about_full_disks():
                yield
        except OSError as error:
            if not is_disk_full(error):
                raise
            raise TrainingError(
                f"the disk is full ({error.filename or self.folder}); nothing that was saved is lost: "
                f"{self._last_checkpoint()}. Make room, then --resume {self.folder}"
            ) from None

    def train(self) -> None:
        """Train to the end of the run.

        Raises:
            Interrupted: A signal asked to stop; everything is saved.
            TrainingError: The run cannot go on; what was saved stays.
        """
        remaining = self.config.total_timesteps - self.model.num_timesteps
        if self.progress.is_finished or remaining <= 0:
            return
        is_new = self.model.num_timesteps == 0
        self._start_clocks()
        self.last_boundary = self.model.num_timesteps
        if is_new:
            self.progress.next_evaluation = self.config.evaluation.every
            self.progress.next_checkpoint = self.config.checkpoints.every
        self.bar = tqdm(
            total=self.config.total_timesteps,
            initial=self.model.num_timesteps,
            unit="step",
            unit_scale=True,
            desc=self.folder.name,
            disable=None if self.is_shown else True,  # a bar is for terminals
            dynamic_ncols=True,
            mininterval=0.5,
        )
        try:
            with self._full_disk_told():
                self.curves = Curves(events_folder(self.folder), self.model.num_timesteps)
                if is_new:
                    self.curves.write_hyperparameters(self.config)
                self.model.set_logger(Logger(str(self.folder), [self.curves]))
                with self._signals():
                    self.model.learn(
                        remaining,
                        callback=_Boundaries(self),
                        log_interval=None,  # type: ignore[arg-type] # both algorithms accept it
                        reset_num_timesteps=is_new,
                    )
        except NonFiniteError as error:
            raise NonFiniteError(
                f"{error}; stopped, {self._last_checkpoint()}. A lower learning rate or reward scale may help"
            ) from None
        finally:
            self.bar.close()
            self.watch.close()
            with contextlib.suppress(OSError), _quiet_about_full_disks():
                if self.curves is not None:
                    self.curves.close()

    def _last_checkpoint(self) -> str:
        files = checkpoint_files(self.folder)
        return f"the last good checkpoint is {files[-1]}" if files else "there was no checkpoint yet"

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Finish the update and save on the first signal to stop; leave at once on the second.

        Only the main thread can be told of signals; elsewhere whoever started the thread sees to them.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, _frame: FrameType | None) -> None:
            if self.stop_signal is not None:
                os.write(2, b"\nleaving at once; the last checkpoint is whole\n")
                os._exit(128 + number)
            self.stop_signal = number
            os.write(2, b"\nfinishing the update, then saving (once more to leave at once)\n")

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def at_boundary(self, *, is_last: bool = False) -> None:
        """Do what is due between an update and the next decision."""
        now = self.model.num_timesteps
        if now == self.last_boundary:
            return
        self.last_boundary = now
        self._tell_speed()
        progress = self.progress
        self.watch.check_boundary(self.model.logger.name_to_value)
        stops = self.stop_signal is not None
        evaluates = is_last or now >= progress.next_evaluation
        saves = is_last or stops or now >= progress.next_checkpoint
        if saves or evaluates or now >= progress.next_log:
            self.model.dump_logs()
            progress.next_log = now + max(1, self.config.total_timesteps // NUM_LOG_POINTS)
        if evaluates:
            progress.next_evaluation = _next_multiple(now, self.config.evaluation.every)
            if is_last or self._affords_evaluation():
                self._evaluate()
        if saves:
            progress.next_checkpoint = _next_multiple(now, self.config.checkpoints.every)
            progress.is_finished = is_last
            self._save_checkpoint()
        if self.stop_signal is not None and stops:
            raise Interrupted(self.stop_signal, self.folder)

    def show(self) -> None:
        """Move the progress bar, with the current score beside it."""
        if not self.is_shown:
            return
        if self.latest is not None:
            shown = {"score": f"{self.latest.mean_score:.2f}", "of optimum": f"{self.latest.optimality:.2%}"}
            self.bar.set_postfix(shown, refresh=False)
        self.bar.update(self.model.num_timesteps - self.bar.n)

    def _start_clocks(self, now: float | None = None) -> None:
        self.clock = time.monotonic() if now is None else now
        self.processor_clock = time.process_time()

    def _spent(self) -> dict[str, float]:
        """Return what the run took so far, as the rows of its progress say it."""
        spent = {"wall_seconds": self._seconds()}
        if self.progress.processor_seconds is not None:
            spent["processor_seconds"] = self.progress.processor_seconds
        return {key: round(seconds, 3) for key, seconds in spent.items()}

    def _tell_in_a_log(self, judgement: Judgement) -> None:
        """Say in a line what the bar would show, where there is no terminal for one."""
        if self.is_shown and self.bar.disable:
            now = self.model.num_timesteps
            self.say(
                f"step {now:,}, {min(now / self.config.total_timesteps, 1.0):.0%}: "
                f"score {judgement.mean_score:.2f}, {judgement.optimality:.2%} of the optimum"
            )

    def _tell_speed(self) -> None:
        """Say once, from what the first seconds took, how long the run will take on this machine."""
        if self.timed_from is None:
            # The first update is left out: it may have waited for compilers.
            self.timed_from = time.monotonic(), self.model.num_timesteps
            return
        took = time.monotonic() - self.timed_from[0]
        if self.speed_told or took < SPEED_SECONDS:
            return
        self.speed_told = True
        done = self.model.num_timesteps - self.timed_from[1]
        left = self.config.total_timesteps - self.model.num_timesteps
        if left <= 0:
            return
        needed = operations_per_step(self.model)
        self.say(
            f"this machine trains {done / took:,.0f} steps a second ({done * needed / took / 1e9:,.1f} "
            f"GFLOP/s in networks): about {_minutes(left * took / done)} for the {left:,} steps and "
            f"{left * needed / 1e12:,.1f} TFLOP left, evaluations apart"
        )

    def _seconds(self) -> float:
        """Return seconds of training so far, and count them."""
        now = time.monotonic()
        self.progress.wall_seconds += now - self.clock
        if self.progress.processor_seconds is not None:
            self.progress.processor_seconds += time.process_time() - self.processor_clock
        self._start_clocks(now)
        return self.progress.wall_seconds

    def _affords_evaluation(self) -> bool:
        share = self.config.evaluation.max_share_of_run
        expected = self.progress.last_evaluation_seconds
        spent = self.progress.evaluation_seconds + expected
        return expected == 0.0 or spent <= share * (self._seconds() + expected)

    def _evaluate(self) -> None:
        progress = self.progress
        self.judge.prepare()
        start = time.monotonic()
        agent = self.agent()
        judgement = self.judge.judge(agent)
        self.latest = judgement
        took = time.monotonic() - start
        progress.evaluation_seconds += took
        progress.last_evaluation_seconds = took
        now = self.model.num_timesteps
        assert self.curves is not None  # the loop that evaluates has opened them
        curves = self.curves.writer
        scalars = dict(judgement.scalars)
        policy: Any = self.model.policy
        if isinstance(policy, CardPolicy):
            errors = policy.critic_play().value_errors(self.config.env.instant_win)
            scalars |= {f"critic/{name}": value for name, value in errors.items()}
        for tag, value in scalars.items():
            curves.add_scalar(tag, value, now)
        for tag, figure in judgement.draw_figures().items():
            curves.add_figure(tag, figure, now)
        curves.flush()
        self._tell_in_a_log(judgement)
        row = {"num_timesteps": now, **self._spent(), **judgement.summary()}
        with (self.folder / PROGRESS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
            flush_to_disk(file)
        if self.best is None or judgement.mean_score > self.best["mean_score"]:
            self.best = row
            content = {**self.blueprint().to_dict(), "evaluation": row}
            write_file(self.folder / AGENT_FILE, "agent", content, weights_of(self.model))

    def agent(self) -> Agent:
        """Return the learner's networks as an agent that plays."""
        policy: Any = self.model.policy
        if isinstance(policy, CardPolicy):
            play = policy.learner.play()
            return CardAgent(self.folder.name, self.layout, play, seed=self.config.seed)
        return NetworkAgent(self.folder.name, self.layout, policy, seed=self.config.seed)

    def blueprint(self) -> Blueprint:
        """Return what is saved beside the weights."""
        config = self.config
        return Blueprint(
            name=self.folder.name,
            algorithm=config.algorithm.name,
            variant=config.rules,
            instant_win=config.env.instant_win,
            observation_blocks=self.layout.names,
            policy=policy_settings(config),
            num_timesteps=self.model.num_timesteps,
            seed=config.seed,
        )

    def _save_checkpoint(self) -> None:
        self._seconds()
        now = self.model.num_timesteps
        arrays = weights_of(self.model)
        progress_file = self.folder / PROGRESS_FILE
        state = {
            "learner": learner_state(self.model),
            "progress": vars(self.progress),
            "best": self.best,
            "tensorboard": {path.name: path.stat().st_size for path in event_files(self.folder)},
            "progress_bytes": progress_file.stat().st_size if progress_file.exists() else 0,
        }
        content = {
            **self.blueprint().to_dict(),
            "num_threads": torch.get_num_threads(),
            "state": pack(state, arrays, "state"),
        }
        path = self.folder / CHECKPOINT_FOLDER / f"step-{now:012d}.safetensors"
        write_file(path, "checkpoint", content, arrays)
        for old in checkpoint_files(self.folder)[: -self.config.checkpoints.keep_last]:
            old.unlink(missing_ok=True)

    # --- the end ---

    def finish(self) -> dict[str, Any]:
        """Evaluate the best agent on dice that chose nothing, write it down and return it.

        A run that has ended before keeps its result as it stands, and that is returned.

        Raises:
            TrainingError: The disk is full.
        """
        blueprint, weights = read_agent(self.folder)
        result_file = self.folder / EVALUATION_FILE
        last = weights_of(self.model)
        # What tells whether a stored result is of this very run, as far as it has come.
        about = {
            "selected_at": blueprint.num_timesteps,
            "num_timesteps": self.model.num_timesteps,
            "weights_sha256": weights_hash(last),
        }
        with contextlib.suppress(RunError):
            stored = read_result(self.folder)
            if stored | about == stored:
                self.say(f"the run has ended: its result is that of {result_file}, which stays as it is")
                return stored
        model = self.model
        set_weights(model, {f"{WEIGHTS}{name}": array for name, array in weights.items()})
        try:
            judged = self.judge.final(self.agent(), progress=self.is_shown)
        finally:
            set_weights(model, last)
        result = {
            **judged,
            "run": self.folder.name,
            "seed_of_run": self.config.seed,
            "wall_seconds": round(self.progress.wall_seconds, 3),
            **about,
        }
        with self._full_disk_told():
            write_json(result_file, result)
        return result


_DECIDE_BITS: Final = ("torch", "numpy", "numba")
"""Packages whose versions may change how sums are rounded."""


def _changed_since(content: Mapping[str, Any]) -> str:
    """Return what of the machine and of packages differs from where a checkpoint was made, in words."""
    now = provenance()
    pairs = [
        (name, content.get("versions", {}).get(name), now["versions"].get(name)) for name in _DECIDE_BITS
    ]
    pairs.append(("processor", content.get("processor"), now["processor"]))
    return ", ".join(
        f"{name} {then} (here {here})" for name, then, here in pairs if then is not None and then != here
    )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _next_multiple(now: int, every: int) -> int:
    return (now // every + 1) * every


class _Boundaries(BaseCallback):
    """Tells a run where SB3's loop is."""

    def __init__(self, run: TrainingRun) -> None:
        super().__init__()
        self.run = run

    def _on_rollout_start(self) -> None:
        self.run.at_boundary()

    def _on_step(self) -> bool:
        self.run.show()
        return True

    def _on_training_end(self) -> None:
        self.run.at_boundary(is_last=True)


class Curves(TensorBoardOutputFormat):
    """SB3's writer of TensorBoard logs, made to go on after a step."""

    def __init__(self, folder: Path, step: int) -> None:
        """Open the folder; a TensorBoard that is looking at it forgets what came after the step."""
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=step + 1 if step else None)
        self._is_closed = False

    def write_hyperparameters(self, config: RunConfig) -> None:
        """Write what TensorBoard's HParams tab shows: every value of the config, and the score."""
        flat = flattened(config.to_dict())
        # The tab knows numbers and text; a truth value would be shown as 0 or 1.
        shown = {
            key: value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
            for key, value in flat.items()
            if value is not None
        }
        # The tab reads the metrics from the scalars of this name.
        metrics: dict[str, float] = dict.fromkeys(("eval/mean_score", "eval/optimality"), 0.0)
        self.write({"hparams": HParam(shown, metrics)}, {"hparams": ()})
