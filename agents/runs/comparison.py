"""Statistics over training runs that differ in their seed.

A run is one draw from its method's distribution of results, so what is compared are
distributions over seeds: the mean, the interquartile mean (the mean of the middle half, which one
lucky or broken run does not move), bootstrap intervals over runs, and the probability that a run
of one method beats a run of another. After Agarwal et al., "Deep Reinforcement Learning at the
Edge of the Statistical Precipice", NeurIPS 2021.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from agents.runs.folder import CONFIG_FILE, RunError, read_config, read_progress, read_result

METRICS: Final = ("optimality", "mean_score")
"""The keys of a run's evaluation that are compared."""

DEFAULT_CONFIDENCE: Final = 0.95

DEFAULT_RESAMPLES: Final = 10_000

BOOTSTRAP_SEED: Final = 0

NO_PART_OF_A_METHOD: Final = ("seed", "device", "num_threads", "evaluation", "checkpoints")
"""Keys of a configuration in which runs of one method may differ."""

NUM_CURVE_POINTS: Final = 100


@dataclass(frozen=True)
class Run:
    """One finished training run.

    Attributes:
        folder: Where it is.
        config: Its resolved configuration.
        result: Its final evaluation.
        progress: The evaluations during the run, in order.
    """

    folder: Path
    config: Mapping[str, Any]
    result: Mapping[str, Any]
    progress: Sequence[Mapping[str, Any]]

    @property
    def seed(self) -> int:
        """The seed it was trained with."""
        return int(self.config["seed"])

    @property
    def game(self) -> tuple[str, float | None]:
        """What was played: the fingerprint of the rules and what an instant win pays."""
        return str(self.result["fingerprint"]), self.result["instant_win_points"]


@dataclass(frozen=True)
class Group:
    """Runs of one method that differ in their seed.

    Attributes:
        label: What to call the method.
        runs: Its runs, by seed.
    """

    label: str
    runs: tuple[Run, ...]

    def values(self, metric: str) -> NDArray[np.float64]:
        """Return a metric of every run; (runs,) float64."""
        return np.array([run.result[metric] for run in self.runs], dtype=np.float64)


@dataclass(frozen=True)
class Estimate:
    """A statistic with its bootstrap interval; the value twice where it cannot be told."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """A learning curve over runs.

    Attributes:
        steps: (points,) float64, environment steps.
        middle: (points,) float64, the mean over runs.
        low: (points,) float64, the lower end of its interval.
        high: (points,) float64, the upper end.
    """

    steps: NDArray[np.float64]
    middle: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


# --- reading ------------------------------------------------------------------------------------


def read_run(folder: Path) -> Run:
    """Read a finished run.

    Raises:
        RunError: A file of it is missing or broken.
    """
    config, result = read_config(folder), read_result(folder)
    seed = config.get("seed")
    if type(seed) is not int:
        raise RunError(f"run: {str(folder / CONFIG_FILE)!r}: seed is {seed!r}, not a whole number")
    for key in METRICS:
        value = result.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise RunError(f"run: {str(folder)!r}: its evaluation has {key} = {value!r}, not a number")
    for key in ("fingerprint", "instant_win_points"):
        if key not in result:
            raise RunError(f"run: {str(folder)!r}: its evaluation has no {key}")
    progress = read_progress(folder)
    for number, row in enumerate(progress, start=1):
        if not all(isinstance(row.get(key), int | float) for key in ("num_timesteps", *METRICS)):
            raise RunError(f"run: {str(folder)!r}: evaluation {number} of its progress lacks a number")
    return Run(folder, config, result, tuple(progress))


def find_folders(pattern: str) -> list[Path]:
    """Return the folders that a path or a glob stands for, in order; of a glob, the runs among them.

    Raises:
        RunError: There is none.
    """
    if Path(pattern).is_dir():
        return [Path(pattern)]
    if not glob.has_magic(pattern):
        raise RunError(f"run: {pattern!r} is not a folder")
    found = sorted(Path(path) for path in glob.glob(pattern, recursive=True))
    folders = [path for path in found if (path / CONFIG_FILE).is_file()]
    if not folders:
        raise RunError(f"run: {pattern!r} matches no run folder")
    return folders


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Return a nested mapping as one of dotted keys, with values as text."""
    if isinstance(value, Mapping):
        parts = [_flat(item, f"{prefix}.{key}" if prefix else str(key)) for key, item in value.items()]
        return {key: text for part in parts for key, text in part.items()}
    return {prefix: str(value)}


