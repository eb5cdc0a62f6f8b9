"""All that decides how a learner goes on, taken out and put back."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from agents.learning.cards.algorithms import CardAlgorithm
from agents.saving.agent_files import WEIGHTS, Arrays

_COUNTERS: Final = (
    "num_timesteps",
    "_episode_num",
    "_n_updates",
    "_current_progress_remaining",
    "_n_calls",
    "exploration_rate",
)
"""What SB3's algorithms count, where they have it."""


def generator_states(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the state of every generator that training draws from."""
    states: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 - what stable-baselines3 draws from
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    for name in ("action_space", "observation_space"):
        states[name] = getattr(model, name).np_random.bit_generator.state
    return states


def set_generator_states(model: BaseAlgorithm, states: Mapping[str, Any]) -> None:
    """Put back what ``generator_states`` returned."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])  # noqa: NPY002
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    for name in ("action_space", "observation_space"):
        getattr(model, name).np_random.bit_generator.state = states[name]


def replay_state(model: BaseAlgorithm) -> dict[str, Any] | None:
    """Return the part of the replay buffer that is filled, or ``None`` if there is no buffer."""
    buffer = getattr(model, "replay_buffer", None)
    if buffer is None:
        return None
    filled = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {
        name: value[:filled]
        for name, value in vars(buffer).items()
        if isinstance(value, np.ndarray) and value.ndim and len(value) == buffer.buffer_size
    }
    return {"pos": buffer.pos, "full": buffer.full, "arrays": arrays}


def set_replay_state(model: BaseAlgorithm, state: Mapping[str, Any] | None) -> None:
    """Put back what ``replay_state`` returned."""
    if state is None:
        return
    buffer = model.replay_buffer  # type: ignore[attr-defined]
    buffer.pos, buffer.full = state["pos"], state["full"]
    for name, array in state["arrays"].items():
        getattr(buffer, name)[: len(array)] = array


def learner_state(model: BaseAlgorithm) -> dict[str, Any]:
    """Return all that decides how a learner goes on from a boundary, but its weights."""
    env: Any = model.env
    return {
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "optimizer": None if model.policy.optimizer is None else model.policy.optimizer.state_dict(),
        "games": model.games_state() if isinstance(model, CardAlgorithm) else None,
        "generators": generator_states(model),
        "env": env.get_state(),
        "last_obs": model._last_obs,
        "last_episode_starts": model._last_episode_starts,
        "ep_info": list(model.ep_info_buffer or ()),
        "ep_success": list(model.ep_success_buffer or ()),
        "replay": replay_state(model),
    }


def set_learner_state(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Put back what ``learner_state`` returned, into a learner made from the same config."""
    env: Any = model.env
    for name, value in state["counters"].items():
        setattr(model, name, value)
    if state["optimizer"] is not None:
        model.policy.optimizer.load_state_dict(state["optimizer"])
    if isinstance(model, CardAlgorithm):
        model.set_games_state(state["games"])
    env.set_state(state["env"])
    model._last_obs = state["last_obs"]
    model._last_episode_starts = state["last_episode_starts"]
    size = model._stats_window_size
    model.ep_info_buffer = deque(state["ep_info"], maxlen=size)
    model.ep_success_buffer = deque(state["ep_success"], maxlen=size)
    set_replay_state(model, state["replay"])
    # The generators come last: making and filling things may have drawn from them.
    set_generator_states(model, state["generators"])


def weights_of(model: BaseAlgorithm) -> Arrays:
    """Return the weights of all of a learner's networks."""
    state = model.policy.state_dict()
    return {f"{WEIGHTS}{name}": tensor.detach().cpu().numpy().copy() for name, tensor in state.items()}


def set_weights(model: BaseAlgorithm, arrays: Arrays) -> None:
    """Put back what ``weights_of`` returned."""
    state = {
        name[len(WEIGHTS) :]: torch.from_numpy(array)
        for name, array in arrays.items()
        if name.startswith(WEIGHTS)
    }
    model.policy.load_state_dict(state)
