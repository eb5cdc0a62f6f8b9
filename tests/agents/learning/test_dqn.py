"""DQN: the replay against what was played, and a test for every place that needs the mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.learning.dqn import MaskableDQN
from agents.learning.networks import MissingMaskError, action_values
from agents.learning.replay import StateReplay, Transitions
from agents.learning.vec_env import GeneralaVecEnv
from generala_env.envs.solo import GeneralaEnv

OPTIONS: dict[str, Any] = {
    "buffer_size": 4_000,
    "learning_starts": 100,
    "batch_size": 64,
    "train_freq": 1,
    "target_update_interval": 1,
    "tau": 0.05,
    "gamma": 1.0,
    "seed": 3,
    "device": "cpu",
}


def make_model(policy: str = "MlpPolicy", env: GeneralaVecEnv | None = None, **changes: Any) -> MaskableDQN:
    model = MaskableDQN(policy, env or GeneralaVecEnv(8), **{**OPTIONS, **changes})
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


class Recorder(BaseCallback):
    """Keeps what the environments showed, and the actions."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        names = ("new_obs", "rewards", "dones", "actions", "masks")
        self.steps.append({name: np.array(self.locals[name]) for name in names})
        return True


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("buffer_size", [8 * 100, 8 * 37])
def test_replay_gives_back_what_was_played(n_steps: int, buffer_size: int) -> None:
    env = GeneralaVecEnv(8, "doble_fija", reward_scale=0.1)
    model = make_model(env=env, n_steps=n_steps, gamma=0.9, buffer_size=buffer_size, learning_starts=10**9)
    recorder = Recorder()
    first = env.reset()
    model._last_obs = first
    model.learn(8 * 80, callback=recorder, reset_num_timesteps=False)
    shown = [first, *(step["new_obs"] for step in recorder.steps)]
    masks = [*(step["masks"] for step in recorder.steps), env.action_masks()]
    replay = model.replay_buffer
    assert replay is not None
    rows_held = replay.size()
    assert replay.num_samples == (rows_held - n_steps) * 8
    oldest = len(recorder.steps) - rows_held
    ended = 0
    batch = replay.transitions(np.zeros(1, dtype=int), np.zeros(1, dtype=int))
    for age in range(rows_held - n_steps):
        row = ((replay.pos if replay.full else 0) + age) % replay.buffer_size
        batch = replay.transitions(np.full(8, row), np.arange(8))
        start = oldest + age
        np.testing.assert_array_equal(batch.observations.numpy(), shown[start])
        np.testing.assert_array_equal(batch.actions.numpy(), recorder.steps[start]["actions"])
        for index in range(8):
            total, discount, done = 0.0, 1.0, False
            for ahead in range(n_steps):
                step = recorder.steps[start + ahead]
                total += discount * float(step["rewards"][index])
                discount *= 0.9
                if step["dones"][index]:
                    done = True
                    break
            assert batch.rewards[index].item() == pytest.approx(total, rel=1e-5)
            assert bool(batch.dones[index]) == done
            ended += done
            if not done:
                assert batch.discounts[index].item() == pytest.approx(0.9**n_steps)
                np.testing.assert_array_equal(
                    batch.next_observations[index].numpy(), shown[start + n_steps][index]
                )
                np.testing.assert_array_equal(batch.next_masks[index].numpy(), masks[start + n_steps][index])
    assert ended
    assert batch.next_masks.any(dim=1).all()


def test_replay_samples_every_transition_and_no_other() -> None:
    env = GeneralaVecEnv(2)
    box, discrete, tables = env.env.single_observation_space, env.env.single_action_space, env.env.tables
    assert isinstance(box, Box)
    assert isinstance(discrete, Discrete)
    replay = StateReplay(
        2 * 6,
        box,
        discrete,
        tables,
        n_envs=2,
        n_steps=2,
    )
    with pytest.raises(ValueError, match="n_steps=2"):
        replay.sample(4)
    env.seed(0)
    env.reset()
    for step in range(9):
        state, masks = env.env.batch.state.copy(), env.action_masks()
        _, _, dones, _ = env.step(masks.argmax(axis=1))
        # The reward tells which step it was.
        replay.add(state, masks.argmax(axis=1), np.full(2, 10.0**step), dones)
    # Six rows hold steps 3 to 8; a sample begins in 3 to 6 and sums two rewards.
    drawn = replay.sample(2_000, rng=np.random.default_rng(0))
    sums, counts = np.unique(drawn.rewards.numpy(), return_counts=True)
    np.testing.assert_allclose(sums, [11 * 10.0**step for step in range(3, 7)], rtol=1e-6)
    assert counts.min() > 400
    with pytest.raises(ValueError, match="buffer_size: 4 holds 2 steps"):
        StateReplay(4, box, discrete, tables, n_envs=2, n_steps=2)


