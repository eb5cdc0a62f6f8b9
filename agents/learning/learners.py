"""Learners made from a config: the environments, the networks and the algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from agents.config.model import RunConfig
from agents.learning.cards.algorithms import CardDQN, CardPPO, CardTable
from agents.learning.cards.policies import CardPolicy
from agents.learning.dqn import MaskableDQN
from agents.learning.networks import (
    MaskedActorCriticPolicy,
    MaskedQPolicy,
    MultisetKeepPolicy,
    MultisetKeepQPolicy,
)
from agents.learning.ppo import PPO
from agents.learning.vec_env import GeneralaVecEnv
from generala_env.envs.observation import ObservationLayout

ACTIVATIONS: Final[dict[str, type[torch.nn.Module]]] = {
    "relu": torch.nn.ReLU,
    "tanh": torch.nn.Tanh,
    "gelu": torch.nn.GELU,
    "silu": torch.nn.SiLU,
    "elu": torch.nn.ELU,
}

_ALGORITHMS: Final[dict[tuple[str, str], type[BaseAlgorithm]]] = {
    ("ppo", "observation"): PPO,
    ("dqn", "observation"): MaskableDQN,
    ("ppo", "card"): CardPPO,
    ("dqn", "card"): CardDQN,
    ("tabular", "card"): CardTable,
}
"""By algorithm and by what the networks read."""

_POLICIES: Final[dict[tuple[str, bool], type[BasePolicy]]] = {
    ("ppo", False): MaskedActorCriticPolicy,
    ("ppo", True): MultisetKeepPolicy,
    ("dqn", False): MaskedQPolicy,
    ("dqn", True): MultisetKeepQPolicy,
}
"""By algorithm, and by whether keeps are scored as multisets."""


def _policy_arguments(settings: Mapping[str, Any], layout: ObservationLayout) -> dict[str, Any]:
    arguments = {
        "net_arch": list(settings["net_arch"]),
        "activation_fn": ACTIVATIONS[settings["activation"]],
    }
    if settings["keeps_head"]:
        arguments["dice_start"] = layout.where("dice").start
    return arguments


def make_policy(algorithm: str, layout: ObservationLayout, settings: Mapping[str, Any]) -> BasePolicy:
    """Return untrained networks.

    Args:
        algorithm: ``ppo`` or ``dqn``.
        layout: The observations they read.
        settings: As in the config's ``policy``.

    Raises:
        KeyError: The algorithm or a setting is unknown.
        ValueError: The observations lack what the networks need.
    """
    policy_class: Any = _POLICIES[algorithm, bool(settings["keeps_head"])]
    policy: BasePolicy = policy_class(
        spaces.Box(0.0, 1.0, (layout.size,), np.float32),
        spaces.Discrete(layout.compiled.num_actions),
        lambda _: 0.0,
        **_policy_arguments(settings, layout),
    )
    return policy


def policy_settings(config: RunConfig) -> dict[str, Any]:
    """Return what is needed, beside the weights, to make a config's networks again, as JSON types."""
    settings = config.policy.model_dump(mode="json")
    if config.policy.kind == "card":
        return {**settings, "output_scale": 1.0 / config.env.reward_scale}
    return settings


def make_learner(config: RunConfig) -> BaseAlgorithm:
    """Return an untrained learner in new environments."""
    algorithm = config.algorithm
    env = GeneralaVecEnv(
        config.env.num_envs,
        config.rules,
        reward_scale=config.env.reward_scale,
        num_threads=config.num_threads,
        instant_win=config.env.instant_win,
        observation_blocks=config.env.observation_blocks,
    )
    kind = config.policy.kind
    if kind == "card":
        policy_class: Any = CardPolicy
        policy_arguments: dict[str, Any] = {"net_arch": config.policy.net_arch}
    else:
        policy_class = _POLICIES[algorithm.name, config.policy.keeps_head]
        policy_arguments = _policy_arguments(config.policy.model_dump(), env.layout)
    learner_class: Any = _ALGORITHMS[algorithm.name, kind]
    learner: BaseAlgorithm = learner_class(
        policy_class,
        env,
        seed=config.seed,
        device=config.device,
        policy_kwargs=policy_arguments,
        **algorithm.settings_for(kind),
    )
    return learner
