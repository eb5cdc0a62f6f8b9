"""What a training run is made of: a typed config, read so that every error explains itself.

A config is a YAML 1.2 file, so that ``3e-4`` is a number, then ``--set`` overrides, then the
flags of the command; the later wins. Everything wrong is told at once, each error with its
place, its key path, the value and what is allowed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from agents.cli import UsageError
from generala_env.envs.observation import BLOCKS
from generala_env.rules.compiled import InstantWin
from generala_env.rules.variants import FIELD_NAMES, PRESETS, Variant, VariantError, get_variant

CONFIG_FOLDER: Final = Path(__file__).resolve().parent.parent / "configs"
"""Where a config named without a path is looked up."""

SCHEMA_FILE: Final = "schema.json"

KeyPath = tuple[str | int, ...]

# --- the model ------------------------------------------------------------------------------------


def _whole(value: object) -> object:
    """Let ``1e6`` stand for a whole number, as people write step counts."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE: Final = BeforeValidator(_whole)
Count = Annotated[int, Field(ge=1, le=10**12), WHOLE]
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0, le=10)]


class Section(BaseModel):
    """A part of a config: unknown keys are refused, types are not converted, nothing changes."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Linear(Section):
    """A value that goes linearly from ``start``, at the first step, to ``end``, at the last."""

    start: Rate
    """Value at the first step."""
    end: Rate
    """Value at the last step."""

    def __call__(self, progress_remaining: float) -> float:
        """Return the value at a progress that falls from 1 to 0, as SB3 counts it."""
        return self.end + (self.start - self.end) * progress_remaining


def _number_or_linear(value: object) -> str:
    return "<linear>" if isinstance(value, Mapping | Linear) else "<number>"


Schedule = Annotated[
    Annotated[Rate, Tag("<number>")] | Annotated[Linear, Tag("<linear>")], Discriminator(_number_or_linear)
]
"""A constant, or a line from start to end."""


class PPOConfig(Section):
    """Hyperparameters of PPO, in SB3's spelling."""

    name: Literal["ppo"]
    """The algorithm."""
    learning_rate: Schedule = 3e-4
    """Step size of Adam."""
    n_steps: Count = 2048
    """Steps of each environment per update."""
    batch_size: Annotated[int, Field(ge=2, le=10**9), WHOLE] = 64
    """Decisions per minibatch; a divisor of n_steps * num_envs."""
    n_epochs: Annotated[int, Field(ge=1, le=1_000), WHOLE] = 10
    """Passes over what was collected, per update."""
    gamma: Fraction = 1.0
    """Discount; every episode ends, so 1 is the true objective."""
    gae_lambda: Fraction = 0.95
    """Bias against variance of the advantages."""
    throw_lambda: Fraction | None = None
    """How much of the luck of a throw counts for the decision before it; null is plain GAE."""
    value_lambda: Fraction = 0.5
    """How far the targets of the values look ahead; used with throw_lambda."""
    clip_range: Schedule = 0.2
    """How far the ratio of probabilities may move."""
    clip_range_vf: Annotated[float, Field(gt=0, le=1_000)] | None = None
    """How far the value may move; null does not clip."""
    normalize_advantage: bool = True
    """Bring the advantages of each minibatch to mean 0 and deviation 1."""
    ent_coef: Schedule = 0.0
    """Weight of the entropy."""
    vf_coef: Rate = 0.5
    """Weight of the value's loss."""
    max_grad_norm: Annotated[float, Field(gt=0, le=10**6)] = 0.5
    """Largest norm of a gradient."""
    target_kl: Annotated[float, Field(gt=0, le=10)] | None = None
    """End an update's epochs beyond this divergence; null does not."""


