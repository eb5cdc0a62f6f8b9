"""The card learners with the face of stable-baselines3's algorithms.

They play games of their own, dealt in the compiled loops of ``kernels`` from the tables of the same
rules: of the environment they are given they take the rules, the observations and the number of games.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.utils import FloatSchedule, LinearSchedule

from agents.learning.cards.dqn import QLearner, QSettings
from agents.learning.cards.learner import CardLearner, State, linear
from agents.learning.cards.networks import CardNetworkSettings
from agents.learning.cards.policies import CardPolicy, Learner
from agents.learning.cards.ppo import PPOLearner, PPOSettings
from agents.learning.cards.tabular import TabularLearner, TabularSettings
from agents.learning.progress import WholeUpdates
from agents.learning.vec_env import GeneralaVecEnv

Rate = float | Callable[[float], float]
"""A constant, or a function of the remaining progress, which falls from 1 to 0."""


def _check_env(env: object) -> GeneralaVecEnv:
    if not isinstance(env, GeneralaVecEnv):
        raise ValueError(f"env: a card learner needs a GeneralaVecEnv, not {type(env).__name__}")
    return env


class CardAlgorithm(WholeUpdates, BaseAlgorithm):
    """What the card learners share as algorithms: the loop, predictions, and their state.

    Attributes:
        learner: What learns.
        policy: Its networks.
    """

    policy: CardPolicy
    learner: Learner

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GeneralaVecEnv | None,
        learning_rate: Rate,
        *,
        policy_kwargs: dict[str, Any] | None = None,
        seed: int | None = None,
        _init_setup_model: bool = True,
        **options: Any,
    ) -> None:
        """Make the learner.

        Args:
            policy: ``"CardPolicy"``.
            env: Whose rules, observations and number of games; see the module. ``None`` only while loading.
            learning_rate: Of Adam.
            policy_kwargs: ``net_arch``, the widths of the hidden layers.
            seed: Of everything that is drawn; ``None`` draws one.
            **options: Further options of SB3's ``BaseAlgorithm``.

        Raises:
            ValueError: The environment is not a ``GeneralaVecEnv``, or an option is not known.
        """
        if _init_setup_model:
            _check_env(env)
        options.setdefault("device", "cpu")
        super().__init__(
            policy,
            env,
            learning_rate,
            policy_kwargs=policy_kwargs,
            seed=seed,
            support_multi_env=True,
            **options,
        )
        if _init_setup_model:
            self._setup_model()

    policy_aliases = {"CardPolicy": CardPolicy}  # noqa: RUF012 - as SB3 has it

    @abstractmethod
    def _make_learner(self, env: GeneralaVecEnv, network: CardNetworkSettings, seed: int) -> Learner:
        """Return the learner."""

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        env = _check_env(self.env)
        seed = self.seed if self.seed is not None else int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        # Outputs count in the unit that rewards are scaled to, in which weights of common sizes learn well.
        network = CardNetworkSettings(
            widths=tuple(self.policy_kwargs.get("net_arch", (128, 128))), output_scale=1.0 / env.reward_scale
        )
        self.learner = self._make_learner(env, network, seed)
        self.policy = CardPolicy(self.observation_space, self.action_space, env.layout, self.learner)

    def _steps_per_update(self) -> int:
        return self.learner.num_decisions_per_iteration

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "card",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> CardAlgorithm:
        """Learn from so many decisions, in whole iterations; see SB3's ``BaseAlgorithm.learn``."""
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
        iteration = 0
        while self.num_timesteps < total_timesteps:
            callback.on_rollout_start()
            found = self.learner.collect_and_learn_iteration(self._current_progress_remaining)
            self.num_timesteps += self.learner.num_decisions_per_iteration
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            self._n_updates = self.learner.num_updates
            for name, value in found.items():
                self.logger.record(f"train/{name}", value)
            callback.update_locals(locals())
            if not callback.on_step():
                break
            callback.on_rollout_end()
            iteration += 1
            if log_interval is not None and iteration % log_interval == 0:
                self.dump_logs(iteration)
        callback.on_training_end()
        return self

    def dump_logs(self, iteration: int = 0) -> None:
        """Write what was recorded since the last time."""
        self.logger.record("time/total_timesteps", self.num_timesteps)
        self.logger.record("train/n_updates", self._n_updates)
        self.logger.record("rollout/finished_games", self.learner.num_finished)
        self.logger.dump(step=self.num_timesteps)

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return an allowed action for each observation; see ``CardPolicy.predict``."""
        return self.policy.predict(observation, state, episode_start, deterministic, action_masks)

    # --- state ---

    def games_state(self) -> State:
        """Return the games in progress, the generator and the counts, beside weights and optimizer."""
        return CardLearner.state_dict(self.learner)

    def set_games_state(self, state: Mapping[str, Any]) -> None:
        """Put back what ``games_state`` returned."""
        CardLearner.load_state_dict(self.learner, state)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "learner"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return (["policy"] if self.policy.optimizer is None else ["policy", "policy.optimizer"]), []


class CardPPO(CardAlgorithm):
    """PPO whose actor and critic see the card; see ``agents.learning.cards.ppo``."""

    learner: PPOLearner

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GeneralaVecEnv | None = None,
        learning_rate: Rate = linear(3e-3, 0.0),  # noqa: B008 - a schedule holds no state
        n_steps: int = 8,
        batch_size: int = 16_384,
        n_epochs: int = 1,
        clip_range: Rate = 0.2,
        ent_coef: Rate = linear(0.025, 0.0),  # noqa: B008
        value_lambda: float = 0.5,
        critic_learning_rate: Rate | None = None,
        adam_beta2: float = 0.999,
        exploration_initial_eps: float = 0.1,
        exploration_final_eps: float = 0.02,
        random_start: float = 0.1,
        average_share: float = 0.05,
        **options: Any,
    ) -> None:
        """Make the learner.

        Args:
            policy: ``"CardPolicy"``.
            env: Whose rules, observations and number of games.
            learning_rate: Of the actor.
            n_steps: Decisions of each game per update.
            batch_size: Decisions per minibatch.
            n_epochs: Passes over what was collected, per update.
            clip_range: How far the ratio of probabilities may move.
            ent_coef: Weight of the entropy, in scaled rewards per nat.
            value_lambda: How far the targets of the values look ahead.
            critic_learning_rate: Of the critic; ``None`` for that of the actor.
            adam_beta2: Decay of Adam's second moments.
            exploration_initial_eps: Share of random actions at first; the critic prices what the actor
                has given up by them.
            exploration_final_eps: Share of random actions at last.
            random_start: Share of games that begin from any card.
            average_share: The window of the averaged weights, as a share of the updates so far.
            **options: Further options of ``CardAlgorithm``.
        """
        self.n_steps, self.batch_size, self.n_epochs = n_steps, batch_size, n_epochs
        self.clip_range, self.ent_coef = FloatSchedule(clip_range), FloatSchedule(ent_coef)
        self.value_lambda = value_lambda
        self.critic_learning_rate = critic_learning_rate
        self.adam_beta2 = adam_beta2
        self.exploration_initial_eps = exploration_initial_eps
        self.exploration_final_eps = exploration_final_eps
        self.random_start, self.average_share = random_start, average_share
        super().__init__(policy, env, learning_rate, **options)

    def _make_learner(self, env: GeneralaVecEnv, network: CardNetworkSettings, seed: int) -> PPOLearner:
        critic = self.critic_learning_rate
        price = self.ent_coef
        settings = PPOSettings(
            actor=network,
            critic=network,
            num_games=env.num_envs,
            num_steps=self.n_steps,
            num_minibatches=max(1, env.num_envs * self.n_steps // self.batch_size),
            num_epochs=self.n_epochs,
            learning_rate=self.lr_schedule,
            critic_learning_rate=self.lr_schedule if critic is None else FloatSchedule(critic),
            betas=(0.9, self.adam_beta2),
            clip_range=self.clip_range,
            entropy_price=lambda remaining: price(remaining) / env.reward_scale,
            epsilon=LinearSchedule(self.exploration_initial_eps, self.exploration_final_eps, 1.0),
            random_start=self.random_start,
            trace=self.value_lambda,
            average_share=self.average_share,
        )
        return PPOLearner(env.compiled, settings, instant_win=env.env.instant_win, seed=seed)


class _CardQLearning(CardAlgorithm):
    """What Q-learning is told of games, with a network or without."""

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GeneralaVecEnv | None = None,
        learning_rate: Rate = 0.0,
        train_freq: int = 8,
        value_lambda: float = 0.0,
        exploration_fraction: float = 1.0,
        exploration_initial_eps: float = 0.1,
        exploration_final_eps: float = 0.02,
        random_start: float = 0.1,
        **options: Any,
    ) -> None:
        """Make the learner.

        Args:
            policy: ``"CardPolicy"``.
            env: Whose rules, observations and number of games.
            learning_rate: Of Adam, where there is a network.
            train_freq: Decisions of each game per update.
            value_lambda: How far the targets look ahead.
            exploration_fraction: Share of the run over which exploration falls.
            exploration_initial_eps: Share of random actions at first.
            exploration_final_eps: Share of random actions at last.
            random_start: Share of games that begin from any card.
            **options: Further options of ``CardAlgorithm``.
        """
        self.train_freq, self.value_lambda = train_freq, value_lambda
        self.exploration_fraction = exploration_fraction
        self.exploration_initial_eps = exploration_initial_eps
        self.exploration_final_eps = exploration_final_eps
        self.random_start = random_start
        super().__init__(policy, env, learning_rate, **options)

    def _games(self, env: GeneralaVecEnv) -> dict[str, Any]:
        return {
            "num_games": env.num_envs,
            "num_steps": self.train_freq,
            "epsilon": LinearSchedule(
                self.exploration_initial_eps, self.exploration_final_eps, self.exploration_fraction
            ),
            "random_start": self.random_start,
            "trace": self.value_lambda,
        }


class CardDQN(_CardQLearning):
    """Q-learning on a network that sees the card; see ``agents.learning.cards.dqn``."""

    learner: QLearner

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GeneralaVecEnv | None = None,
        learning_rate: Rate = linear(3e-3, 0.0),  # noqa: B008 - a schedule holds no state
        adam_beta2: float = 0.999,
        average_share: float = 0.05,
        **options: Any,
    ) -> None:
        """Make the learner.

        Args:
            policy: ``"CardPolicy"``.
            env: Whose rules, observations and number of games.
            learning_rate: Of Adam.
            adam_beta2: Decay of Adam's second moments.
            average_share: The window of the averaged weights, as a share of the updates so far.
            **options: How games are played, as for ``CardTable``, and further options of ``CardAlgorithm``.
        """
        self.adam_beta2, self.average_share = adam_beta2, average_share
        super().__init__(policy, env, learning_rate, **options)

    def _make_learner(self, env: GeneralaVecEnv, network: CardNetworkSettings, seed: int) -> QLearner:
        settings = QSettings(
            network=network,
            learning_rate=self.lr_schedule,
            betas=(0.9, self.adam_beta2),
            average_share=self.average_share,
            **self._games(env),
        )
        return QLearner(env.compiled, settings, instant_win=env.env.instant_win, seed=seed)


class CardTable(_CardQLearning):
    """Q-learning with a number for each afterstate and no network: the yardstick."""

    learner: TabularLearner

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GeneralaVecEnv | None = None,
        memory_share: float = 0.1,
        **options: Any,
    ) -> None:
        """Make the learner.

        Args:
            policy: ``"CardPolicy"``.
            env: Whose rules, observations and number of games.
            memory_share: How long targets count, as a share of the updates so far.
            **options: ``train_freq``, ``value_lambda``, ``exploration_fraction``,
                ``exploration_initial_eps``, ``exploration_final_eps`` and ``random_start``, as in a
                config; and further options of ``CardAlgorithm``.
        """
        self.memory_share = memory_share
        super().__init__(policy, env, **options)

    def _make_learner(self, env: GeneralaVecEnv, network: CardNetworkSettings, seed: int) -> TabularLearner:
        settings = TabularSettings(memory_share=self.memory_share, **self._games(env))
        return TabularLearner(env.compiled, settings, instant_win=env.env.instant_win, seed=seed)
