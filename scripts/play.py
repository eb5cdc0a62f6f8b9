"""Play Generala in the terminal: people and agents at one table, with hints and a record."""

from __future__ import annotations

import argparse
import secrets
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from agents.cli import (
    add_face_arguments,
    add_json_argument,
    add_seed_argument,
    add_store_argument,
    add_variant_arguments,
    print_json,
    program,
    run_command,
    variant_from,
)
from agents.errors import UsageError
from agents.games.advice import Adviser
from agents.games.record import Face, GameRecord, Table
from agents.games.verdicts import review_json
from agents.registry import agent_names
from agents.terminal.game import Leave, TerminalGame
from agents.terminal.review import replay, review
from agents.terminal.screen import Screen
from agents.terminal.words import text
from generala_env.rules.compiled import compile_variant
from generala_env.rules.names import DiceSkin, Language

RECORDS = Path("runs/games")
EXIT_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="examples: python scripts/play.py --variant doble --seats me solo_optimal tips --lang es; "
        "python scripts/play.py --seats me; python scripts/play.py --review runs/games/GAME.jsonl",
    )
    add_variant_arguments(parser, has_instant_win=False)
    parser.add_argument(
        "--seats",
        nargs="+",
        default=["me", "solo_optimal"],
        metavar="WHO",
        help="who plays, in seat order: me or me:NAME for people, else an agent "
        f"({', '.join(agent_names(2))}) or a run folder (default: me solo_optimal)",
    )
    add_face_arguments(
        parser,
        language=None,
        otherwise="that of the recorded game, else en",
        dice=None,
        dice_otherwise="those of the recorded game, else standard",
    )
    add_seed_argument(parser, None, "the dice (default: drawn)")
    parser.add_argument(
        "--pause",
        type=float,
        default=0.7,
        metavar="SECONDS",
        help="wait after each move of an agent (default 0.7)",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help=f"where to keep the game (default: a new file in {RECORDS})",
    )
    add_store_argument(parser, purpose="for exact hints")
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--resume", type=Path, metavar="FILE", help="go on with a recorded game")
    files.add_argument("--replay", type=Path, metavar="FILE", help="show a recorded game move by move")
    files.add_argument("--review", type=Path, metavar="FILE", help="judge the moves of a recorded game")
    add_json_argument(parser, condition="with --review: ")
    return parser


def _face(arguments: argparse.Namespace, recorded: Face | None = None) -> Face:
    """Return how the game is shown: as asked, otherwise as it was recorded."""
    otherwise = recorded or Face()
    return Face(
        Language(arguments.language or otherwise.language), DiceSkin(arguments.dice or otherwise.skin)
    )


def _command(option: str, record: GameRecord, face: Face, store: Path | None) -> str:
    """Return how the game is taken up again, shown as it is now.

    What differs neither from what the file says nor from what everybody gets is left out.
    """
    words = [option, str(record.path)]
    recorded, default = record.face or Face(), Face()
    if {face.language, recorded.language} != {default.language}:
        words += ["--lang", face.language.value]
    if {face.skin, recorded.skin} != {default.skin}:
        words += ["--dice", face.skin.value]
    if store is not None:
        words += ["--store", str(store)]
    return f"{program('python')} scripts/play.py {shlex.join(words)}"


def _new_record(arguments: argparse.Namespace) -> GameRecord:
    variant = variant_from(arguments.variant, arguments.overrides)
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    path = arguments.record
    if path is None:
        path = RECORDS / f"{time.strftime('%Y%m%d-%H%M%S')}-{seed}.jsonl"
    table = Table(variant, tuple(arguments.seats), seed)
    # Agents are made before the file is, so that a misspelt one leaves nothing behind.
    TerminalGame(GameRecord.create(None, table), Console(quiet=True), store=arguments.store)
    return GameRecord.create(path, table, _face(arguments))


def _play(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.resume is not None:
        record = GameRecord.read(arguments.resume)
        record.resume()
    else:
        record = _new_record(arguments)
    face = _face(arguments, record.face)
    game = TerminalGame(
        record,
        console,
        language=face.language,
        skin=face.skin,
        pause=arguments.pause,
        store=arguments.store,
    )
    for state, action in record.history():
        game.screen.note(state, action)

    def farewell(key: str, option: str) -> None:
        command = _command(option, record, face, arguments.store)
        for line in (
            text("saved", face.language, path=record.path),
            text(key, face.language, command=command),
        ):
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    try:
        game.play()
    except Leave:
        farewell("resume_with", "--resume")
        return 0
    except KeyboardInterrupt:
        console.print()
        farewell("resume_with", "--resume")
        return EXIT_INTERRUPTED
    farewell("review_with", "--review")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = build_parser().parse_args(argv)
    if arguments.json and arguments.review is None:
        raise UsageError("--json: goes with --review")
    if not 0 <= arguments.pause <= 60:
        raise UsageError(f"--pause: {arguments.pause} is not from 0 to 60 seconds")
    console = Console()
    if arguments.replay is None and arguments.review is None:
        return _play(arguments, console)
    record = GameRecord.read(arguments.replay or arguments.review)
    face = _face(arguments, record.face)
    screen = Screen(console, record.table, language=face.language, skin=face.skin)
    if arguments.review is not None:
        names = screen.names
        adviser = Adviser(compile_variant(record.table.variant), len(names), arguments.store)
        if arguments.json:
            print_json(review_json(record, adviser, names))
        else:
            review(record, screen, adviser)
        return 0

    def wait() -> None:
        if sys.stdin.isatty():
            console.input(f"{text('next', face.language)} ")

    replay(record, screen, wait)
    return 0


if __name__ == "__main__":
    run_command(main, None)