@pytest.mark.parametrize("policy", ["MlpPolicy", "MultisetKeepPolicy"])
def test_warm_up_and_greedy_actions_are_legal(policy: str) -> None:
    """The environment raises at an illegal action, so playing on is the proof."""
    warm_up = make_model(policy, learning_starts=10**9)
    recorder = Recorder()
    warm_up.learn(8 * 60, callback=recorder)
    played = np.array([step["actions"] for step in recorder.steps])
    assert len(np.unique(played)) > 25, "random play tries nearly everything"
    greedy = make_model(policy, learning_starts=0, exploration_initial_eps=0.0, exploration_final_eps=0.0)
    greedy.learn(8 * 60)
    env = greedy.env
    assert isinstance(env, GeneralaVecEnv)
    observations = torch.from_numpy(env.env.observe())
    masks = env.action_masks()
    assert not masks[np.arange(8), greedy.q_net(observations).argmax(dim=1)].all()


def test_exploration_is_legal_and_has_a_coin_for_each_environment() -> None:
    env = GeneralaVecEnv(512)
    model = make_model(env=env, buffer_size=512 * 3)
    observations, masks = env.reset(), env.action_masks()
    greedy, _ = model.predict(observations, deterministic=True, action_masks=masks)
    model.exploration_rate = 1.0
    explored, _ = model.predict(observations, action_masks=masks)
    assert masks[np.arange(512), explored].all()
    same = (explored == greedy).mean()
    for share in (0.0, 0.25):
        model.exploration_rate = share
        actions, _ = model.predict(observations, action_masks=masks)
        changed = (actions != greedy).mean()
        assert changed == pytest.approx(share * (1 - same), abs=0.08)
        assert (changed > 0) == (share > 0)
    counts = np.zeros(masks.shape[1])
    one = np.repeat(masks[:1], 20_000, axis=0)
    np.add.at(counts, model._random_actions(one), 1)
    expected = masks[0] / masks[0].sum()
    np.testing.assert_allclose(counts / 20_000, expected, atol=0.012)


def test_prediction_refuses_to_run_without_a_mask() -> None:
    model = make_model()
    assert model.env is not None
    observations = model.env.reset()
    for deterministic in (True, False):
        with pytest.raises(MissingMaskError, match="action_masks"):
            model.predict(observations, deterministic=deterministic)  # type: ignore[arg-type]
    masks = model.env.env_method("action_masks")
    action, _ = model.predict(observations[2], action_masks=masks[2], deterministic=True)  # type: ignore[index]
    assert masks[2][action]


def made_batch(model: MaskableDQN, dones: NDArray[np.bool_]) -> Transitions:
    env = model.env
    assert isinstance(env, GeneralaVecEnv)
    env.seed(0)
    observations = torch.from_numpy(env.reset())
    masks = torch.from_numpy(env.action_masks())
    return Transitions(
        observations,
        masks.long().argmax(dim=1),
        torch.arange(8.0),
        observations.clone(),
        masks,
        torch.from_numpy(dones),
        torch.full((8,), 0.5),
    )


def test_target_is_double_and_looks_only_at_allowed_actions() -> None:
    model = make_model()
    batch = made_batch(model, np.zeros(8, dtype=bool))
    with torch.no_grad():
        # Both networks like a forbidden action best, and they disagree.
        forbidden = int((~batch.next_masks[0]).long().argmax())
        for network in (model.q_net, model.q_net_target):
            network.q_net[-1].bias.normal_(0, 10)  # type: ignore[operator]
            network.q_net[-1].bias[forbidden] = 100.0  # type: ignore[operator]
        online = model.q_net(batch.next_observations).numpy()
        target = model.q_net_target(batch.next_observations).numpy()
    masks, rows = batch.next_masks.numpy(), np.arange(8)
    best = np.where(masks, online, -np.inf).argmax(axis=1)
    expected = batch.rewards.numpy() + 0.5 * target[rows, best]
    np.testing.assert_allclose(model.targets(batch), expected, rtol=1e-5)
    assert not np.allclose(expected, batch.rewards.numpy() + 0.5 * target[rows, online.argmax(axis=1)])
    single = np.where(masks, target, -np.inf).max(axis=1)
    assert not np.allclose(expected, batch.rewards.numpy() + 0.5 * single), "this would be plain DQN"


