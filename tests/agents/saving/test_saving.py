import errno
import json
import os
import pickle
import random
import re
import signal
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from agents.base import Agent
from agents.learning.learners import make_policy
from agents.registry import make_agent
from agents.saving import agent_files
from agents.saving.agent_files import (
    AGENT_FILE,
    FORMAT,
    WEIGHTS,
    Arrays,
    Blueprint,
    FileError,
    read_agent,
    read_file,
    write_file,
)
from agents.saving.packing import pack, unpack
from generala_env.envs.observation import observation_layout
from generala_env.files import DiskFullError, remove_leftovers
from generala_env.rules.compiled import TurnBatch, compile_variant
from generala_env.rules.variants import get_variant

GOLDEN = Path(__file__).parents[2] / "golden"
POLICY = {"net_arch": [8], "activation": "relu", "keeps_head": True}


def blueprint(variant: str = "ruibal", algorithm: str = "ppo") -> Blueprint:
    rules = get_variant(variant)
    blocks = observation_layout(compile_variant(rules)).names
    return Blueprint("tiny", algorithm, rules, "play_on", blocks, POLICY, 1_000, 3)


def write_agent(path: Path, plan: Blueprint | None = None, **changes: Any) -> Path:
    plan = plan or blueprint()
    torch.manual_seed(0)
    layout = observation_layout(compile_variant(plan.variant), plan.observation_blocks)
    state = make_policy(plan.algorithm, layout, plan.policy).state_dict()
    arrays = {f"{WEIGHTS}{name}": tensor.numpy() for name, tensor in state.items()}
    write_file(path, "agent", {**plan.to_dict(), **changes}, arrays)
    return path


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray | torch.Tensor):
        is_equal = np.array_equal(np.asarray(left), np.asarray(right), equal_nan=left.dtype not in (bool,))
        return type(left) is type(right) and left.dtype == right.dtype and is_equal
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or left != left)


leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=9)
    | st.builds(lambda n: np.arange(n, dtype=np.uint64) + 2**63, st.integers(0, 5))
    | st.builds(lambda n: np.array(n, dtype=np.float32), st.floats(width=32))
    | st.builds(np.float32, st.floats(width=32))
    | st.builds(lambda n: torch.arange(n), st.integers(0, 5))
)  # fmt: skip
nested = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$array", "$pairs", "a"]), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(nested)
def test_what_is_packed_is_unpacked_as_it_was(value: Any) -> None:
    arrays: Arrays = {}
    packed = pack(value, arrays, "x")
    through_json = json.loads(json.dumps(packed, allow_nan=False))
    assert same(unpack(through_json, arrays), value)


def test_generators_come_back_through_a_file(tmp_path: Path) -> None:
    arrays: Arrays = {}
    states = [random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()]  # noqa: NPY002
    states.append(np.random.default_rng(5).bit_generator.state)
    packed = pack({"states": states}, arrays, "state")
    write_file(tmp_path / "x", "checkpoint", {"state": packed}, arrays)
    content, loaded = read_file(tmp_path / "x", "checkpoint")
    assert same(unpack(content["state"], loaded)["states"], states)


def test_what_cannot_be_saved_without_pickle_is_refused() -> None:
    with pytest.raises(TypeError, match="a/b: a object cannot be saved"):
        pack({"b": object()}, {}, "a")


# --- what is refused ---


def refusal(path: Path, variant: str = "ruibal") -> str:
    with pytest.raises(FileError) as caught:
        make_agent(path, variant)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Payload:
    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (os.environ["PAYLOAD"],)


