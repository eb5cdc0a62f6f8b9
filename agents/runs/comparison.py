"""Statistics over training runs that differ in their seed.

A run is one draw from its method's distribution of results, so what is compared are
distributions over seeds: the mean, the interquartile mean (the mean of the middle half, which one
lucky or broken run does not move), intervals over runs, and the probability that a run of one
method beats a run of another. After Agarwal et al., "Deep Reinforcement Learning at the Edge of
the Statistical Precipice", NeurIPS 2021; ``intervals`` says where a single game asks for more care.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.figures import Line
from agents.runs.folder import (
    CONFIG_FILE,
    RunError,
    flattened,
    read_config,
    read_progress,
    read_result,
)
from agents.runs.intervals import (
    DEFAULT_CONFIDENCE,
    Estimate,
    caution,
    mean_band,
    mean_interval,
    probability_of_improvement,
)
from generala_env.rules.names import instant_win_text

METRICS: Final = ("optimality", "mean_score")
"""The keys of a run's evaluation that are compared."""

NO_PART_OF_A_METHOD: Final = ("seed", "device", "num_threads", "evaluation", "checkpoints")
"""Keys of a configuration in which runs of one method may differ."""

ALGORITHM: Final = "algorithm.name"

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
class Axis:
    """What learning curves can be drawn over.

    Attributes:
        key: The key of it in a run's progress.
        unit: How many of it make one on the axis.
    """

    key: str
    unit: float


AXES: Final = {
    "steps": Axis("num_timesteps", 1.0),
    "minutes": Axis("wall_seconds", 60.0),
    "processor_minutes": Axis("processor_seconds", 60.0),
}


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


def _method_of(run: Run) -> dict[str, str]:
    config = {key: value for key, value in run.config.items() if key not in NO_PART_OF_A_METHOD}
    return {key: str(value) for key, value in flattened(config).items()}


def _short_names(keys: Iterable[str]) -> dict[str, str]:
    """Return dotted keys without their section where that leaves them apart: what a reader looks for."""
    last = {key: key.partition(".")[2] or key for key in keys}
    said = list(last.values())
    return {key: name if said.count(name) == 1 else key for key, name in last.items()}


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
    short = _short_names(sorted({key for method in described for key in method}))
    names = [method.get(ALGORITHM, "") for method in described]
    groups = []
    for method, name, members in zip(described, names, methods.values(), strict=True):
        # Two algorithms share few keys; their names say more than a list of them.
        alike = [other for other, other_name in zip(described, names, strict=True) if other_name == name]
        differing = [key for key in sorted(method) if len({other.get(key) for other in alike}) > 1]
        parts = [f"{short[key]}={method[key]}" for key in differing]
        if len(set(names)) > 1 or not parts:
            parts.insert(0, name or members[0].folder.name)
        label = ", ".join(parts)
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
    return f"{run.result.get('variant', '')} ({fingerprint}, instant win {instant_win_text(win)})"


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


def learning_curve(
    group: Group,
    metric: str = "optimality",
    *,
    scale: float = 1.0,
    over: str = "steps",
    confidence: float = DEFAULT_CONFIDENCE,
) -> Line | None:
    """Return the mean learning curve of a group with a band over runs.

    Each run is interpolated between its evaluations; the curve covers what all runs cover.
    ``None`` where a run has fewer than two evaluations that say how far it was, or nothing is
    common to all.

    Args:
        group: The runs.
        metric: A key of the evaluations during a run.
        scale: What its values are multiplied by.
        over: A key of ``AXES``.
        confidence: The coverage of the band.
    """
    axis = AXES[over]
    curves = []
    for run in group.runs:
        # A run that was cut off and went on may have evaluated a step twice; the later one counts.
        by_step = {float(row["num_timesteps"]): row for row in run.progress if axis.key in row}
        rows = [by_step[step] for step in sorted(by_step)]
        curves.append(
            ([float(row[axis.key]) / axis.unit for row in rows], [scale * float(row[metric]) for row in rows])
        )
    if any(len(places) < 2 for places, _ in curves):
        return None
    first, last = max(places[0] for places, _ in curves), min(places[-1] for places, _ in curves)
    if not first < last:
        return None
    own = {place for places, _ in curves for place in places if first <= place <= last}
    grid = (
        np.array(sorted(own)) if len(own) <= NUM_CURVE_POINTS else np.linspace(first, last, NUM_CURVE_POINTS)
    )
    values = np.array([np.interp(grid, places, heights) for places, heights in curves])
    return Line(grid, values, values.mean(axis=0), mean_band(values, confidence=confidence))