@pytest.mark.parametrize("policy", ["MlpPolicy", "MultisetKeepPolicy"])
@pytest.mark.parametrize("variant", ["ruibal", "doble_fija"])
def test_values_of_single_actions_are_those_of_the_whole_network(policy: str, variant: str) -> None:
    model = make_model(policy, GeneralaVecEnv(64, variant))
    env = model.env
    assert isinstance(env, GeneralaVecEnv)
    observations = torch.from_numpy(env.reset())
    actions = torch.from_numpy(np.random.default_rng(0).integers(env.env.compiled.num_actions, size=64))
    parameters = list(model.q_net.parameters())
    whole = model.q_net(observations).gather(1, actions[:, None])[:, 0]
    single = action_values(model.q_net, observations, actions)
    torch.testing.assert_close(single, whole)
    wanted = torch.autograd.grad(whole.square().sum(), parameters)
    for found, gradient in zip(torch.autograd.grad(single.square().sum(), parameters), wanted, strict=True):
        torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-6)


def test_terminal_targets_are_the_reward_whatever_follows() -> None:
    model = make_model()
    dones = np.array([True, False] * 4)
    batch = made_batch(model, dones)
    batch.next_observations[dones] = torch.nan
    targets = model.targets(batch)
    assert torch.isfinite(targets).all()
    np.testing.assert_array_equal(targets[dones], batch.rewards[dones])
    # Even a mask that allows nothing, as at the very end, gives no NaN.
    empty = batch.next_masks.clone()
    empty[dones] = False
    assert torch.isfinite(model.loss(batch._replace(next_masks=empty))).all()


def test_learns_to_keep_sixes() -> None:
    """One box, the sixes: keeping every six is best and worth 30 (1 - (5/6)^3) = 12.64 points."""
    variant = {"base": "ruibal", "boxes": ["sixes"], "served_generala_wins": "never"}
    env = GeneralaVecEnv(32, variant, reward_scale=0.1)
    model = make_model(
        "MultisetKeepPolicy",
        env,
        learning_rate=3e-3,
        batch_size=256,
        buffer_size=20_000,
        learning_starts=1_000,
        exploration_fraction=0.5,
        policy_kwargs={"net_arch": [32]},
    )
    model.learn(40_000)
    check = GeneralaVecEnv(500, variant)
    check.seed(1)
    observations: Any = check.reset()
    scores: list[float] = []
    for _ in range(30):
        actions, _ = model.predict(observations, action_masks=check.action_masks(), deterministic=True)
        observations, _, _, infos = check.step(actions)
        scores += [infos[index]["final_score"] for index in check.ended]
    assert np.mean(scores) > 12.0


def test_runs_are_repeatable() -> None:
    weights = []
    for _ in range(2):
        model = make_model("MultisetKeepPolicy", n_steps=2, policy_kwargs={"net_arch": [16]})
        model.learn(8 * 60)
        weights.append(torch.cat([parameter.flatten() for parameter in model.policy.parameters()]))
    assert torch.equal(weights[0], weights[1])


def test_save_and_load(tmp_path: Path) -> None:
    env = GeneralaVecEnv(8)
    model = make_model("MultisetKeepPolicy", env, policy_kwargs={"net_arch": [16]}, n_steps=2)
    model.learn(8 * 30)
    model.save(tmp_path / "model")
    observations, masks = env.env.observe(), env.action_masks()
    loaded = model
    for given in (None, env):
        loaded = MaskableDQN.load(tmp_path / "model", env=given)
        np.testing.assert_array_equal(
            loaded.predict(observations, action_masks=masks, deterministic=True)[0],
            model.predict(observations, action_masks=masks, deterministic=True)[0],
        )
    loaded.set_logger(Logger(folder=None, output_formats=[]))
    loaded.learn(8 * 30)
    bare = MaskableDQN.load(tmp_path / "model")
    bare.set_env(GeneralaVecEnv(8))
    bare.set_logger(Logger(folder=None, output_formats=[]))
    bare.learn(8 * 30)


def test_other_environments_are_refused() -> None:
    with pytest.raises(TypeError, match="GeneralaVecEnv"):
        MaskableDQN("MlpPolicy", DummyVecEnv([GeneralaEnv]))
    with pytest.raises(ValueError, match="train_freq"):
        make_model(train_freq=(1, "episode")).learn(10)


def test_a_callback_can_stop_the_training() -> None:
    class Stop(BaseCallback):
        def _on_step(self) -> bool:
            return self.num_timesteps < 80

    model = make_model()
    model.learn(10_000, callback=Stop())
    assert model.num_timesteps == 80
