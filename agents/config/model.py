"""What a training run is made of: a typed config, read so that every error explains itself.

A config is a YAML 1.2 file, so that ``3e-4`` is a number, then ``--set`` overrides, then the
flags of the command; the later wins. Everything wrong is told at once, each error with its
place, its key path, the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agents.config.problems import KeyPath
from agents.config.rules_field import VARIANT_SCHEMA, check_variant
from generala_env.envs.observation import BLOCKS
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin
from generala_env.rules.variants import Variant, get_variant

# --- the model ------------------------------------------------------------------------------------


def _whole(value: object) -> object:
    """Let ``1e6`` stand for a whole number, as people write step counts."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE: Final = BeforeValidator(_whole)

Count = Annotated[int, Field(ge=1, le=10**12), WHOLE]

Fraction = Annotated[float, Field(ge=0, le=1)]

Rate = Annotated[float, Field(ge=0, le=10)]
Beta = Annotated[float, Field(ge=0, lt=1)]


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


class AlgorithmConfig(Section):
    """What the algorithms share."""

    with_observations: ClassVar[frozenset[str]] = frozenset()
    """Settings that have a meaning only where networks read observations."""
    with_cards: ClassVar[frozenset[str]] = frozenset()
    """Settings that have a meaning only where networks read cards."""

    def steps_per_update(self, num_envs: int) -> int:
        """Return the decisions collected between two updates, all environments together."""
        raise NotImplementedError

    def rounds_before_updates(self, num_envs: int) -> int:
        """Return how often decisions are collected before learning starts."""
        return 0

    def settings_for(self, kind: str) -> dict[str, Any]:
        """Return the values, by name, that have a meaning for networks of a kind, less the name."""
        left_out = self.with_observations if kind == "card" else self.with_cards
        return {
            name: getattr(self, name) for name in type(self).model_fields if name not in {"name", *left_out}
        }


class PPOConfig(AlgorithmConfig):
    """Hyperparameters of PPO, in SB3's spelling."""

    with_observations: ClassVar[frozenset[str]] = frozenset(
        {
            "gamma",
            "gae_lambda",
            "throw_lambda",
            "clip_range_vf",
            "normalize_advantage",
            "vf_coef",
            "max_grad_norm",
            "target_kl",
        }
    )
    with_cards: ClassVar[frozenset[str]] = frozenset(
        {
            "critic_learning_rate",
            "adam_beta2",
            "exploration_initial_eps",
            "exploration_final_eps",
            "random_start",
            "average_share",
        }
    )

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
    """How far the targets of the values look ahead; used with throw_lambda and by networks of cards."""
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
    critic_learning_rate: Schedule | None = None
    """Step size of Adam for the critic; null for that of the actor."""
    adam_beta2: Beta = 0.999
    """Decay of Adam's second moments."""
    exploration_initial_eps: Fraction = 0.0
    """Share of random actions at first: a critic that prices all actions has to see them."""
    exploration_final_eps: Fraction = 0.0
    """Share of random actions at last."""
    random_start: Fraction = 0.0
    """Share of games that begin from any card."""
    average_share: Fraction = 0.0
    """Window of the averaged weights, which play, as a share of the updates so far; 0 takes the last."""

    def steps_per_update(self, num_envs: int) -> int:
        """Return the decisions collected between two updates, all environments together."""
        return self.n_steps * num_envs


class DQNConfig(AlgorithmConfig):
    """Hyperparameters of DQN, in SB3's spelling."""

    with_observations: ClassVar[frozenset[str]] = frozenset(
        {
            "gamma",
            "buffer_size",
            "learning_starts",
            "batch_size",
            "tau",
            "n_steps",
            "gradient_steps",
            "target_update_interval",
            "max_grad_norm",
        }
    )
    with_cards: ClassVar[frozenset[str]] = frozenset(
        {"value_lambda", "adam_beta2", "random_start", "average_share"}
    )

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
    value_lambda: Fraction = 0.0
    """How far the targets look ahead."""
    adam_beta2: Beta = 0.999
    """Decay of Adam's second moments."""
    random_start: Fraction = 0.0
    """Share of games that begin from any card."""
    average_share: Fraction = 0.0
    """Window of the averaged weights, which play, as a share of the updates so far; 0 takes the last."""

    def steps_per_update(self, num_envs: int) -> int:
        """Return the decisions collected between two updates, all environments together."""
        return self.train_freq * num_envs

    def rounds_before_updates(self, num_envs: int) -> int:
        """Return how often decisions are collected before learning starts."""
        return self.learning_starts // self.steps_per_update(num_envs)


