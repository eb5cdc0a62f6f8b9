"""The batched environment against the single one, step for step."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

import generala_env  # noqa: F401 - registers the environments
from generala_env.envs.observation import BLOCKS
from generala_env.envs.solo import GeneralaEnv
from generala_env.envs.stepping import BONUS, IS_OVER, bundle, encode, pcg64_words
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules import PRESETS, IllegalActionError
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import TurnBatch
from generala_env.rules.dice import next_throw_table

MODES = list(AutoresetMode)

# Wins are rare by chance (6 in 7,776 throws), so some seeds are known to begin with one.
SEED_OF_A_WIN_AT_RESET = 1074


def random_actions(masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one legal action per row; 0 where there is none."""
    return np.asarray((rng.random(masks.shape) * masks).argmax(axis=1))


def keeping_actions(masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Like ``random_actions``, but mostly throw all five dice again, so that wins happen."""
    actions = random_actions(masks, rng)
    return np.where(masks[:, 0] & (rng.random(len(masks)) < 0.8), 0, actions)


def single_envs(num_envs: int, **options: Any) -> list[GeneralaEnv]:
    return [GeneralaEnv(**options) for _ in range(num_envs)]


def assert_same_info(
    vector: dict[str, Any], single: dict[str, Any], index: int, boxes: tuple[str, ...]
) -> None:
    """Compare one environment's ``info``, whatever its keys, with its part of the vector's."""
    for name, value in single.items():
        assert vector[f"_{name}"][index], name
        if name == "open_boxes":
            value = [box in value for box in boxes]
        np.testing.assert_array_equal(vector[name][index], value, err_msg=name)
    for name in vector:
        if name.startswith("_") and name[1:] not in single:
            assert not vector[name][index], name


def without_ends(info: dict[str, Any]) -> dict[str, Any]:
    """Leave out what ``info`` holds of the episodes that ended within a step."""
    return {key: value for key, value in info.items() if key.lstrip("_") not in ("final_obs", "final_info")}


def before_a_reset(own: dict[str, Any], mode: AutoresetMode, is_over: bool) -> dict[str, Any]:
    """Return a single environment's ``info`` as a batch gives it: any action may come before a reset."""
    if is_over and mode is AutoresetMode.NEXT_STEP:
        assert not own["action_mask"].any()
        return {**own, "action_mask": np.ones_like(own["action_mask"])}
    return own


def assert_same_reset(vector: GeneralaVectorEnv, singles: list[GeneralaEnv], over: NDArray[np.bool_]) -> None:
    """Reset the environments that are over, and the single ones with them."""
    boxes = tuple(box.value for box in vector.variant.boxes)
    observations, info = vector.reset(options={"reset_mask": over})
    for index in np.flatnonzero(over).tolist():
        observation, own = singles[index].reset()
        np.testing.assert_array_equal(observations[index], observation)
        assert_same_info(info, own, index, boxes)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("mode", MODES)
def test_equals_single_environments(name: str, mode: AutoresetMode) -> None:
    num_envs, seed = 3, SEED_OF_A_WIN_AT_RESET - 2
    options: dict[str, Any] = {"variant": name, "instant_win": "perfect"}
    vector = gym.make_vec("generala_env/Generala-v0", num_envs=num_envs, autoreset_mode=mode, **options)
    assert isinstance(vector, GeneralaVectorEnv)
    boxes = tuple(box.value for box in vector.variant.boxes)
    singles = single_envs(num_envs, **options)
    rng = np.random.default_rng(0)
    observations, info = vector.reset(seed=seed)
    over = np.zeros(num_envs, dtype=bool)
    for index, env in enumerate(singles):
        observation, own = env.reset(seed=seed + index)
        np.testing.assert_array_equal(observations[index], observation)
        assert_same_info(info, own, index, boxes)
    episodes = 0
    for _ in range(70):
        if mode is AutoresetMode.DISABLED and over.any():
            assert_same_reset(vector, singles, over)
            over[:] = False
        masks = vector.action_masks()
        actions = keeping_actions(masks, rng)
        observations, rewards, terminated, truncated, info = vector.step(actions)
        assert not truncated.any()
        assert rewards.dtype == np.float64
        for index, env in enumerate(singles):
            if mode is AutoresetMode.NEXT_STEP and over[index]:
                observation, own = env.reset()
                expected = (observation, 0.0, False)
            else:
                observation, reward, is_over, _, own = env.step(actions[index])
                expected = (observation, reward, is_over)
                if is_over and mode is AutoresetMode.SAME_STEP:
                    np.testing.assert_array_equal(info["final_obs"][index], observation)
                    assert_same_info(info["final_info"], own, index, boxes)
                    observation, own = env.reset()
                    expected = (observation, reward, is_over)
            np.testing.assert_array_equal(observations[index], expected[0])
            assert rewards[index] == expected[1]
            assert terminated[index] == expected[2]
            own = before_a_reset(own, mode, expected[2])
            assert_same_info(without_ends(info), own, index, boxes)
            np.testing.assert_array_equal(vector.action_masks()[index], own["action_mask"] != 0)
            assert vector.state(index) == env.state
        episodes += int(terminated.sum())
        over = terminated.copy()
    assert episodes >= num_envs


@pytest.mark.parametrize("canonical", [True, False])
@pytest.mark.parametrize("instant_win", ["perfect", "play_on", 12.5])
@pytest.mark.parametrize("blocks", [None, tuple(BLOCKS), ("counts_one_hot", "open"), ("pays",)])
def test_options_equal_single_environments(canonical: bool, instant_win: Any, blocks: Any) -> None:
    for name in ("clasica_fija", "doble_fija", "ruibal"):
        options: dict[str, Any] = {
            "variant": name,
            "canonical_keeps": canonical,
            "instant_win": instant_win,
            "observation_blocks": blocks,
        }
        seeds = [5, SEED_OF_A_WIN_AT_RESET, 5]
        vector = GeneralaVectorEnv(3, autoreset_mode="SameStep", **options)
        singles = single_envs(3, **options)
        rng = np.random.default_rng(1)
        observations, _ = vector.reset(seed=seeds)
        for index, env in enumerate(singles):
            observation, _ = env.reset(seed=seeds[index])
            np.testing.assert_array_equal(observations[index], observation)
        for _ in range(60):
            actions = keeping_actions(vector.action_masks(), rng)
            observations, rewards, terminated, _, _ = vector.step(actions)
            for index, env in enumerate(singles):
                observation, reward, is_over, _, _ = env.step(int(actions[index]))
                if is_over:
                    observation, _ = env.reset()
                np.testing.assert_array_equal(observations[index], observation)
                assert (rewards[index], terminated[index]) == (reward, is_over)
                np.testing.assert_array_equal(vector.action_masks()[index], env.action_masks())


def lucky_generator() -> np.random.PCG64:
    """Return a generator whose next draw throws five equal dice."""
    return np.random.PCG64(np.random.SeedSequence(SEED_OF_A_WIN_AT_RESET))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("illegal_action", ["raise", "penalty", "terminate"])
@pytest.mark.parametrize(
    ("name", "instant_win"),
    [("ruibal", "perfect"), ("doble_fija", "perfect"), ("clasica", 40.0), ("clasica", "play_on")],
)
def test_rare_events_equal_single_environments(
    name: str, instant_win: Any, illegal_action: Any, mode: AutoresetMode
) -> None:
    """Throws that win at once wherever they fall, the Doble bonus, and illegal actions, out of range too."""
    num_envs = 4
    options: dict[str, Any] = {
        "variant": name,
        "instant_win": instant_win,
        "illegal_action": illegal_action,
        "illegal_reward": -3.0,
    }
    vector = GeneralaVectorEnv(num_envs, autoreset_mode=mode, **options)
    boxes = tuple(box.value for box in vector.variant.boxes)
    singles, rng = single_envs(num_envs, **options), np.random.default_rng(12)
    vector.reset(seed=20)
    for index, env in enumerate(singles):
        env.reset(seed=20 + index)
    lengths = np.zeros(num_envs, dtype=int)
    met: set[str] = set()
    for _ in range(600):
        over = vector.batch.terminated.copy()
        for index in np.flatnonzero(rng.random(num_envs) < 0.1).tolist():
            vector.batch.generator[index] = pcg64_words(lucky_generator())
            singles[index].np_random = np.random.Generator(lucky_generator())
        if mode is AutoresetMode.DISABLED and over.any():
            assert_same_reset(vector, singles, over)
            lengths[over] = 0
            over[:] = False
        is_reset = over & (mode is AutoresetMode.NEXT_STEP)
        starts_won = np.array([env.state.is_instant_win for env in singles]) & ~is_reset
        if starts_won.any():
            met.add("won at the start")
        masks = vector.action_masks()
        actions = (keeping_actions if rng.random() < 0.5 else random_actions)(masks, rng)
        if illegal_action != "raise":
            wrong = rng.random(num_envs) < np.where(starts_won, 0.5, 0.1)
            offers = np.array([-1, vector.compiled.num_actions, 2**40, 0])
            actions = np.where(wrong, rng.choice(offers, num_envs), actions)
        observations, rewards, terminated, truncated, info = vector.step(actions)
        assert not truncated.any()
        for index, env in enumerate(singles):
            if is_reset[index]:
                observation, own = env.reset()
                reward, is_over = 0.0, False
                lengths[index] = 0
            else:
                observation, reward, is_over, _, own = env.step(int(actions[index]))
                lengths[index] += 1
                if own.get("instant_win") and not starts_won[index]:
                    met.add("won by closing" if actions[index] >= NUM_KEEP_ACTIONS else "won by keeping")
                if starts_won[index] and "illegal_action" in own:
                    met.add("illegal where won")
            if env.state.players[0].bonus:
                met.add("bonus")
            if is_over:
                assert vector.batch.final_length[index] == lengths[index]
                assert vector.batch.final_score[index] == own["final_score"]
            if is_over and mode is AutoresetMode.SAME_STEP:
                np.testing.assert_array_equal(info["final_obs"][index], observation)
                assert_same_info(info["final_info"], own, index, boxes)
                assert vector.batch.final_state[index, BONUS] == env.state.players[0].bonus
                observation, own = env.reset()
                lengths[index] = 0
            own = before_a_reset(own, mode, is_over)
            # What ended an episode within the step stands beside what is said of the new one.
            assert_same_info(without_ends(info), own, index, boxes)
            np.testing.assert_array_equal(observations[index], observation)
            assert (rewards[index], terminated[index]) == (reward, is_over)
            assert vector.batch.length[index] == lengths[index]
            assert vector.state(index) == env.state
            np.testing.assert_array_equal(vector.action_masks()[index], own["action_mask"] != 0)
    if instant_win == "play_on":
        expected = {"bonus"}
    else:
        expected = {"won at the start", "won by closing"}
        if vector.tables.is_served[1:].any():
            expected.add("won by keeping")
        if illegal_action != "raise":
            expected.add("illegal where won")
        met.discard("bonus")
    assert met == expected


def test_generator_equals_numpy() -> None:
    vector = GeneralaVectorEnv(4, instant_win="play_on", autoreset_mode="SameStep")
    vector.reset(seed=123)
    rng = np.random.default_rng(3)
    for _ in range(400):
        vector.step(random_actions(vector.action_masks(), rng))
    for index in range(4):
        # Walk NumPy's own generator until it meets the kernel's; each throw is one draw.
        generator = np.random.PCG64(np.random.SeedSequence(123 + index))
        reached = vector.batch.generator[index]
        reference = np.random.Generator(generator)
        for draws in range(1, 420):  # noqa: B007 - read after the loop
            reference.random()
            if np.array_equal(pcg64_words(generator), reached):
                break
        else:
            pytest.fail("the generator left NumPy's sequence")
        assert draws > 350


def test_small_throw_tables_equal_the_large_one() -> None:
    tables = GeneralaVectorEnv(1).tables
    rolls = np.arange(7_776)
    for keep, row in enumerate(next_throw_table()):
        reached = tables.union[keep, tables.rolled[tables.num_kept[keep] + rolls]]
        np.testing.assert_array_equal(reached, row)


def test_win_at_reset_offers_one_action() -> None:
    vector = GeneralaVectorEnv(2, instant_win="perfect")
    vector.reset(seed=[SEED_OF_A_WIN_AT_RESET, 0])
    masks = vector.action_masks()
    assert masks[0].sum() == 1
    assert masks[1].sum() > 1
    _, rewards, terminated, _, info = vector.step(masks.argmax(axis=1))
    assert terminated.tolist() == [True, False]
    assert rewards[0] == vector.compiled.perfect_score
    assert info["instant_win"][0]


def test_seeding() -> None:
    vector = GeneralaVectorEnv(3)
    first, _ = vector.reset(seed=0)
    later, _ = vector.reset()
    again, _ = vector.reset(seed=0)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, later)
    shifted, _ = vector.reset(seed=1)
    np.testing.assert_array_equal(first[1:], shifted[:2])
    own, _ = vector.reset(seed=[1, None, 2])
    np.testing.assert_array_equal(own[[0, 2]], shifted[[0, 1]])
    unseeded = [GeneralaVectorEnv(8).reset()[0] for _ in range(2)]
    assert not np.array_equal(unseeded[0], unseeded[1])
    with pytest.raises(ValueError, match="seed: 2 seeds for 3"):
        vector.reset(seed=[1, 2])
    with pytest.raises(gym.error.Error, match="-4"):
        vector.reset(seed=-4)


