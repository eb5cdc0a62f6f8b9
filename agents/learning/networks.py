"""Networks for masked actions: keeps scored as multisets, and policies without needless work.

A keep action names dice by their position, so one decision (which dice to keep) has many ids
and one id many meanings. The networks here give one output to each of the 210 multisets that can
be kept and one to each box; the throw, read from the observation, says which output belongs to
which action.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution, MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import nn
from torch.nn import functional

from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.dice import (
    COUNT_RADIX,
    KEEP_COUNTS,
    KEEP_OF_MASK,
    KEEPS,
    NUM_DICE,
    NUM_FACES,
    NUM_KEEPS,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    keep_of_code,
)

MASKED_LOGIT: Final = -1e8
"""The logit of an action that is not allowed, as in sb3-contrib."""


class MissingMaskError(ValueError):
    """A decision was asked for without saying which actions are allowed."""


def required_masks(action_masks: Any, num_actions: int, num_rows: int | None = None) -> NDArray[np.bool_]:
    """Return the masks of decisions, made sure of: one row for each, and something allowed in every row.

    Args:
        action_masks: (batch, num_actions) of 0 and 1, or (num_actions,) for a single decision.
        num_actions: How many actions there are.
        num_rows: How many decisions there are; not compared if ``None``.

    Returns:
        (batch, num_actions) bool.

    Raises:
        MissingMaskError: There is no mask, its shape is wrong, or a row allows nothing.
    """
    if action_masks is None:
        raise MissingMaskError("action_masks: needed to choose an action; pass env.action_masks()")
    masks = np.asarray(action_masks, dtype=bool)
    if masks.ndim not in (1, 2) or masks.shape[-1] != num_actions:
        raise MissingMaskError(f"action_masks: shape {masks.shape} is not (batch, {num_actions})")
    masks = masks.reshape(-1, num_actions)
    if num_rows is not None and len(masks) != num_rows:
        raise MissingMaskError(f"action_masks: {len(masks)} rows for {num_rows} observations")
    if not masks.any(axis=1).all():
        row = int(masks.any(axis=1).argmin())
        raise MissingMaskError(f"action_masks: row {row} allows nothing; is that episode over?")
    return masks


def _throw_table() -> torch.Tensor:
    """Return the throw of each code of counts; (6**6,) int64, 0 where there is none."""
    return torch.from_numpy(keep_of_code().astype(np.int64) - NUM_PARTIAL_KEEPS).clamp_(min=0)


def _dice_table() -> torch.Tensor:
    """Return (6**6, 66) float32: number of dice per face and face of each die, one-hot, by code.

    Codes of fewer than five dice, which afterstates have, leave the missing dice at zero.
    """
    table = np.zeros(((NUM_DICE + 1) ** NUM_FACES, NUM_FACES * (NUM_DICE + 1) + NUM_DICE * NUM_FACES))
    codes = KEEP_COUNTS @ COUNT_RADIX
    table[codes, : NUM_FACES * (NUM_DICE + 1)] = np.eye(NUM_DICE + 1)[KEEP_COUNTS].reshape(NUM_KEEPS, -1)
    for code, dice in zip(codes, KEEPS, strict=True):
        for position, face in enumerate(dice):
            table[code, NUM_FACES * (NUM_DICE + 1) + position * NUM_FACES + face - 1] = 1.0
    return torch.from_numpy(table.astype(np.float32))


def _output_table(num_boxes: int) -> torch.Tensor:
    """Return (252, num_actions) int64: the output that scores each action on each throw."""
    keeps = KEEP_OF_MASK[:, :NUM_KEEP_ACTIONS].astype(np.int64)
    boxes = np.broadcast_to(NUM_PARTIAL_KEEPS + np.arange(num_boxes), (NUM_THROWS, num_boxes))
    return torch.from_numpy(np.hstack([keeps, boxes]))


class ThrowReader(nn.Module):
    """Reads the throw from the ``dice`` block of observations."""

    codes: torch.Tensor
    throws: torch.Tensor

    def __init__(self, dice_start: int = 0) -> None:
        """Remember where the block is.

        Args:
            dice_start: The first index of the ``dice`` block; it comes first in every layout that has it.
        """
        super().__init__()
        self.dice_start = dice_start
        self.register_buffer("codes", torch.from_numpy(COUNT_RADIX * NUM_DICE).float(), persistent=False)
        self.register_buffer("throws", _throw_table(), persistent=False)

    def code(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the dice as one number, their counts in base 6; (batch,) int64."""
        counts = observations[:, self.dice_start : self.dice_start + NUM_FACES]
        # The codes are below 6**6 and the counts off by less than 1e-7, so rounding is exact.
        return (counts @ self.codes).round_().long().clamp_(0, len(self.throws) - 1)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the index of the throw in ``THROWS``; (batch,) int64."""
        return self.throws[self.code(observations)]


class ThrowFeatures(BaseFeaturesExtractor):
    """The observation, and the throw as one-hot counts and one-hot dice (66 more features)."""

    dice_table: torch.Tensor

    def __init__(self, observation_space: spaces.Box, dice_start: int = 0) -> None:
        """Prepare the table of features.

        Args:
            observation_space: Of the environment.
            dice_start: The first index of the ``dice`` block.
        """
        table = _dice_table()
        super().__init__(observation_space, int(np.prod(observation_space.shape)) + table.shape[1])
        self.read_throw = ThrowReader(dice_start)
        self.register_buffer("dice_table", table, persistent=False)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return (batch, features_dim) float32."""
        return torch.cat([observations, self.dice_table[self.read_throw.code(observations)]], dim=1)


