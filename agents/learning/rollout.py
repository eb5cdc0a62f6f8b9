"""What PPO collects between two updates."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer, MaskableRolloutBufferSamples

from agents.learning.vec_env import Throws


class ThrowSamples(NamedTuple):
    """A minibatch of decisions, each with the throw that followed it.

    Attributes:
        observations: And so on, as in ``MaskableRolloutBufferSamples``.
        afterstates: (batch, size) float32, the afterstate that was thrown from.
        afterstate_returns: (batch,) float32, what its value is to be.
        throw_made: (batch,) float32, 0 where no throw followed.
    """

    observations: torch.Tensor
    actions: torch.Tensor
    old_values: torch.Tensor
    old_log_prob: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    action_masks: torch.Tensor
    afterstates: torch.Tensor
    afterstate_returns: torch.Tensor
    throw_made: torch.Tensor


class RolloutArrays(MaskableRolloutBuffer):
    """sb3-contrib's rollout buffer with masks as bool and minibatches gathered by torch.

    With ``throw_lambda`` it also holds the throw that followed each decision, and takes the luck of
    the dice out of the advantages. Decisions and throws alternate; with ``V`` the value of a state
    and ``W`` that of an afterstate (what is known before a throw), the two kinds of steps have errors
    ``d = r + W - V`` (no luck in it) and ``c = r' + gamma V' - W`` (nothing but luck, in the mean
    zero once ``W`` is right), and the advantage of a decision is
    ``d + throw_lambda (c + gamma gae_lambda A')``. At 1 that is generalised advantage estimation
    (J. Schulman et al., 2016); at 0 a decision is judged before its dice fall. The targets of both
    values use ``value_lambda`` in the place of both parameters. Afterstates: R. Sutton and A.
    Barto, "Reinforcement Learning" (2018), section 6.8.
    """

    throw_lambda: float | None = None
    value_lambda: float = 0.5

    def reset(self) -> None:
        """Empty the buffer."""
        super().reset()
        self.action_masks = np.ones(self.action_masks.shape, dtype=bool)
        if self.throw_lambda is not None:
            shape = (self.buffer_size, self.n_envs)
            self.afterstates = np.zeros((*shape, *self.obs_shape), dtype=np.float32)
            self.afterstate_values, self.throw_rewards, self.afterstate_returns, self.throw_made = (
                np.zeros(shape, dtype=np.float32) for _ in range(4)
            )

    def add_throws(self, throws: Throws, values: torch.Tensor) -> None:
        """Add the throws that followed the decisions to be added next.

        Args:
            throws: The afterstates they fell upon, and what they paid.
            values: (n_envs, 1) float32, its value.
        """
        self.afterstates[self.pos] = throws.afterstates
        self.throw_rewards[self.pos] = throws.rewards
        self.throw_made[self.pos] = throws.made
        self.afterstate_values[self.pos] = values.flatten().cpu().numpy() * throws.made

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: NDArray[np.bool_]) -> None:
        """Fill advantages and returns once the rollout is complete; see the parent.

        Args:
            last_values: (n_envs, 1) float32, values of the states after the last step.
            dones: (n_envs,) bool, whether the last step ended an episode.
        """
        if self.throw_lambda is None:
            super().compute_returns_and_advantage(last_values, dones)
            return
        next_values = last_values.flatten().cpu().numpy()
        goes_on = 1.0 - dones.astype(np.float32)
        advantages, errors = np.zeros((2, self.n_envs), dtype=np.float32)
        for step in reversed(range(self.buffer_size)):
            values, afterstate_values = self.values[step], self.afterstate_values[step]
            decided = self.rewards[step] - self.throw_rewards[step] + afterstate_values - values
            thrown = self.throw_rewards[step] + self.gamma * goes_on * next_values - afterstate_values
            carried = self.gamma * goes_on
            advantages = decided + self.throw_lambda * (thrown + carried * self.gae_lambda * advantages)
            self.advantages[step] = advantages
            thrown = thrown + carried * self.value_lambda * errors
            errors = decided + self.value_lambda * thrown
            self.afterstate_returns[step] = afterstate_values + thrown
            self.returns[step] = values + errors
            next_values = values
            goes_on = 1.0 - self.episode_starts[step]

    def get(  # type: ignore[override]
        self, batch_size: int | None = None
    ) -> Generator[MaskableRolloutBufferSamples | ThrowSamples, None, None]:
        """Yield minibatches in a random order, the same that the parent would draw.

        Args:
            batch_size: Decisions per minibatch; ``None`` for all.
        """
        for rows in self.minibatches(batch_size):
            yield self.batch(rows)

    def batch(self, rows: NDArray[np.int64]) -> MaskableRolloutBufferSamples | ThrowSamples:
        """Return the decisions in the given rows of ``flat()``."""
        observations, masks, actions, log_probs, advantages, returns, values = (
            torch.from_numpy(array) for array in self.flat()
        )
        ordered = (observations, actions[:, None], values, log_probs, advantages, returns, masks)
        chosen = torch.from_numpy(rows)
        throws = self.flat_throws()
        if throws is None:
            return MaskableRolloutBufferSamples(
                *(tensor.index_select(0, chosen).to(self.device) for tensor in ordered)
            )
        known = (torch.from_numpy(array) for array in throws)
        return ThrowSamples(
            *(tensor.index_select(0, chosen).to(self.device) for tensor in (*ordered, *known))
        )

    def flat(self) -> tuple[NDArray[Any], ...]:
        """Return all decisions, by step and then by environment, without copying.

        Returns:
            Observations (size, width), masks (size, num_actions), actions, old log probabilities,
            advantages, returns and old values (size,).
        """
        assert self.full
        size = self.buffer_size * self.n_envs
        return (
            self.observations.reshape(size, *self.obs_shape),
            self.action_masks.reshape(size, self.mask_dims),
            self.actions.reshape(size),
            self.log_probs.reshape(size),
            self.advantages.reshape(size),
            self.returns.reshape(size),
            self.values.reshape(size),
        )

    def flat_throws(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]] | None:
        """Return the throws that followed the decisions of ``flat()``, without copying.

        Returns:
            The afterstates (size, width), their returns and whether there was one (size,);
            ``None`` without ``throw_lambda``.
        """
        if self.throw_lambda is None:
            return None
        size = self.buffer_size * self.n_envs
        return (
            self.afterstates.reshape(size, *self.obs_shape),
            self.afterstate_returns.reshape(size),
            self.throw_made.reshape(size),
        )

    def minibatches(self, batch_size: int | None) -> Generator[NDArray[np.int64], None, None]:
        """Yield the rows of ``flat()`` in minibatches, in the random order that the parent would draw.

        Args:
            batch_size: Decisions per minibatch; ``None`` for all.
        """
        size = self.buffer_size * self.n_envs
        order = np.random.permutation(size)  # noqa: NPY002 - the generator of stable-baselines3
        # The parent counts by environment first, the arrays lie by step first.
        order = order % self.buffer_size * self.n_envs + order // self.buffer_size
        step = size if batch_size is None else batch_size
        for start in range(0, size, step):
            yield order[start : start + step]