def test_illegal_action_raises_before_anything_moves() -> None:
    vector = GeneralaVectorEnv(3)
    vector.reset(seed=7)
    before = vector.get_state()
    legal = vector.action_masks()
    for bad in (int((~legal[1]).argmax()), -1, vector.compiled.num_actions):
        actions = legal.argmax(axis=1)
        actions[1] = bad
        with pytest.raises(IllegalActionError, match=f"action {bad} of environment 1"):
            vector.step(actions)
    for name, array in vector.get_state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    wrong: list[NDArray[Any]] = [np.zeros(2, dtype=int), np.zeros(3), np.zeros((3, 1), dtype=int)]
    for actions in wrong:
        with pytest.raises(ValueError, match="is not integers of shape"):
            vector.step(actions)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("illegal_action", ["penalty", "terminate"])
def test_illegal_action_modes(mode: AutoresetMode, illegal_action: Any) -> None:
    options: dict[str, Any] = {"illegal_action": illegal_action, "illegal_reward": -3.0}
    vector = GeneralaVectorEnv(2, autoreset_mode=mode, **options)
    single = GeneralaEnv(**options)
    vector.reset(seed=[4, 5])
    single.reset(seed=5)
    legal = vector.action_masks()
    actions = legal.argmax(axis=1)
    actions[1] = bad = int((~legal[1]).argmax())
    observations, rewards, terminated, _, info = vector.step(actions)
    observation, reward, is_over, _, own = single.step(bad)
    assert (rewards[1], bool(terminated[1])) == (reward, is_over) == (-3.0, illegal_action == "terminate")
    if is_over and mode is AutoresetMode.SAME_STEP:
        np.testing.assert_array_equal(info["final_obs"][1], observation)
        info = info["final_info"]
    else:
        np.testing.assert_array_equal(observations[1], observation)
    assert info["illegal_action"][1] == own["illegal_action"] == bad
    assert info["_illegal_action"].tolist() == [False, True]