def _method_of(run: Run) -> dict[str, str]:
    return _flat({key: value for key, value in run.config.items() if key not in NO_PART_OF_A_METHOD})


def group_runs(specs: Iterable[str]) -> list[Group]:
    """Read runs and group those of one method.

    Args:
        specs: Folders or globs. Written ``LABEL=FOLDER``, all runs of equal label are one group;
            without a label, runs are grouped by their configuration, the seed left aside, and
            labelled by what tells the configurations apart.

    Raises:
        RunError: A run cannot be read, is given twice, shares its seed with another of its
            group, or plays other rules than the rest.
    """
    labelled: dict[str, list[Run]] = {}
    loose: list[Run] = []
    for spec in specs:
        label, sign, pattern = spec.partition("=")
        named = bool(sign) and not Path(spec).exists()
        found = [read_run(folder) for folder in find_folders(pattern if named else spec)]
        if named:
            labelled.setdefault(label, []).extend(found)
        else:
            loose.extend(found)
    groups = [Group(label, tuple(runs)) for label, runs in labelled.items()]
    groups += _by_method(loose, taken=set(labelled))
    _check_groups(groups)
    return [Group(group.label, tuple(sorted(group.runs, key=lambda run: run.seed))) for group in groups]


def _by_method(runs: Sequence[Run], taken: set[str]) -> list[Group]:
    methods: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        methods.setdefault(tuple(sorted(_method_of(run).items())), []).append(run)
    described = [dict(method) for method in methods]
    keys = sorted({key for method in described for key in method})
    differing = [key for key in keys if len({method.get(key) for method in described}) > 1]
    groups = []
    for method, members in zip(described, methods.values(), strict=True):
        label = method.get("algorithm.name", members[0].folder.name)
        told = [f"{key}={method[key]}" for key in differing if key in method and key != "algorithm.name"]
        # Two algorithms share few keys; their names say more than a list of them.
        names = {other.get("algorithm.name") for other in described}
        if told and (len(names) < len(described)):
            label = ", ".join([label, *told])
        while label in taken:
            label += "'"
        taken.add(label)
        groups.append(Group(label, tuple(members)))
    return groups


def _check_groups(groups: Sequence[Group]) -> None:
    runs = [run for group in groups for run in group.runs]
    if not runs:
        raise RunError("run: no run folder was given")
    seen: set[Path] = set()
    for run in runs:
        if run.folder.resolve() in seen:
            raise RunError(f"run: {str(run.folder)!r} is given twice")
        seen.add(run.folder.resolve())
        if run.game != runs[0].game:
            raise RunError(
                f"run: {str(run.folder)!r} plays {_game_text(run)}, "
                f"but {str(runs[0].folder)!r} plays {_game_text(runs[0])}: their scores do not compare"
            )
    for group in groups:
        seeds = [run.seed for run in group.runs]
        repeated = next((seed for seed in seeds if seeds.count(seed) > 1), None)
        if repeated is not None:
            raise RunError(
                f"run: {group.label}: seed {repeated} appears {seeds.count(repeated)} times; "
                "runs must differ in their seed to be independent"
            )


def _game_text(run: Run) -> str:
    fingerprint, win = run.game
    treated = "plays on" if win is None else f"pays {win:g}"
    return f"{run.result.get('variant', '')} ({fingerprint}, instant win {treated})"