def _tell_where_dice_are(options: dict[str, Any], dice_start: int) -> None:
    """Add where the dice are to the options of a policy that reads ``ThrowFeatures``, unless given."""
    given = options.get("features_extractor_kwargs") or {}
    options["features_extractor_kwargs"] = {"dice_start": dice_start, **given}


class KeepGather(nn.Module):
    """Turns the scores of multisets and boxes into the scores of actions."""

    outputs: torch.Tensor

    def __init__(self, num_actions: int, dice_start: int = 0) -> None:
        """Prepare the table of which output scores which action."""
        super().__init__()
        self.num_outputs = NUM_PARTIAL_KEEPS + num_actions - NUM_KEEP_ACTIONS
        self.read_throw = ThrowReader(dice_start)
        self.register_buffer("outputs", _output_table(num_actions - NUM_KEEP_ACTIONS), persistent=False)

    def forward(self, scores: torch.Tensor, observations: torch.Tensor) -> torch.Tensor:
        """Return (batch, num_actions) from (batch, num_outputs)."""
        return scores.gather(1, self.outputs[self.read_throw(observations)])

    def outputs_of(self, observations: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return which output scores one action of each row; (batch,) int64."""
        return self.outputs[self.read_throw(observations), actions]


def masked_log_softmax(logits: torch.Tensor, masks: torch.Tensor | None) -> torch.Tensor:
    """Return log probabilities with nothing left for actions that are not allowed.

    Args:
        logits: (batch, num_actions) float.
        masks: (batch, num_actions) bool; ``None`` allows everything.
    """
    if masks is not None:
        logits = torch.where(masks, logits, MASKED_LOGIT)
    return logits.log_softmax(dim=1)


def masked_entropy(log_probs: torch.Tensor, masks: torch.Tensor | None) -> torch.Tensor:
    """Return the entropy of each row; (batch,) float."""
    terms = log_probs * log_probs.exp()
    if masks is not None:
        terms = torch.where(masks, terms, 0.0)
    return -terms.sum(dim=1)


def sample(log_probs: torch.Tensor) -> torch.Tensor:
    """Draw an action per row, as ``torch.multinomial`` does for one draw; (batch,) int64.

    An exponential race: the smallest of ``E_i / p_i`` is at ``i`` with probability ``p_i``.
    """
    probs = log_probs.exp()
    return (probs / torch.empty_like(probs).exponential_(1.0)).argmax(dim=1)


class MaskedActorCriticPolicy(MaskableActorCriticPolicy):
    """The policy of sb3-contrib, with the same weights and results but less work.

    No ``torch.distributions`` objects are built on the way; everything else is inherited.
    """

    def action_logits(self, latent: torch.Tensor, observations: torch.Tensor) -> torch.Tensor:
        """Return the score of every action, before masking; (batch, num_actions)."""
        del observations
        logits: torch.Tensor = self.action_net(latent)
        return logits

    def logits_and_values(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores of actions (batch, num_actions), before masking, and values (batch, 1)."""
        features = self.extract_features(observations)
        if isinstance(features, tuple):
            actor, critic = features
            latent = self.mlp_extractor.forward_actor(actor), self.mlp_extractor.forward_critic(critic)
        else:
            latent = self.mlp_extractor(features)
        return self.action_logits(latent[0], observations), self.value_net(latent[1])

    def logits(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the score of every action, before masking; (batch, num_actions)."""
        features = self.extract_features(observations)
        actor = features[0] if isinstance(features, tuple) else features
        return self.action_logits(self.mlp_extractor.forward_actor(actor), observations)

    def _masks(self, masks: NDArray[Any] | torch.Tensor | None) -> torch.Tensor | None:
        if masks is None:
            return None
        tensor = torch.as_tensor(masks, dtype=torch.bool, device=self.device)
        return tensor.reshape(-1, self.action_space.n)  # type: ignore[attr-defined]

    def forward(
        self,
        obs: torch.Tensor,
        deterministic: bool = False,
        action_masks: NDArray[Any] | torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return actions (batch,), values (batch, 1) and log probabilities (batch,)."""
        logits, values = self.logits_and_values(obs)
        log_probs = masked_log_softmax(logits, self._masks(action_masks))
        actions = log_probs.argmax(dim=1) if deterministic else sample(log_probs)
        return actions, values, log_probs.gather(1, actions[:, None])[:, 0]

    def evaluate_actions(
        self,
        obs: torch.Tensor,
        actions: torch.Tensor,
        action_masks: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return values (batch, 1), log probabilities and entropies (batch,)."""
        masks = self._masks(action_masks)
        logits, values = self.logits_and_values(obs)
        log_probs = masked_log_softmax(logits, masks)
        return values, log_probs.gather(1, actions.long()[:, None])[:, 0], masked_entropy(log_probs, masks)

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return an allowed action for each observation; see the parent, which also answers without masks.

        Args:
            observation: (batch, size), or (size,) for a single one.
            state: Passed through.
            episode_start: Not used.
            deterministic: Take the most probable action instead of drawing one.
            action_masks: (batch, num_actions) bool, or (num_actions,).

        Raises:
            MissingMaskError: There is no mask, it does not fit, or a row of it allows nothing.
        """
        num_actions = int(self.action_space.n)  # type: ignore[attr-defined]
        num_rows = None
        if self.observation_space.shape and not isinstance(observation, dict):
            num_rows = np.size(observation) // int(np.prod(self.observation_space.shape))
        masks = required_masks(action_masks, num_actions, num_rows)
        return super().predict(observation, state, episode_start, deterministic, masks)

    def get_distribution(
        self, obs: PyTorchObs, action_masks: NDArray[Any] | None = None
    ) -> MaskableDistribution:
        """Return the distribution over actions as sb3-contrib's object."""
        assert isinstance(obs, torch.Tensor)
        distribution: MaskableDistribution = self.action_dist.proba_distribution(
            action_logits=self.logits(obs)
        )
        if action_masks is not None:
            distribution.apply_masking(action_masks)
        return distribution


class _KeepDistribution(MaskableCategoricalDistribution):
    """A masked categorical distribution whose last layer has one output per multiset and box."""

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return nn.Linear(latent_dim, NUM_PARTIAL_KEEPS + self.action_dim - NUM_KEEP_ACTIONS)


class MultisetKeepPolicy(MaskedActorCriticPolicy):
    """Actor and critic of which the actor scores keeps as multisets.

    Two separate networks of 256 x 256 rectified units, reading the observation and the throw in
    one-hot form, unless told otherwise with the usual arguments.
    """

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] = ThrowFeatures,
        dice_start: int = 0,
        **options: Any,
    ) -> None:
        """Build the networks.

        Args:
            observation_space: Of the environment; the observations must have the ``dice`` block.
            action_space: Of the environment.
            lr_schedule: The learning rate by remaining progress.
            net_arch: Widths of the hidden layers.
            activation_fn: What follows each hidden layer.
            features_extractor_class: What the networks read.
            dice_start: The first index of the ``dice`` block.
            **options: Further options of ``MaskableActorCriticPolicy``.
        """
        self.dice_start = dice_start
        if features_extractor_class is ThrowFeatures:
            _tell_where_dice_are(options, dice_start)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch if net_arch is not None else {"pi": [256, 256], "vf": [256, 256]},
            activation_fn,
            features_extractor_class=features_extractor_class,
            **options,
        )

    def _build(self, lr_schedule: Schedule) -> None:
        num_actions = int(self.action_space.n)  # type: ignore[attr-defined]
        self.gather_keeps = KeepGather(num_actions, self.dice_start)
        self.action_dist = _KeepDistribution(num_actions)
        super()._build(lr_schedule)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "dice_start": self.dice_start}

    def action_logits(self, latent: torch.Tensor, observations: torch.Tensor) -> torch.Tensor:
        """Return the score of every action, before masking; (batch, num_actions)."""
        logits: torch.Tensor = self.gather_keeps(self.action_net(latent), observations)
        return logits