def test_finished_episodes_and_no_reset() -> None:
    vector = GeneralaVectorEnv(2, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(gym.error.ResetNeeded):
        vector.step(np.zeros(2, dtype=int))
    vector.reset(seed=1)
    terminated = np.zeros(2, dtype=bool)
    info: dict[str, Any] = {}
    while not terminated.any():
        masks = vector.action_masks()
        masks[1, 31:] &= ~masks[1, :31].any()
        # The first closes at each throw, the second only when it must.
        actions = [31 + int(masks[0, 31:].argmax()), int(masks[1].argmax())]
        _, _, terminated, _, info = vector.step(np.array(actions))
    assert terminated.tolist() == [True, False]
    assert not info["action_mask"][0].any()
    with pytest.raises(gym.error.ResetNeeded, match=r"\[0\]"):
        vector.step(np.zeros(2, dtype=int))
    with pytest.raises(ValueError, match="reset_mask"):
        vector.reset(options={"reset_mask": np.ones(3, dtype=bool)})
    _, info = vector.reset(options={"reset_mask": terminated})
    terminated[:] = False
    assert info["_dice"].tolist() == [True, False]
    fresh = GeneralaVectorEnv(2)
    fresh.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(gym.error.ResetNeeded, match="not begun"):
        fresh.step(np.zeros(2, dtype=int))


def test_resumes_exactly_from_a_saved_state() -> None:
    vector = GeneralaVectorEnv(5, variant="doble_fija", autoreset_mode="SameStep")
    vector.reset(seed=2)
    rng = np.random.default_rng(5)
    for _ in range(37):
        vector.step(random_actions(vector.action_masks(), rng))
    state = pickle.loads(pickle.dumps(vector.get_state()))
    resumed = GeneralaVectorEnv(5, variant="doble_fija", autoreset_mode="SameStep")
    resumed.set_state(state)
    np.testing.assert_array_equal(vector.observe(), resumed.observe())
    for _ in range(80):
        actions = random_actions(vector.action_masks(), rng)
        for left, right in zip(vector.step(actions)[:4], resumed.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(left, right)
    with pytest.raises(ValueError, match="state: score"):
        resumed.set_state({**state, "score": np.zeros(4)})
    with pytest.raises(ValueError, match="the arrays"):
        resumed.set_state({"score": np.zeros(5)})
    before = resumed.observe()
    foreign = state["state"].copy()
    foreign[3, 0] = resumed.compiled.num_cards
    with pytest.raises(ValueError, match="card 3584 is not from 0 to 3583; is it of other rules"):
        resumed.set_state({**state, "state": foreign})
    np.testing.assert_array_equal(resumed.observe(), before)
    over = state["state"].copy()
    over[2, IS_OVER] = 1
    with pytest.raises(ValueError, match=r"environments \[2\] are over"):
        resumed.set_state({**state, "state": over})
    # Masks are what the states allow, whatever was saved.
    resumed.set_state({**state, "masks": np.ones_like(state["masks"])})
    np.testing.assert_array_equal(resumed.action_masks(), state["masks"].astype(bool))


def assert_equal_steps(left: Any, right: Any) -> None:
    """Compare what two steps returned, every array of ``info`` too."""
    for part, other in zip(left[:4], right[:4], strict=True):
        np.testing.assert_array_equal(part, other)
    assert_equal_infos(left[4], right[4])


def assert_equal_infos(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert set(left) == set(right)
    for name, value in left.items():
        if isinstance(value, dict):
            assert_equal_infos(value, right[name])
        elif value.dtype == object:
            for part, other in zip(value, right[name], strict=True):
                np.testing.assert_array_equal(part, other)
        else:
            np.testing.assert_array_equal(value, right[name], err_msg=name)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(("num_envs", "num_threads"), [(33, 2), (2, 3)])
def test_threads_change_nothing(mode: AutoresetMode, num_envs: int, num_threads: int) -> None:
    one, several = (
        GeneralaVectorEnv(num_envs, num_threads=threads, autoreset_mode=mode) for threads in (1, num_threads)
    )
    rng = np.random.default_rng(6)
    one.reset(seed=9)
    several.reset(seed=9)
    for _ in range(60):
        actions = random_actions(one.action_masks(), rng)
        assert_equal_steps(one.step(actions), several.step(actions))
    # An illegal action in the last thread's share keeps the first from moving, too.
    before = several.get_state()
    actions = several.action_masks().argmax(axis=1)
    actions[-1] = -1
    with pytest.raises(IllegalActionError, match=f"action -1 of environment {num_envs - 1}"):
        several.step(actions)
    for name, array in several.get_state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda vector: pickle.loads(pickle.dumps(vector))])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    vector = GeneralaVectorEnv(4)
    vector.reset(seed=3)
    rng = np.random.default_rng(4)
    for _ in range(5):
        vector.step(random_actions(vector.action_masks(), rng))
    twin = copied(vector)
    recorded = []
    for _ in range(40):
        actions = random_actions(vector.action_masks(), rng)
        recorded.append((actions, vector.step(actions)))
    for actions, step in recorded:
        assert_equal_steps(twin.step(actions), step)


def test_bundles_refuse_what_the_kernel_would_misread() -> None:
    batch = GeneralaVectorEnv(3).batch
    assert bundle(batch)[0, :3].tolist() == [batch.state.ctypes.data, 3, 8]
    wrong: Any
    for wrong in (batch.state.astype(np.int64), np.asfortranarray(batch.state), batch.state[0]):
        with pytest.raises(TypeError, match="state: "):
            bundle(batch._replace(state=wrong))
    frozen = batch.state.copy()
    frozen.flags.writeable = False
    shifted = np.frombuffer(bytearray(4 * batch.state.size + 1), dtype=np.int32, offset=1)
    assert not shifted.flags.aligned
    for wrong in (frozen, shifted.reshape(batch.state.shape)):
        with pytest.raises(TypeError, match="state: the kernel cannot write"):
            bundle(batch._replace(state=wrong))


@pytest.mark.parametrize("name", PRESETS)
def test_encode_equals_the_layout(name: str) -> None:
    vector = GeneralaVectorEnv(1, variant=name, observation_blocks=tuple(BLOCKS))
    compiled, rng = vector.compiled, np.random.default_rng(8)
    throw_number = rng.integers(1, 4, 3000)
    kept = np.where(throw_number > 1, rng.integers(0, 210, 3000), 0)
    served = rng.random(3000) < 0.5
    card = rng.integers(0, compiled.num_cards, 3000)
    batch = TurnBatch(card, rng.integers(0, 252, 3000), throw_number, served, kept)
    observations, masks = encode(batch, vector.tables)
    np.testing.assert_array_equal(observations, vector.layout.encode(batch))
    np.testing.assert_array_equal(masks, compiled.action_masks(batch))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_returned_is_the_callers(mode: AutoresetMode) -> None:
    """Whatever a caller writes into what a step returned, the next step does not notice."""
    vector, twin = (GeneralaVectorEnv(3, autoreset_mode=mode) for _ in range(2))
    rng = np.random.default_rng(1)
    (observations, info), _ = vector.reset(seed=0), twin.reset(seed=0)
    assert info["action_mask"].dtype == np.int8
    arrays = [observations, *info.values()]
    for _ in range(60):
        for array in arrays:
            if isinstance(array, np.ndarray) and array.dtype != object:
                array[...] = 1
        vector.action_masks()[:] = True
        if mode is AutoresetMode.DISABLED and twin.batch.terminated.any():
            options = {"reset_mask": twin.batch.terminated.copy()}
            vector.reset(options=options.copy())
            twin.reset(options=options)
        actions = random_actions(twin.action_masks(), rng)
        step, expected = vector.step(actions), twin.step(actions)
        assert_equal_steps(step, expected)
        arrays = [*step[:4], *step[4].values()]


def test_returned_arrays_are_apart() -> None:
    """No array of a step lies in another of it, save the ``_``-masks, or in what the kernel works on."""
    vector = GeneralaVectorEnv(3)
    vector.reset(seed=0)
    *arrays, info = vector.step(vector.action_masks().argmax(axis=1))
    arrays += [value for name, value in info.items() if not name.startswith("_")] + [info["_dice"]]
    for index, array in enumerate(arrays):
        for other in (*arrays[:index], *vector.batch):
            assert not np.shares_memory(array, other)


def test_agrees_with_gymnasium_sync_vector_env() -> None:
    """Gymnasium's own vectorisation of the single environment gives the same stream."""
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        ours = GeneralaVectorEnv(3, variant="clasica", autoreset_mode=mode)
        theirs = SyncVectorEnv([lambda: GeneralaEnv("clasica")] * 3, autoreset_mode=mode)
        rng = np.random.default_rng(2)
        np.testing.assert_array_equal(ours.reset(seed=11)[0], theirs.reset(seed=11)[0])
        for _ in range(80):
            actions = random_actions(ours.action_masks(), rng)
            left, right = ours.step(actions), theirs.step(actions)
            for part, other in zip(left[:4], right[:4], strict=True):
                np.testing.assert_array_equal(part, other)
            # The single environment says what is legal at an end, nothing; the batch what may come next.
            theirs_mask = right[4]["action_mask"].copy()
            if mode is AutoresetMode.NEXT_STEP:
                theirs_mask[right[2]] = 1
            np.testing.assert_array_equal(left[4]["action_mask"], theirs_mask)
            assert set(right[4]) <= set(left[4])


def test_renders_every_environment() -> None:
    vector = GeneralaVectorEnv(2, render_mode="ansi")
    vector.reset(seed=0)
    texts = vector.render()
    assert texts is not None
    assert len(texts) == 2
    assert all(isinstance(text, str) and text for text in texts)


def test_wrong_options_name_themselves() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"num_envs": 0}, "num_envs"),
        ({"num_threads": 0}, "num_threads"),
        ({"illegal_action": "ignore"}, "illegal_action"),
        ({"autoreset_mode": "Never"}, "Never"),
    ]
    for options, name in cases:
        with pytest.raises(ValueError, match=name):
            GeneralaVectorEnv(**options)
