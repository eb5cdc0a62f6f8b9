"""An episode as pictures: each decision with what was right and what was given away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from gymnasium.error import DependencyNotInstalled

from agents.evaluation.report_text import number, texts
from agents.evaluation.traces import Decision, GameTrace
from generala_env.envs.board import move_text
from generala_env.envs.picture import (
    DEFAULT_SIZE,
    INSTALL,
    Frame,
    picture_grid,
    render_picture,
    require_pillow,
    with_caption,
)
from generala_env.files import replacing
from generala_env.rules.actions import Close, action_of
from generala_env.rules.dice import THROWS
from generala_env.rules.game import Game, GameState
from generala_env.rules.names import Language
from generala_env.rules.variants import Variant

FILM_SUFFIXES: Final = (".gif", ".mp4", ".png")
"""A film with pictures one after another, in two formats, or all pictures side by side."""

NEGLIGIBLE: Final = 0.0005
"""What is not shown as lost: less than the digits tell."""

_GAP: Final = 8


def _caption(
    variant: Variant, state: GameState, decision: Decision, language: Language, dice: str
) -> list[tuple[str, str]]:
    say = texts(language)
    move = move_text(variant, state, decision.action, language=language, dice=dice)
    better = move_text(variant, state, decision.best_action, language=language, dice=dice)
    best = (f"{say['optimal_move']}: {say['same'] if better == move else better}", "pays")
    did = f"{say['did']}: {move}"
    if decision.regret < NEGLIGIBLE:
        return [(did, "text"), best]
    loses = say["loses"].format(points=number(decision.regret, language, 3))
    return [(f"{did} · {loses}", "strikes"), best]


def episode_frames(
    variant: Variant,
    trace: GameTrace,
    *,
    language: Language = Language.EN,
    dice: str = "standard",
    size: int = DEFAULT_SIZE,
    theme: str = "light",
) -> list[Frame]:
    """Draw a game: each decision with what was done, what that lost and what was right, and the end.

    Args:
        variant: The rules.
        trace: The game.
        language: ``en``, ``es`` or ``pt``.
        dice: ``standard`` or ``poker``.
        size: Width of the pictures in pixels.
        theme: ``light`` or ``dark``.

    Returns:
        One picture more than there are decisions, all of one shape.

    Raises:
        ValueError: An option has a value that it does not know.
        gymnasium.error.DependencyNotInstalled: pillow is not installed.
    """
    # Where a served Generala did not end the traced game, it must not end this one either.
    wins = {} if trace.is_instant_win else {"served_generala_wins": "never"}
    game = Game(variant.override(**wins), 1, solo=True)
    state, last_box = game.initial_state(), None
    frames = []

    def draw(caption: Sequence[tuple[str, str]]) -> None:
        frame = render_picture(
            variant, state, last_boxes=(last_box,), language=language, dice=dice, size=size, theme=theme
        )
        frames.append(with_caption(frame, caption, theme=theme))

    for decision in trace.decisions:
        state = game.apply_chance(state, THROWS[decision.throw])
        draw(_caption(variant, state, decision, language, dice))
        move = action_of(decision.action, variant.num_boxes)
        last_box = move.box if isinstance(move, Close) else last_box
        state = game.apply(state, move)
    if trace.is_instant_win:
        state = game.apply_chance(state, THROWS[trace.winning_throw])
    say = texts(language)
    end = say["ends_won" if trace.is_instant_win else "ends"].format(points=f"{trace.score:g}")
    lost = sum(decision.regret for decision in trace.decisions)
    loses = say["loses"].format(points=number(lost, language, 2))
    draw([(end, "text"), (loses if lost >= NEGLIGIBLE else say["no_mistakes"], "muted")])
    return frames


def _write_mp4(path: Path, frames: Sequence[Frame], frames_per_second: float) -> None:
    try:
        import imageio_ffmpeg  # finds its program when imported, which only this format needs
    except ImportError:
        raise DependencyNotInstalled(
            f"films need imageio-ffmpeg, which is not installed: {INSTALL}"
        ) from None
    height, width, _ = frames[0].shape
    writer = imageio_ffmpeg.write_frames(
        str(path),
        (width + width % 2, height + height % 2),
        fps=frames_per_second,
        codec="libx264",
        quality=8,
        macro_block_size=2,
        output_params=["-f", "mp4"],
    )
    writer.send(None)
    for frame in frames:
        # The format wants even sides.
        writer.send(np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge").tobytes())
    writer.close()


def write_film(path: Path, frames: Sequence[Frame], *, frames_per_second: float) -> None:
    """Write pictures as the name's ending says: a GIF, an MP4, or one PNG with all of them.

    Args:
        path: Where to; it is replaced only once the whole is written.
        frames: Pictures of one shape.
        frames_per_second: The pace of a film; the last picture stays longer.

    Raises:
        ValueError: The ending is none of ``FILM_SUFFIXES``.
        gymnasium.error.DependencyNotInstalled: What writes the format is not installed.
        OSError: The file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in FILM_SUFFIXES:
        raise ValueError(f"{str(path)!r} does not end in {', '.join(FILM_SUFFIXES)}")
    require_pillow()
    from PIL import Image  # here, so that a lack of it is said as the pictures say it

    with replacing(path) as temporary:
        if suffix == ".mp4":
            _write_mp4(temporary, [*frames, *[frames[-1]] * 2], frames_per_second)
        elif suffix == ".png":
            Image.fromarray(picture_grid(frames, gap=_GAP)).save(temporary, format="PNG", optimize=True)
        else:
            first, *others = [Image.fromarray(frame).quantize(128) for frame in frames]
            pace = round(1000 / frames_per_second)
            stays = [*[pace] * (len(frames) - 1), 3 * pace]
            first.save(temporary, format="GIF", save_all=True, append_images=others, duration=stays, loop=0)