class DQNConfig(Section):
    """Hyperparameters of DQN, in SB3's spelling."""

    name: Literal["dqn"]
    """The algorithm."""
    learning_rate: Schedule = 1e-4
    """Step size of Adam."""
    buffer_size: Annotated[int, Field(ge=1, le=10**8), WHOLE] = 1_000_000
    """Transitions in the replay buffer."""
    learning_starts: Annotated[int, Field(ge=0, le=10**9), WHOLE] = 100
    """Steps of random play before learning."""
    batch_size: Annotated[int, Field(ge=1, le=10**7), WHOLE] = 32
    """Transitions per update."""
    tau: Annotated[float, Field(gt=0, le=1)] = 1.0
    """How much of the network goes into the target network at each of its updates."""
    gamma: Fraction = 1.0
    """Discount; every episode ends, so 1 is the true objective."""
    train_freq: Annotated[int, Field(ge=1, le=10**6), WHOLE] = 4
    """Steps of each environment between updates."""
    n_steps: Annotated[int, Field(ge=1, le=100), WHOLE] = 1
    """Over how many steps rewards are summed before the next state's value is added."""
    gradient_steps: Annotated[int, Field(ge=1, le=10**5), WHOLE] = 1
    """Gradient steps per update."""
    target_update_interval: Count = 10_000
    """Steps between updates of the target network."""
    exploration_fraction: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Share of the run over which exploration falls."""
    exploration_initial_eps: Fraction = 1.0
    """Share of random actions at first."""
    exploration_final_eps: Fraction = 0.05
    """Share of random actions at last."""
    max_grad_norm: Annotated[float, Field(gt=0, le=10**6)] = 10.0
    """Largest norm of a gradient."""


ALGORITHMS: Final[dict[str, type[Section]]] = {"ppo": PPOConfig, "dqn": DQNConfig}


def _algorithm_tag(value: object) -> str | None:
    name = value.get("name") if isinstance(value, Mapping) else getattr(value, "name", None)
    return f"<{name}>" if isinstance(name, str) and name in ALGORITHMS else None


Algorithm = Annotated[
    Annotated[PPOConfig, Tag("<ppo>")] | Annotated[DQNConfig, Tag("<dqn>")],
    Discriminator(_algorithm_tag, custom_error_type="algorithm_name", custom_error_message="unknown"),
]


def _check_instant_win(value: object) -> object:
    if value in ("perfect", "play_on") or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise PydanticCustomError("instant_win", "perfect, play_on or a number of points")


if TYPE_CHECKING:
    BlockName = str
else:
    BlockName = Literal[tuple(BLOCKS)]


class EnvConfig(Section):
    """The environment."""

    instant_win: Annotated[
        InstantWin,
        BeforeValidator(_check_instant_win),
        WithJsonSchema(
            {
                "description": "What a served Generala that wins does.",
                "anyOf": [{"enum": ["perfect", "play_on"]}, {"type": "number"}],
            }
        ),
    ] = "play_on"
    """What a served Generala that wins does: end the game and pay the perfect score (perfect) or
    that many points, or play_on."""
    observation_blocks: Annotated[list[BlockName], Field(min_length=1)] | None = None
    """Blocks of the observation; null for the default ones."""
    num_envs: Annotated[int, Field(ge=1, le=65_536), WHOLE] = 64
    """Games played side by side."""
    reward_scale: Annotated[float, Field(gt=0, le=1_000)] = 0.05
    """What the points are multiplied by before the algorithm sees them."""


Width = Annotated[int, Field(ge=1, le=8_192), WHOLE]


class PolicyConfig(Section):
    """The networks."""

    net_arch: Annotated[list[Width], Field(min_length=1, max_length=16)] = [256, 256]
    """Widths of the hidden layers."""
    activation: Literal["relu", "tanh", "gelu", "silu", "elu"] = "relu"
    """What follows each hidden layer."""
    keeps_head: bool = True
    """Score the 462 multisets of dice to keep and gather them through the throw, so that a decision is
    the same wherever its dice lie; false scores the ids of actions."""


class EvaluationConfig(Section):
    """The evaluation in the loop: masked and deterministic."""

    mode: Literal["auto", "exact", "sampled"] = "auto"
    """Exact expected score, a sample of games, or exact where that is fast."""
    every: Count = 100_000
    """Steps between evaluations."""
    max_share_of_run: Annotated[float, Field(gt=0, le=1)] = 0.1
    """An evaluation that would take more than this share of the time so far is left out; with 1, none is,
    and which agent is the best does not hang on the clock."""
    games: Annotated[int, Field(ge=2, le=10**8), WHOLE] = 2_000
    """Games of a sampled evaluation."""
    final_games: Annotated[int, Field(ge=2, le=10**8), WHOLE] = 20_000
    """Games of the evaluation at the end, where it is sampled."""


class CheckpointConfig(Section):
    """What is kept to go on from."""

    every: Count = 250_000
    """Steps between checkpoints."""
    keep_last: Annotated[int, Field(ge=1, le=10_000), WHOLE] = 2
    """Checkpoints kept beside the best agent."""


_JUDGED_TOGETHER: Final = (
    "boxes",
    "doble",
    "straights",
    "served_generala_wins",
    "min_players",
    "max_players",
)
"""Fields of a variant that others can contradict."""


def _variant_problems(value: object) -> list[tuple[KeyPath, str]]:
    """Return everything wrong with a variant, field by field."""
    problems: list[tuple[KeyPath, str]] = []
    if isinstance(value, Mapping):
        known = ("base", *FIELD_NAMES)
        for name, given in value.items():
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean variant.{near[0]}?" if near else f"known: {', '.join(known)}"
                problems.append(((str(name),), f"unknown key (value {_shown(given)}); {hint}"))
    if problems:
        return problems
    try:
        get_variant(value)  # type: ignore[arg-type]
    except VariantError as error:
        wrong = {error.field: str(error).partition(": ")[2]}
        base = value.get("base") if isinstance(value, Mapping) else None
        if isinstance(value, Mapping) and isinstance(base, str) and base in PRESETS:
            # Fields that are judged by themselves can all be told at once.
            for name, given in value.items():
                if name not in ("base", *_JUDGED_TOGETHER):
                    try:
                        PRESETS[base].override(**{name: given})
                    except VariantError as other:
                        wrong[other.field] = str(other).partition(": ")[2]
        elif isinstance(value, Mapping) and error.field == "variant":
            wrong = {"base": wrong["variant"]}
        problems += [
            ((name,) if isinstance(value, Mapping) else (), message) for name, message in wrong.items()
        ]
    return problems


def _check_variant(value: object) -> object:
    if isinstance(value, Variant):
        value = value.to_dict()
    problems = _variant_problems(value)
    if problems:
        raise PydanticCustomError("variant", "not a variant", {"problems": problems})
    return value


VARIANT_SCHEMA: Final = {
    "description": "The rules: a preset's name, or a preset as base with fields replaced.",
    "anyOf": [
        {"enum": list(PRESETS)},
        {
            "type": "object",
            "properties": {"base": {"enum": list(PRESETS)}, **{name: {} for name in FIELD_NAMES}},
            "additionalProperties": False,
        },
    ],
}


class RunConfig(Section):
    """A training run."""

    variant: Annotated[
        str | dict[str, Any], BeforeValidator(_check_variant), WithJsonSchema(VARIANT_SCHEMA)
    ] = "ruibal"
    """The rules: a preset's name, or a preset as base with fields replaced."""
    env: EnvConfig = EnvConfig()
    """The environment."""
    algorithm: Algorithm
    """The algorithm, by name, and its hyperparameters."""
    policy: PolicyConfig = PolicyConfig()
    """The networks."""
    total_timesteps: Count
    """Decisions to train on, all environments together."""
    seed: Annotated[int, Field(ge=0, lt=2**31), WHOLE] = 0
    """Seed of everything that is drawn."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """The evaluation in the loop."""
    checkpoints: CheckpointConfig = CheckpointConfig()
    """What is kept to go on from."""
    num_threads: Annotated[int, Field(ge=1, le=1_024), WHOLE] = 1
    """Threads of torch; more than one pays on an idle machine only."""
    matmul_precision: Literal["highest", "high", "medium"] = "highest"
    """Precision of matrix products; medium rounds to bfloat16 where the processor is faster so."""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """Where the networks are."""

    @model_validator(mode="after")
    def _check_combinations(self) -> RunConfig:
        problems = list(_contradictions(self))
        if problems:
            raise PydanticCustomError("contradiction", "contradicting values", {"problems": problems})
        return self

    @property
    def rules(self) -> Variant:
        """The variant that is played."""
        return get_variant(self.variant)

    def to_dict(self) -> dict[str, Any]:
        """Return every value as JSON types; ``RunConfig(**values)`` reads them back."""
        return self.model_dump(mode="json")


def _contradictions(config: RunConfig) -> Iterable[tuple[KeyPath, str]]:
    algorithm = config.algorithm
    if isinstance(algorithm, PPOConfig):
        rollout = algorithm.n_steps * config.env.num_envs
        if rollout > 2**27:
            yield (
                ("algorithm", "n_steps"),
                f"n_steps * num_envs = {rollout:,}; at most {2**27:,} fit in memory",
            )
        elif rollout % algorithm.batch_size:
            yield (
                ("algorithm", "batch_size"),
                f"a divisor of n_steps * num_envs = {algorithm.n_steps} * {config.env.num_envs} = {rollout}",
            )
    else:
        if algorithm.buffer_size // config.env.num_envs <= algorithm.n_steps:
            least = (algorithm.n_steps + 1) * config.env.num_envs
            yield (
                ("algorithm", "buffer_size"),
                f"a whole number from {least} = (n_steps + 1) * num_envs",
            )
        if algorithm.learning_starts >= config.total_timesteps:
            yield (
                ("algorithm", "learning_starts"),
                f"a whole number below total_timesteps = {config.total_timesteps}",
            )
    blocks = config.env.observation_blocks
    if blocks is not None and len(set(blocks)) < len(blocks):
        yield ("env", "observation_blocks"), "each block at most once"
    if blocks is not None and "dice" not in blocks and config.policy.keeps_head:
        yield ("env", "observation_blocks"), "dice among them, because policy.keeps_head reads it"


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Something wrong with a config.

    Attributes:
        where: File and line, or the flag that gave the value.
        path: The key path, such as ``algorithm.gamma``; empty for the file as a whole.
        message: The value, what is allowed, and the nearest known key for a typo.
    """

    where: str
    path: str
    message: str

    def __str__(self) -> str:
        """Return the one line shown to a person."""
        return ": ".join(part for part in (self.where, self.path, self.message) if part)


