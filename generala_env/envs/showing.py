"""Render modes: what ``render`` of every environment does, one game or many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import gymnasium as gym

from generala_env.envs.picture import Frame, check_picture, picture_grid, render_picture
from generala_env.envs.rendering import render_text
from generala_env.envs.window import Window
from generala_env.rules.game import GameState
from generala_env.rules.names import DiceSkin, Language, face_label, word
from generala_env.rules.variants import Variant

RENDER_MODES: Final = ("ansi", "rgb_array", "human")
"""Text, a picture, and a window."""

RENDER_FPS: Final = 2
"""Decisions a second in windows and films: as fast as a person can follow."""

MOST_IN_WINDOW: Final = 12
"""How many games of a batch a window shows."""


@dataclass(frozen=True)
class Shown:
    """A game as it is shown.

    Attributes:
        state: The position.
        last_boxes: By seat, the index of the box that was closed last, where one was.
        names: What the seats are called in pictures; numbered players where ``None``.
    """

    state: GameState
    last_boxes: tuple[int | None, ...]
    names: tuple[str, ...] | None = None


class Showing:
    """Shows games in one render mode. It reads positions, and changes and draws nothing.

    Attributes:
        mode: One of ``RENDER_MODES``, or ``None``.
    """

    def __init__(
        self, variant: Variant, mode: str | None, *, language: str, dice: str, size: int, theme: str
    ) -> None:
        """Check the options; nothing is loaded or opened before the first picture.

        Args:
            variant: The rules.
            mode: One of ``RENDER_MODES``, or ``None``.
            language: ``en``, ``es`` or ``pt``.
            dice: ``standard`` or ``poker``.
            size: Width of pictures in pixels.
            theme: ``light`` or ``dark``.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        if mode is not None and mode not in RENDER_MODES:
            raise ValueError(f"render_mode: {mode!r} is not one of {', '.join(RENDER_MODES)}, or None")
        word("dice", language), face_label(1, dice)  # both name what they do not know
        check_picture(size, theme)
        self.mode = mode
        self._variant = variant
        self._language = Language(language)
        self._dice = DiceSkin(dice)
        self._size = size
        self._theme = theme
        self._window = Window(f"Generala · {variant.name}", RENDER_FPS)

    def text(self, shown: Shown) -> str:
        """Return a game as text."""
        return render_text(self._variant, shown.state, language=self._language, dice=self._dice)

    def picture(self, shown: Shown) -> Frame:
        """Return a game as a picture.

        Raises:
            gymnasium.error.DependencyNotInstalled: pillow is not installed.
        """
        return render_picture(
            self._variant,
            shown.state,
            names=shown.names,
            last_boxes=shown.last_boxes,
            language=self._language,
            dice=self._dice,
            size=self._size,
            theme=self._theme,
        )

    def one(self, shown: Shown) -> str | Frame | None:
        """Do what ``render`` of a single environment does."""
        if self.mode == "ansi":
            return self.text(shown)
        if self.mode == "rgb_array":
            return self.picture(shown)
        if self.mode == "human":
            self._window.show(self.picture(shown))
        else:
            _warn()
        return None

    def many(self, shown: Callable[[int], Shown], count: int) -> tuple[str, ...] | tuple[Frame, ...] | None:
        """Do what ``render`` of a batch does: return as many texts or pictures, or show a grid of the first.

        Args:
            shown: The game of an index.
            count: How many there are.
        """
        if self.mode == "ansi":
            return tuple(self.text(shown(index)) for index in range(count))
        if self.mode == "rgb_array":
            return tuple(self.picture(shown(index)) for index in range(count))
        if self.mode == "human":
            frames = [self.picture(shown(index)) for index in range(min(count, MOST_IN_WINDOW))]
            self._window.show(picture_grid(frames))
        else:
            _warn()
        return None

    def close(self) -> None:
        """Close the window if one is open."""
        self._window.close()


def _warn() -> None:
    known = ", ".join(RENDER_MODES)
    gym.logger.warn(f"render() without a render_mode: make the environment with one of {known}")
