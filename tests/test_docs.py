"""README and the pages of docs/ say what the code does: every code block is run, or read by its command."""

import argparse
import contextlib
import importlib
import importlib.util
import io
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import SkipTest

import gymnasium as gym
import pytest
from ruamel.yaml import YAML
from sybil import Document, Example, Region, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser

from agents import registry
from agents.cli import variant_from
from agents.config.loading import load_config
from generala_env.rules import PRESETS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "runs" / "README.md"]
OUTPUT = "the output of the block before"

run_python = PythonEvaluator()


def python_block(example: Example) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        run_python(example)
    example.document.namespace[OUTPUT] = output.getvalue()


def text_block(example: Example) -> None:
    """Compare what follows a block of Python with what it printed; other text is an illustration."""
    printed = example.document.namespace.get(OUTPUT)
    before = example.document.text[: example.region.start].rstrip()
    if printed is not None and before.endswith("```"):
        assert example.parsed == textwrap.dedent(printed)


class CommandLineReadError(Exception):
    """Raised by a command once it has read its command line."""


def check_script(name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script read its command line, and stop it there."""
    parse_args = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser: argparse.ArgumentParser, *given: object) -> None:
        read = parse_args(parser, *given)  # type: ignore[call-overload]
        if name == "train" and read.config is not None:
            load_config(read.config, read.overrides, {})
        elif getattr(read, "variant", None) in PRESETS:
            variant_from(read.variant, read.overrides)
        raise CommandLineReadError

    module: ModuleType = importlib.import_module(f"scripts.{name}")
    with monkeypatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as error:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
        try:
            module.main(arguments)
        except CommandLineReadError:
            return
        except SystemExit as stopped:
            if stopped.code:
                message = f"scripts/{name}.py {shlex.join(arguments)}: {error.getvalue()}"
                raise AssertionError(message) from None


def check_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check one line of shell: its program, its files, and what it hands to scripts of this repository."""
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        del words[0]
    if not words:
        return
    program, *arguments = words
    if program in ("python", ".venv/bin/python"):
        assert arguments, line
        program, *arguments = arguments
    program = program.removeprefix(".venv/bin/")
    if script := re.fullmatch(r"scripts/(\w+)\.py", program):
        check_script(script[1], arguments, monkeypatch)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert set(arguments) <= set(targets), line
    elif program == "pytest":
        for path in (word for word in arguments if word.startswith("tests/")):
            assert (ROOT / path).exists(), line
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for asked in re.findall(r"\.\[([\w,]+)\]", line):
            assert set(asked.split(",")) <= set(extras["optional-dependencies"]), line
    else:
        # Add a program here with a check of what can be checked, as is done above.
        assert (program, arguments[:1]) in [("tensorboard", ["--logdir"]), ("source", [".venv/bin/activate"])]


def shell_block(example: Example) -> None:
    monkeypatch = example.document.namespace["monkeypatch"]
    for line in example.parsed.replace("\\\n", " ").splitlines():
        check_command(line, monkeypatch)


def yaml_block(example: Example) -> None:
    """Read a piece of a config on top of a whole one."""
    config = YAML().load(ROOT / "configs" / "ppo.yaml")
    config.update(YAML(typ="safe").load(example.parsed))
    path = Path("config.yaml")
    YAML().dump(config, path)
    load_config(str(path), [], {})


EVALUATORS = {"python": python_block, "sh": shell_block, "text": text_block, "yaml": yaml_block}


class InlineCommands:
    """What prose and tables say of this repository's commands."""

    def __call__(self, document: Document) -> Iterator[Region]:
        for match in re.finditer(r"`((?:python )?scripts/\w+\.py [^`]*)`", document.text):
            yield Region(match.start(), match.end(), " ".join(match[1].split()), shell_block)


PARSER = Sybil(
    parsers=[
        *(CodeBlockParser(language, evaluator) for language, evaluator in EVALUATORS.items()),
        InlineCommands(),
        SkipParser(),
    ],
    encoding="utf-8",
)


def is_missing(module: str) -> bool:
    """Tell whether a library is not installed, or not with the part that a block needs."""
    try:
        return importlib.util.find_spec(module) is None
    except ImportError:
        return True


@pytest.fixture
def _left_as_found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take back what pages register."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    known = dict(gym.registry)
    yield
    gym.registry.clear()
    gym.registry.update(known)


@pytest.mark.usefixtures("_left_as_found")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.chdir(tmp_path)
    document = PARSER.parse(page)
    document.namespace.update(is_missing=is_missing, monkeypatch=monkeypatch)
    for example in document.examples():
        with subtests.test(line=example.line):
            try:
                example.evaluate()
            except SkipTest as reason:
                pytest.skip(f"line {example.line}: {reason}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_is_left_out(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^ *```(.*)$", text, re.MULTILINE)
    assert set(fences[::2]) <= set(EVALUATORS), "every block names one of the languages that are checked"
    assert set(fences[1::2]) <= {""}
    assert not re.search(r"\n\n    \S", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\n1 / 0\n```", "division by zero"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```", "1"),
        ("```sh\npython scripts/train.py --confg ppo.yaml\n```", "--confg"),
        ("`scripts/train.py --config ppo.yaml --set algorithm.gama=1`", "algorithm.gama"),
        ("```sh\npytest tests/no_such_test.py\n```", "no_such_test"),
        ("```sh\nmake nothing\n```", "nothing"),
        ("see `scripts/match.py --gammes 3` for more", "--gammes"),
        ("```yaml\ntotal_timestep: 3\n```", "total_timestep"),
    ],
)
def test_what_is_wrong_is_found(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text + "\n", encoding="utf-8")
    document = PARSER.parse(page)
    document.namespace["monkeypatch"] = monkeypatch
    *before, last = document.examples()
    for example in before:
        example.evaluate()
    with pytest.raises(Exception, match=re.escape(message)):
        last.evaluate()