class ConfigError(UsageError):
    """A config with something wrong; its text has a line for each problem.

    Attributes:
        problems: Everything wrong, in the order of the file.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        """List the problems, after a count where there are several."""
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        if len(lines) > 1:
            lines = [f"the config has {len(lines)} problems", *(f"  {line}" for line in lines)]
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class ResolvedConfig:
    """A config and where its values come from.

    Attributes:
        config: The config.
        sources: For each leaf that was given, its key path and where: ``file:line`` or a flag.
        name: The name of the file, without folder and ending.
    """

    config: RunConfig
    sources: dict[str, str]
    name: str

    def source(self, path: str) -> str:
        """Return where the value at a key path comes from."""
        return self.sources.get(path, "default")

    def leaf_sources(self) -> dict[str, str]:
        """Return where each value comes from, by key path."""
        lines: list[tuple[str, str]] = []
        _yaml_lines(self.config.to_dict(), (), lines)
        return {path: self.source(path) for _, path in lines if path}

    def to_yaml(self, *, with_sources: bool = False) -> str:
        """Return the config as YAML, optionally with the source of each value beside it."""
        lines: list[tuple[str, str]] = []
        _yaml_lines(self.config.to_dict(), (), lines)
        if not with_sources:
            return "".join(f"{text}\n" for text, _ in lines)
        width = max(len(text) for text, path in lines if path) + 2
        return "".join(
            f"{text:<{width}}# {self.source(path)}\n" if path else f"{text}\n" for text, path in lines
        )


def dotted(path: Iterable[str | int]) -> str:
    """Return a key path as people write it, such as ``policy.net_arch[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _yaml_lines(values: Mapping[str, Any], path: KeyPath, lines: list[tuple[str, str]]) -> None:
    indent = "  " * len(path)
    for key, value in values.items():
        here = (*path, key)
        if isinstance(value, Mapping) and value:
            lines.append((f"{indent}{key}:", ""))
            _yaml_lines(value, here, lines)
        else:
            lines.append((f"{indent}{key}: {_yaml_value(value)}", dotted(here)))


def _yaml_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "e" in text and "." not in text:
        # 1e-05 is text to a YAML 1.1 parser, 1.0e-05 a number to both.
        text = text.replace("e", ".0e")
    return text


@dataclass
class _Reading:
    """What has been read so far.

    Attributes:
        places: Where each key path was given.
        problems: What is wrong, with the position to sort by.
    """

    places: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: KeyPath, fallback: str) -> str:
        """Return where a path, or the nearest section around it, was given."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return fallback


_PLAIN_TAGS: Final = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}


def _shown(value: object, limit: int = 60) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _read_yaml(text: str, place: Callable[[int], str], at: KeyPath, reading: _Reading) -> Any:
    """Return the plain value of a YAML text, noting where each key was given.

    Args:
        text: The YAML.
        place: What to call a line, counted from 1.
        at: The key path that the text is the value of.
        reading: Where places and problems go.
    """
    yaml = YAML(typ="safe", pure=True)
    seen: set[int] = set()

    def complain(node: Node, path: KeyPath, message: str) -> None:
        reading.problems.append(Problem(place(node.start_mark.line + 1), dotted(path), message))

    def convert(node: Node, path: KeyPath) -> Any:
        if id(node) in seen:
            complain(node, path, "an alias (*name) is not allowed here: write the value out")
            return None
        seen.add(id(node))
        if isinstance(node, MappingNode):
            values: dict[str, Any] = {}
            for key_node, value_node in node.value:
                if not isinstance(key_node, ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                    complain(key_node, path, f"the key {_text_of(key_node)} is not a name")
                    continue
                key, here = key_node.value, (*path, key_node.value)
                if key in values:
                    again, first = _shown(_text_of(value_node)), reading.places[here]
                    complain(key_node, here, f"given twice, here {again}, first at {first}; keep one")
                    continue
                reading.places[here] = place(key_node.start_mark.line + 1)
                values[key] = convert(value_node, here)
            return values
        if isinstance(node, SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                reading.places[*path, index] = place(item.start_mark.line + 1)
                items.append(convert(item, (*path, index)))
            return items
        if node.tag in _PLAIN_TAGS:
            try:
                return yaml.constructor.construct_object(node)
            except (ValueError, OverflowError, YAMLError):
                complain(node, path, f"{_shown(node.value)} is not a value")
                return None
        if node.tag == "tag:yaml.org,2002:timestamp":
            return node.value
        complain(node, path, f"the tag {node.tag} is not allowed: plain values only")
        return None

    if _flow_depth(text) > _MAX_DEPTH:
        # The YAML library takes seconds to run out of stack on these.
        reading.problems.append(Problem(place(1), dotted(at), "nested too deeply; a config has three levels"))
        return None
    try:
        root = yaml.compose(text)
        return None if root is None else convert(root, at)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        told = " ".join(str(error.problem or error.context).split())
        reading.problems.append(Problem(place(line), dotted(at), f"not YAML: {told}"))
    except YAMLError as error:
        told = str(error).partition("\n")[0]
        reading.problems.append(Problem(place(1), dotted(at), f"not YAML: {told}"))
    except RecursionError:
        reading.problems.append(Problem(place(1), dotted(at), "nested too deeply; a config has three levels"))
    except (ValueError, OverflowError, AttributeError, TypeError, IndexError) as error:
        # The YAML library itself trips over some malformed texts.
        reading.problems.append(Problem(place(1), dotted(at), f"not YAML: {error}"))
    return None


_MAX_DEPTH: Final = 100


def _flow_depth(text: str) -> int:
    """Return how deep brackets nest, at most."""
    depth = deepest = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _text_of(node: Node) -> str:
    return node.value if isinstance(node, ScalarNode) else "{…}" if isinstance(node, MappingNode) else "[…]"


def find_config(name: str | Path) -> Path:
    """Return the file a config's name stands for: a path, else one in ``configs/``.

    Raises:
        ConfigError: There is no such file.
    """
    path = Path(name)
    known = sorted(file.name for file in CONFIG_FOLDER.glob("*.yaml"))
    try:
        if path.is_file():
            return path
        for candidate in (CONFIG_FOLDER / path, CONFIG_FOLDER / f"{path}.yaml"):
            if len(path.parts) == 1 and candidate.is_file():
                return candidate
    except (OSError, ValueError):
        pass
    near = difflib.get_close_matches(path.name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    reason = "is a folder" if path.is_dir() else "no such file"
    raise ConfigError(
        [
            Problem(
                "--config",
                "",
                f"{str(name)!r}: {reason}, here or in configs/; {hint}known: {', '.join(known)}",
            )
        ]
    )


def load_config(
    name: str | Path,
    overrides: Sequence[str] = (),
    flags: Mapping[str, tuple[str, Any]] | None = None,
) -> ResolvedConfig:
    """Read a config file, apply overrides and flags, and check everything.

    Args:
        name: A path, or the name of a file in ``configs/``.
        overrides: Texts such as ``algorithm.gamma=0.99``; the value is YAML.
        flags: For each key path, the flag that gave it and its value.

    Raises:
        ConfigError: Something is wrong; it tells everything that is.
    """
    path = find_config(name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError([Problem(f"{path}:{line}", "", "not UTF-8 text")]) from None
    except OSError as error:
        raise ConfigError([Problem(str(path), "", error.strerror or str(error))]) from None
    return parse_config(text, _label(path), path.stem, overrides, flags)


def _label(path: Path) -> str:
    """Return a path as short as it can be said from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def parse_config(
    text: str,
    label: str,
    name: str,
    overrides: Sequence[str] = (),
    flags: Mapping[str, tuple[str, Any]] | None = None,
) -> ResolvedConfig:
    """Read a config from its text; see ``load_config``.

    Args:
        text: The YAML.
        label: What errors call the file.
        name: What the run is called after.
        overrides: As in ``load_config``.
        flags: As in ``load_config``.

    Raises:
        ConfigError: Something is wrong; it tells everything that is.
    """
    reading = _Reading()
    values = _read_yaml(text, lambda line: f"{label}:{line}", (), reading)
    if values is None and not reading.problems:
        values = {}
    if not isinstance(values, dict):
        if not reading.problems:
            reading.problems.append(
                Problem(f"{label}:1", "", f"{_shown(values)} is not a section of keys and values")
            )
        raise ConfigError(reading.problems)
    for override in overrides:
        _apply_override(values, override, reading)
    for dotted_path, (flag, value) in (flags or {}).items():
        _put(values, tuple(dotted_path.split(".")), value, flag, reading)
    problems = list(reading.problems)
    config: RunConfig | None = None
    try:
        config = RunConfig(**values)
    except ValidationError as error:
        problems += _validation_problems(error, values, reading, label)
    if problems or config is None:
        raise ConfigError(sorted(_unique(problems), key=_position))
    sources = {dotted(path): place for path, place in reading.places.items()}
    for path in [path for path in reading.places if path[-1:] == (0,)]:
        sources.setdefault(dotted(path[:-1]), reading.places[path])
    return ResolvedConfig(config, sources, name)


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))


