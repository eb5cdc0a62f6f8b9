"""PPO against its parent: the same losses, gradients and weights, masks obeyed, and it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.learning.fused import FusedUpdate, can_fuse
from agents.learning.networks import MissingMaskError, masked_log_softmax
from agents.learning.ppo import PPO
from agents.learning.rollout import RolloutArrays
from agents.learning.vec_env import GeneralaVecEnv
from generala_env.envs.observation import BLOCKS, observation_layout
from generala_env.envs.solo import GeneralaEnv
from generala_env.envs.stepping import CARD, IS_WON, KEPT, SERVED, THROW, THROW_NUMBER
from generala_env.rules.compiled import TurnBatch, compile_variant
from generala_env.rules.dice import KEEP_COUNTS
from generala_env.solver.solo import SoloSolution, solve_solo

OPTIONS: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 64,
    "n_epochs": 2,
    "gamma": 1.0,
    "gae_lambda": 0.7,
    "ent_coef": 0.02,
    "seed": 3,
    "device": "cpu",
}


def silent(model: Any) -> Any:
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


def fill(model: Any) -> None:
    """Collect one rollout."""
    _, callback = model._setup_learn(10**6)
    assert model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)


def stock_twin(model: PPO, **changes: Any) -> Any:
    """Return sb3-contrib's PPO with the same weights and the same rollout."""
    stock = silent(MaskablePPO("MlpPolicy", GeneralaVecEnv(8, reward_scale=0.1), **{**OPTIONS, **changes}))
    stock.policy.load_state_dict(model.policy.state_dict())
    ours, theirs = model.rollout_buffer, stock.rollout_buffer
    assert type(theirs) is MaskableRolloutBuffer
    for name in ("observations", "actions", "rewards", "values", "log_probs", "advantages", "returns"):
        setattr(theirs, name, getattr(ours, name).copy())
    theirs.action_masks = ours.action_masks.astype(np.float32)
    theirs.full = True
    return stock


@pytest.mark.parametrize("changes", [{}, {"clip_range_vf": 0.05}, {"normalize_advantage": False}])
def test_losses_and_gradients_equal_the_parents(changes: dict[str, Any]) -> None:
    whole = {"n_epochs": 1, "batch_size": 8 * 16, "max_grad_norm": 1e9, **changes}
    model = silent(PPO("MlpPolicy", GeneralaVecEnv(8, reward_scale=0.1), **{**OPTIONS, **whole}))
    fill(model)
    # Move away from the policy that acted, so that ratios differ from 1 and are clipped.
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    stock = stock_twin(model, **whole)
    logged = []
    model.fuses_updates = False
    each: Any
    for each in (model, stock):
        each._current_progress_remaining = 1.0
        each.policy.optimizer.step = lambda *_: None  # keep the gradients, move nothing
        np.random.seed(0)  # noqa: NPY002 - the generator of stable-baselines3
        each.train()
        logged.append(dict(each.logger.name_to_value))
    update, metrics = fused_gradients(model, changes)
    names = ("loss", "policy_gradient_loss", "value_loss", "entropy_loss", "approx_kl", "clip_fraction")
    for name, fused in zip(names, metrics, strict=True):
        expected = pytest.approx(logged[1][f"train/{name}"], rel=1e-4, abs=1e-6)
        assert logged[0][f"train/{name}"] == expected
        assert fused == expected
    assert logged[1]["train/clip_fraction"] > 0.05
    gradients = 0
    own = {id(parameter): flat for parameter, flat in update.named_gradients()}
    for (name, ours), theirs in zip(model.policy.named_parameters(), stock.policy.parameters(), strict=True):
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-6, msg=name)
        torch.testing.assert_close(own[id(ours)], theirs.grad, rtol=1e-3, atol=1e-6, msg=name)
        gradients += int((theirs.grad != 0).sum())
    assert gradients > 1000


