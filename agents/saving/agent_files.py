"""Files of trained agents and of checkpoints: safetensors and JSON, never pickle.

Both are one safetensors file: arrays, and a header with the kind of file, the number of its
format, a JSON text and a SHA-256 over all of it. A file is written under a temporary name,
flushed to the disk and renamed, so that under its own name it is always whole.

Format 2 names the arrays of the network ``weights/...``; format 1 had no prefix and kept the
settings of the network beside the rest.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from agents.errors import AgentError, shown
from agents.saving.provenance import provenance
from generala_env.files import os_error_number, parse_json, replacing
from generala_env.rules.variants import Variant, VariantError

FORMAT: Final = 2
"""The format that is written. Every earlier one is read."""

AGENT_FILE: Final = "agent.safetensors"

CHECKPOINT_FOLDER: Final = "checkpoints"

WEIGHTS: Final = "weights/"

Kind = Literal["agent", "checkpoint"]

Arrays = dict[str, NDArray[Any]]


class FileError(AgentError):
    """A file that is missing, broken, of another kind, of a newer format or for other rules."""


def _checksum(header: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for key in ("kind", "format", "content"):
        digest.update(f"{key}={header[key]}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}:{array.dtype.str}:{array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_file(
    path: Path, kind: Kind, content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write an agent or a checkpoint; what stood there before is replaced only by a whole file.

    Args:
        path: Where.
        kind: What it is.
        content: JSON types.
        arrays: Its arrays.

    Raises:
        DiskFullError: There is no room.
    """
    whole = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    header = {"kind": kind, "format": str(FORMAT), "content": json.dumps(content, allow_nan=False)}
    header["sha256"] = _checksum(header, whole)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        try:
            save_file(whole, temporary, metadata=header)
        except SafetensorError as error:
            raise OSError(os_error_number(error) or errno.EIO, str(error), str(path)) from None


def read_file(path: Path, *kinds: Kind) -> tuple[dict[str, Any], Arrays]:
    """Read an agent or a checkpoint, checked against its checksum and brought to today's format.

    Args:
        path: Where.
        kinds: What it may be.

    Returns:
        Its content and its arrays.

    Raises:
        FileError: It is not a whole file of that kind in a format known here.
    """
    named = str(path)
    try:
        with path.open("rb") as file:
            start = file.read(10)
    except OSError as error:
        raise FileError(f"{named}: {error.strerror or error}") from None
    # A safetensors file has the length of its header in the first 8 bytes, which may be any, and
    # then a brace.
    if start[8:9] != b"{" and (start[:1] == b"\x80" or start[:4] == b"PK\x03\x04"):
        raise FileError(
            f"{named}: is a pickle or zip file, which could run code and is never opened; "
            "agents are safetensors files"
        )
    arrays: Arrays = {}
    try:
        with safe_open(path, "np") as file:
            header = file.metadata() or {}
            for key in ("kind", "format", "content", "sha256"):
                if key not in header:
                    raise FileError(f"{named}: is a safetensors file, but not one of this project: no {key}")
            if header["kind"] not in kinds:
                raise FileError(f"{named}: is of kind {shown(header['kind'])}; needed: {' or '.join(kinds)}")
            version = int(header["format"]) if header["format"].isdecimal() else 0
            if version > FORMAT:
                raise FileError(
                    f"{named}: has format {version}, written by a newer version; "
                    f"this one reads up to {FORMAT}: update generala-env"
                )
            if version < 1:
                raise FileError(f"{named}: has format {shown(header['format'])}; known: 1 to {FORMAT}")
            for name in file.keys():  # noqa: SIM118 - not a mapping
                arrays[name] = file.get_tensor(name)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        told = " ".join(str(error).split())
        raise FileError(f"{named}: is damaged or cut short ({told})") from None
    if _checksum(header, arrays) != header["sha256"]:
        raise FileError(
            f"{named}: is damaged: its content does not match its checksum {header['sha256'][:12]}…"
        )
    try:
        content = parse_json(header["content"])
        for older in range(version, FORMAT):
            content, arrays = _UPGRADES[older](content, arrays)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{named}: its content is not what its format says ({shown(repr(error))})") from None
    return content, arrays


