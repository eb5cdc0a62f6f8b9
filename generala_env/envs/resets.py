"""What ``reset`` of a batch of environments is given, checked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray


def reset_mask(options: dict[str, Any] | None, num_envs: int) -> NDArray[np.bool_]:
    """Return which environments begin anew: those of ``options["reset_mask"]``, or all.

    Returns:
        (num_envs,) bool, a new array.

    Raises:
        ValueError: The mask has another shape or type, or chooses none.
    """
    mask = (options or {}).get("reset_mask")
    if mask is None:
        return np.ones(num_envs, dtype=bool)
    mask = np.array(mask)
    if mask.shape != (num_envs,) or mask.dtype != np.bool_ or not mask.any():
        raise ValueError(
            f"options['reset_mask']: {mask!r} is not a bool array of shape ({num_envs},) with a true"
        )
    return mask


def seeds_of(seed: int | Sequence[int | None] | None, chosen: NDArray[np.bool_]) -> list[int | None]:
    """Return the seed of each environment; ``None`` goes on with the present generator.

    Args:
        seed: An integer ``s`` seeds environment ``i`` with ``s + i``; a sequence seeds each with its own.
        chosen: (num_envs,) bool, the environments whose seeds are read.

    Raises:
        ValueError: There are more or fewer seeds than environments.
        gymnasium.error.Error: A seed that is read is not a non-negative integer.
    """
    num_envs = len(chosen)
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, int | np.integer):
        seeds: list[int | None] = [int(seed) + index for index in range(num_envs)]
    else:
        seeds = list(seed)
    if len(seeds) != num_envs:
        raise ValueError(f"seed: {len(seeds)} seeds for {num_envs} environments")
    for index in np.flatnonzero(chosen).tolist():
        own = seeds[index]
        if own is None:
            continue
        if not isinstance(own, int | np.integer) or own < 0:
            raise gym.error.Error(f"seed: {own!r} is not a non-negative integer")
        seeds[index] = operator.index(own)
    return seeds


def autoreset_mode_of(mode: str | AutoresetMode) -> AutoresetMode:
    """Return when finished environments are reset, in any of Gymnasium's spellings.

    Args:
        mode: A member of ``AutoresetMode``, its value (``"NextStep"``) or its name (``"NEXT_STEP"``).

    Raises:
        ValueError: It is none of these.
    """
    if isinstance(mode, AutoresetMode):
        return mode
    for member in AutoresetMode:
        if isinstance(mode, str) and mode.casefold() in (member.value.casefold(), member.name.casefold()):
            return member
    known = ", ".join(f"{member.value} or {member.name}" for member in AutoresetMode)
    raise ValueError(f"autoreset_mode: {mode!r} is not known; known: {known}")
