"""Nested values as JSON types and arrays, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.saving.agent_files import Arrays


def pack(value: Any, arrays: Arrays, path: str) -> Any:
    """Turn a nested value into JSON types, moving its arrays out.

    Mappings, lists, tuples, text, bytes, numbers (not finite ones too), NumPy arrays and
    scalars and torch tensors come back from ``unpack`` as they were; tensors as arrays.

    Args:
        value: The value.
        arrays: Where arrays go, under names that begin with ``path``.
        path: Name of the value.

    Raises:
        TypeError: A value is none of these.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.generic):
        arrays[path] = np.asarray(value)
        return {"$scalar": path}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"$array": path}
    if isinstance(value, tuple | list):
        items = [pack(item, arrays, f"{path}/{index}") for index, item in enumerate(value)]
        return {"$tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: pack(item, arrays, f"{path}/{key}") for key, item in value.items()}
        pairs = enumerate(value.items())
        return {"$pairs": [[key, pack(item, arrays, f"{path}/{index}")] for index, (key, item) in pairs]}
    if hasattr(value, "detach"):
        arrays[path] = value.detach().cpu().numpy().copy()
        return {"$tensor": path}
    raise TypeError(f"{path}: a {type(value).__name__} cannot be saved")


def unpack(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return what ``pack`` was given."""
    if isinstance(value, list):
        return [unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((kind, inner),) = value.items()
        if kind == "$scalar":
            return arrays[inner][()]
        if kind == "$array":
            return arrays[inner].copy()
        if kind == "$tensor":
            import torch

            return torch.from_numpy(arrays[inner].copy())
        if kind == "$float":
            return float(inner)
        if kind == "$bytes":
            return bytes.fromhex(inner)
        if kind == "$tuple":
            return tuple(unpack(item, arrays) for item in inner)
        if kind == "$pairs":
            return {key: unpack(item, arrays) for key, item in inner}
    return {key: unpack(item, arrays) for key, item in value.items()}