def _from_format_1(content: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    policy = {key: content.pop(key) for key in ("net_arch", "activation", "keeps_head")}
    prefixed = {f"{WEIGHTS}{name}": array for name, array in arrays.items()}
    return {**content, "policy": policy}, prefixed


_UPGRADES: Final[dict[int, Callable[[dict[str, Any], Arrays], tuple[dict[str, Any], Arrays]]]] = {
    1: _from_format_1
}
"""For each earlier format, how to make the next one of it."""

# --- agents ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blueprint:
    """What is needed, beside the weights, to make a trained agent again.

    Attributes:
        name: How the agent is called.
        algorithm: ``ppo`` or ``dqn``.
        variant: The rules it was trained on.
        instant_win: How a served Generala that wins was treated.
        observation_blocks: The blocks of its observations.
        policy: Settings of the network, as in the config's ``policy``.
        num_timesteps: Decisions it was trained on.
        seed: Seed of its run.
    """

    name: str
    algorithm: str
    variant: Variant
    instant_win: str | float
    observation_blocks: tuple[str, ...]
    policy: dict[str, Any]
    num_timesteps: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return the blueprint as JSON types, with fingerprint, versions and commit."""
        return {
            "name": self.name,
            "algorithm": self.algorithm,
            "variant": self.variant.to_dict(),
            "fingerprint": self.variant.fingerprint,
            "instant_win": self.instant_win,
            "observation_blocks": list(self.observation_blocks),
            "policy": self.policy,
            "num_timesteps": self.num_timesteps,
            "seed": self.seed,
            **provenance(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Blueprint:
        """Read what ``to_dict`` returned.

        Raises:
            KeyError: A value is missing.
            TypeError: A value has a wrong type.
            VariantError: The rules make no sense, or do not have the fingerprint.
        """
        variant = Variant.from_dict(content["variant"])
        if variant.fingerprint != content["fingerprint"]:
            raise VariantError(
                "fingerprint",
                f"{shown(content['fingerprint'])} is not that of its rules, {variant.fingerprint}",
            )
        if not isinstance(content["policy"], dict):
            raise TypeError("policy is not a mapping")
        return cls(
            str(content["name"]),
            str(content["algorithm"]),
            variant,
            content["instant_win"],
            tuple(content["observation_blocks"]),
            content["policy"],
            int(content["num_timesteps"]),
            int(content["seed"]),
        )


def agent_files(folder: Path) -> list[Path]:
    """Return the files of a run folder that hold an agent, the best choice first."""
    best = [path for path in (folder / AGENT_FILE,) if path.exists()]
    return [*best, *reversed(checkpoint_files(folder))]


def checkpoint_files(folder: Path) -> list[Path]:
    """Return the checkpoints of a run folder, the oldest first."""
    return sorted((folder / CHECKPOINT_FOLDER).glob("step-*.safetensors"))


def read_agent(path: Path) -> tuple[Blueprint, Arrays]:
    """Read the blueprint and the weights of an agent file, a checkpoint or a run folder.

    Raises:
        FileError: There is none, or it is broken.
    """
    if path.is_dir():
        found = agent_files(path)
        if not found:
            raise FileError(f"{path}: holds no trained agent: neither {AGENT_FILE} nor a checkpoint")
        path = found[0]
    content, arrays = read_file(path, "agent", "checkpoint")
    try:
        blueprint = Blueprint.from_dict(content)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path}: its content is not what its format says ({error})") from None
    weights = {name[len(WEIGHTS) :]: array for name, array in arrays.items() if name.startswith(WEIGHTS)}
    return blueprint, weights


def weights_hash(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a SHA-256 over names, shapes and bits of arrays."""
    return _checksum({"kind": "", "format": "", "content": ""}, arrays)