# --- action values ----------------------------------------------------------------------------


def masked_greedy(q_values: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the best allowed action of each row; (batch,) int64."""
    return torch.where(masks, q_values, -torch.inf).argmax(dim=1)


def action_values(network: QNetwork, observations: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """Return the values of one action per row.

    The same as ``network(observations).gather(1, actions[:, None])[:, 0]``, but of the last layer, which
    is two fifths of the network where it scores multisets, only the row of that action is used.

    Args:
        network: Whose values.
        observations: (batch, size) float32.
        actions: (batch,) int64.

    Returns:
        (batch,) float32.
    """
    *hidden, head = network.q_net
    assert isinstance(head, nn.Linear)
    latent = network.extract_features(observations, network.features_extractor)
    for layer in hidden:
        latent = layer(latent)
    if isinstance(network, KeepQNetwork):
        actions = network.gather_keeps.outputs_of(observations, actions)
    return (latent * functional.embedding(actions, head.weight)).sum(dim=1) + head.bias[actions]


class MaskedQPolicy(DQNPolicy):
    """Action values; greedy among the allowed actions, and never asked without a mask."""

    def _predict(
        self,
        obs: PyTorchObs,
        deterministic: bool = True,
        action_masks: NDArray[Any] | torch.Tensor | None = None,
    ) -> torch.Tensor:
        if isinstance(action_masks, torch.Tensor):
            action_masks = action_masks.cpu().numpy()
        q_values = self.q_net(obs)
        masks = required_masks(action_masks, q_values.shape[1], len(q_values))
        return masked_greedy(q_values, torch.as_tensor(masks, device=self.device))

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = True,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return the best allowed action of each observation.

        Args:
            observation: (batch, size), or (size,) for a single one.
            state: Not used.
            episode_start: Not used.
            deterministic: Not used: action values know no other choice.
            action_masks: (batch, num_actions) bool, or (num_actions,).

        Raises:
            MissingMaskError: There is no mask, it does not fit, or a row of it allows nothing.
        """
        self.set_training_mode(False)
        tensor, is_batch = self.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self._predict(tensor, action_masks=action_masks).cpu().numpy()
        return (actions if is_batch else actions[0]), state


class KeepQNetwork(QNetwork):
    """Action values of which those of keeps are scored as multisets."""

    def __init__(self, *args: Any, dice_start: int = 0, **kwargs: Any) -> None:
        """Build the network; see ``QNetwork``, and ``MultisetKeepPolicy`` for ``dice_start``."""
        super().__init__(*args, **kwargs)
        self.gather_keeps = KeepGather(int(self.action_space.n), dice_start)
        layers = create_mlp(
            self.features_dim, self.gather_keeps.num_outputs, self.net_arch, self.activation_fn
        )
        self.q_net = nn.Sequential(*layers)

    def forward(self, obs: PyTorchObs) -> torch.Tensor:
        """Return the value of every action, allowed or not; (batch, num_actions)."""
        assert isinstance(obs, torch.Tensor)
        values: torch.Tensor = self.gather_keeps(super().forward(obs), obs)
        return values


class MultisetKeepQPolicy(MaskedQPolicy):
    """Action values with keeps scored as multisets; 256 x 256 rectified units unless told otherwise."""

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        net_arch: list[int] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] = ThrowFeatures,
        dice_start: int = 0,
        **options: Any,
    ) -> None:
        """Build the networks; see ``MultisetKeepPolicy``."""
        self.dice_start = dice_start
        if features_extractor_class is ThrowFeatures:
            _tell_where_dice_are(options, dice_start)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch if net_arch is not None else [256, 256],
            activation_fn,
            features_extractor_class=features_extractor_class,
            **options,
        )

    def make_q_net(self) -> QNetwork:
        """Return a network for the values of actions."""
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return KeepQNetwork(**arguments, dice_start=self.dice_start).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "dice_start": self.dice_start}