def _position(problem: Problem) -> tuple[int, int]:
    _, _, line = problem.where.rpartition(":")
    return (0, int(line)) if line.isdigit() else (1, 0)


def _apply_override(values: dict[str, Any], override: str, reading: _Reading) -> None:
    key, sign, text = override.partition("=")
    parts = tuple(key.strip().split("."))
    if not sign or not all(parts):
        reading.problems.append(Problem("--set", "", f"{override!r} is not KEY.PATH=VALUE"))
        return
    place = "--set"
    fresh = _Reading()
    value = _read_yaml(text, lambda _: place, parts, fresh)
    reading.problems += fresh.problems
    if not fresh.problems:
        _put(values, parts, value, place, reading)
        reading.places.update(fresh.places)


def _put(values: dict[str, Any], path: KeyPath, value: Any, place: str, reading: _Reading) -> None:
    """Put a value into nested mappings, and forget where what it replaces was given."""
    section: Any = values
    for depth, part in enumerate(path[:-1], start=1):
        inner = section.setdefault(part, {}) if isinstance(section, dict) else None
        if path[:depth] == ("variant",) and isinstance(inner, str):
            # A field set on a preset's name makes that preset the base.
            reading.places["variant", "base"] = reading.places.get(("variant",), place)
            inner = section[part] = {"base": inner}
        if inner is None:
            inner = section[part] = {}
        if not isinstance(inner, dict):
            reading.problems.append(
                Problem(place, dotted(path), f"{dotted(path[:depth])} is {_shown(inner)}, which has no keys")
            )
            return
        reading.places.setdefault(path[:depth], place)
        section = inner
    section[path[-1]] = value
    for known in [known for known in reading.places if known[: len(path)] == path]:
        del reading.places[known]
    reading.places[path] = place


