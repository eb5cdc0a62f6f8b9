import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agents.config.explaining import config_schema
from agents.config.loading import (
    CONFIG_FOLDER,
    SCHEMA_FILE,
    ResolvedConfig,
    find_config,
    load_config,
    parse_config,
)
from agents.config.model import Linear, PPOConfig, RunConfig
from agents.config.problems import ConfigError

GOOD = """\
variant: ruibal
algorithm:
  name: ppo
  learning_rate: 3e-4
  n_steps: 8
  batch_size: 32
total_timesteps: 1e6
"""


def read(text: str, *overrides: str, **flags: tuple[str, object]) -> ResolvedConfig:
    return parse_config(text, "x.yaml", "x", overrides, flags)


def problems(text: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(text, *overrides)
    return [str(problem) for problem in caught.value.problems]


def the_problem(text: str, *overrides: str) -> str:
    (only,) = problems(text, *overrides)
    return only


@pytest.mark.parametrize("name", [path.name for path in sorted(CONFIG_FOLDER.glob("*.yaml"))])
def test_the_configs_that_come_with_the_project_are_valid_for_us_and_for_editors(name: str) -> None:
    resolved = load_config(name)
    schema = config_schema()
    jsonschema.validate(YAML(typ="safe", pure=True).load(find_config(name)), schema)
    jsonschema.validate(resolved.config.to_dict(), schema)


def test_the_schema_file_is_current() -> None:
    written = json.loads((CONFIG_FOLDER / SCHEMA_FILE).read_text(encoding="utf-8"))
    assert written == config_schema(), "run: python scripts/train.py --print-schema > configs/schema.json"


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    values = RunConfig(**YAML(typ="safe", pure=True).load(GOOD)).to_dict()
    jsonschema.validate(values, config_schema())
    for section, key, value in (
        ("algorithm", "gama", 1),
        ("env", "num_envs", 0),
        ("policy", "activation", "x"),
    ):
        broken = json.loads(json.dumps(values))
        broken[section][key] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, config_schema())


def test_numbers_are_what_people_mean_by_them() -> None:
    config = read(GOOD).config
    assert isinstance(config.algorithm, PPOConfig)
    assert config.algorithm.learning_rate == 3e-4
    assert config.total_timesteps == 1_000_000
    assert isinstance(config.total_timesteps, int)