def check_seeds(groups: Sequence[Group], chosen_on: Iterable[str]) -> None:
    """Refuse to report runs whose seeds were used to choose between methods.

    The best of many is partly the luckiest; a figure from the seeds that chose it is too good.

    Args:
        groups: What is reported.
        chosen_on: Folders or globs of the runs that were used for choosing.

    Raises:
        RunError: A reported run has the seed of one of those.
    """
    used: dict[int, Path] = {}
    for pattern in chosen_on:
        for folder in find_folders(pattern):
            seed = read_config(folder).get("seed")
            if type(seed) is int:
                used.setdefault(seed, folder)
    for group in groups:
        for run in group.runs:
            if run.seed in used:
                raise RunError(
                    f"run: {str(run.folder)!r} has seed {run.seed}, on which the choice was made "
                    f"({str(used[run.seed])!r}); report runs of other seeds"
                )


# --- statistics -----------------------------------------------------------------------------------


def interquartile_mean(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """Return the mean of the middle half of values; of fewer than four, of all."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=axis))


def bootstrap(
    values: NDArray[np.float64],
    statistic: Callable[..., Any],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    num_resamples: int = DEFAULT_RESAMPLES,
) -> Estimate:
    """Return a statistic over runs with its percentile bootstrap interval.

    Args:
        values: (runs,) float64.
        statistic: Takes ``axis``.
        confidence: The coverage aimed at; few runs cover less.
        num_resamples: How often runs are drawn with replacement.
    """
    value = float(statistic(values, axis=-1))
    if len(values) < 2 or np.ptp(values) == 0:
        return Estimate(value, value, value)
    result = stats.bootstrap(
        (values,),
        statistic,
        n_resamples=num_resamples,
        confidence_level=confidence,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(BOOTSTRAP_SEED),
    )
    return Estimate(value, float(result.confidence_interval.low), float(result.confidence_interval.high))


def probability_of_improvement(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    num_resamples: int = DEFAULT_RESAMPLES,
) -> Estimate:
    """Return how probably a run of ``first`` scores more than one of ``second``, ties counting half.

    This is the Mann-Whitney statistic as a share of all pairs.

    Args:
        first: (runs,) float64.
        second: (other runs,) float64.
        confidence: The coverage of the bootstrap interval.
        num_resamples: How often runs are drawn with replacement.
    """

    def share(left: NDArray[np.float64], right: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        assert axis == -1  # scipy draws along the last axis
        higher = np.sign(left[..., :, None] - right[..., None, :])
        return np.asarray((0.5 + 0.5 * higher).mean(axis=(-2, -1)))

    value = float(share(first, second))
    if min(len(first), len(second)) < 2 or np.ptp(np.concatenate([first, second])) == 0:
        return Estimate(value, value, value)
    result = stats.bootstrap(
        (first, second),
        share,
        n_resamples=num_resamples,
        confidence_level=confidence,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(BOOTSTRAP_SEED),
        batch=1_000,
    )
    return Estimate(value, float(result.confidence_interval.low), float(result.confidence_interval.high))


def learning_curve(
    group: Group,
    metric: str = "optimality",
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    num_resamples: int = 2_000,
) -> Curve | None:
    """Return the mean learning curve of a group with a bootstrap band over runs.

    Each run is interpolated between its evaluations; the curve covers the steps that all runs
    cover. ``None`` where a run has fewer than two evaluations, or no step is common to all.

    Args:
        group: The runs.
        metric: A key of the evaluations during a run.
        confidence: The coverage of the band.
        num_resamples: How often runs are drawn with replacement.
    """
    curves = []
    for run in group.runs:
        # A run that was cut off and went on may have evaluated a step twice; the later one counts.
        by_step = {float(row["num_timesteps"]): float(row[metric]) for row in run.progress}
        curves.append((sorted(by_step), [by_step[step] for step in sorted(by_step)]))
    if any(len(steps) < 2 for steps, _ in curves):
        return None
    first, last = max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves)
    if not first < last:
        return None
    own = {step for steps, _ in curves for step in steps if first <= step <= last}
    grid = (
        np.array(sorted(own)) if len(own) <= NUM_CURVE_POINTS else np.linspace(first, last, NUM_CURVE_POINTS)
    )
    values = np.array([np.interp(grid, steps, heights) for steps, heights in curves])
    middle = values.mean(axis=0)
    if len(curves) < 2:
        return Curve(grid, middle, middle, middle)
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(len(curves), size=(num_resamples, len(curves)))
    means = values[drawn].mean(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return Curve(grid, middle, low, high)


def compare(
    groups: Sequence[Group],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    num_resamples: int = DEFAULT_RESAMPLES,
) -> dict[str, Any]:
    """Compare groups of runs, as JSON types.

    Args:
        groups: From ``group_runs``.
        confidence: The coverage of the intervals.
        num_resamples: How often runs are drawn with replacement.
    """

    def told(estimate: Estimate) -> dict[str, Any]:
        return {"value": estimate.value, "interval": [estimate.low, estimate.high]}

    options: dict[str, Any] = {"confidence": confidence, "num_resamples": num_resamples}
    first = groups[0].runs[0]
    described = []
    for group in groups:
        row: dict[str, Any] = {
            "label": group.label,
            "num_runs": len(group.runs),
            "seeds": [run.seed for run in group.runs],
            "folders": [str(run.folder) for run in group.runs],
            "exact": all(bool(run.result.get("exact")) for run in group.runs),
        }
        for metric in METRICS:
            values = group.values(metric)
            row[metric] = {
                "mean": told(bootstrap(values, np.mean, **options)),
                "iqm": told(bootstrap(values, interquartile_mean, **options)),
                "std": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
                "min": float(values.min()),
                "max": float(values.max()),
                "values": values.tolist(),
            }
        described.append(row)
    return {
        "variant": first.result.get("variant", ""),
        "fingerprint": first.game[0],
        "instant_win_points": first.game[1],
        "optimal_score": first.result.get("optimal_score"),
        "confidence": confidence,
        "num_resamples": num_resamples,
        "groups": described,
        "probability_of_improvement": [
            {
                "first": one.label,
                "second": other.label,
                **told(
                    probability_of_improvement(
                        one.values("optimality"), other.values("optimality"), **options
                    )
                ),
            }
            for one, other in permutations(groups, 2)
        ],
    }


def comparison_markdown(result: Mapping[str, Any]) -> str:
    """Return a comparison as Markdown tables.

    Args:
        result: From ``compare``.
    """
    share = f"{100 * result['confidence']:g} %"
    win = result["instant_win_points"]
    lines = [
        f"Rules: {result['variant']} (`{result['fingerprint']}`), a served Generala that wins "
        + ("plays on" if win is None else f"pays {win:g}")
        + f". Intervals: {share} percentile bootstrap over seeds.",
        "",
        "| method | runs | IQM, % of optimum | mean, % of optimum | mean score | worst to best |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]

    def shown(estimate: Mapping[str, Any], scale: float) -> str:
        low, high = estimate["interval"]
        return f"{scale * estimate['value']:.2f} ({scale * low:.2f} to {scale * high:.2f})"

    for group in result["groups"]:
        optimality, score = group["optimality"], group["mean_score"]
        label = str(group["label"]).replace("|", "\\|")
        lines.append(
            f"| {label} | {group['num_runs']} | {shown(optimality['iqm'], 100)} "
            f"| {shown(optimality['mean'], 100)} | {shown(score['mean'], 1)} "
            f"| {100 * optimality['min']:.2f} to {100 * optimality['max']:.2f} |"
        )
    if result["probability_of_improvement"]:
        lines += ["", "| a run of | scores more than a run of | probability |", "| --- | --- | ---: |"]
        for pair in result["probability_of_improvement"]:
            low, high = pair["interval"]
            first, second = (str(pair[key]).replace("|", "\\|") for key in ("first", "second"))
            lines.append(f"| {first} | {second} | {pair['value']:.2f} ({low:.2f} to {high:.2f}) |")
    return "\n".join(lines) + "\n"
