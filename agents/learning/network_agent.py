"""A trained network as an agent that plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agents.base import Agent, batched
from agents.learning.networks import MaskedActorCriticPolicy, MaskedQPolicy, masked_log_softmax
from generala_env.envs.observation import ObservationLayout


def padded_size(batch: int) -> int:
    """Return how many rows a batch is filled up to, at most a third more: four sizes between powers of two.

    In low precision, torch keeps a compiled product for every size it has met, about 0.4 MB each: without
    this, an exact evaluation, whose batches all differ, holds gigabytes after a few hundred of them.
    """
    step = 1 << max((batch - 1).bit_length() - 3, 0)
    return -(-batch // step) * step


class NetworkAgent(Agent):
    """A trained policy as an agent: an actor samples, action values are greedy."""

    def __init__(
        self,
        name: str,
        layout: ObservationLayout,
        policy: MaskedActorCriticPolicy | MaskedQPolicy,
        *,
        seed: int | None = None,
    ) -> None:
        """Bind a policy to the observations it was trained on.

        Args:
            name: How it is called.
            layout: The observations it reads.
            policy: The networks.
            seed: Seed of what it samples; ``None`` draws one.
        """
        self.name = name
        self.layout = layout
        self.policy = policy
        self.generator = torch.Generator()
        self.reset(seed)

    def reset(self, seed: int | None = None) -> None:
        """Restart the generator with a seed; ``None`` draws one."""
        if seed is None:
            self.generator.seed()
        else:
            self.generator.manual_seed(seed)

    def _scores(self, observations: NDArray[Any], action_masks: NDArray[Any]) -> torch.Tensor:
        """Return log probabilities or action values; far below all others where masked."""
        policy = self.policy
        policy.set_training_mode(False)
        batch = len(observations)
        rows = np.zeros((padded_size(batch), self.layout.size), dtype=np.float32)
        rows[:batch] = observations
        tensor = torch.as_tensor(rows, device=policy.device)
        masks = torch.as_tensor(np.asarray(action_masks, dtype=bool), device=policy.device)
        with torch.no_grad():
            if isinstance(policy, MaskedActorCriticPolicy):
                return masked_log_softmax(policy.logits(tensor)[:batch], masks).cpu()
            return torch.where(masks, policy.q_net(tensor)[:batch], -torch.inf).cpu()

    @batched
    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        """Choose an action for every observation; see ``Agent.act``."""
        scores = self._scores(observations, action_masks)
        if deterministic or isinstance(self.policy, MaskedQPolicy):
            return scores.argmax(dim=1).numpy()
        probs = scores.exp()
        race = torch.empty_like(probs).exponential_(1.0, generator=self.generator)
        return (probs / race).argmax(dim=1).numpy()

    @batched
    def action_probabilities(
        self, observations: NDArray[Any], action_masks: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return how probable each action is when ``act`` samples."""
        if isinstance(self.policy, MaskedQPolicy):
            return super().action_probabilities(observations, action_masks)
        probs = self._scores(observations, action_masks).double().exp()
        return (probs / probs.sum(dim=1, keepdim=True)).numpy()
