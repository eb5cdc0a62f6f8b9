"""Runs that are cut off, damaged, locked out or go wrong, each compared with one that was left alone."""

import contextlib
import errno
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.hparams.metadata import (
    EXPERIMENT_TAG,
    SESSION_START_INFO_TAG,
    parse_experiment_plugin_data,
    parse_session_start_info_plugin_data,
)

from agents.config.loading import parse_config
from agents.errors import UsageError
from agents.registry import make_agent
from agents.runs import training
from agents.runs.folder import EVENT_FILES, create_run_folder, event_files, read_config
from agents.runs.learner_state import weights_of
from agents.runs.training import TrainingRun
from agents.runs.watch import FiniteWatch, NonFiniteError
from agents.saving.agent_files import checkpoint_files, read_agent, read_file, weights_hash, write_file
from generala_env import files
from scripts.train import main

CONFIGS = {
    "ppo": """\
env: {num_envs: 16}
algorithm:
  {name: ppo, n_steps: 8, batch_size: 64, n_epochs: 2, learning_rate: {start: 3e-3, end: 0}, ent_coef: 0.03,
   throw_lambda: 0.2}
""",
    "dqn": """\
env: {num_envs: 16}
algorithm:
  {name: dqn, batch_size: 32, learning_starts: 256, buffer_size: 1024, train_freq: 4, learning_rate: 1e-3,
   target_update_interval: 64, n_steps: 2}
""",
}
REST = """\
variant: {base: ruibal, boxes: [ones, twos, escalera, poker, generala]}
policy: {net_arch: [16]}
total_timesteps: 3072
evaluation: {mode: sampled, every: 512, games: 20, final_games: 20, max_share_of_run: 1}
checkpoints: {every: 128}
"""


TIMES = ("wall_seconds", "processor_seconds")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def write_config(folder: Path, algorithm: str, rest: str = REST) -> Path:
    path = folder / "tiny.yaml"
    path.write_text(CONFIGS[algorithm] + rest)
    return path


