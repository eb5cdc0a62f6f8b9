"""An option that several commands share is spelled the same in each, and means the same."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.cli import variant_from
from agents.config.loading import load_config
from agents.config.problems import ConfigError
from agents.errors import UsageError
from generala_env.rules.variants import VariantError, get_variant

SCRIPTS = sorted(path.stem for path in (Path(__file__).parents[2] / "scripts").glob("*.py"))


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options of a parser and of its subcommands, hidden ones left out."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions_of(inner)
        elif action.help is not argparse.SUPPRESS:
            yield action


def options() -> dict[str, dict[str, argparse.Action]]:
    """Return, for each option, the commands that have it and how they read it."""
    found: dict[str, dict[str, argparse.Action]] = {}
    for name in SCRIPTS:
        parser = importlib.import_module(f"scripts.{name}").build_parser()
        for action in actions_of(parser):
            for option in action.option_strings:
                found.setdefault(option, {})[name] = action
    return found


OPTIONS = options()


COUNTS_DIFFER = {
    "--players": "a number in both: one or two are solved, a match seats as many as there are agents",
    "--agent": "names or run folders in both: a table of several is evaluated, a soak plays one",
}
"""Options of one meaning of which commands take different numbers, and why."""


def meaning(action: argparse.Action) -> tuple[Any, ...]:
    """Return what decides how an option's words are read and where they go."""
    return (action.dest, action.nargs, action.type, type(action), tuple(action.choices or ()))


@pytest.mark.parametrize("option", sorted(option for option, owners in OPTIONS.items() if len(owners) > 1))
def test_a_shared_option_is_read_the_same_way_in_every_command(option: str) -> None:
    meanings = {
        name: action.type if option in COUNTS_DIFFER else meaning(action)
        for name, action in OPTIONS[option].items()
    }
    assert len(set(meanings.values())) == 1, meanings


@pytest.mark.parametrize(
    ("option", "owners"),
    [
        ("--variant", {"evaluate", "match", "play", "plot", "record", "serve", "solve", "train"}),
        ("--set", {"evaluate", "match", "play", "plot", "record", "serve", "soak", "solve", "train"}),
        ("--lang", {"evaluate", "play", "plot", "record", "serve"}),
        ("--dice", {"evaluate", "play", "plot", "record", "serve"}),
        ("--seed", {"evaluate", "match", "play", "plot", "record", "soak", "train"}),
        ("--json", set(SCRIPTS)),
        ("--instant-win", {"evaluate", "match", "plot", "record", "solve"}),
        ("--players", {"match", "solve"}),
        ("--seats", {"play"}),
        ("--store", {"match", "play", "serve", "solve"}),
    ],
)
def test_who_has_which_option(option: str, owners: set[str]) -> None:
    assert OPTIONS[option].keys() == owners


@pytest.mark.parametrize("old", ["--language"])
def test_old_spellings_are_read_but_not_shown(old: str) -> None:
    assert old not in OPTIONS
    parser = importlib.import_module("scripts.evaluate").build_parser()
    assert parser.parse_args(["--agent", "tips", old, "pt"]).language == "pt"


@pytest.mark.parametrize("text", ["-1", "x", "1.5", ""])
def test_a_seed_is_a_whole_number_everywhere(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in OPTIONS["--seed"]:
        parser = argparse.ArgumentParser()
        parser._add_action(OPTIONS["--seed"][name])
        with pytest.raises(SystemExit) as stop:
            parser.parse_args([f"--seed={text}"])
        assert stop.value.code == 2
        assert "is not a whole number from 0 on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("override", "field"),
    [
        ("generala_points=050", "generala_points"),
        ("generala_points=0x32", "generala_points"),
        ("variant.generala_points=50", "generala_points"),
        ("order=forced", "order"),
        ("max_players=null", "max_players"),
        ("straights=[12345]", "straights"),
        ("min_players=1:00", "min_players"),
        ("poker_takes_five=yes", "poker_takes_five"),
        ("order=no", "order"),
    ],
)
def test_a_value_of_the_rules_is_read_alike_with_and_without_a_config(override: str, field: str) -> None:
    def of_rules() -> object:
        return getattr(variant_from("ruibal", [override]), field)

    def of_config() -> object:
        return getattr(load_config("ppo.yaml", [override], variant="ruibal").config.rules, field)

    told: list[str] = []
    values: list[object] = []
    for read in (of_rules, of_config):
        try:
            values.append(read())
        except (UsageError, VariantError) as error:
            told.append(str(error).removeprefix("--set: ").removeprefix("variant."))
    assert len(values) in (0, 2)
    assert len({*map(repr, values)}) + len(set(told)) == 1, (values, told)


def test_octal_and_sexagesimal_numbers_are_those_of_yaml_1_2() -> None:
    assert variant_from("ruibal", ["generala_points=050"]).generala_points == 50
    for text in ("min_players=1:00", "min_players=yes", "generala_points='50'"):
        with pytest.raises(UsageError, match=rf"^{text.partition('=')[0]}: "):
            variant_from("ruibal", [text])


@pytest.mark.parametrize("text", ["boxes=[", "boxes=!!python/name:os.system", "boxes=&a [*a]"])
def test_what_is_no_plain_yaml_is_told_with_its_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--set: boxes"):
        variant_from("ruibal", [text])


def test_training_takes_rules_as_the_other_commands_do() -> None:
    resolved = load_config("ppo.yaml", ["generala_points=60"], variant="doble")
    assert resolved.config.rules == get_variant({"base": "doble", "generala_points": 60})
    assert resolved.source("variant.base") == "--variant"
    assert resolved.source("variant.generala_points") == "--set"
    with pytest.raises(ConfigError, match=r"^--variant: variant: 'dobl' is not a preset"):
        load_config("ppo.yaml", variant="dobl")
