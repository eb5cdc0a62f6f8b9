"""The networks: what they read, what they score, and that masks are obeyed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents.learning.network_agent import NetworkAgent, padded_size
from agents.learning.networks import (
    KeepGather,
    MaskedActorCriticPolicy,
    MaskedQPolicy,
    MissingMaskError,
    MultisetKeepPolicy,
    MultisetKeepQPolicy,
    ThrowFeatures,
    ThrowReader,
    masked_entropy,
    masked_log_softmax,
    sample,
)
from generala_env.envs.observation import BLOCKS
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules.dice import KEEP_OF_MASK, NUM_THROWS, THROW_INDEX


def batch_of_states(
    variant: str = "doble_fija", steps: int = 25, **options: Any
) -> tuple[GeneralaVectorEnv, NDArray[np.float32], NDArray[np.bool_]]:
    """Return environments somewhere in their episodes, and what they show."""
    env = GeneralaVectorEnv(64, variant, autoreset_mode="SameStep", **options)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        masks = env.action_masks()
        env.advance((rng.random(masks.shape) * masks).argmax(axis=1))
    return env, env.observe(), env.action_masks()


def make_policy(kind: Any, env: GeneralaVectorEnv, **options: Any) -> Any:
    torch.manual_seed(0)
    return kind(env.single_observation_space, env.single_action_space, lambda _: 1e-3, **options)


def test_throws_are_read_from_observations() -> None:
    env, observations, _ = batch_of_states()
    throws = ThrowReader()(torch.from_numpy(observations))
    np.testing.assert_array_equal(throws.numpy(), env.turn_batch().throw)
    every = torch.from_numpy(env.layout.tables["dice"].copy())
    np.testing.assert_array_equal(ThrowReader()(every).numpy(), np.arange(NUM_THROWS))


def test_features_hold_the_one_hot_blocks() -> None:
    env, observations, _ = batch_of_states(observation_blocks=tuple(BLOCKS))
    extractor = ThrowFeatures(env.single_observation_space)  # type: ignore[arg-type]
    features = extractor(torch.from_numpy(observations)).numpy()
    assert features.shape[1] == extractor.features_dim
    counts, dice = env.layout.where("counts_one_hot"), env.layout.where("dice_one_hot")
    size = env.layout.size
    np.testing.assert_array_equal(features[:, :size], observations)
    np.testing.assert_array_equal(features[:, size : size + 36], observations[:, counts])
    np.testing.assert_array_equal(features[:, size + 36 :], observations[:, dice])


def test_equal_keeps_share_one_score() -> None:
    env, observations, _ = batch_of_states(canonical_keeps=False)
    gather = KeepGather(env.compiled.num_actions)
    scores = torch.randn(len(observations), gather.num_outputs)
    actions = gather(scores, torch.from_numpy(observations)).numpy()
    throws = env.turn_batch().throw
    for row, throw in enumerate(throws):
        expected = scores[row].numpy()
        np.testing.assert_array_equal(actions[row, :31], expected[KEEP_OF_MASK[throw, :31]])
        np.testing.assert_array_equal(actions[row, 31:], expected[210:])
    # Keeping two fives is the same output on two throws in which they lie elsewhere.
    first, second = THROW_INDEX[(1, 2, 3, 5, 5)], THROW_INDEX[(5, 5, 6, 6, 6)]
    assert gather.outputs[first, 0b11000] == gather.outputs[second, 0b00011]


@pytest.mark.parametrize("kind", [MaskedActorCriticPolicy, MultisetKeepPolicy])
def test_policy_obeys_masks(kind: Any) -> None:
    env, observations, masks = batch_of_states()
    policy = make_policy(kind, env)
    # Weights that want the forbidden: without the mask nearly everything would be illegal.
    with torch.no_grad():
        policy.action_net.bias.normal_(0, 20)
    tensor = torch.from_numpy(observations)
    rows = np.arange(len(masks))
    actions = torch.zeros(0)
    for deterministic in (True, False):
        actions, _, log_probs = policy(tensor, deterministic=deterministic, action_masks=masks)
        assert masks[rows, actions].all()
        assert torch.isfinite(log_probs).all()
        chosen, _ = policy.predict(observations, action_masks=masks, deterministic=deterministic)
        assert masks[rows, chosen].all()
        free, _, _ = policy(tensor, deterministic=deterministic)
        assert not masks[rows, free].all(), "the test needs weights that go wrong without a mask"
    single, _ = policy.predict(observations[3], action_masks=masks[3].tolist(), deterministic=True)
    assert single == policy.predict(observations, action_masks=masks, deterministic=True)[0][3]
    _, _, entropy = policy.evaluate_actions(tensor, actions, action_masks=masks)
    _, _, unmasked = policy.evaluate_actions(tensor, actions)
    assert not torch.allclose(entropy, unmasked)


def test_same_results_as_sb3_contrib() -> None:
    env, observations, masks = batch_of_states()
    ours = make_policy(MaskedActorCriticPolicy, env)
    theirs = make_policy(MaskableActorCriticPolicy, env)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    with torch.no_grad():
        ours.action_net.weight.mul_(100)
    theirs.load_state_dict(ours.state_dict())
    tensor = torch.from_numpy(observations)
    for given in (masks, None):
        left: Any = ()
        for deterministic in (True, False):
            torch.manual_seed(5)
            left = ours(tensor, deterministic=deterministic, action_masks=given)
            torch.manual_seed(5)
            right = theirs(tensor, deterministic=deterministic, action_masks=given)
            assert torch.equal(left[0], right[0])
            for part, other in zip(left[1:], right[1:], strict=True):
                torch.testing.assert_close(part, other)
        tensor_masks = None if given is None else torch.from_numpy(given)
        for part, other in zip(
            ours.evaluate_actions(tensor, left[0], tensor_masks),
            theirs.evaluate_actions(tensor, left[0], tensor_masks),
            strict=True,
        ):
            torch.testing.assert_close(part, other)
        torch.testing.assert_close(
            ours.get_distribution(tensor, given).distribution.probs,
            theirs.get_distribution(tensor, given).distribution.probs,
        )


def test_masked_uniform_has_the_entropy_of_its_legal_count() -> None:
    _, _, masks = batch_of_states()
    tensor = torch.from_numpy(masks)
    log_probs = masked_log_softmax(torch.zeros(masks.shape), tensor)
    np.testing.assert_allclose(masked_entropy(log_probs, tensor), np.log(masks.sum(axis=1)), rtol=1e-5)


def test_samples_follow_the_probabilities() -> None:
    torch.manual_seed(1)
    log_probs = masked_log_softmax(
        torch.tensor([[0.0, 1.0, 5.0, 2.0]]), torch.tensor([[True, True, False, True]])
    )
    draws = sample(log_probs.expand(40_000, 4))
    shares = torch.bincount(draws, minlength=4) / 40_000
    np.testing.assert_allclose(shares, log_probs.exp()[0], atol=0.01)
    assert shares[2] == 0


@pytest.mark.parametrize(
    "kind", [MaskedActorCriticPolicy, MultisetKeepPolicy, MaskedQPolicy, MultisetKeepQPolicy]
)
def test_nothing_is_predicted_without_masks_that_fit(kind: Any) -> None:
    env, observations, masks = batch_of_states()
    policy = make_policy(kind, env)
    masks[1] = False
    for given, named in (
        (None, "action_masks: needed"),
        (masks, "row 1 allows nothing"),
        (masks[2:], "rows for"),
        (masks[:, :-1], "shape"),
    ):
        with pytest.raises(MissingMaskError, match=named):
            policy.predict(observations, action_masks=given)


@pytest.mark.parametrize("kind", [MaskedQPolicy, MultisetKeepQPolicy])
def test_q_policy_obeys_masks_and_refuses_to_go_without(kind: Any) -> None:
    env, observations, masks = batch_of_states()
    policy = make_policy(kind, env)
    rows = np.arange(len(masks))
    actions, _ = policy.predict(observations, action_masks=masks)
    assert masks[rows, actions].all()
    assert not masks[rows, policy.q_net(torch.from_numpy(observations)).argmax(dim=1)].all()
    single, _ = policy.predict(observations[3], action_masks=masks[3])
    assert single == actions[3]
    with pytest.raises(MissingMaskError, match="action_masks"):
        policy.predict(observations)
    values = policy.q_net(torch.from_numpy(observations)).detach().numpy()
    np.testing.assert_array_equal(actions, np.where(masks, values, -np.inf).argmax(axis=1))


@pytest.mark.parametrize("kind", [MultisetKeepPolicy, MultisetKeepQPolicy, MaskedQPolicy])
def test_network_agent(kind: Any) -> None:
    env, observations, masks = batch_of_states()
    policy = make_policy(kind, env)
    if kind is MultisetKeepPolicy:
        with torch.no_grad():
            policy.action_net.bias.normal_(0, 3)
    agent = NetworkAgent("trained", env.layout, policy, seed=3)
    rows = np.arange(len(masks))
    best = agent.act(observations, masks)
    assert best.dtype == np.int64
    assert masks[rows, best].all()
    probabilities = agent.action_probabilities(observations, masks)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities[~masks] == 0).all()
    np.testing.assert_array_equal(probabilities.argmax(axis=1), best)
    np.testing.assert_array_equal(agent.act(observations[:1], masks[:1]), best[:1])
    repeated = np.repeat(observations[:1], 20_000, axis=0), np.repeat(masks[:1], 20_000, axis=0)
    agent.reset(1)
    draws = agent.act(*repeated, deterministic=False)
    agent.reset(1)
    np.testing.assert_array_equal(draws, agent.act(*repeated, deterministic=False))
    shares = np.bincount(draws, minlength=masks.shape[1]) / len(draws)
    np.testing.assert_allclose(shares, probabilities[0], atol=0.015)


def test_agents_ask_their_network_for_few_different_batches() -> None:
    """In low precision torch keeps something for every size, so memory would grow with every evaluation."""
    sizes = {padded_size(batch) for batch in range(1, 40_000)}
    assert len(sizes) <= 4 * 16
    assert all(batch <= padded_size(batch) <= batch * 4 / 3 for batch in range(1, 40_000))
    env = GeneralaVectorEnv(37)
    env.reset(seed=0)
    policy = MultisetKeepPolicy(env.single_observation_space, env.single_action_space, lambda _: 1e-3)  # type: ignore[arg-type]
    agent = NetworkAgent("agent", env.layout, policy, seed=0)
    seen = []
    policy.action_net.register_forward_hook(lambda _module, inputs, _output: seen.append(len(inputs[0])))
    observations, masks = env.observe(), env.action_masks()
    whole = agent.action_probabilities(observations, masks)
    assert seen == [40]
    for batch in (1, 5, 36):
        part = agent.action_probabilities(observations[:batch], masks[:batch])
        np.testing.assert_allclose(part, whole[:batch], atol=1e-6)
        assert part.shape == (batch, masks.shape[1])


@pytest.mark.parametrize("kind", [MultisetKeepPolicy, MultisetKeepQPolicy])
def test_policies_save_and_load(kind: Any, tmp_path: Any) -> None:
    env, observations, masks = batch_of_states()
    policy = make_policy(kind, env, net_arch=[32])
    policy.save(tmp_path / "policy")
    loaded = kind.load(tmp_path / "policy")
    np.testing.assert_array_equal(
        policy.predict(observations, action_masks=masks, deterministic=True)[0],
        loaded.predict(observations, action_masks=masks, deterministic=True)[0],
    )
