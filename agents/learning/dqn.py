"""DQN in which every step knows the masks: stable-baselines3's ``DQN`` on the batched environment.

Warm-up, exploration, greedy actions and the arg max of the target see only allowed actions. The
replay buffer stores states, a few bytes each, and makes observations and masks from them when it is
sampled. Nothing is done environment by environment.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import RolloutReturn, TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.vec_env import VecEnv
from torch.nn import functional

from agents.learning.networks import (
    MaskedQPolicy,
    MultisetKeepQPolicy,
    action_values,
    masked_greedy,
    required_masks,
)
from agents.learning.progress import WholeUpdates
from agents.learning.replay import StateReplay, Transitions
from agents.learning.vec_env import GeneralaVecEnv


class MaskableDQN(WholeUpdates, DQN):
    """Deep Q-learning with masked actions on a ``GeneralaVecEnv``; used like ``DQN``.

    ``policy`` may be ``"MlpPolicy"`` or ``"MultisetKeepPolicy"``. Targets are those of Double DQN
    (H. van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning", 2016) over
    ``n_steps`` steps. ``predict`` and the policy refuse to choose without a mask.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MaskedQPolicy,
        "MultisetKeepPolicy": MultisetKeepQPolicy,
    }
    policy: MaskedQPolicy
    replay_buffer: StateReplay | None  # type: ignore[assignment]

    def _setup_model(self) -> None:
        if self.env is not None and not isinstance(self.env, GeneralaVecEnv):
            raise TypeError(f"env: {type(self.env).__name__} is not a GeneralaVecEnv, which knows the states")
        if self.policy_kwargs.get("optimizer_class", torch.optim.Adam) is torch.optim.Adam:
            given = self.policy_kwargs.get("optimizer_kwargs") or {}
            self.policy_kwargs = {**self.policy_kwargs, "optimizer_kwargs": {"fused": True, **given}}
        # The parent makes a buffer only where there is none, and warns of other classes of them.
        self.replay_buffer_class = None
        self.replay_buffer = self._make_replay()
        buffer_size = self.buffer_size
        if self.replay_buffer is None:
            self.buffer_size = 1
        with warnings.catch_warnings():
            # One update of the target network per step of all environments is what is meant here.
            warnings.filterwarnings("ignore", "The number of environments used is greater")
            super()._setup_model()
        self.buffer_size = buffer_size
        if self.env is None:
            self.replay_buffer = None

    def _make_replay(self) -> StateReplay | None:
        if self.env is None:
            return None
        assert isinstance(self.env, GeneralaVecEnv)
        assert isinstance(self.observation_space, spaces.Box)
        assert isinstance(self.action_space, spaces.Discrete)
        return StateReplay(
            self.buffer_size,
            self.observation_space,
            self.action_space,
            self.env.env.tables,
            device=self.device,
            n_envs=self.n_envs,
            n_steps=self.n_steps,
            gamma=self.gamma,
        )

    # --- choosing ---------------------------------------------------------------------------

    def _steps_per_update(self) -> int:
        frequency = self.train_freq
        assert isinstance(frequency, TrainFreq)
        # Counted in episodes, rounds have no length of their own.
        is_steps = frequency.unit is TrainFrequencyUnit.STEP
        return self.n_envs * frequency.frequency if is_steps else 1

    def _random_actions(self, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Draw an allowed action per row, each equally likely."""
        draws = self.action_space.np_random.random(masks.shape, dtype=np.float32)
        # A draw may be 0.0, so what is not allowed is below that.
        best: NDArray[np.int64] = np.where(masks, draws, -1.0).argmax(axis=1)
        return best

    def _explore(
        self, actions: NDArray[np.int64], masks: NDArray[np.bool_], share: float
    ) -> NDArray[np.int64]:
        """Replace each action, by a coin of its own, by a random allowed one."""
        chosen = np.flatnonzero(self.action_space.np_random.random(len(actions)) < share)
        if len(chosen):
            actions[chosen] = self._random_actions(masks[chosen])
        return actions

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return an allowed action for each observation, exploring unless ``deterministic``.

        Args:
            observation: (batch, size), or (size,) for a single one.
            state: Passed through.
            episode_start: Not used.
            deterministic: Always take the best action.
            action_masks: (batch, num_actions) bool, or (num_actions,).

        Raises:
            MissingMaskError: There is no mask, it does not fit, or a row of it allows nothing.
        """
        assert isinstance(self.action_space, spaces.Discrete)
        masks = required_masks(action_masks, int(self.action_space.n))
        actions, state = self.policy.predict(observation, state, episode_start, True, masks)
        if not deterministic:
            rows = np.atleast_1d(actions).astype(np.int64)
            explored = self._explore(rows, masks, self.exploration_rate)
            actions = explored if np.ndim(actions) else explored[0]
        return actions, state

    # --- collecting -------------------------------------------------------------------------

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: StateReplay,  # type: ignore[override]
        action_noise: ActionNoise | None = None,
        learning_starts: int = 0,
        log_interval: int | None = None,
    ) -> RolloutReturn:
        """Play ``train_freq`` steps in every environment; see the parent."""
        assert isinstance(env, GeneralaVecEnv)
        assert self.ep_info_buffer is not None
        if train_freq.unit != TrainFrequencyUnit.STEP:
            raise ValueError(f"train_freq: the unit {train_freq.unit.value!r} is not 'step'")
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        episodes = 0
        for collected in range(1, train_freq.frequency + 1):
            masks = env.action_masks()
            state = env.env.batch.state.copy()
            if self.num_timesteps < learning_starts:
                actions = self._random_actions(masks)
            else:
                assert isinstance(self._last_obs, np.ndarray)
                actions, _ = self.predict(self._last_obs, deterministic=False, action_masks=masks)
            new_obs, rewards, dones, infos = env.step(actions)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return RolloutReturn(collected * env.num_envs, episodes, continue_training=False)
            self.ep_info_buffer.extend(infos[index]["episode"] for index in env.ended)
            replay_buffer.add(state, actions, rewards, dones)
            self._last_obs = new_obs  # type: ignore[assignment]
            self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
            self._on_step()
            before = self._episode_num
            episodes += len(env.ended)
            self._episode_num += len(env.ended)
            if log_interval is not None and before // log_interval != self._episode_num // log_interval:
                self.dump_logs()
        callback.on_rollout_end()
        return RolloutReturn(train_freq.frequency * env.num_envs, episodes, continue_training=True)

    # --- learning ---------------------------------------------------------------------------

    def targets(self, batch: Transitions) -> torch.Tensor:
        """Return what the values of the actions taken should be; (batch,) float32.

        ``r + gamma^n Q_target(s', argmax_a Q(s', a))`` over the actions allowed in ``s'``, and
        ``r`` alone where the episode ended: whatever the networks say of the next game there,
        be it NaN, does not enter.
        """
        with torch.no_grad():
            best = masked_greedy(self.q_net(batch.next_observations), batch.next_masks)
            values = action_values(self.q_net_target, batch.next_observations, best)
            return torch.where(batch.dones, batch.rewards, batch.rewards + batch.discounts * values)

    def loss(self, batch: Transitions) -> torch.Tensor:
        """Return the mean Huber loss of a sample; a scalar."""
        values = action_values(self.q_net, batch.observations, batch.actions)
        return functional.smooth_l1_loss(values, self.targets(batch))

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Sample and update; see the parent."""
        assert self.replay_buffer is not None
        if self.replay_buffer.num_samples == 0:
            return
        policy = self.policy
        policy.set_training_mode(True)
        self._update_learning_rate(policy.optimizer)
        parameters = list(self.q_net.parameters())
        losses = []
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size)
            loss = self.loss(batch)
            losses.append(loss.detach())
            if not math.isfinite(losses[-1].item()):
                self._retrace(batch)
            policy.optimizer.zero_grad(set_to_none=False)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
            policy.optimizer.step()
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", torch.stack(losses).mean().item())

    def _retrace(self, batch: Transitions) -> None:
        """Ask the whole networks about a sample, for whoever watches modules with hooks.

        Called where the loss is not finite: ``action_values`` goes past the last layer as a module.
        """
        with torch.no_grad():
            self.q_net_target(batch.next_observations)
            self.q_net(batch.observations)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "replay_buffer_class"]

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Go on in other environments of the same variant; see the parent."""
        super().set_env(env, force_reset)
        if self.replay_buffer is None:
            self.replay_buffer = self._make_replay()