def compare(
    groups: Sequence[Group],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
) -> dict[str, Any]:
    """Compare groups of runs, as JSON types.

    Args:
        groups: From ``group_runs``.
        confidence: The coverage of the intervals.
    """

    def told(estimate: Estimate) -> dict[str, Any]:
        interval = None if estimate.low is None else [estimate.low, estimate.high]
        return {"value": estimate.value, "interval": interval}

    first = groups[0].runs[0]
    described = []
    for group in groups:
        row: dict[str, Any] = {
            "label": group.label,
            "num_runs": len(group.runs),
            "seeds": [run.seed for run in group.runs],
            "folders": [str(run.folder) for run in group.runs],
            "exact": all(bool(run.result.get("exact")) for run in group.runs),
            "caution": caution(len(group.runs)),
        }
        for metric in METRICS:
            values = group.values(metric)
            row[metric] = {
                "mean": told(mean_interval(values, confidence=confidence)),
                "iqm": told(mean_interval(values, trimmed=True, confidence=confidence)),
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
        "groups": described,
        "probability_of_improvement": [
            {
                "first": one.label,
                "second": other.label,
                **told(
                    probability_of_improvement(
                        one.values("optimality"), other.values("optimality"), confidence=confidence
                    )
                ),
            }
            for one, other in permutations(groups, 2)
        ],
    }


def estimate_text(estimate: Mapping[str, Any], scale: float = 1.0) -> str:
    """Return a value with its interval, if it has one, as people read it."""
    text = f"{scale * estimate['value']:.2f}"
    if estimate["interval"] is None:
        return text
    low, high = estimate["interval"]
    return f"{text} ({scale * low:.2f} to {scale * high:.2f})"


def intervals_text(result: Mapping[str, Any]) -> str:
    """Return in a sentence what the intervals of a comparison are."""
    share = f"{100 * result['confidence']:g} %"
    return f"Intervals: {share} over seeds, Student's t of the mean and of the middle half, score interval."


def cautions_of(result: Mapping[str, Any]) -> list[str]:
    """Return what is to be said of methods with few runs, one line for each number of runs."""
    labels: dict[str, list[str]] = {}
    for group in result["groups"]:
        if group["caution"] is not None:
            labels.setdefault(group["caution"], []).append(str(group["label"]))
    return [f"{'; '.join(names)}: {text}" for text, names in labels.items()]


def comparison_markdown(result: Mapping[str, Any]) -> str:
    """Return a comparison as Markdown tables.

    Args:
        result: From ``compare``.
    """
    win = result["instant_win_points"]
    lines = [
        f"Rules: {result['variant']} (`{result['fingerprint']}`), a served Generala that wins "
        f"{instant_win_text(win)}. {intervals_text(result)}",
        "",
        "| method | runs | IQM, % of optimum | mean, % of optimum | mean score | worst to best |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]

    for group in result["groups"]:
        optimality, score = group["optimality"], group["mean_score"]
        label = str(group["label"]).replace("|", "\\|")
        lines.append(
            f"| {label} | {group['num_runs']} | {estimate_text(optimality['iqm'], 100)} "
            f"| {estimate_text(optimality['mean'], 100)} | {estimate_text(score['mean'], 1)} "
            f"| {100 * optimality['min']:.2f} to {100 * optimality['max']:.2f} |"
        )
    if result["probability_of_improvement"]:
        lines += ["", "| a run of | scores more than a run of | probability |", "| --- | --- | ---: |"]
        for pair in result["probability_of_improvement"]:
            first, second = (str(pair[key]).replace("|", "\\|") for key in ("first", "second"))
            lines.append(f"| {first} | {second} | {estimate_text(pair)} |")
    if cautions := cautions_of(result):
        lines += ["", *(f"* {line}" for line in cautions)]
    return "\n".join(lines) + "\n"