# --- errors ---------------------------------------------------------------------------------------


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of a config, for editors and checkers."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **deepcopy(_schema())}


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return RunConfig.model_json_schema()


def _schema_at(path: KeyPath, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the schema that describes a key path."""
    schema = _schema()
    definitions = schema.get("$defs", {})

    def resolved(node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            node = definitions[node["$ref"].rpartition("/")[2]]
        return node

    node: dict[str, Any] = schema
    value: Any = values
    for part in path:
        node = resolved(node)
        options = [resolved(option) for option in node.get("oneOf", node.get("anyOf", []))]
        name = value.get("name") if isinstance(value, Mapping) else None
        for option in options:
            if option.get("properties", {}).get("name", {}).get("const") == name and name is not None:
                node = option
                break
        else:
            sections = [option for option in options if "properties" in option or "items" in option]
            node = sections[0] if sections else node
        node = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
        value = value.get(part) if isinstance(value, Mapping) else None
    node = resolved(node)
    expanded = dict(node)
    for key in ("oneOf", "anyOf"):
        if key in node:
            expanded[key] = [resolved(option) for option in node[key]]
    if "items" in node:
        expanded["items"] = resolved(node["items"])
    return expanded


def _allowed(schema: Mapping[str, Any]) -> str:
    """Say in words what a schema allows."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "const" in schema:
        return str(schema["const"])
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_allowed(option) for option in schema[key]))
    kind = schema.get("type")
    if kind in ("integer", "number"):
        noun = "a whole number" if kind == "integer" else "a number"
        low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
        high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
        bounds = [
            f" {word} {bound:g}" if isinstance(bound, float) else f" {word} {bound}"
            for word, bound in (("from", low), ("above", above), ("to", high), ("below", below))
            if bound is not None
        ]
        return noun + "".join(bounds)
    if kind == "array":
        return f"a list, each {_allowed(schema.get('items', {}))}"
    if kind == "boolean":
        return "true or false"
    if kind == "null":
        return "null"
    if kind == "object":
        keys = ", ".join(schema.get("properties", {}))
        return f"a section with {keys}" if len(schema.get("properties", {})) < 4 else "a section"
    return "text" if kind == "string" else "another value"