def fused_gradients(model: PPO, changes: dict[str, Any]) -> tuple[FusedUpdate, Any]:
    """Return the gradients of one minibatch of everything, differentiated by hand."""
    buffer = model.rollout_buffer
    assert isinstance(buffer, RolloutArrays)
    assert can_fuse(model.policy)
    update = FusedUpdate(model.policy)  # type: ignore[arg-type]
    arrays, throws = buffer.flat(), buffer.flat_throws()
    update.begin(arrays[0], None if throws is None else throws[0])
    metrics = update.gradients_of(
        np.random.default_rng(0).permutation(len(arrays[0])),
        arrays[1:],
        normalize=changes.get("normalize_advantage", True),
        clip_range=0.2,
        clip_range_vf=changes.get("clip_range_vf"),
        ent_coef=OPTIONS["ent_coef"],
        vf_coef=0.5,
        throws=None if throws is None else throws[1:],
    )
    return update, metrics


@pytest.mark.parametrize("throw_lambda", [None, 0.2])
@pytest.mark.parametrize("canonical", [True, False])
@pytest.mark.parametrize(
    "policy_kwargs", [{}, {"net_arch": {"pi": [24], "vf": [40, 16, 8]}, "activation_fn": torch.nn.Tanh}]
)
def test_gradients_of_keeps_equal_autograds(
    policy_kwargs: dict[str, Any], canonical: bool, throw_lambda: float | None
) -> None:
    """Where keeps are gathered, where several ids share one score, and where throws are valued too."""
    env = GeneralaVecEnv(8, "doble_fija", reward_scale=0.1, canonical_keeps=canonical)
    options = {**OPTIONS, "policy_kwargs": policy_kwargs, "throw_lambda": throw_lambda}
    model = silent(PPO("MultisetKeepPolicy", env, **options))
    fill(model)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    losses = model.losses(next(model.rollout_buffer.get(None)), 0.2, OPTIONS["ent_coef"])
    losses.loss.backward()
    update, metrics = fused_gradients(model, {})
    for fused, expected in zip(metrics, losses, strict=True):
        assert fused == pytest.approx(expected.item(), rel=1e-3, abs=1e-5)
    for parameter, gradient in update.named_gradients():
        assert (gradient != 0).any()
        torch.testing.assert_close(gradient, parameter.grad, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("throw_lambda", [None, 0.2])
def test_fused_updates_train_as_autograd_does(throw_lambda: float | None) -> None:
    """The same minibatches, clipping and Adam, over several updates and through its saved state."""
    models = []
    for fuses in (True, False):
        env = GeneralaVecEnv(8, reward_scale=0.1)
        changes = {
            "max_grad_norm": 0.05,
            "policy_kwargs": {"net_arch": [32]},
            "throw_lambda": throw_lambda,
        }
        model = silent(PPO("MultisetKeepPolicy", env, **{**OPTIONS, **changes}))
        model.fuses_updates = fuses
        model.learn(3 * 8 * 16)
        models.append(model)
    ours, theirs = models
    for left, right in zip(ours.policy.parameters(), theirs.policy.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-5)
    left_state, right_state = (model.policy.optimizer.state_dict()["state"] for model in models)
    assert left_state.keys() == right_state.keys()
    for key, moments in left_state.items():
        for name, value in moments.items():
            torch.testing.assert_close(value, right_state[key][name], rtol=1e-2, atol=1e-6)


def test_gradients_that_are_not_finite_are_shown_to_hooks() -> None:
    """Whoever watches the gradients learns where a NaN begins, though they are computed by hand."""
    model = silent(PPO("MlpPolicy", GeneralaVecEnv(8), **OPTIONS))
    fill(model)
    model.rollout_buffer.returns[3, 2] = np.nan
    seen: list[str] = []
    for name, parameter in model.policy.named_parameters():

        def watch(tensor: torch.Tensor, name: str = name) -> None:
            if tensor.grad is not None and not torch.isfinite(tensor.grad).all():
                seen.append(name)

        parameter.register_post_accumulate_grad_hook(watch)
    model.train()
    assert seen[0].startswith("value_net")
    assert not any(name.startswith("action_net") for name in seen[:2])


def test_other_networks_are_left_to_autograd() -> None:
    env = GeneralaVecEnv(4)
    for policy_kwargs in (
        {"activation_fn": torch.nn.GELU},
        {"optimizer_class": torch.optim.SGD},
        {"optimizer_kwargs": {"weight_decay": 0.1}},
        {"share_features_extractor": False},
    ):
        model = silent(PPO("MlpPolicy", env, **{**OPTIONS, "policy_kwargs": policy_kwargs}))
        assert not can_fuse(model.policy)
        model.learn(64)


def test_training_equals_the_parents() -> None:
    """Both learn from the same dice, draw the same numbers, and end with the same weights."""
    models = []
    for kind in (PPO, MaskablePPO):
        model = silent(kind("MlpPolicy", GeneralaVecEnv(8, reward_scale=0.1), **OPTIONS))
        model.learn(3 * 8 * 16)
        models.append(model)
    ours, theirs = models
    assert ours.num_timesteps == theirs.num_timesteps
    np.testing.assert_array_equal(
        ours.rollout_buffer.actions.ravel(),
        theirs.rollout_buffer.actions.reshape(8, 16).T.ravel(),
    )
    for left, right in zip(ours.policy.parameters(), theirs.policy.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-5)
    assert [info["r"] for info in ours.ep_info_buffer or ()] == [
        info["r"] for info in theirs.ep_info_buffer or ()
    ]


@pytest.mark.parametrize("policy", ["MlpPolicy", "MultisetKeepPolicy"])
def test_masks_reach_the_buffer_and_the_loss(policy: str) -> None:
    model = silent(PPO(policy, GeneralaVecEnv(8, "doble_fija"), **OPTIONS))
    with torch.no_grad():
        model.policy.action_net.bias.normal_(0, 5)
    fill(model)  # an illegal action would raise
    buffer = model.rollout_buffer
    assert isinstance(buffer, RolloutArrays)
    masks, actions = buffer.action_masks, buffer.actions[..., 0].astype(int)
    assert np.take_along_axis(masks, actions[..., None], axis=2).all()
    assert not masks.all()
    batch = next(buffer.get(None))
    assert batch.action_masks.dtype == torch.bool
    # Under the policy that acted, the log probabilities in the buffer are those of masked actions.
    losses = model.losses(batch, 0.2, 0.0)
    assert losses.approx_kl.item() == pytest.approx(0.0, abs=1e-5)
    unmasked = model.losses(batch._replace(action_masks=torch.ones_like(batch.action_masks)), 0.2, 0.0)
    assert unmasked.approx_kl.item() > 0.05
    assert losses.entropy.item() != pytest.approx(unmasked.entropy.item(), rel=1e-3)
    log_probs = masked_log_softmax(model.policy.logits(batch.observations), batch.action_masks)
    assert (log_probs[~batch.action_masks] < -1e6).all()


def test_entropy_coefficient_follows_a_schedule() -> None:
    seen: list[float] = []

    class Watch(BaseCallback):
        def _on_rollout_start(self) -> None:
            if "train/ent_coef" in self.logger.name_to_value:
                seen.append(self.logger.name_to_value["train/ent_coef"])

        def _on_step(self) -> bool:
            return True

    model = PPO("MlpPolicy", GeneralaVecEnv(4), **{**OPTIONS, "ent_coef": lambda left: 0.1 * left})
    silent(model).learn(4 * 16 * 4, callback=Watch(), log_interval=100)
    assert seen == pytest.approx([0.075, 0.05, 0.025])


def test_a_callback_can_stop_the_training() -> None:
    class Stop(BaseCallback):
        def _on_step(self) -> bool:
            assert {"rewards", "dones", "infos", "actions", "new_obs"} <= self.locals.keys()
            return self.num_timesteps < 40

    model = silent(PPO("MlpPolicy", GeneralaVecEnv(4), **OPTIONS)).learn(10_000, callback=Stop())
    assert model.num_timesteps == 40


def test_works_on_any_masked_environment() -> None:
    env = DummyVecEnv([lambda: GeneralaEnv("clasica")] * 2)
    model = silent(PPO("MultisetKeepPolicy", env, **OPTIONS))
    model.learn(2 * 16 * 2)
    assert model.num_timesteps == 64


def test_target_kl_ends_the_epochs() -> None:
    changes = {"target_kl": 1e-9, "n_epochs": 50, "learning_rate": 1e-2}
    model = silent(PPO("MlpPolicy", GeneralaVecEnv(4), **{**OPTIONS, **changes})).learn(64)
    # One minibatch per epoch: the first changes the policy, the second sees that it has.
    assert model._n_updates == 2


def test_learns_to_keep_sixes() -> None:
    """One box, the sixes: keeping every six is best and worth 30 (1 - (5/6)^3) = 12.64 points."""
    variant = {"base": "ruibal", "boxes": ["sixes"], "served_generala_wins": "never"}
    env = GeneralaVecEnv(64, variant, reward_scale=0.1)
    changes = {"learning_rate": 3e-3, "batch_size": 256, "n_epochs": 4, "policy_kwargs": {"net_arch": [32]}}
    model = silent(PPO("MultisetKeepPolicy", env, **{**OPTIONS, **changes}))
    model.learn(30_000)
    check = GeneralaVecEnv(500, variant)
    check.seed(1)
    observations: Any = check.reset()
    scores: list[float] = []
    for _ in range(30):
        actions, _ = model.predict(observations, action_masks=check.action_masks(), deterministic=True)
        observations, _, _, infos = check.step(actions)
        scores += [infos[index]["final_score"] for index in check.ended]
    assert np.mean(scores) > 12.1


def test_predict_refuses_to_go_without_masks() -> None:
    env = GeneralaVecEnv(4, "ruibal")
    model = silent(PPO("MlpPolicy", env, **OPTIONS))
    with pytest.raises(MissingMaskError, match="action_masks: needed"):
        model.predict(env.reset())


def test_export_is_read_by_sb3_contrib(tmp_path: Path) -> None:
    env = GeneralaVecEnv(4)
    model = silent(PPO("MlpPolicy", env, **{**OPTIONS, "ent_coef": lambda left: 0.1 * left}))
    model.learn(64)
    model.export_sb3(tmp_path / "model")
    stock = MaskablePPO.load(tmp_path / "model.zip", env=env)
    assert type(stock) is MaskablePPO
    assert type(stock.policy).__module__.startswith("sb3_contrib")
    observations, masks = env.env.observe(), env.action_masks()
    np.testing.assert_array_equal(
        stock.predict(observations, action_masks=masks, deterministic=True)[0],
        model.predict(observations, action_masks=masks, deterministic=True)[0],
    )
    stock.learn(64)
    again = PPO.load(tmp_path / "model.zip", env=env)
    assert isinstance(again, PPO)


def test_save_and_load(tmp_path: Path) -> None:
    env = GeneralaVecEnv(4)
    model = silent(PPO("MultisetKeepPolicy", env, **OPTIONS)).learn(64)
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", env=env)
    observations, masks = env.env.observe(), env.action_masks()
    np.testing.assert_array_equal(
        loaded.predict(observations, action_masks=masks, deterministic=True)[0],
        model.predict(observations, action_masks=masks, deterministic=True)[0],
    )
    silent(loaded).learn(64)


# --- taking the luck of the dice out ----------------------------------------------------------


def value_before(solution: SoloSolution, state: np.ndarray) -> np.ndarray:
    """Return the exact value of what was known before the dice of each state fell."""
    group = solution.compiled.class_of_card[state[:, CARD]]
    row = np.maximum(state[:, THROW_NUMBER] - 2, 0)
    kept = solution.class_keep_values[group, row, state[:, KEPT]]
    values: np.ndarray = np.where(state[:, THROW_NUMBER] == 1, solution.class_values[group], kept)
    return values


@pytest.mark.parametrize("variant", ["ruibal", "clasica_fija"])
def test_with_exact_values_the_advantage_of_a_decision_is_exactly_its_regret(variant: str) -> None:
    solution = solve_solo(variant, instant_win="perfect")
    num_envs = 256
    env = GeneralaVecEnv(num_envs, variant, instant_win="perfect")
    env.seed(3)
    learner = PPO("MultisetKeepPolicy", env, n_steps=60, batch_size=64, gamma=1.0, throw_lambda=0.0)
    buffer = learner.rollout_buffer
    assert isinstance(buffer, RolloutArrays)
    observations, starts = env.reset(), np.ones(num_envs, dtype=bool)
    assert isinstance(observations, np.ndarray)
    generator = np.random.default_rng(0)
    regrets, num_wins = [], 0
    for _ in range(buffer.buffer_size):
        state = env.env.batch.state.copy()
        masks = env.action_masks()
        actions = np.where(masks, generator.random(masks.shape), -1.0).argmax(axis=1)
        columns = (state[:, column] for column in (CARD, THROW, THROW_NUMBER, SERVED, KEPT))
        q_values = solution.q_values_batch(TurnBatch(*columns))
        offered = state[:, IS_WON] == 1
        values = np.where(offered, solution.perfect_score, q_values.max(axis=1))
        regrets.append(np.where(offered, 0.0, q_values[np.arange(num_envs), actions] - values))
        new_observations, rewards, dones, _ = env.step(actions)
        throws, batch = env.throws(), env.env.batch
        won = throws.rewards > 0
        num_wins += int(won.sum())
        afterstate_values = value_before(solution, np.where(won[:, None], batch.final_state, batch.state))
        buffer.add_throws(throws, torch.from_numpy(afterstate_values[:, None]))
        buffer.add(
            observations,
            actions[:, None],
            rewards,
            starts,
            torch.from_numpy(values[:, None]),
            torch.zeros(num_envs),
            action_masks=masks,
        )
        assert isinstance(new_observations, np.ndarray)
        observations, starts = new_observations, dones
    buffer.compute_returns_and_advantage(torch.zeros(num_envs, 1), starts)
    np.testing.assert_allclose(buffer.advantages, np.array(regrets), atol=2e-4)
    assert buffer.advantages.min() < -5
    assert num_wins > 0


def test_letting_all_luck_through_is_generalised_advantage_estimation() -> None:
    env = GeneralaVecEnv(16, "ruibal")
    learner = PPO("MultisetKeepPolicy", env, n_steps=32, batch_size=64, throw_lambda=1.0, gae_lambda=0.7)
    learner.learn(16 * 32)
    buffer = learner.rollout_buffer
    assert isinstance(buffer, RolloutArrays)
    last, dones = torch.ones(16, 1), np.arange(16) % 2 == 0
    buffer.compute_returns_and_advantage(last, dones)
    without_luck = buffer.advantages.copy()
    buffer.throw_lambda = None
    buffer.compute_returns_and_advantage(last, dones)
    np.testing.assert_allclose(without_luck, buffer.advantages, atol=1e-4)


def test_what_is_known_before_a_throw_does_not_depend_on_the_throw() -> None:
    layout = observation_layout(compile_variant("doble_fija"), list(BLOCKS))
    rows = np.arange(252)
    kept = np.full(252, 7)
    batch = TurnBatch(np.full(252, 5), rows, np.full(252, 2), np.zeros(252, dtype=bool), kept)
    known = layout.before_throw(layout.encode(batch), kept)
    assert (known == known[0]).all()
    assert (known[0, layout.where("dice")] * 5).round().astype(int).tolist() == KEEP_COUNTS[7].tolist()
    assert known[0, layout.where("open")].any()


@pytest.mark.parametrize("option", ["throw_lambda", "value_lambda"])
def test_a_lambda_outside_0_to_1_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match=option):
        PPO("MlpPolicy", GeneralaVecEnv(2), **{option: 1.5})


def test_luck_cannot_be_taken_out_of_environments_that_do_not_tell_their_throws() -> None:
    stock = DummyVecEnv([lambda: gym.make("generala_env/Generala-v0")])
    learner = PPO("MlpPolicy", stock, n_steps=8, batch_size=8, throw_lambda=0.0)
    with pytest.raises(ValueError, match="throw_lambda"):
        learner.learn(8)
