"""A window that shows pictures, for people who watch."""

from __future__ import annotations

import os
from typing import Any

from gymnasium.error import DependencyNotInstalled

from generala_env.envs.picture import INSTALL, Frame


class Window:
    """Shows one picture after another, no faster than eyes can follow.

    It opens with the first picture. Who closes it is not bothered again: the game goes on without.

    Attributes:
        title: What stands above the picture.
        frames_per_second: How many pictures are shown at most.
        is_open: Whether there is a window now.
    """

    def __init__(self, title: str, frames_per_second: float) -> None:
        """Make a window that is not open yet."""
        self.title = title
        self.frames_per_second = frames_per_second
        self.is_open = False
        self._was_closed = False
        self._pygame: Any = None
        self._clock: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open window behind: a copy opens its own."""
        return {"title": self.title, "frames_per_second": self.frames_per_second}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a window that is not open yet."""
        self.__init__(**state)  # type: ignore[misc]

    def show(self, frame: Frame) -> None:
        """Show a picture and wait for as long as the one before it is to stay.

        Args:
            frame: (height, width, 3) uint8.

        Raises:
            gymnasium.error.DependencyNotInstalled: pygame-ce is not installed.
        """
        if self._was_closed:
            return
        if self._pygame is None:
            self._pygame = _pygame()
        pygame, size = self._pygame, (frame.shape[1], frame.shape[0])
        if not self.is_open:
            pygame.display.init()
            pygame.display.set_caption(self.title)
            self._clock = pygame.time.Clock()
            self.is_open = True
        surface = pygame.display.get_surface()
        if surface is None or surface.get_size() != size:
            surface = pygame.display.set_mode(size)
        surface.blit(pygame.image.frombuffer(frame.tobytes(), size, "RGB"), (0, 0))
        pygame.display.flip()
        self._clock.tick(self.frames_per_second)
        if pygame.event.get(pygame.QUIT):
            self.close()
            self._was_closed = True
        else:
            pygame.event.pump()

    def close(self) -> None:
        """Close the window if it is open."""
        if self.is_open:
            self.is_open = False
            self._pygame.display.quit()


def _pygame() -> Any:
    # It greets on standard output, which belongs to the caller, and takes a while to load.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError:
        raise DependencyNotInstalled(
            f"render_mode='human' needs pygame-ce, which is not installed: {INSTALL}"
        ) from None
    return pygame
