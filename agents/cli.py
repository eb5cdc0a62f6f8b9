"""What the commands share: how a variant is named, how errors end, how JSON is printed."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from agents.config.reading import plain_value
from agents.errors import AgentError, UsageError
from generala_env.rules.answers import AnswerError
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin
from generala_env.rules.names import DiceSkin, Language
from generala_env.rules.variants import (
    DEFAULT_VARIANT,
    FIELD_NAMES,
    PRESETS,
    Variant,
    VariantError,
    get_variant,
)

EXIT_BAD_INPUT = 2


def program(name: str) -> str:
    """Return how a person starts a program of this Python's environment from where they are.

    Args:
        name: Such as ``python`` or ``tensorboard``.

    Returns:
        The name where the environment is activated, otherwise its path, relative if it lies below.
    """
    try:
        here = Path.cwd()
        found = Path(sys.executable).with_name(name)
    except (OSError, ValueError):
        return name
    if name == "python" and not found.exists():
        found = Path(sys.executable)
    if not found.exists() or shutil.which(name) == str(found):
        return name
    return shlex.quote(str(found.relative_to(here) if found.is_relative_to(here) else found))


def instant_win_of(text: str) -> InstantWin:
    """Read ``perfect``, ``play_on`` or a number of points.

    Raises:
        argparse.ArgumentTypeError: It is none of these.
    """
    if text in ("perfect", "play_on"):
        return text  # type: ignore[return-value]
    try:
        points = float(text)
    except ValueError:
        points = math.nan
    if not math.isfinite(points):
        raise argparse.ArgumentTypeError(f"{text!r} is not perfect, play_on or a number of points")
    return points


def positive_int(text: str) -> int:
    """Read a whole number above 0.

    Raises:
        argparse.ArgumentTypeError: It is not one.
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole_number(text: str) -> int:
    """Read a whole number from 0 on.

    Raises:
        argparse.ArgumentTypeError: It is not one.
    """
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def add_json_argument(parser: argparse._ActionsContainer, *, condition: str = "") -> None:
    """Add ``--json``.

    Args:
        parser: A parser, or a group of one.
        condition: What else must be given, where something must.
    """
    parser.add_argument(
        "--json", action="store_true", help=f"{condition}print one JSON object and nothing else"
    )


def add_seed_argument(parser: argparse.ArgumentParser, default: int | None, of: str) -> None:
    """Add ``--seed``.

    Args:
        parser: The parser.
        default: The seed that is taken where none is given; ``None`` leaves it open.
        of: What the seed is of, for the help.
    """
    shown = "" if default is None else f" (default {default})"
    parser.add_argument(
        "--seed", type=whole_number, default=default, metavar="N", help=f"seed of {of}{shown}"
    )


def add_face_arguments(
    parser: argparse.ArgumentParser,
    *,
    language: Language | None = Language.EN,
    otherwise: str = "en",
    dice: DiceSkin | None = DiceSkin.STANDARD,
    dice_otherwise: str = "standard",
) -> None:
    """Add ``--lang`` and ``--dice``: how the game is shown to a person.

    Args:
        parser: The parser.
        language: The language where none is named; ``None`` leaves it open.
        otherwise: What the help calls that.
        dice: What the dice show where it is not named; ``None`` leaves it open.
        dice_otherwise: What the help calls that.
    """
    languages = [one.value for one in Language]
    told = f"language of what is shown (default {otherwise})"
    default = None if language is None else language.value
    # --language is what some commands called it once.
    for option, shown in (("--lang", told), ("--language", argparse.SUPPRESS)):
        parser.add_argument(option, dest="language", choices=languages, default=default, help=shown)
    parser.add_argument(
        "--dice",
        choices=[skin.value for skin in DiceSkin],
        default=None if dice is None else dice.value,
        help=f"what the dice show (default {dice_otherwise})",
    )


def add_store_argument(parser: argparse._ActionsContainer, *, purpose: str) -> None:
    """Add ``--store``, the folder of solved two-player games."""
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help=f"folder of solved two-player games, {purpose}"
    )


def add_variant_argument(parser: argparse.ArgumentParser, *, default: str | None, note: str = "") -> None:
    """Add ``--variant``.

    Args:
        parser: The parser.
        default: The preset that is taken where none is named; ``None`` leaves it open.
        note: What more the help says.
    """
    shown = f" (default {default})" if default else ""
    parser.add_argument(
        "--variant", default=default, metavar="NAME", help=f"rules: {', '.join(PRESETS)}{shown}{note}"
    )


def _add_set_argument(parser: argparse.ArgumentParser, *, metavar: str, help: str) -> None:
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar=metavar, help=help)


def add_config_set_argument(parser: argparse.ArgumentParser) -> None:
    """Add the ``--set`` of a command that reads a config: any of its values, or a field of the rules."""
    _add_set_argument(
        parser,
        metavar="KEY.PATH=VALUE",
        help="override a value of the config, e.g. algorithm.gamma=0.99, or a field of the rules, named "
        "generala_points or variant.generala_points; may be repeated; beats the file and --variant. The "
        "value is YAML 1.2",
    )


def add_variant_arguments(
    parser: argparse.ArgumentParser, *, default: str | None = DEFAULT_VARIANT, has_instant_win: bool = True
) -> None:
    """Add ``--variant``, ``--set`` and, for the one-player game, ``--instant-win``.

    ``--instant-win`` is ``None`` where it was not given; ``instant_win_from`` puts in the default.
    """
    add_variant_argument(parser, default=default)
    _add_set_argument(
        parser,
        metavar="FIELD=VALUE",
        help="override a field of the rules, named generala_points or variant.generala_points; may be "
        f"repeated. The value is YAML 1.2, as in configs. Fields: {', '.join(FIELD_NAMES)}",
    )
    if has_instant_win:
        parser.add_argument(
            "--instant-win",
            type=instant_win_of,
            metavar="HOW",
            help="what a served Generala that wins does when playing alone: play_on, perfect (end the "
            f"game and pay the perfect score), or a number of points to pay (default {DEFAULT_INSTANT_WIN})",
        )


def instant_win_from(given: InstantWin | None, otherwise: InstantWin = DEFAULT_INSTANT_WIN) -> InstantWin:
    """Return what ``--instant-win`` says, or something else where it was not given."""
    return otherwise if given is None else given


def variant_from(name: str | Variant, overrides: Iterable[str]) -> Variant:
    """Return the variant that ``--variant`` and ``--set`` describe.

    Raises:
        UsageError: The name, a field or a value is not known.
    """
    values: dict[str, Any] = {}
    for override in overrides:
        name_of_field, sign, text = override.partition("=")
        field = name_of_field.strip().removeprefix("variant.")
        if not sign or not field:
            raise UsageError(f"--set: {override!r} is not FIELD=VALUE")
        values[field] = plain_value(text, "--set", (field,))
    try:
        return get_variant(name).override(**values)
    except VariantError as error:
        raise UsageError(str(error)) from None


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    json.dump(value, sys.stdout, allow_nan=False)
    sys.stdout.write("\n")


def run_command(
    command: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None
) -> NoReturn:
    """Run a command's main function and exit: 2 with one line on bad input, 130 on Ctrl-C."""
    name = Path(sys.argv[0]).name
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Not every encoding has dice or ±: a question mark in their place, not an error.
            stream.reconfigure(errors="replace")
    try:
        sys.exit(command(argv) or 0)
    except (UsageError, AgentError, AnswerError, VariantError) as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader has gone; say nothing, also not while Python closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