def test_a_schedule_runs_from_start_to_end() -> None:
    config = read(GOOD, "algorithm.learning_rate={start: 1e-3, end: 1e-4}").config
    assert isinstance(config.algorithm, PPOConfig)
    rate = config.algorithm.learning_rate
    assert isinstance(rate, Linear)
    assert [rate(left) for left in (1.0, 0.5, 0.0)] == pytest.approx([1e-3, 5.5e-4, 1e-4])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  gama: 0.9", "x.yaml:8: algorithm.gama: unknown key (value 0.9); did you mean algorithm.gamma?"),
        ("  gamma: 1.5", "x.yaml:8: algorithm.gamma: 1.5 is not allowed; allowed: a number from 0 to 1"),
        ("  n_epochs: true", "allowed: a whole number from 1 to 1000"),
        ("  gamma: .nan", "x.yaml:8: algorithm.gamma: NaN is not allowed; allowed: a number from 0 to 1"),
        ("  ent_coef: '3e-4'", 'x.yaml:8: algorithm.ent_coef: "3e-4" is not allowed; allowed: a num'),
        ("  clip_range: {start: 1}", "algorithm.clip_range.end: is missing; allowed: a number from"),
        ("  n_steps: 9", 'x.yaml:8: algorithm.n_steps: given twice, here "9", first at x.yaml:6; keep one'),
        ("  tau: 0.5", "x.yaml:8: algorithm.tau: unknown key (value 0.5); only dqn has it; known: na"),
        ("sed: 3", "x.yaml:8: sed: unknown key (value 3); did you mean seed?"),
        ("gae_lambda: 1", "x.yaml:8: gae_lambda: unknown key (value 1); did you mean algorithm.gae_lambda?"),
        ("policy: {net_arch: [8, x]}", 'x.yaml:8: policy.net_arch[1]: "x" is not allowed; allowed: a whol'),
        ("policy: {net_arch: []}", "x.yaml:8: policy.net_arch: [] is not allowed; allowed: a list of at le"),
        ("policy: {activation: rellu}", "allowed: one of relu, tanh, gelu, silu, elu; did you mean relu?"),
        ("policy: 3", "allowed: a section with kind, net_arch, activation, keeps_head"),
        ("env: {observation_blocks: [dicee]}", "x.yaml:8: env.observation_blocks[0]: \"dicee\" is not al"),
        ("env: {observation_blocks: [dice, dice]}", "allowed: each block at most once"),
        ("env: {instant_win: maybe}", "allowed: one of perfect, play_on or a number"),
        ("env: &a {num_envs: 4}\npolicy: *a", "x.yaml:8: policy: an alias (*name) is not allowed here"),
        ("device: !!python/object:os.system x", "x.yaml:8: device: the tag tag:yaml.org,2002:python/object"),
        ("3: 4", "x.yaml:8: the key 3 is not a name"),
        ("policy: [", "x.yaml:9: not YAML: "),
        ("env: {num_envs: 3}", "batch_size: 32 is not allowed; allowed: a divisor of n_steps * num_envs ="),
    ],
)  # fmt: skip
def test_an_error_names_its_place_its_key_the_value_and_what_is_allowed(line: str, told: str) -> None:
    text = GOOD
    if line.startswith("  "):
        text = GOOD.replace("total_timesteps: 1e6\n", "").replace(
            "variant: ruibal\n", "variant: ruibal\nseed: 1\n"
        )
        line = f"{line}\ntotal_timesteps: 1e6"
    assert told in "\n".join(problems(f"{text}{line}\n"))


@pytest.mark.parametrize(
    ("variant", "told"),
    [
        ("ruybal", "x.yaml:1: variant: 'ruybal' is not a preset; did you mean ruibal?"),
        ("{base: dobl}", "x.yaml:1: variant.base: 'dobl' is not a preset; did you mean doble?"),
        ("{bas: doble}", "x.yaml:1: variant.bas: unknown key (value \"doble\"); did you mean variant.base?"),
        ("{base: ruibal, ordr: free}", "x.yaml:1: variant.ordr: unknown key (value \"free\"); did you mean"),
        ("{base: ruibal, order: fre}", "x.yaml:1: variant.order: 'fre' is not one of free, forced"),
        ("{base: ruibal, doble: box(1)}", "variant.doble: box(1, 1) contradicts boxes"),
    ],
)  # fmt: skip
def test_an_error_in_the_rules_names_the_field(variant: str, told: str) -> None:
    assert told in the_problem(GOOD.replace("variant: ruibal", f"variant: {variant}"))


def test_fields_of_the_rules_that_only_make_sense_together_are_judged_together() -> None:
    boxes = "[ones, twos, threes, fours, fives, sixes, escalera, full, poker, generala, doble_generala]"
    rules = read(GOOD, f"variant.boxes={boxes}", "variant.doble=box(100)").config.rules
    assert rules.num_boxes == 11


def test_everything_wrong_is_told_at_once_in_the_order_of_the_file() -> None:
    text = GOOD.replace("n_steps: 8", "n_steps: 0").replace("ruibal", "x") + "sed: 1\nsed: 2\n"
    told = problems(text, "env.num_envs=many", "policy.net_arch=[8", "nonsense")
    assert [line.split(": ")[0] for line in told[:4]] == ["x.yaml:1", "x.yaml:5", "x.yaml:8", "x.yaml:9"]
    assert sum("--set" in line for line in told) == 3
    with pytest.raises(ConfigError, match=r"^the config has 7 problems\n  x\.yaml:1: variant: 'x'"):
        read(text, "env.num_envs=many", "policy.net_arch=[8", "nonsense")


