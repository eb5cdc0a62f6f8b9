"""Trained agents, made again from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.base import Agent, AgentRequest
from agents.learning.cards.policies import CardAgent, saved_play
from agents.learning.learners import make_policy
from agents.learning.network_agent import NetworkAgent
from agents.saving.agent_files import Arrays, Blueprint, FileError, read_agent
from generala_env.envs.observation import observation_layout
from generala_env.rules.compiled import CompiledVariant


def make_trained_agent(
    blueprint: Blueprint, weights: Arrays, compiled: CompiledVariant, *, seed: int | None = None
) -> Agent:
    """Return a trained agent made from what was saved of it.

    Raises:
        KeyError: The blueprint names something unknown.
        RuntimeError: The weights do not fit the networks.
        ValueError: The blueprint makes no sense.
    """
    layout = observation_layout(compiled, blueprint.observation_blocks)
    # Files of before there were networks of cards do not say what the networks read.
    if blueprint.policy.get("kind", "observation") == "card":
        scale = blueprint.policy["output_scale"]
        play = saved_play(blueprint.algorithm, compiled, tuple(blueprint.policy["net_arch"]), scale, weights)
        return CardAgent(blueprint.name, layout, play, seed=seed)
    policy: Any = make_policy(blueprint.algorithm, layout, blueprint.policy)
    policy.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return NetworkAgent(blueprint.name, layout, policy, seed=seed)


def load_agent(path: Path, request: AgentRequest) -> Agent:
    """Load a trained agent from its file, a checkpoint or its run folder.

    Args:
        path: Where it is; of a run folder, the agent that scored best in its evaluations.
        request: What it is to play.

    Raises:
        FileError: There is none, it is broken, its weights are not finite, or it was trained for other
            rules.
    """
    blueprint, weights = read_agent(path)
    asked = request.compiled.variant
    if blueprint.variant.fingerprint != asked.fingerprint:
        raise FileError(
            f"{path}: was trained for {blueprint.variant.name} "
            f"(fingerprint {blueprint.variant.fingerprint}), "
            f"not for {asked.name} (fingerprint {asked.fingerprint})"
        )
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise FileError(f"{path}: its weights are not all finite numbers ({name})")
    try:
        return make_trained_agent(blueprint, weights, request.compiled, seed=request.seed)
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        told = " ".join(str(error).split())[:300]
        raise FileError(f"{path}: its weights do not fit its network ({told})") from None