@pytest.mark.parametrize("kind", ["pickle", "old pickle", "torch zip", "numpy"])
def test_a_crafted_pickle_is_refused_and_not_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYLOAD", str(tmp_path / "owned"))
    path = tmp_path / AGENT_FILE
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Payload()))
    elif kind == "old pickle":
        path.write_bytes(pickle.dumps(Payload(), protocol=0))
    elif kind == "torch zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(Payload()))
    else:
        with path.open("wb") as file:
            np.save(file, np.array([Payload()], dtype=object), allow_pickle=True)
    for where in (path, tmp_path):
        assert re.search("is a pickle or zip file|is damaged or cut short", refusal(where))
    assert not (tmp_path / "owned").exists()
    pickle.loads(pickle.dumps(Payload()))
    assert (tmp_path / "owned").exists(), "the payload would have worked"


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path = write_agent(tmp_path / AGENT_FILE)
    whole = path.read_bytes()
    for length in [*range(0, 200, 7), *range(200, len(whole), 1999), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert "is damaged or cut short" in refusal(path), length
    path.write_bytes(whole + b"x")
    assert "is damaged or cut short" in refusal(path)


def test_a_changed_bit_anywhere_is_refused(tmp_path: Path) -> None:
    path = write_agent(tmp_path / AGENT_FILE)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in [*range(0, 400, 3), *rng.integers(400, len(whole), 150).tolist()]:
        broken = bytearray(whole)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        refusal(path)


def test_a_checksum_that_was_changed_along_is_told_by_its_own_line(tmp_path: Path) -> None:
    path = write_agent(tmp_path / AGENT_FILE)
    whole = path.read_bytes()
    place = whole.index(b'"sha256":"') + 12
    path.write_bytes(
        whole[:place] + (b"0" if whole[place : place + 1] != b"0" else b"1") + whole[place + 1 :]
    )
    assert "its content does not match its checksum" in refusal(path)


def test_weights_that_are_not_those_of_the_network_are_refused(tmp_path: Path) -> None:
    path = write_agent(tmp_path / AGENT_FILE, policy={**POLICY, "net_arch": [9]})
    assert "its weights do not fit its network" in refusal(path)
    path = write_agent(tmp_path / AGENT_FILE, policy={})
    assert "its weights do not fit its network" in refusal(path)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    path = write_agent(tmp_path / AGENT_FILE)
    content, arrays = read_file(path, "agent")
    name = next(iter(arrays))
    write_file(path, "agent", content, {**arrays, name: np.full_like(arrays[name], np.nan)})
    assert f"its weights are not all finite numbers ({name.removeprefix('weights/')})" in refusal(path)


def test_a_model_of_other_rules_is_refused_with_both_fingerprints(tmp_path: Path) -> None:
    path = write_agent(tmp_path / AGENT_FILE)
    told = refusal(path, "doble")
    assert get_variant("ruibal").fingerprint in told
    assert get_variant("doble").fingerprint in told
    assert "was trained for ruibal" in told
    assert "not for doble" in told


def test_rules_that_were_edited_in_the_file_are_refused(tmp_path: Path) -> None:
    rules = {**get_variant("ruibal").to_dict(), "generala_points": 50}
    told = refusal(write_agent(tmp_path / AGENT_FILE, variant=rules))
    assert "fingerprint" in told


def test_a_newer_format_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(agent_files, "FORMAT", FORMAT + 1)
        path = write_agent(tmp_path / AGENT_FILE)
    assert f"has format {FORMAT + 1}, written by a newer version" in refusal(path)
    assert "update generala-env" in refusal(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / AGENT_FILE
    save_file({"x": np.zeros(2)}, path)
    assert "not one of this project" in refusal(path)
    write_file(path, "checkpoint", {}, {})
    with pytest.raises(FileError, match='is of kind "checkpoint"; needed: agent'):
        read_file(path, "agent")
    assert "its content is not what its format says" in refusal(path)
    path.unlink()
    assert "holds no trained agent" in refusal(tmp_path)


# --- what is accepted ---


def decisions(agent: Agent) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    compiled = agent.compiled
    batch = TurnBatch(
        rng.integers(0, compiled.num_cards - 1, 400),
        rng.integers(0, 252, 400),
        rng.integers(1, 4, 400),
        np.zeros(400, dtype=bool),
        np.zeros(400, dtype=int),
    )
    masks = compiled.action_masks(batch)
    keep = masks.any(axis=1)
    return agent.layout.encode(batch)[keep], masks[keep]


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
@pytest.mark.parametrize("variant", ["ruibal", "doble_fija"])
def test_an_agent_plays_the_same_after_a_round_trip(algorithm: str, variant: str, tmp_path: Path) -> None:
    plan = blueprint(variant, algorithm)
    path = write_agent(tmp_path / AGENT_FILE, plan)
    first, second = make_agent(path, variant, seed=1), make_agent(tmp_path, variant, seed=1)
    observations, masks = decisions(first)
    for deterministic in (True, False):
        actions = first.act(observations, masks, deterministic=deterministic)
        assert masks[np.arange(len(actions)), actions].all()
        assert np.array_equal(actions, second.act(observations, masks, deterministic=deterministic))
    assert read_agent(path)[0] == plan


@pytest.mark.parametrize("version", [1, 2])
def test_agents_in_old_formats_still_load_and_play_as_they_did(version: int) -> None:
    agent = make_agent(GOLDEN / f"agent-format-{version}.safetensors", "ruibal")
    golden = load_file(GOLDEN / "agent-actions.safetensors")
    observations, masks = golden["observations"], golden["action_masks"].astype(bool)
    assert np.array_equal(agent.act(observations, masks), golden["actions"])


def test_the_golden_files_have_the_formats_they_say() -> None:
    with safe_open(GOLDEN / "agent-format-1.safetensors", "np") as file:
        assert file.metadata()["format"] == "1"
    assert (GOLDEN / f"agent-format-{FORMAT}.safetensors").exists(), "a new format needs a golden file"


# --- writing ---


def test_until_the_new_file_is_whole_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_agent(tmp_path / AGENT_FILE)
    before = path.read_bytes()

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(DiskFullError, match="no space left"):
        write_agent(path, seed=9)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [AGENT_FILE]


def test_a_full_disk_as_safetensors_reports_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left (os error 28)")

    monkeypatch.setattr(agent_files, "save_file", fails)
    with pytest.raises(DiskFullError):
        write_agent(tmp_path / AGENT_FILE)
    assert not os.listdir(tmp_path)


def kill_while_saving(folder: Path, times: int) -> None:
    """Kill a process that writes one file again and again, at random moments of a write."""
    path = folder / "x.safetensors"
    rng = random.Random(times)
    size = 200_000
    write_file(path, "checkpoint", {"number": 0}, {"x": np.zeros(size)})
    leftovers = 0
    for number in range(1, times + 1):
        told, tells = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(tells, b"!")
                while True:
                    write_file(path, "checkpoint", {"number": number}, {"x": np.full(size, float(number))})
            finally:
                os._exit(1)
        os.read(told, 1)  # however busy the machine is, the writing has begun
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.close(told)
        os.close(tells)
        os.waitpid(child, 0)
        content, arrays = read_file(path, "checkpoint")
        assert (arrays["x"] == content["number"]).all()
        leftovers += len(os.listdir(folder)) > 1
        remove_leftovers(folder, of_the_living=True)
        assert os.listdir(folder) == ["x.safetensors"]
    assert leftovers, "no kill fell into a write"


def test_killed_while_saving_it_is_always_loadable(tmp_path: Path) -> None:
    kill_while_saving(tmp_path, 8)


@pytest.mark.slow
def test_killed_a_hundred_times_while_saving_it_is_always_loadable(tmp_path: Path) -> None:
    kill_while_saving(tmp_path, 100)