def test_what_is_missing_is_named() -> None:
    assert problems("") == [
        "x.yaml: algorithm: is missing; allowed: a section",
        "x.yaml: total_timesteps: is missing; allowed: a whole number from 1 to 1000000000000",
    ]
    assert the_problem("algorithm: {}\ntotal_timesteps: 9") == (
        "x.yaml:1: algorithm.name: is missing; allowed: ppo, dqn, tabular"
    )
    assert the_problem("algorithm: {name: pp}\ntotal_timesteps: 9") == (
        'x.yaml:1: algorithm.name: "pp" is not allowed; allowed: one of ppo, dqn, tabular; did you mean ppo?'
    )


def test_a_flag_beats_set_beats_the_file_beats_the_default_and_each_source_is_known() -> None:
    resolved = read(GOOD, "seed=3", "algorithm.n_steps=4", "variant.generala_points=50", seed=("--seed", 5))
    assert resolved.config.seed == 5
    assert resolved.config.rules.generala_points == 50
    assert resolved.source("seed") == "--seed"
    assert resolved.source("algorithm.n_steps") == "--set"
    assert resolved.source("algorithm.batch_size") == "x.yaml:6"
    assert resolved.source("algorithm.gamma") == "default"
    assert resolved.source("variant.base") == "x.yaml:1"
    printed = resolved.to_yaml(with_sources=True)
    lines = {
        line.split(":")[0].strip(): line.rpartition("# ")[2] for line in printed.splitlines() if "#" in line
    }
    assert lines["n_steps"] == "--set"
    assert lines["batch_size"] == "x.yaml:6"
    assert lines["keep_last"] == "default"


def test_seed_zero_is_a_seed() -> None:
    assert read(GOOD, "seed=7", seed=("--seed", 0)).config.seed == 0


def test_what_is_printed_can_be_read_back_by_this_reader_and_by_a_yaml_1_1_parser() -> None:
    config = read(GOOD, "algorithm.learning_rate={start: 1e-5, end: 0}", "algorithm.ent_coef=1e-7").config
    text = ResolvedConfig(config, {}, "x").to_yaml(with_sources=True)
    assert read(text).config == config
    old = YAML(typ="safe", pure=True)
    old.version = (1, 1)
    assert old.load(text) == config.to_dict()


def test_an_override_of_a_value_that_has_no_keys_is_refused() -> None:
    assert the_problem(GOOD, "algorithm.learning_rate.start=1") == (
        "--set: algorithm.learning_rate.start: algorithm.learning_rate is 0.0003, which has no keys"
    )


def test_an_unknown_config_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'ppp.yaml': no such file.*did you mean ppo.yaml\?.*smoke.yaml"):
        load_config("ppp.yaml")
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(tmp_path)
    (tmp_path / "x.yaml").write_bytes(b"seed: 1\n\xff\xfe")
    with pytest.raises(ConfigError, match=r"x\.yaml:2: not UTF-8 text"):
        load_config(tmp_path / "x.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000,
        "{" * 5_000,
        "a: \x00",
        "? [1]: 2",
        "--- 1\n--- 2\n",
        "\t",
        "a: b: c",
        "&a [*a]",
        "9" * 9_000,
    ],
)
def test_what_is_hardly_yaml_is_refused_in_a_few_lines(text: str) -> None:
    told = problems(text)
    assert all(line.startswith("x.yaml") and len(line) < 500 for line in told)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80), st.integers(0, len(GOOD)), st.integers(0, 20))
def test_no_text_makes_the_reader_fall_over(inserted: str, at: int, removed: int) -> None:
    try:
        resolved = read(GOOD[:at] + inserted + GOOD[at + removed :])
    except ConfigError:
        return
    assert read(resolved.to_yaml()).config == resolved.config