class TabularConfig(AlgorithmConfig):
    """Hyperparameters of Q-learning with a number for each afterstate, the yardstick of networks."""

    name: Literal["tabular"]
    """The algorithm."""
    train_freq: Annotated[int, Field(ge=1, le=10**6), WHOLE] = 8
    """Steps of each environment between updates."""
    value_lambda: Fraction = 0.0
    """How far the targets look ahead."""
    exploration_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the run over which exploration falls."""
    exploration_initial_eps: Fraction = 0.1
    """Share of random actions at first."""
    exploration_final_eps: Fraction = 0.02
    """Share of random actions at last."""
    random_start: Fraction = 0.0
    """Share of games that begin from any card."""
    memory_share: Fraction = 0.1
    """How long targets count, as a share of the updates so far."""

    def steps_per_update(self, num_envs: int) -> int:
        """Return the decisions collected between two updates, all environments together."""
        return self.train_freq * num_envs


ALGORITHMS: Final[dict[str, type[AlgorithmConfig]]] = {
    "ppo": PPOConfig,
    "dqn": DQNConfig,
    "tabular": TabularConfig,
}


def _algorithm_tag(value: object) -> str | None:
    name = value.get("name") if isinstance(value, Mapping) else getattr(value, "name", None)
    return f"<{name}>" if isinstance(name, str) and name in ALGORITHMS else None


Algorithm = Annotated[
    Annotated[PPOConfig, Tag("<ppo>")]
    | Annotated[DQNConfig, Tag("<dqn>")]
    | Annotated[TabularConfig, Tag("<tabular>")],
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
    ] = DEFAULT_INSTANT_WIN
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

    kind: Literal["observation", "card"] = "observation"
    """What they read: the observation, or the card alone, pricing what each decision leads to."""
    net_arch: Annotated[list[Width], Field(min_length=1, max_length=16)] = [256, 256]
    """Widths of the hidden layers."""
    activation: Literal["relu", "tanh", "gelu", "silu", "elu"] = "relu"
    """What follows each hidden layer."""
    keeps_head: bool = True
    """Score the 210 multisets of dice to keep and gather them through the throw, so that a decision is
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


class RunConfig(Section):
    """A training run."""

    variant: Annotated[
        str | dict[str, Any], BeforeValidator(check_variant), WithJsonSchema(VARIANT_SCHEMA)
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


def _without_meaning(config: RunConfig) -> Iterable[tuple[KeyPath, str]]:
    """Yield settings that say something where they mean nothing."""
    algorithm, policy = config.algorithm, config.policy
    is_card = policy.kind == "card"
    for name in sorted(algorithm.with_observations if is_card else algorithm.with_cards):
        default = type(algorithm).model_fields[name].default
        if getattr(algorithm, name) != default:
            shown = "null" if default is None else str(default).lower()
            yield ("algorithm", name), f"{shown}, because it has no meaning with policy.kind = {policy.kind}"
    if is_card and config.env.observation_blocks is not None:
        yield ("env", "observation_blocks"), "null, because networks of cards do not read observations"
    if is_card and policy.activation != "relu":
        yield ("policy", "activation"), "relu, the one that networks of cards have"
    if isinstance(algorithm, TabularConfig) and not is_card:
        yield ("policy", "kind"), "card, because a table has a number for each card"


def _contradictions(config: RunConfig) -> Iterable[tuple[KeyPath, str]]:
    algorithm = config.algorithm
    yield from _without_meaning(config)
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
    elif isinstance(algorithm, DQNConfig) and config.policy.kind == "observation":
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
    if (
        blocks is not None
        and "dice" not in blocks
        and config.policy.kind == "observation"
        and config.policy.keeps_head
    ):
        yield ("env", "observation_blocks"), "dice among them, because policy.keeps_head reads it"