def _all_paths(schema: dict[str, Any]) -> list[str]:
    """Return every key path that a config may have."""
    definitions = schema.get("$defs", {})
    found: list[str] = []

    def walk(node: dict[str, Any], path: str) -> None:
        if "$ref" in node:
            node = definitions[node["$ref"].rpartition("/")[2]]
        for option in [*node.get("oneOf", ()), *node.get("anyOf", ())]:
            walk(option, path)
        for key, inner in node.get("properties", {}).items():
            here = f"{path}.{key}" if path else key
            found.append(here)
            walk(inner, here)

    walk(schema, "")
    return list(dict.fromkeys(found))


def _nearest(path: KeyPath, values: Mapping[str, Any]) -> str:
    """Return a hint for an unknown key: the nearest among its siblings, else anywhere."""
    siblings = list(_schema_properties(path[:-1], values))
    key = str(path[-1])
    near = difflib.get_close_matches(key, siblings, n=1)
    if near:
        return f"did you mean {dotted((*path[:-1], near[0]))}?"
    if path[0] == "algorithm" and len(path) == 2:
        owners = [name for name, section in ALGORITHMS.items() if key in section.model_fields]
        if owners:
            return f"only {' and '.join(owners)} has it; known: {', '.join(siblings)}"
    every = _all_paths(_schema())
    by_name = {known.rpartition(".")[2]: known for known in reversed(every)}
    near = difflib.get_close_matches(key, by_name, n=1, cutoff=0.75)
    if near:
        return f"did you mean {by_name[near[0]]}?"
    return f"known: {', '.join(siblings)}"


