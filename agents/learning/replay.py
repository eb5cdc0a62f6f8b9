"""The replay buffer of the DQN: states of the kernel instead of observations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.vec_env import VecNormalize

from generala_env.envs.kernel_tables import KernelTables
from generala_env.envs.stepping import CARD, KEPT, SERVED, THROW, THROW_NUMBER, encode
from generala_env.rules.compiled import TurnBatch


class Transitions(NamedTuple):
    """A sample of the replay buffer.

    Attributes:
        observations: (batch, size) float32.
        actions: (batch,) int64.
        rewards: (batch,) float32, the discounted rewards until ``next_observations``.
        next_observations: (batch, size) float32; of some other game where ``dones``.
        next_masks: (batch, num_actions) bool, at least one true in each row.
        dones: (batch,) bool, whether the episode ended before ``next_observations``.
        discounts: (batch,) float32, what the value of ``next_observations`` is multiplied by.
    """

    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    next_observations: torch.Tensor
    next_masks: torch.Tensor
    dones: torch.Tensor
    discounts: torch.Tensor


class StateReplay(BaseBuffer):
    """A replay buffer of states: 14 bytes a step, from which observations and masks are made again.

    Row ``t`` holds the state in which the action was chosen; the state that followed it is the
    one in the next row. A sample therefore never begins in the newest ``n_steps`` rows.

    Attributes:
        card: (rows, n_envs) int32; likewise ``throw``, ``throw_number``, ``kept`` uint8, ``served``
            bool, ``action`` uint8, ``reward`` float32 and ``done`` bool.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Box,
        action_space: spaces.Discrete,
        tables: KernelTables,
        *,
        device: torch.device | str = "cpu",
        n_envs: int = 1,
        n_steps: int = 1,
        gamma: float = 1.0,
    ) -> None:
        """Make an empty buffer.

        Args:
            buffer_size: Steps to hold, all environments together.
            observation_space: Of one environment.
            action_space: Of one environment.
            tables: What observations and masks are gathered from.
            device: Where samples go.
            n_envs: How many environments fill it.
            n_steps: Over how many steps rewards are summed.
            gamma: Their discount.

        Raises:
            ValueError: The buffer is too small to ever hold a sample.
        """
        rows = buffer_size // n_envs
        if rows <= n_steps:
            raise ValueError(
                f"buffer_size: {buffer_size} holds {rows} steps of each of {n_envs} environments, "
                f"but a sample of n_steps={n_steps} needs at least {n_steps + 1}"
            )
        super().__init__(rows, observation_space, action_space, device, n_envs=n_envs)
        self.tables = tables
        self.n_steps = n_steps
        self.gamma = gamma
        shape = (rows, n_envs)
        self.card = np.zeros(shape, dtype=np.int32)
        self.throw = np.zeros(shape, dtype=np.uint8)
        self.throw_number = np.ones(shape, dtype=np.uint8)
        self.served = np.zeros(shape, dtype=bool)
        self.kept = np.zeros(shape, dtype=np.uint8)
        self.action = np.zeros(shape, dtype=np.uint8)
        self.reward = np.zeros(shape, dtype=np.float32)
        self.done = np.zeros(shape, dtype=bool)

    def add(
        self,
        state: NDArray[np.int32],
        actions: NDArray[Any],
        rewards: NDArray[Any],
        dones: NDArray[np.bool_],
    ) -> None:
        """Store one step of every environment.

        Args:
            state: (n_envs, 8) int32, rows of ``Batch.state`` before the step.
            actions: (n_envs,) integer.
            rewards: (n_envs,) float.
            dones: (n_envs,) bool.
        """
        row = self.pos
        self.card[row] = state[:, CARD]
        self.throw[row] = state[:, THROW]
        self.throw_number[row] = state[:, THROW_NUMBER]
        self.served[row] = state[:, SERVED]
        self.kept[row] = state[:, KEPT]
        self.action[row] = actions
        self.reward[row] = rewards
        self.done[row] = dones
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full = True
            self.pos = 0

    @property
    def num_samples(self) -> int:
        """How many different transitions can be sampled now."""
        return max(self.size() - self.n_steps, 0) * self.n_envs

    def sample(
        self, batch_size: int, env: VecNormalize | None = None, *, rng: np.random.Generator | None = None
    ) -> Transitions:
        """Draw transitions, each equally likely, with replacement.

        Args:
            batch_size: How many.
            env: Not used.
            rng: What to draw from; the generator of the action space if ``None``.

        Raises:
            ValueError: Nothing can be sampled yet.
        """
        del env
        if self.num_samples == 0:
            raise ValueError(f"the buffer holds {self.size()} steps, but n_steps={self.n_steps} needs more")
        rng = self.action_space.np_random if rng is None else rng
        drawn = rng.integers(self.num_samples, size=batch_size)
        oldest = self.pos if self.full else 0
        return self.transitions((drawn // self.n_envs + oldest) % self.buffer_size, drawn % self.n_envs)

    def transitions(self, rows: NDArray[Any], envs: NDArray[Any]) -> Transitions:
        """Return the transitions that begin in the given rows of the given environments."""
        rewards = self.reward[rows, envs].copy()
        dones = self.done[rows, envs].copy()
        discounts = np.full(len(rows), self.gamma, dtype=np.float32)
        later = (rows + 1) % self.buffer_size
        for _ in range(1, self.n_steps):
            # Past the end of the episode nothing is added, whatever stands in the next row.
            rewards += np.where(dones, 0.0, discounts * self.reward[later, envs]).astype(np.float32)
            dones |= self.done[later, envs]
            discounts *= np.float32(self.gamma)
            later = (later + 1) % self.buffer_size
        observations, _ = encode(self._states(rows, envs), self.tables)
        next_observations, next_masks = encode(self._states(later, envs), self.tables)
        arrays = (
            observations,
            self.action[rows, envs].astype(np.int64),
            rewards,
            next_observations,
            next_masks,
            dones,
            discounts,
        )
        return Transitions(*(torch.from_numpy(array).to(self.device) for array in arrays))

    def _states(self, rows: NDArray[Any], envs: NDArray[Any]) -> TurnBatch:
        where = (rows, envs)
        return TurnBatch(
            self.card[where],
            self.throw[where],
            self.throw_number[where],
            self.served[where],
            self.kept[where],
        )

    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
        raise NotImplementedError("transitions() takes rows and environments")
