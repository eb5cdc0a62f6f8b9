"""The batched environment as a stable-baselines3 ``VecEnv``, with masks and scores in arrays."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from generala_env.envs.observation import ObservationLayout
from generala_env.envs.stepping import CARD, IS_WON, KEPT, THROW_NUMBER
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules.compiled import CompiledVariant
from generala_env.rules.variants import DEFAULT_VARIANT, Variant

_PER_ENVIRONMENT = ("action_masks", "state", "render")
"""What can be asked of one environment by name, with ``env_method`` or ``get_attr``."""


class Throws(NamedTuple):
    """The throws that followed the actions of a step.

    Attributes:
        afterstates: (num_envs, size) float32, what was known before the dice fell; of no
            meaning where none did.
        rewards: (num_envs,) float32, what an instant win paid, scaled as rewards are; it is
            part of the rewards of the step.
        made: (num_envs,) bool, false where the action filled the card.
    """

    afterstates: NDArray[np.float32]
    rewards: NDArray[np.float32]
    made: NDArray[np.bool_]


class GeneralaVecEnv(VecEnv):
    """Many Generala cards as one ``VecEnv``.

    ``action_masks()`` returns the masks of all environments as one array;
    ``sb3_contrib.common.maskable.utils.get_action_masks`` finds them as well. ``infos`` holds
    something only where an episode ended: ``episode`` (``r`` the points, ``l`` the steps, ``t`` the
    seconds, as ``VecMonitor`` gives them), ``terminal_observation``, ``final_score``, ``instant_win``.

    Rewards are multiplied by ``reward_scale``, which makes values easier to learn. The points that
    are reported are not.

    Attributes:
        env: The batched environment.
        reward_scale: What rewards are multiplied by.
    """

    def __init__(
        self,
        num_envs: int,
        variant: str | Mapping[str, Any] | Variant = DEFAULT_VARIANT,
        *,
        reward_scale: float = 1.0,
        num_threads: int = 1,
        **options: Any,
    ) -> None:
        """Make the environments.

        Args:
            num_envs: How many.
            variant: The rules.
            reward_scale: What rewards are multiplied by.
            num_threads: Threads that share a step.
            **options: Further options of ``GeneralaVectorEnv``.

        Raises:
            ValueError: An option has a value that it does not know.
        """
        if not reward_scale > 0:
            raise ValueError(f"reward_scale: {reward_scale} is not above 0")
        self.env = GeneralaVectorEnv(
            num_envs,
            variant,
            autoreset_mode=AutoresetMode.SAME_STEP,
            num_threads=num_threads,
            **options,
        )
        self.reward_scale = float(reward_scale)
        self._actions = np.zeros(num_envs, dtype=np.int64)
        self._observations = np.zeros((num_envs, self.env.layout.size), dtype=np.float32)
        self._infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._ended: list[int] = []
        self._start = time.perf_counter()
        super().__init__(num_envs, self.env.single_observation_space, self.env.single_action_space)

    @property
    def layout(self) -> ObservationLayout:
        """Which block stands where in an observation."""
        return self.env.layout

    @property
    def compiled(self) -> CompiledVariant:
        """The tables of the variant."""
        return self.env.compiled

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now; (num_envs, n_actions) bool."""
        return self.env.action_masks()

    def reset(self) -> NDArray[np.float32]:
        """Begin new episodes, with the seeds of ``seed()`` if it was called."""
        observations, _ = self.env.reset(seed=self._seeds)
        self._forget()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[np.integer[Any]]) -> None:
        """Remember the actions for ``step_wait``."""
        self._actions = np.asarray(actions)

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Step; episodes that end begin anew within the step.

        Returns:
            Observations (num_envs, size) float32, rewards (num_envs,) float32, ends (num_envs,)
            bool and one dict per environment.
        """
        env = self.env
        observations = self._observations = env.advance(self._actions)
        batch = env.batch
        self._forget()
        dones = batch.terminated.copy()
        ended = self._ended = np.flatnonzero(dones).tolist()
        if ended:
            seconds = round(time.perf_counter() - self._start, 6)
            scores = batch.final_score[ended].tolist()
            lengths = batch.final_length[ended].tolist()
            wins = batch.final_state[ended, IS_WON].astype(bool).tolist()
            terminal = env.final_observations[ended]
            for row, index in enumerate(ended):
                self._infos[index] = {
                    "episode": {"r": scores[row], "l": lengths[row], "t": seconds},
                    "terminal_observation": terminal[row],
                    "TimeLimit.truncated": False,
                    "final_score": scores[row],
                    "instant_win": wins[row],
                }
        rewards = (batch.rewards * self.reward_scale).astype(np.float32)
        return observations, rewards, dones, self._infos.copy()

    def throws(self) -> Throws:
        """Return what the throws of the last step fell upon, and what they won at once."""
        env, batch = self.env, self.env.batch
        final = batch.final_state
        won = batch.terminated & final[:, IS_WON].astype(bool)
        # A win at the first throw of an episode is offered, and paid by the action that takes it.
        won &= (final[:, CARD] != 0) | (final[:, THROW_NUMBER] > 1)
        known = self.layout.before_throw(self._observations, batch.state[:, KEPT])
        known[won] = self.layout.before_throw(env.final_observations[won], final[won, KEPT])
        win_points = env.instant_win_points or 0.0
        rewards = np.where(won, np.float32(win_points * self.reward_scale), np.float32(0.0))
        return Throws(known, rewards, ~batch.terminated | won)

    @property
    def ended(self) -> list[int]:
        """The environments whose episode ended in the last step, ascending."""
        return self._ended

    def _forget(self) -> None:
        """Give the environments that ended an episode in the last step an empty ``info`` again."""
        for index in self._ended:
            self._infos[index] = {}
        self._ended = []

    def close(self) -> None:
        """Release the environments."""
        self.env.close()

    # --- asking single environments -------------------------------------------------------

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """Return an attribute of the environments, once for each index.

        Raises:
            AttributeError: The environments have no such attribute.
        """
        chosen = list(self._get_indices(indices))
        if attr_name in _PER_ENVIRONMENT:
            return [self._method_of(attr_name, index) for index in chosen]
        return [getattr(self.env, attr_name)] * len(chosen)

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Refuse: the environments share their options.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(f"{attr_name}: the environments of a batch cannot be changed one by one")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: int | Iterable[int] | None = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method for each index: ``action_masks``, ``state`` or ``render``.

        Raises:
            AttributeError: There is no such method.
        """
        chosen = list(self._get_indices(indices))
        if method_name == "action_masks":
            return list(self.env.action_masks()[chosen])
        return [self._method_of(method_name, index)(*method_args, **method_kwargs) for index in chosen]

    def _method_of(self, name: str, index: int) -> Any:
        if name == "action_masks":
            return lambda: self.env.action_masks()[index]
        if name == "state":
            return lambda: self.env.state(index)
        if name == "render":
            return lambda: (self.env.render() or [None] * self.num_envs)[index]
        raise AttributeError(
            f"{name}: not among the methods of one environment: {', '.join(_PER_ENVIRONMENT)}"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """Say yes for ``Monitor``, whose statistics are kept here, and no for all else."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """Return a picture of each game where ``render_mode`` is ``"rgb_array"``, otherwise none."""
        if self.render_mode != "rgb_array":
            return [None] * self.num_envs
        frames = self.env.render()
        return [frame for frame in frames or () if isinstance(frame, np.ndarray)]

    # --- resuming -------------------------------------------------------------------------

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return everything that decides how the episodes go on; see ``GeneralaVectorEnv``."""
        return self.env.get_state()

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what ``get_state`` returned.

        Raises:
            ValueError: The state is that of other environments.
        """
        self.env.set_state(state)
        self._forget()