def result_of(run: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((run / "evaluation.json").read_text())
    return result


def curves(run: Path) -> dict[str, list[tuple[int, Any]]]:
    """Return step and value of every point that TensorBoard would show, by tag."""
    points: dict[str, list[tuple[int, Any]]] = {}
    for path in event_files(run):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                points.setdefault(value.tag, []).append((event.step, value.tensor.float_val[:]))
    return points


def learning_curve(run: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def assert_same_run(run: Path, reference: Path) -> None:
    first, second = result_of(run), result_of(reference)
    assert first["weights_sha256"] == second["weights_sha256"]
    for key in ("mean_score", "selected_at", "num_timesteps", "scale"):
        assert first[key] == second[key]
    assert learning_curve(run) == learning_curve(reference)
    ours, theirs = curves(run), curves(reference)
    assert set(ours) == set(theirs)
    for tag, points in theirs.items():
        if tag != "time/fps":
            assert ours[tag] == points, tag
    assert all(before[0] < after[0] for tag in ours.values() for before, after in pairwise(tag))


def event_files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob(EVENT_FILES))


def log_of(run: Path) -> Path:
    return run.parent / f"{run.name}.log"


def said(run: Path) -> str:
    """Return what the commands on a run said since they were asked last."""
    text = log_of(run).read_text()
    log_of(run).write_text("")
    return text


FRESH = multiprocessing.get_context("forkserver")
# torch imports torch._dynamo with the first optimizer, which takes seconds.
FRESH.set_forkserver_preload(["agents.runs.training", "scripts.train", "torch._dynamo"])


def _command(arguments: Sequence[str], before: Callable[[Path], None] | None, run: Path) -> None:
    log = os.open(log_of(run), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    if before is not None:
        before(run)
    try:
        status = main([*arguments, "--json"])
    except UsageError as error:
        print(f"train.py: error: {error}", file=sys.stderr, flush=True)
        status = 2
    os._exit(status)


def start(run: Path, *arguments: str, before: Callable[[Path], None] | None = None) -> BaseProcess:
    """Run the command in a fresh process, forked from one that has imported what it needs and no more.

    Args:
        run: The run folder; what the command says goes to a file beside it.
        arguments: Of the command.
        before: What to break in that process first.
    """
    child = FRESH.Process(target=_command, args=(arguments, before, run))
    child.start()
    return child


def kill(child: BaseProcess, number: signal.Signals = signal.SIGKILL) -> None:
    assert child.pid is not None
    os.kill(child.pid, number)


def end(child: BaseProcess) -> int | None:
    child.join(600)
    return child.exitcode


def wait_for(condition: Callable[[], object], seconds: float = 240) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.002)


LEFT_ALONE: dict[str, Path] = {}


@pytest.fixture(scope="module", params=list(CONFIGS))
def reference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was left alone, one for each algorithm."""
    if request.param not in LEFT_ALONE:
        folder = tmp_path_factory.mktemp(request.param)
        run = folder / "whole"
        assert (
            main(["--config", str(write_config(folder, request.param)), "--run-dir", str(run), "--json"]) == 0
        )
        LEFT_ALONE[request.param] = run
    return LEFT_ALONE[request.param]


def config_of(reference: Path) -> str:
    return str(reference.parent / "tiny.yaml")


# --- what a run leaves behind ---------------------------------------------------------------------


def test_a_run_folder_says_how_to_repeat_the_run(reference: Path, tmp_path: Path) -> None:
    about = json.loads((reference / "run.json").read_text())
    assert {"command", "versions", "commit", "variant", "fingerprint", "started"} <= set(about)
    assert {"torch", "numpy", "stable-baselines3", "python"} <= set(about["versions"])
    again = tmp_path / "again"
    assert main(["--config", str(reference / "config.yaml"), "--run-dir", str(again), "--json"]) == 0
    assert_same_run(again, reference)


def test_the_agent_of_a_run_is_the_one_that_scored_best(reference: Path) -> None:
    rows = learning_curve(reference)
    best = max(rows, key=lambda row: row["mean_score"])
    assert rows[-1]["num_timesteps"] == 3072
    assert result_of(reference)["selected_at"] == best["num_timesteps"]
    content, _ = read_file(reference / "agent.safetensors", "agent")
    assert content["evaluation"]["mean_score"] == best["mean_score"]
    rules = read_agent(reference)[0].variant
    assert make_agent(reference, rules).name == "whole"


def test_the_learning_curve_has_its_keys(reference: Path) -> None:
    rows = [json.loads(line) for line in (reference / "progress.jsonl").read_text().splitlines()]
    keys = {"num_timesteps", "wall_seconds", "processor_seconds", "exact", "mean_score", "ci95", "optimality"}
    assert all(keys <= set(row) for row in rows)
    for key in TIMES:
        assert all(before[key] < after[key] for before, after in pairwise(rows))
    assert [row["num_timesteps"] for row in rows] == list(range(512, 3073, 512))


def test_tensorboard_calls_a_run_by_the_name_of_its_folder_and_knows_its_hyperparameters(
    reference: Path,
) -> None:
    runs = EventMultiplexer().AddRunsFromDirectory(str(reference.parent)).Reload()
    assert list(runs.Runs()) == ["whole"]
    content = runs.PluginRunToTagToContent("hparams")["whole"]
    start = parse_session_start_info_plugin_data(content[SESSION_START_INFO_TAG]).hparams
    config = read_config(reference)
    assert start["total_timesteps"].number_value == config["total_timesteps"]
    assert start["algorithm.name"].string_value == config["algorithm"]["name"]
    assert start["policy.keeps_head"].string_value == str(config["policy"]["keeps_head"])
    metrics = parse_experiment_plugin_data(content[EXPERIMENT_TAG]).metric_infos
    # The tab looks the metrics up among the scalars of the run.
    assert {metric.name.tag for metric in metrics} <= set(curves(reference))


def stop_after_an_evaluation(_: Path) -> None:
    evaluate = TrainingRun._evaluate

    def once(self: TrainingRun) -> None:
        evaluate(self)
        self.stop_signal = signal.SIGTERM

    TrainingRun._evaluate = once  # type: ignore[method-assign]


def test_a_run_of_an_earlier_version_goes_on_in_its_tensorboard_folder(
    reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert (
        end(
            start(
                run, "--config", config_of(reference), "--run-dir", str(run), before=stop_after_an_evaluation
            )
        )
        == 143
    )
    # Earlier versions kept the curves in a folder, and counted no processor seconds.
    (run / "tensorboard").mkdir()
    for path in event_files_in(run):
        path.rename(run / "tensorboard" / path.name)
    for path in checkpoint_files(run):
        content, arrays = read_file(path, "checkpoint")
        assert content["state"]["progress"].pop("processor_seconds") > 0
        write_file(path, "checkpoint", content, arrays)
    assert end(start(run, "--resume", str(run))) == 0
    assert_same_run(run, reference)
    assert not event_files_in(run)
    rows = [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]
    assert "processor_seconds" in rows[0]
    assert "processor_seconds" not in rows[-1]


@pytest.mark.parametrize("reference", ["ppo"], indirect=True)
def test_tensorboard_shows_the_evaluation_and_where_points_are_lost(reference: Path) -> None:
    tags = set(curves(reference))
    wanted = {"eval/mean_score", "eval/mean_score_ci95_low", "eval/mean_score_ci95_high", "eval/optimality"}
    wanted |= {"lost_points_by_box/poker", "struck/generala", "rollout/ep_rew_mean", "train/loss"}
    assert wanted <= tags


def test_only_the_last_checkpoints_are_kept(reference: Path) -> None:
    assert [path.name for path in checkpoint_files(reference)] == [
        "step-000000002944.safetensors",
        "step-000000003072.safetensors",
    ]


def test_an_exact_evaluation_in_the_loop_draws_figures_and_knows_the_regret(tmp_path: Path) -> None:
    rest = REST.replace("3072", "128").replace("mode: sampled", "mode: exact")
    config = write_config(tmp_path, "ppo", rest)
    assert main(["--config", str(config), "--run-dir", str(tmp_path / "run"), "--json"]) == 0
    tags = set(curves(tmp_path / "run"))
    assert {"eval/regret", "regret_by_box/poker", "regret_by_throw/1", "struck/generala"} <= tags
    assert any(tag.startswith("figures/") for tag in tags)
    result = result_of(tmp_path / "run")
    assert result["exact"] is True
    assert result["scale"]["turn_greedy"]["mean_score"] < result["scale"]["optimal"]["mean_score"]
    assert learning_curve(tmp_path / "run")[-1]["mean_score"] == pytest.approx(result["mean_score"], abs=1e-9)


# --- cuts -----------------------------------------------------------------------------------------


def steps_saved(run: Path) -> int:
    """Return the step of the newest checkpoint, 0 without one."""
    found = checkpoint_files(run)
    return int(found[-1].stem.removeprefix("step-")) if found else 0


def has_come_to(run: Path, step: int, child: BaseProcess) -> bool:
    return steps_saved(run) >= step or child.exitcode is not None


def cut_until_done(reference: Path, run: Path, cuts: int, rng: random.Random) -> int:
    """Kill a run at random moments, resume it each time, and let the last process end it.

    A moment is a random step, so that it falls within the run however fast the machine is, and up to a
    few milliseconds more, so that it falls anywhere between two steps.

    Returns:
        How many of the cuts came before the end.
    """
    landed = 0
    arguments = ["--config", config_of(reference), "--run-dir", str(run)]
    for step in sorted(rng.randrange(2816) for _ in range(cuts)):
        child = start(run, *arguments)
        wait_for((run / "config.yaml").exists)
        wait_for(partial(has_come_to, run, step, child))
        time.sleep(rng.uniform(0.0, 0.03))
        with contextlib.suppress(ProcessLookupError):
            kill(child)
        landed += end(child) == -signal.SIGKILL
        arguments = ["--resume", str(run)]
    assert end(start(run, *arguments)) == 0
    return landed


def test_a_run_killed_twice_ends_bit_for_bit_as_one_left_alone(reference: Path, tmp_path: Path) -> None:
    assert cut_until_done(reference, tmp_path / "run", 2, random.Random(7))
    assert_same_run(tmp_path / "run", reference)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_twenty_runs_killed_at_random_end_bit_for_bit_as_one_left_alone(
    number: int, reference: Path, tmp_path: Path
) -> None:
    rng = random.Random(number)
    assert cut_until_done(reference, tmp_path / "run", rng.choice([1, 2, 4]), rng)
    assert_same_run(tmp_path / "run", reference)


@pytest.mark.parametrize(
    ("reference", "number", "status"),
    [("ppo", signal.SIGTERM, 143), ("dqn", signal.SIGINT, 130)],
    indirect=["reference"],
)
def test_a_signal_saves_and_ends_with_its_own_code(
    number: signal.Signals, status: int, reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    child = start(run, "--config", config_of(reference), "--run-dir", str(run))
    wait_for(lambda: checkpoint_files(run))
    kill(child, number)
    assert end(child) == status
    assert end(start(run, "--resume", str(run))) == 0
    assert result_of(run)["weights_sha256"] == result_of(reference)["weights_sha256"]
    tags = curves(run)
    assert all(a[0] < b[0] for tag in tags.values() for a, b in pairwise(tag))


def _dawdle_after_saving(run: Path) -> None:
    save = TrainingRun._save_checkpoint

    def slowly(self: TrainingRun) -> None:
        save(self)
        if self.model.num_timesteps >= 256:
            (run / "dawdling").touch()
            for _ in range(600):
                time.sleep(0.1)

    TrainingRun._save_checkpoint = slowly  # type: ignore[method-assign]


@pytest.mark.parametrize("reference", ["ppo"], indirect=True)
def test_a_second_interrupt_leaves_at_once_with_the_checkpoint_whole(reference: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"

    arguments = ("--config", config_of(reference), "--run-dir", str(run))
    child = start(run, *arguments, before=_dawdle_after_saving)
    wait_for((run / "dawdling").exists)
    began = time.monotonic()
    kill(child, signal.SIGINT)
    time.sleep(0.3)
    kill(child, signal.SIGINT)
    assert end(child) == 130
    assert time.monotonic() - began < 50
    assert end(start(run, "--resume", str(run))) == 0
    assert result_of(run)["weights_sha256"] == result_of(reference)["weights_sha256"]


@pytest.mark.parametrize("reference", ["dqn"], indirect=True)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(reference: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    child = start(run, "--config", config_of(reference), "--run-dir", str(run))
    wait_for(lambda: len(checkpoint_files(run)) == 2)
    kill(child, signal.SIGTERM)
    assert end(child) == 143
    newest = checkpoint_files(run)[-1]
    newest.write_bytes(newest.read_bytes()[:-7])
    assert end(start(run, "--resume", str(run))) == 0
    told = said(run)
    assert f"{newest}: is damaged or cut short" in told
    assert "going back to the one before" in told
    assert result_of(run)["weights_sha256"] == result_of(reference)["weights_sha256"]


def test_a_run_that_has_ended_is_only_evaluated_again_where_it_has_no_result(
    reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = result_of(reference)
    path = reference / "evaluation.json"
    path.unlink()
    assert main(["--resume", str(reference), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == result_of(reference) == before
    # A result that is not of these weights, or cut short, is no result.
    for text in (json.dumps({**before, "weights_sha256": "0"}), "{"):
        path.write_text(text)
        assert main(["--resume", str(reference), "--json"]) == 0
        assert result_of(reference) == before


def test_a_result_that_is_there_stays_as_it_is(reference: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reference / "evaluation.json"
    # Written otherwise than it would be now: what is printed is what is stored.
    stored = {**result_of(reference), "mean_score": 0.125}
    before = path.read_bytes()
    try:
        path.write_text(json.dumps(stored))
        os.utime(path, ns=(1, 1))
        written = path.read_bytes()
        assert main(["--resume", str(reference), "--json"]) == 0
        shown = capsys.readouterr()
        assert json.loads(shown.out) == stored
        assert f"the run has ended: its result is that of {path}" in shown.err
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (written, 1)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("reference", ["ppo"], indirect=True)
def test_a_checkpoint_of_other_rules_is_not_resumed(reference: Path, tmp_path: Path) -> None:
    text = (reference / "config.yaml").read_text().replace("poker", "full")
    about = (reference / "run.json").read_text()
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "run.json").write_text(about)
    assert end(start(tmp_path, "--resume", str(tmp_path))) == 2


# --- two at once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", ["ppo"], indirect=True)
def test_two_at_once_in_one_folder_are_refused_and_a_stale_lock_is_explained(
    reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    child = start(run, "--config", config_of(reference), "--run-dir", str(run))
    wait_for(lambda: checkpoint_files(run))
    kill(child, signal.SIGSTOP)
    assert end(start(run, "--resume", str(run))) == 2
    assert f"another process trains here: process {child.pid} on " in said(run)
    kill(child)
    end(child)
    assert end(start(run, "--resume", str(run))) == 0
    told = said(run)
    assert f"stale lock: process {child.pid} on " in told
    assert "had this run and is gone; taking over" in told
    assert not (run / ".owner.json").exists()


def test_names_never_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    resolved = parse_config(CONFIGS["ppo"] + REST, "x.yaml", "x")
    resolved = replace(resolved, config=resolved.config.model_copy(update={"variant": "ruibal"}))
    names = [str(create_run_folder(resolved, None, [])) for _ in range(3)]
    assert names == ["runs/x-ruibal-seed0", "runs/x-ruibal-seed0-2", "runs/x-ruibal-seed0-3"]
    with pytest.raises(UsageError, match="exists and is never overwritten"):
        create_run_folder(resolved, tmp_path / "runs/x-ruibal-seed0", [])


# --- what goes wrong ------------------------------------------------------------------------------


def _fill_disk(_run: Path) -> None:
    flush = files.flush_to_disk

    def full(file: IO[Any]) -> None:
        if Path(file.name).name.startswith(".step-000000000512"):
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(file)

    files.flush_to_disk = full


@pytest.mark.parametrize("reference", ["dqn"], indirect=True)
def test_a_full_disk_stops_the_run_and_loses_nothing(reference: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert end(start(run, "--config", config_of(reference), "--run-dir", str(run), before=_fill_disk)) == 1
    told = said(run)
    last = checkpoint_files(run)[-1]
    assert last.name == "step-000000000384.safetensors"
    assert "the disk is full" in told
    assert f"the last good checkpoint is {last}" in told
    assert "Traceback" not in told
    assert not list(run.glob("checkpoints/.*"))
    assert end(start(run, "--resume", str(run))) == 0
    assert_same_run(run, reference)


ON_A_SMALL_DISK = """\
mount -t tmpfs -o size="$SIZE" none "$DISK" || exit 77
"$PYTHON" -m scripts.train --config "$CONFIG" --run-dir "$DISK/run" --json
echo "ended with $?" >&2
mount -o remount,size=50m "$DISK"
[ -e "$DISK/run" ] || exit 0
"$PYTHON" -m scripts.train --resume "$DISK/run" --json
"""


@pytest.mark.slow
@pytest.mark.parametrize("size", ["4k", "8k", "12k", "16k", "100k", "200k", "300k", "348k"])
@pytest.mark.parametrize("reference", ["dqn"], indirect=True)
def test_a_disk_that_is_really_full_stops_the_run_and_loses_nothing(
    size: str, reference: Path, tmp_path: Path
) -> None:
    """On a file system of that size, mounted in a name space of its own; the whole run needs 352k."""
    names = {"SIZE": size, "DISK": str(tmp_path), "PYTHON": sys.executable, "CONFIG": config_of(reference)}
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK]
    if shutil.which(command[0]) is None:
        pytest.skip("there is no unshare here")
    done = subprocess.run(command, env={**os.environ, **names}, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):
        pytest.skip(f"a file system cannot be mounted here: {done.stderr}")
    assert "Traceback" not in done.stderr
    if size in ("4k", "8k"):
        assert "no space left on the disk" in done.stderr
        assert "ended with 2" in done.stderr
    else:
        assert "the disk is full" in done.stderr
        assert "ended with 1" in done.stderr
    if size != "4k":
        result = json.loads(done.stdout)
        assert result["weights_sha256"] == result_of(reference)["weights_sha256"]


FIRST_LAYERS = {"ppo": "mlp_extractor.policy_net.0", "dqn": "q_net.q_net.0"}


def _poison(_run: Path) -> None:
    show = TrainingRun.show

    def poisoned(self: TrainingRun) -> None:
        show(self)
        if self.model.num_timesteps == 512 - 16:
            layer = FIRST_LAYERS[self.config.algorithm.name]
            with torch.no_grad():
                dict(self.model.policy.named_parameters())[f"{layer}.weight"][0, 0] = float("nan")

    TrainingRun.show = poisoned  # type: ignore[method-assign]


def test_a_nan_stops_the_run_names_the_tensor_and_keeps_the_checkpoint(
    reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    name = FIRST_LAYERS["dqn" if "name: dqn" in Path(config_of(reference)).read_text() else "ppo"]

    assert end(start(run, "--config", config_of(reference), "--run-dir", str(run), before=_poison)) == 1
    told = said(run)
    assert f"of {name} is NaN at step " in told
    assert f"the last good checkpoint is {checkpoint_files(run)[-1]}" in told
    for path in checkpoint_files(run):
        _, arrays = read_file(path, "checkpoint")
        assert all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f")
    assert end(start(run, "--resume", str(run))) == 0
    assert result_of(run)["weights_sha256"] == result_of(reference)["weights_sha256"]


def tiny_run(tmp_path: Path, algorithm: str) -> TrainingRun:
    config = parse_config(CONFIGS[algorithm] + REST, "x.yaml", "x").config
    return TrainingRun(tmp_path, config, lambda _: None, is_shown=False)


@pytest.mark.parametrize(("value", "word"), [(float("nan"), "NaN"), (float("inf"), "infinite")])
def test_a_gradient_is_named_where_it_begins(value: float, word: str, tmp_path: Path) -> None:
    run = tiny_run(tmp_path, "ppo")
    policy: Any = run.model.policy
    observations = torch.zeros(2, run.layout.size)
    loss = policy.logits_and_values(observations)[1].sum()
    loss.register_hook(lambda gradient: gradient * value)
    with pytest.raises(NonFiniteError, match=rf"gradient of value_net\.\w+ is {word} at step 0"):
        loss.backward()
    run.watch.close()


def test_q_values_and_losses_are_watched(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, "dqn")
    policy: Any = run.model.policy
    with torch.no_grad():
        policy.q_net_target.q_net[2].bias[1] = float("inf")
    with pytest.raises(NonFiniteError, match=r"Q-values of q_net_target\.q_net\.2 is infinite at"):
        policy.q_net_target(torch.zeros(2, run.layout.size))
    with pytest.raises(NonFiniteError, match=r"train/loss is NaN at step 0"):
        run.watch.check_boundary({"train/loss": float("nan")})
    with pytest.raises(NonFiniteError, match=r"weight q_net_target\.q_net\.2\.bias is infinite"):
        run.watch.check_boundary({"train/loss": 1.0})
    run.watch.close()
    policy.q_net_target(torch.zeros(2, run.layout.size))


def test_a_target_that_is_not_finite_is_named_where_it_begins(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, "dqn")
    model: Any = run.model
    model.learn(512)
    with torch.no_grad():
        model.policy.q_net_target.q_net[2].weight.fill_(float("nan"))
    with pytest.raises(NonFiniteError, match=r"Q-values of q_net_target\.q_net\.2 is NaN at step 512"):
        model.train(1, 32)
    run.watch.close()


@pytest.mark.parametrize("reference", ["ppo"], indirect=True)
def test_a_disk_that_is_full_at_the_end_is_told_like_any_other(
    reference: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = files.write_json

    def full(path: Path, content: object) -> None:
        if path.name == "evaluation.json":
            raise files.DiskFullError(errno.ENOSPC, "no space left on the disk", str(path))
        write(path, content)

    monkeypatch.setattr(training, "write_json", full)
    path = reference / "evaluation.json"
    stored = path.read_bytes()
    old = json.dumps({**result_of(reference), "num_timesteps": 1})
    try:
        path.write_text(old)
        assert main(["--resume", str(reference), "--json"]) == 1
        told = capsys.readouterr().err
        assert f"the disk is full ({path}); nothing that was saved is lost" in told
        assert path.read_text() == old
    finally:
        path.write_bytes(stored)


def test_watching_changes_nothing(tmp_path: Path) -> None:
    watched, free = tiny_run(tmp_path, "ppo"), tiny_run(tmp_path, "ppo")
    free.watch.close()
    for run in (watched, free):
        run.model.set_random_seed(5)
        run.model.learn(256)
    assert weights_hash(weights_of(watched.model)) == weights_hash(weights_of(free.model))
    assert isinstance(watched.watch, FiniteWatch)
    watched.watch.close()
