"""Statistics over seeds: against definitions, by enumeration, and on broken run folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from agents.runs.comparison import (
    Group,
    check_seeds,
    compare,
    comparison_markdown,
    find_folders,
    group_runs,
    learning_curve,
    read_run,
)
from agents.runs.folder import RunError
from agents.runs.intervals import (
    caution,
    interquartile_mean,
    mean_band,
    mean_interval,
    probability_of_improvement,
)
from tests.agents.written_runs import OPTIMUM, write_run


def groups_of(folder: Path, scores: Sequence[float], **options: Any) -> Group:
    for seed, score in enumerate(scores):
        write_run(folder / f"seed{seed}", seed=seed, score=score, **options)
    (group,) = group_runs([f"{folder}/*"])
    return group


# --- statistics -----------------------------------------------------------------------------------


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, 3.0, 4.0, -50.0, 5.0, 6.0])) == pytest.approx(3.5)
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == pytest.approx(3.0)


def test_the_interval_of_a_mean_is_student_s() -> None:
    values = np.array([1.0, 2.0, 4.0])
    found = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    estimate = mean_interval(values, confidence=0.9)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((7 / 3, found.low, found.high))
    # The middle half of three is all of them.
    assert mean_interval(values, trimmed=True, confidence=0.9) == estimate
    band = mean_band(np.array([values, values]).T, confidence=0.9)
    assert band is not None
    assert band[0] == pytest.approx(found.low)
    assert band[1] == pytest.approx(found.high)


def test_the_interval_of_an_interquartile_mean_is_that_of_a_trimmed_mean() -> None:
    values = np.array([4.0, 1.0, 10.0, 9.0, 2.0, 3.0, 3.5, 5.0])
    low, high = stats.mstats.trimmed_mean_ci(values, limits=(0.25, 0.25))
    estimate = mean_interval(values, trimmed=True)
    assert estimate.value == pytest.approx(interquartile_mean(values))
    assert (estimate.low, estimate.high) == pytest.approx((low, high))


@pytest.mark.parametrize("num_runs", [3, 5, 12])
def test_intervals_hold_the_truth_as_often_as_they_say(num_runs: int) -> None:
    """A percentile bootstrap of three runs would hold the mean in 76 % of the cases."""
    random = np.random.default_rng(num_runs)
    held: dict[str, list[bool]] = {"mean": [], "iqm": [], "probability": []}
    truth = float(stats.norm.cdf(1 / np.sqrt(2)))
    for _ in range(1_000):
        better, worse = random.normal(1.0, size=num_runs), random.normal(size=num_runs)
        for name, estimate, true in (
            ("mean", mean_interval(better), 1.0),
            ("iqm", mean_interval(better, trimmed=True), 1.0),
            ("probability", probability_of_improvement(better, worse), truth),
        ):
            assert estimate.low is not None
            assert estimate.high is not None
            held[name].append(estimate.low <= true <= estimate.high)
    for name, cases in held.items():
        assert 0.90 < np.mean(cases) < 0.99, name


@pytest.mark.parametrize("values", [[3.0], [3.0, 4.0]])
def test_too_few_runs_have_no_interval_and_say_so(values: list[float]) -> None:
    runs = np.array(values)
    for estimate in (mean_interval(runs), probability_of_improvement(runs, np.arange(9.0))):
        assert (estimate.low, estimate.high) == (None, None)
    assert mean_band(runs[:, None]) is None
    assert "too few for an interval" in str(caution(len(values)))
    assert "honest only if" in str(caution(3))
    assert caution(10) is None


def test_the_probability_of_improvement_counts_pairs() -> None:
    first, second = np.array([1.0, 3.0, 5.0]), np.array([2.0, 3.0, 0.0])
    expected = (1 + 0 + 0 + 1 + 0.5 + 1 + 1 + 1 + 1) / 9
    estimate = probability_of_improvement(first, second)
    assert estimate.value == pytest.approx(expected)
    assert estimate.value == pytest.approx(stats.mannwhitneyu(first, second).statistic / 9)
    back = probability_of_improvement(second, first)
    assert back.value == pytest.approx(1 - expected)
    assert estimate.low is not None
    assert back.high == pytest.approx(1 - estimate.low)


def test_three_runs_ahead_of_three_do_not_prove_that_all_would_be() -> None:
    surely = probability_of_improvement(np.array([5.0, 6.0, 7.0]), np.array([1.0, 2.0, 3.0]))
    assert (surely.value, surely.high) == (1.0, 1.0)
    # One in twenty orders of six runs is this one.
    assert surely.low == pytest.approx(0.5, abs=0.01)


# --- curves ---------------------------------------------------------------------------------------


def test_a_curve_is_the_mean_of_interpolated_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "a", seed=0, score=150.0, steps=(100, 200, 400))
    write_run(tmp_path / "b", seed=1, score=75.0, steps=(200, 300))
    (group,) = group_runs([str(tmp_path / "a"), str(tmp_path / "b")])
    curve = learning_curve(group)
    assert curve is not None
    assert curve.over.tolist() == [200, 300]
    assert curve.middle == pytest.approx([(0.5 + 0.5 * 2 / 3) / 2, (0.75 + 0.5) / 2])
    assert curve.runs.mean(axis=0) == pytest.approx(curve.middle)
    assert curve.band is None
    write_run(tmp_path / "c", seed=2, score=90.0, steps=(200, 300))
    (group,) = group_runs([str(tmp_path / name) for name in "abc"])
    curve = learning_curve(group, scale=100)
    assert curve is not None
    assert curve.band is not None
    estimate = mean_interval(curve.runs[:, 1])
    assert (curve.band[0][1], curve.band[1][1]) == pytest.approx((estimate.low, estimate.high))


def test_a_curve_may_go_over_time_instead_of_steps(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    (group,) = group_runs([str(tmp_path / "a")])
    curve = learning_curve(group, over="minutes")
    assert curve is not None
    assert curve.over == pytest.approx([1.0, 2.0, 3.0])
    # Runs of earlier versions did not count what processors did.
    assert learning_curve(group, over="processor_minutes") is None


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
        "learning_rate=0.001",
        "learning_rate=0.01",
    }
    assert all([run.seed for run in group.runs] == [0, 1, 2] for group in groups)


def test_algorithms_are_told_by_name(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", algorithm="dqn", learning_rate=0.1)
    assert {group.label for group in group_runs([f"{tmp_path}/*"])} == {"ppo", "dqn"}


def test_labels_say_what_differs_and_no_more(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", learning_rate=0.1)
    write_run(tmp_path / "c", algorithm="dqn", learning_rate=0.1)
    labels = {group.label for group in group_runs([f"{tmp_path}/*"])}
    assert labels == {"ppo, learning_rate=0.001", "ppo, learning_rate=0.1", "dqn"}


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
    assert "| better | 3 | 98.67 (97.01 to 100.32) |" in text
    assert "| better | worse | 1.00 (0.57 to 1.00) |" in text
    assert "* better: 3 runs: the interval is honest only if" in text


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
        ("config.yaml", "a: [", "is broken: config.yaml: not YAML"),
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