def _schema_properties(path: KeyPath, values: Mapping[str, Any]) -> dict[str, Any]:
    schema = _schema_at(path, values)
    properties = dict(schema.get("properties", {}))
    section: Any = values
    for part in path:
        section = section.get(part) if isinstance(section, Mapping) else None
    name = section.get("name") if isinstance(section, Mapping) else None
    for option in [*schema.get("oneOf", ()), *schema.get("anyOf", ())]:
        constant = option.get("properties", {}).get("name", {}).get("const")
        if constant is None or constant == name:
            properties.update(option.get("properties", {}))
    return properties


def _validation_problems(
    error: ValidationError, values: Mapping[str, Any], reading: _Reading, label: str
) -> list[Problem]:
    problems = []
    for item in error.errors(include_url=False):
        # Tags of unions stand in angle brackets; they are no part of the key path.
        path: KeyPath = tuple(
            part for part in item["loc"] if not (isinstance(part, str) and part.startswith("<"))
        )
        kind, given = item["type"], item["input"]
        if kind in ("variant", "contradiction"):
            for inner, message in item["ctx"]["problems"]:
                full = (*path, *inner)
                at = reading.place(full, label)
                if kind == "variant":
                    told = message
                else:
                    told = f"{_shown(_value_at(values, full))} is not allowed; allowed: {message}"
                problems.append(Problem(at, dotted(full), told))
            continue
        if kind == "algorithm_name":
            names = ", ".join(ALGORITHMS)
            if isinstance(given, Mapping):
                path = (*path, "name")
                if "name" not in given:
                    problems.append(
                        Problem(reading.place(path, label), dotted(path), f"is missing; allowed: {names}")
                    )
                    continue
                given = given["name"]
            near = difflib.get_close_matches(str(given), ALGORITHMS, n=1)
            message = f"{_shown(given)} is not allowed; allowed: " + (
                f"one of {names}" if path[-1] == "name" else f"a section with name: {' or '.join(ALGORITHMS)}"
            )
            if near and path[-1] == "name":
                message += f"; did you mean {near[0]}?"
        elif kind == "extra_forbidden":
            message = f"unknown key (value {_shown(given)}); {_nearest(path, values)}"
        elif kind == "missing":
            message = f"is missing; allowed: {_allowed(_schema_at(path, values))}"
        elif kind == "too_long" or kind == "too_short":
            bounds = item["ctx"]
            count = bounds.get("max_length", bounds.get("min_length"))
            word = "at most" if kind == "too_long" else "at least"
            message = f"{_shown(given)} is not allowed; allowed: a list of {word} {count}"
        else:
            schema = _schema_at(path, values)
            message = f"{_shown(given)} is not allowed; allowed: {_allowed(schema)}"
            if isinstance(given, str) and "enum" in schema:
                near = difflib.get_close_matches(given, [str(value) for value in schema["enum"]], n=1)
                message += f"; did you mean {near[0]}?" if near else ""
        problems.append(Problem(reading.place(path, label), dotted(path), message))
    return problems


def _value_at(values: Any, path: KeyPath) -> Any:
    """Return the value given at a path, or the default if none was."""
    for part in path:
        if isinstance(values, Mapping):
            values = values.get(part)
    if values is None:
        values = _schema_at(path, {"algorithm": {"name": "ppo"}}).get("default")
    return values
