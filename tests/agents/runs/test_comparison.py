"""Statistics over seeds: against definitions, by enumeration, and on broken run folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from agents.runs.comparison import (
    Group,
    bootstrap,
    check_seeds,
    compare,
    comparison_markdown,
    find_folders,
    group_runs,
    interquartile_mean,
    learning_curve,
    probability_of_improvement,
    read_run,
)
from agents.runs.folder import RunError

OPTIMUM = 150.0


def write_run(
    folder: Path,
    *,
    seed: int = 0,
    score: float = 140.0,
    learning_rate: float = 0.001,
    algorithm: str = "ppo",
    steps: Sequence[int] = (100, 200, 300),
    **changes: Any,
) -> Path:
    """Write what a finished run leaves behind, as training writes it."""
    folder.mkdir(parents=True)
    config = {
        "variant": "ruibal",
        "env": {"instant_win": "play_on", "num_envs": 64},
        "algorithm": {"name": algorithm, "learning_rate": learning_rate},
        "seed": seed,
        "num_threads": seed + 1,
    }
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    result = {
        "agent": folder.name,
        "variant": "ruibal",
        "fingerprint": "036a84105c6d",
        "instant_win_points": None,
        "exact": True,
        "mean_score": score,
        "optimal_score": OPTIMUM,
        "optimality": score / OPTIMUM,
        **changes,
    }
    (folder / "evaluation.json").write_text(json.dumps(result))
    rows = [
        {
            "num_timesteps": step,
            "wall_seconds": 1.0,
            "exact": True,
            "mean_score": score * step / steps[-1],
            "ci95": [0, 0],
            "optimality": score / OPTIMUM * step / steps[-1],
        }
        for step in steps
    ]
    (folder / "progress.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def groups_of(folder: Path, scores: Sequence[float], **options: Any) -> Group:
    for seed, score in enumerate(scores):
        write_run(folder / f"seed{seed}", seed=seed, score=score, **options)
    (group,) = group_runs([f"{folder}/*"])
    return group


# --- statistics -----------------------------------------------------------------------------------


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, 3.0, 4.0, -50.0, 5.0, 6.0])) == pytest.approx(3.5)
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == pytest.approx(3.0)


def test_a_bootstrap_interval_is_that_of_all_resamples() -> None:
    """Four runs have 256 equally likely resamples, which can be listed."""
    values = np.array([1.0, 2.0, 4.0, 9.0])
    means = [np.mean(drawn) for drawn in product(values, repeat=4)]
    low, high = np.quantile(means, [0.025, 0.975])
    estimate = bootstrap(values, np.mean, num_resamples=20_000)
    assert estimate.value == pytest.approx(4.0)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.15)
    assert bootstrap(values, np.mean, num_resamples=500) == bootstrap(values, np.mean, num_resamples=500)


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.0, 3.0]])
def test_what_does_not_vary_has_no_interval(values: list[float]) -> None:
    estimate = bootstrap(np.array(values), interquartile_mean)
    assert (estimate.value, estimate.low, estimate.high) == (3.0, 3.0, 3.0)


def test_the_probability_of_improvement_counts_pairs() -> None:
    first, second = np.array([1.0, 3.0, 5.0]), np.array([2.0, 3.0])
    expected = (0 + 0 + 1 + 0.5 + 1 + 1) / 6
    estimate = probability_of_improvement(first, second, num_resamples=2_000)
    assert estimate.value == pytest.approx(expected)
    assert estimate.value == pytest.approx(stats.mannwhitneyu(first, second).statistic / 6)
    assert 0 <= estimate.low < estimate.value < estimate.high <= 1
    back = probability_of_improvement(second, first, num_resamples=100)
    assert back.value == pytest.approx(1 - expected)
    surely = probability_of_improvement(np.array([5.0, 6.0]), np.array([1.0, 2.0]), num_resamples=100)
    assert (surely.value, surely.low, surely.high) == (1.0, 1.0, 1.0)


# --- curves ---------------------------------------------------------------------------------------


def test_a_curve_is_the_mean_of_interpolated_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "a", seed=0, score=150.0, steps=(100, 200, 400))
    write_run(tmp_path / "b", seed=1, score=75.0, steps=(200, 300))
    (group,) = group_runs([str(tmp_path / "a"), str(tmp_path / "b")])
    curve = learning_curve(group)
    assert curve is not None
    assert curve.steps.tolist() == [200, 300]
    assert curve.middle == pytest.approx([(0.5 + 0.5 * 2 / 3) / 2, (0.75 + 0.5) / 2])
    assert (curve.low <= curve.middle).all()
    assert (curve.middle <= curve.high).all()
    assert curve.low[1] == pytest.approx(0.5)
    assert curve.high[1] == pytest.approx(0.75)


def test_without_evaluations_there_is_no_curve(tmp_path: Path) -> None:
    write_run(tmp_path / "a", steps=(100,))
    (group,) = group_runs([str(tmp_path / "a")])
    assert learning_curve(group) is None
    (tmp_path / "a" / "progress.jsonl").unlink()
    assert read_run(tmp_path / "a").progress == ()


def test_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    with (folder / "progress.jsonl").open("a") as file:
        file.write('{"num_times')
    assert len(read_run(folder).progress) == 3
    with (folder / "progress.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(RunError, match="line 4 is not JSON"):
        read_run(folder)


# --- groups ---------------------------------------------------------------------------------------


def test_runs_that_differ_in_the_seed_are_one_method(tmp_path: Path) -> None:
    for seed in (2, 0, 1):
        write_run(tmp_path / f"low{seed}", seed=seed)
        write_run(tmp_path / f"high{seed}", seed=seed, learning_rate=0.01)
    groups = group_runs([f"{tmp_path}/*"])
    assert {group.label for group in groups} == {
        "ppo, algorithm.learning_rate=0.001",
        "ppo, algorithm.learning_rate=0.01",
    }
    assert all([run.seed for run in group.runs] == [0, 1, 2] for group in groups)


def test_algorithms_are_told_by_name(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", algorithm="dqn", learning_rate=0.1)
    assert {group.label for group in group_runs([f"{tmp_path}/*"])} == {"ppo", "dqn"}


def test_labels_make_groups(tmp_path: Path) -> None:
    write_run(tmp_path / "a", seed=0)
    write_run(tmp_path / "b", seed=1, learning_rate=0.5)
    (group,) = group_runs([f"mine={tmp_path}/a", f"mine={tmp_path}/b"])
    assert (group.label, len(group.runs)) == ("mine", 2)


def test_a_comparison_tells_all(tmp_path: Path) -> None:
    better = groups_of(tmp_path / "x", [147.0, 148.0, 149.0])
    worse = groups_of(tmp_path / "y", [140.0, 141.0, 142.0, 143.0, 100.0])
    result = compare([Group("better", better.runs), Group("worse", worse.runs)])
    json.dumps(result, allow_nan=False)
    first, second = result["groups"]
    assert first["mean_score"]["mean"]["value"] == pytest.approx(148.0)
    assert second["optimality"]["iqm"]["value"] == pytest.approx(141.0 / OPTIMUM)
    assert second["optimality"]["mean"]["value"] < 0.9
    assert second["seeds"] == [0, 1, 2, 3, 4]
    pairs = {(pair["first"], pair["second"]): pair["value"] for pair in result["probability_of_improvement"]}
    assert pairs == {("better", "worse"): 1.0, ("worse", "better"): 0.0}
    text = comparison_markdown(result)
    assert "| better | 3 | 98.67 (98.00 to 99.33) |" in text
    assert "| better | worse | 1.00 (1.00 to 1.00) |" in text


# --- what is refused ------------------------------------------------------------------------------


def test_other_rules_do_not_compare(tmp_path: Path) -> None:
    write_run(tmp_path / "a", seed=0)
    write_run(tmp_path / "b", seed=1, fingerprint="613d57e15ab6", variant="doble")
    with pytest.raises(RunError, match=r"613d57e15ab6.*036a84105c6d"):
        group_runs([f"{tmp_path}/*"])
    write_run(tmp_path / "c", seed=2, instant_win_points=270.0)
    with pytest.raises(RunError, match=r"pays 270.*plays on"):
        group_runs([str(tmp_path / "a"), str(tmp_path / "c")])


def test_runs_must_be_independent(tmp_path: Path) -> None:
    write_run(tmp_path / "a", seed=4)
    write_run(tmp_path / "b", seed=4)
    with pytest.raises(RunError, match="seed 4 appears 2 times"):
        group_runs([f"{tmp_path}/*"])
    with pytest.raises(RunError, match="given twice"):
        group_runs([str(tmp_path / "a"), f"{tmp_path}/../{tmp_path.name}/a"])


def test_seeds_used_for_choosing_are_not_reported(tmp_path: Path) -> None:
    write_run(tmp_path / "reported" / "a", seed=10)
    write_run(tmp_path / "tried" / "a", seed=1)
    groups = group_runs([f"{tmp_path}/reported/*"])
    check_seeds(groups, [f"{tmp_path}/tried/*"])
    write_run(tmp_path / "tried" / "b", seed=10, learning_rate=0.2)
    with pytest.raises(RunError, match="has seed 10, on which the choice was made"):
        check_seeds(groups, [f"{tmp_path}/tried/*"])


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("evaluation.json", None, "has the run ended"),
        ("evaluation.json", "{", "is not JSON"),
        ("evaluation.json", "[]", "not a JSON object"),
        ("evaluation.json", "{}", "optimality = None"),
        ("evaluation.json", '{"optimality": 1, "mean_score": NaN}', "mean_score = nan"),
        ("evaluation.json", '{"optimality": 1, "mean_score": 1}', "no fingerprint"),
        ("config.yaml", None, "holds no config.yaml"),
        ("config.yaml", "a: [", "is not YAML"),
        ("config.yaml", "[]", "is not a mapping"),
        ("config.yaml", "seed: x", "seed is 'x'"),
        ("progress.jsonl", "{}\n{}\n", "lacks a number"),
        ("progress.jsonl", "[]\n", "is not a JSON object"),
    ],
)
def test_broken_runs_are_told(tmp_path: Path, file: str, content: str | None, named: str) -> None:
    folder = write_run(tmp_path / "run")
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(RunError, match=named) as caught:
        read_run(folder)
    assert "\n" not in str(caught.value)


def test_globs_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a folder"):
        find_folders(str(tmp_path / "nothing"))
    with pytest.raises(RunError, match="matches no run folder"):
        find_folders(str(tmp_path / "*"))
