"""PPO with masked actions: sb3-contrib's ``MaskablePPO``, the same in what it learns, with less work.

What differs: masks travel as one bool array, no per-environment Python in the rollout, no
``torch.distributions``, metrics are fetched once per update instead of once per minibatch, and the
optimizer is fused. ``ent_coef`` may be a schedule, like the learning rate and the clip range.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer, MaskableRolloutBufferSamples
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import FloatSchedule, explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch.nn import functional

from agents.learning.fused import APPROX_KL, LOSS, FusedUpdate, can_fuse
from agents.learning.networks import MaskedActorCriticPolicy, MultisetKeepPolicy
from agents.learning.progress import WholeUpdates
from agents.learning.rollout import RolloutArrays, ThrowSamples
from agents.learning.vec_env import GeneralaVecEnv


class Losses(NamedTuple):
    """The loss of a minibatch and its parts; scalars.

    Attributes:
        loss: What is minimised.
        policy: The clipped surrogate.
        value: Mean squared error of the values.
        entropy: Minus the mean entropy.
        approx_kl: An estimate of the divergence from the policy that acted.
        clip_fraction: The share of ratios outside the clip range.
    """

    loss: torch.Tensor
    policy: torch.Tensor
    value: torch.Tensor
    entropy: torch.Tensor
    approx_kl: torch.Tensor
    clip_fraction: torch.Tensor


class PPO(WholeUpdates, MaskablePPO):
    """Proximal policy optimisation with masked actions; used like ``MaskablePPO``.

    On a ``GeneralaVecEnv`` the rollout does no work per environment; any other environment that
    ``MaskablePPO`` accepts is collected from by the parent's own code. ``policy`` may also be
    ``"MultisetKeepPolicy"``. ``ent_coef`` may be a function of the remaining progress.

    ``throw_lambda`` (with a ``GeneralaVecEnv``) takes the luck of the dice out of the advantages, with
    a critic that also values afterstates; see ``RolloutArrays``. ``None``, the
    default, is the parent's generalised advantage estimation.
    """

    fuses_updates: bool = True
    """Whether to update networks that ``agents.learning.fused`` knows by hand instead of by autograd."""

    def __init__(
        self, *args: Any, throw_lambda: float | None = None, value_lambda: float = 0.5, **options: Any
    ) -> None:
        """Make the learner.

        Args:
            *args: Of ``MaskablePPO``.
            throw_lambda: How much of the luck of a throw is let through to the decision before it,
                0 to 1.
            value_lambda: How far the targets of the values look ahead, 0 to 1; used with
                ``throw_lambda``.
            **options: Of ``MaskablePPO``.

        Raises:
            ValueError: One of them is not from 0 to 1.
        """
        for name, value in (("throw_lambda", throw_lambda), ("value_lambda", value_lambda)):
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}: {value} is not from 0 to 1")
        self.throw_lambda = throw_lambda
        self.value_lambda = value_lambda
        super().__init__(*args, **options)

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        **MaskablePPO.policy_aliases,
        "MlpPolicy": MaskedActorCriticPolicy,
        "MultisetKeepPolicy": MultisetKeepPolicy,
    }

    def _setup_model(self) -> None:
        if self.rollout_buffer_class is None and self.observation_space.shape:
            self.rollout_buffer_class = RolloutArrays
        kwargs = {"eps": 1e-5, "fused": True}
        if self.policy_kwargs.get("optimizer_class", torch.optim.Adam) is torch.optim.Adam:
            self.policy_kwargs = {
                **self.policy_kwargs,
                "optimizer_kwargs": {**kwargs, **(self.policy_kwargs.get("optimizer_kwargs") or {})},
            }
        super()._setup_model()
        self.entropy_schedule = FloatSchedule(self.ent_coef)
        if self.throw_lambda is not None:
            if not isinstance(self.rollout_buffer, RolloutArrays):
                raise ValueError("throw_lambda: needs the rollout buffer of this class")
            self.rollout_buffer.throw_lambda = self.throw_lambda
            self.rollout_buffer.value_lambda = self.value_lambda
            self.rollout_buffer.reset()

    def _steps_per_update(self) -> int:
        return self.n_steps * self.n_envs

    # --- collecting ---------------------------------------------------------------------

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Play ``n_rollout_steps`` in every environment and fill the buffer; see the parent.

        Returns:
            Whether the callback wants to go on.
        """
        if not (
            isinstance(env, GeneralaVecEnv) and isinstance(rollout_buffer, RolloutArrays) and use_masking
        ):
            if self.throw_lambda is not None:
                raise ValueError("throw_lambda: needs a GeneralaVecEnv, which knows its throws")
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps, use_masking)
        assert self._last_obs is not None
        assert self.ep_info_buffer is not None
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        dones = np.asarray(self._last_episode_starts)
        for _ in range(n_rollout_steps):
            action_masks = env.action_masks()
            with torch.no_grad():
                observations = torch.as_tensor(self._last_obs, device=self.device)
                actions, values, log_probs = self.policy(observations, action_masks=action_masks)
            clipped_actions = actions.cpu().numpy()
            new_obs, rewards, dones, infos = env.step(clipped_actions)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self.ep_info_buffer.extend(infos[index]["episode"] for index in env.ended)
            if self.throw_lambda is not None:
                throws = env.throws()
                with torch.no_grad():
                    known = torch.as_tensor(throws.afterstates, device=self.device)
                    rollout_buffer.add_throws(throws, self.policy.predict_values(known))
            rollout_buffer.add(
                self._last_obs,
                clipped_actions.reshape(-1, 1),
                rewards,
                self._last_episode_starts,
                values,
                log_probs,
                action_masks=action_masks,
            )
            self._last_obs = new_obs  # type: ignore[assignment]
            self._last_episode_starts = dones
        with torch.no_grad():
            values = self.policy.predict_values(torch.as_tensor(self._last_obs, device=self.device))
        rollout_buffer.compute_returns_and_advantage(last_values=values, dones=dones)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    # --- learning -------------------------------------------------------------------------

    def losses(
        self,
        batch: MaskableRolloutBufferSamples | ThrowSamples,
        clip_range: float,
        ent_coef: float,
        clip_range_vf: float | None = None,
    ) -> Losses:
        """Return the loss of a minibatch, as in the parent.

        The clipped surrogate of J. Schulman et al., "Proximal Policy Optimization Algorithms"
        (2017), equations 7 and 9; the divergence is the third estimator of J. Schulman,
        "Approximating KL Divergence" (2020).
        """
        values, log_probs, entropy = self.policy.evaluate_actions(
            batch.observations, batch.actions.long().flatten(), action_masks=batch.action_masks
        )
        values = values.flatten()
        advantages = batch.advantages
        if self.normalize_advantage:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        log_ratio = log_probs - batch.old_log_prob
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
        policy_loss = -torch.min(advantages * ratio, advantages * clipped).mean()
        if clip_range_vf is not None:
            change = (values - batch.old_values).clamp(-clip_range_vf, clip_range_vf)
            values = batch.old_values + change
        value_loss = functional.mse_loss(batch.returns, values)
        if isinstance(batch, ThrowSamples):
            afterstate_errors = (
                self.policy.predict_values(batch.afterstates).flatten() - batch.afterstate_returns
            )
            value_loss = value_loss + (batch.throw_made * afterstate_errors.square()).mean()
        entropy_loss = -(-log_probs if entropy is None else entropy).mean()
        loss = policy_loss + ent_coef * entropy_loss + self.vf_coef * value_loss
        with torch.no_grad():
            approx_kl = (ratio - 1 - log_ratio).mean()
            clip_fraction = ((ratio - 1).abs() > clip_range).float().mean()
        return Losses(loss, policy_loss, value_loss, entropy_loss, approx_kl, clip_fraction)

    def train(self) -> None:
        """Update the networks on the collected decisions; see the parent."""
        policy, buffer = self.policy, self.rollout_buffer
        policy.set_training_mode(True)
        self._update_learning_rate(policy.optimizer)
        progress = self._current_progress_remaining
        clip_range = self.clip_range(progress)  # type: ignore[operator]
        clip_range_vf = None if self.clip_range_vf is None else self.clip_range_vf(progress)  # type: ignore[operator]
        ent_coef = self.entropy_schedule(progress)
        if self.fuses_updates and isinstance(buffer, RolloutArrays) and can_fuse(policy):
            metrics, last_epoch = self._update_fused(buffer, clip_range, ent_coef, clip_range_vf)
        else:
            metrics, last_epoch = self._update(clip_range, ent_coef, clip_range_vf)
        mean = Losses(*metrics.mean(axis=0))
        record = self.logger.record
        record("train/entropy_loss", mean.entropy)
        record("train/policy_gradient_loss", mean.policy)
        record("train/value_loss", mean.value)
        record("train/approx_kl", metrics[last_epoch:, APPROX_KL].mean())
        record("train/clip_fraction", mean.clip_fraction)
        record("train/loss", metrics[-1, LOSS])
        record("train/explained_variance", explained_variance(buffer.values.ravel(), buffer.returns.ravel()))
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", clip_range)
        record("train/ent_coef", ent_coef)
        if clip_range_vf is not None:
            record("train/clip_range_vf", clip_range_vf)

    def _is_too_far(self, approx_kl: float) -> bool:
        return self.target_kl is not None and approx_kl > 1.5 * self.target_kl

    def _update(
        self, clip_range: float, ent_coef: float, clip_range_vf: float | None
    ) -> tuple[NDArray[Any], int]:
        """Run all epochs with autograd and the policy's optimizer.

        Returns:
            (minibatches, 6), the metrics as in ``Losses``, and where the last epoch begins.
        """
        policy = self.policy
        parameters = list(policy.parameters())
        seen: list[torch.Tensor] = []
        last_epoch = 0
        for _ in range(self.n_epochs):
            last_epoch = len(seen)
            self._n_updates += 1
            for batch in self.rollout_buffer.get(self.batch_size):
                losses = self.losses(batch, clip_range, ent_coef, clip_range_vf)
                seen.append(torch.stack([part.detach() for part in losses]))
                if self.target_kl is not None and self._is_too_far(losses.approx_kl.item()):
                    return torch.stack(seen).cpu().numpy(), last_epoch
                policy.optimizer.zero_grad(set_to_none=False)
                losses.loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
                policy.optimizer.step()
        return torch.stack(seen).cpu().numpy(), last_epoch

    def _update_fused(
        self, buffer: RolloutArrays, clip_range: float, ent_coef: float, clip_range_vf: float | None
    ) -> tuple[NDArray[Any], int]:
        """Like ``_update``, by ``FusedUpdate``: the same minibatches, the same results to rounding."""
        update = FusedUpdate(self.policy)  # type: ignore[arg-type]
        arrays, throws = buffer.flat(), buffer.flat_throws()
        update.begin(arrays[0], None if throws is None else throws[0])
        seen: list[NDArray[np.float64]] = []
        last_epoch = 0
        is_over = False
        with torch.no_grad():
            for _ in range(self.n_epochs):
                last_epoch = len(seen)
                self._n_updates += 1
                for rows in buffer.minibatches(self.batch_size):
                    metrics = update.gradients_of(
                        rows,
                        arrays[1:],
                        normalize=self.normalize_advantage,
                        clip_range=clip_range,
                        clip_range_vf=clip_range_vf,
                        ent_coef=ent_coef,
                        vf_coef=self.vf_coef,
                        throws=None if throws is None else throws[1:],
                    )
                    seen.append(metrics)
                    is_over = self._is_too_far(metrics[APPROX_KL])
                    if is_over:
                        break
                    norm = update.norm()
                    if not math.isfinite(norm):
                        update.write_back()
                        self._retrace(rows, clip_range, ent_coef, clip_range_vf)
                    # As torch.nn.utils.clip_grad_norm_ does.
                    update.step(min(self.max_grad_norm / (norm + 1e-6), 1.0))
                if is_over:
                    break
        update.write_back()
        return np.stack(seen), last_epoch

    def _retrace(
        self, rows: NDArray[np.int64], clip_range: float, ent_coef: float, clip_range_vf: float | None
    ) -> None:
        """Go through a minibatch again with autograd, for whoever watches modules and gradients with hooks.

        Called where a gradient is not finite: the hooks see in which tensor that begins.
        """
        buffer = self.rollout_buffer
        assert isinstance(buffer, RolloutArrays)
        with torch.enable_grad():
            losses = self.losses(buffer.batch(rows), clip_range, ent_coef, clip_range_vf)
            losses.loss.backward()  # type: ignore[no-untyped-call]

    # --- saving ---------------------------------------------------------------------------

    def export_sb3(self, path: str | Path) -> None:
        """Write a zip that stable-baselines3 reads: ``MaskablePPO.load(path)``.

        With ``"MlpPolicy"`` nothing of this package is needed to load it; a ``MultisetKeepPolicy``
        is found only where ``agents.learning.networks`` can be imported.

        Args:
            path: The file; ``.zip`` is appended if it has no suffix.
        """
        stock = MaskablePPO.__new__(MaskablePPO)
        vars(stock).update(vars(self))
        del stock.entropy_schedule, stock.throw_lambda, stock.value_lambda  # type: ignore[attr-defined]
        stock.ent_coef = self.entropy_schedule(self._current_progress_remaining)
        stock.rollout_buffer_class = MaskableRolloutBuffer
        if self.policy_class is MaskedActorCriticPolicy:
            stock.policy_class = MaskableActorCriticPolicy
        stock.save(path)
