"""Tables of the two-player game on disk: one folder per rule set, mapped into memory.

A folder holds ``duel.json``, which says what the tables are for, and for each solved layer an
array of values and an array with the CRC-32 of every row (the pairs of one mover's card). All are
written under a temporary name and renamed, the manifest last, so that a killed solve leaves whole
layers only. Opening reads the manifest and the headers; a row is checked when it is first used.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import platformdirs
from numpy.typing import NDArray

from generala_env.files import parse_json, remove_leftovers, replacing
from generala_env.rules.variants import Variant

FORMAT: Final = 1
"""Raised when the meaning of the files changes; other formats are refused."""

_MANIFEST: Final = "duel.json"


class StoreError(ValueError):
    """Tables on disk that are damaged, or belong to something else."""


def default_store() -> Path:
    """Return the folder in which tables are kept unless another one is named."""
    return platformdirs.user_data_path("generala-env") / "duel"


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


class DuelStore:
    """The folder of one solution.

    Attributes:
        folder: Where it is.
        layers: What the manifest says of each finished layer, by number of open boxes.
    """

    def __init__(self, folder: Path, identity: dict[str, Any], layers: dict[int, dict[str, Any]]) -> None:
        """Hold an opened folder; see ``open`` and ``create``."""
        self.folder = folder
        self.layers = layers
        self._identity = identity
        self._checked: dict[int, NDArray[np.bool_]] = {}
        self._checksums: dict[int, NDArray[np.uint32]] = {}

    @staticmethod
    def folder_of(root: Path, variant: Variant, start: tuple[int, int] | None) -> Path:
        """Return the folder of a variant's solution, or of the endgame from two classes of cards."""
        suffix = "" if start is None else f"-from-{start[0]}-{start[1]}"
        return root / f"{variant.fingerprint}{suffix}"

    @classmethod
    def open(
        cls, root: Path, variant: Variant, layout: str, start: tuple[int, int] | None
    ) -> DuelStore | None:
        """Open the tables of a variant, finished or not.

        Args:
            root: The folder of all solutions.
            variant: The rules.
            layout: Digest of how the arrays are laid out.
            start: The classes of cards of an endgame; ``None`` for the whole game.

        Returns:
            The store, or ``None`` where nothing was stored.

        Raises:
            StoreError: The folder is damaged, or its tables are for something else.
        """
        folder = cls.folder_of(root, variant, start)
        path = folder / _MANIFEST
        if not path.exists():
            if folder.is_dir() and any(entry.suffix == ".npy" for entry in folder.iterdir()):
                raise StoreError(
                    f"{folder}: {_MANIFEST} is missing, though there are tables; delete the folder"
                )
            return None
        try:
            manifest = parse_json(path.read_text(encoding="utf-8"))
            digest = manifest.pop("checksum")
            is_intact = digest == _digest(manifest)
        except (ValueError, KeyError, AttributeError, TypeError):
            is_intact = False
            manifest = {}
        if not is_intact:
            raise StoreError(
                f"{path}: damaged (its checksum does not fit); delete the folder and solve again"
            )
        expected = _identity(variant, layout, start)
        for name in ("format", "kind", "fingerprint", "start", "layout", "dtype"):
            if manifest.get(name) != expected[name]:
                raise StoreError(
                    f"{path}: made for another game: {name} is {manifest.get(name)!r}, not {expected[name]!r}"
                )
        layers = {int(number): entry for number, entry in manifest.pop("layers").items()}
        store = cls(folder, manifest, layers)
        for number in layers:
            store._open_layer(number)
        return store

    @classmethod
    def create(cls, root: Path, variant: Variant, layout: str, start: tuple[int, int] | None) -> DuelStore:
        """Make the folder of a variant, without layers yet."""
        folder = cls.folder_of(root, variant, start)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder, _identity(variant, layout, start), {})

    @property
    def seconds(self) -> float | None:
        """What solving the finished layers took; ``None`` where layers were written without saying it."""
        if not all("seconds" in entry for entry in self.layers.values()):
            return None
        return float(sum(entry["seconds"] for entry in self.layers.values()))

    def _path(self, number: int) -> Path:
        return self.folder / f"layer-{number:02d}.npy"

    def _checksum_path(self, number: int) -> Path:
        return self.folder / f"checksums-{number:02d}.npy"

    def _open_layer(self, number: int) -> NDArray[np.float32]:
        path, entry = self._path(number), self.layers[number]
        try:
            values: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{path}: damaged or missing: {error}; delete the folder and solve again"
            ) from None
        if values.dtype != np.float32 or values.shape != (entry["num_values"],):
            raise StoreError(
                f"{path}: damaged: {values.dtype} {values.shape} instead of {entry['num_values']} float32"
            )
        try:
            checksums: NDArray[np.uint32] = np.load(self._checksum_path(number), allow_pickle=False)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self._checksum_path(number)}: damaged or missing: {error}; "
                "delete the folder and solve again"
            ) from None
        if zlib.crc32(checksums.tobytes()) != entry["checksum"]:
            raise StoreError(f"{self._checksum_path(number)}: damaged; delete the folder and solve again")
        self._checksums[number] = checksums
        self._checked[number] = np.zeros(len(checksums), dtype=bool)
        return values

    def values(self, number: int) -> NDArray[np.float32]:
        """Return the values of a finished layer, read-only, mapped into memory."""
        return self._open_layer(number)

    def check_rows(
        self, number: int, values: NDArray[Any], bounds: NDArray[np.int64], rows: NDArray[Any]
    ) -> None:
        """Compare rows that are used for the first time with their checksums.

        Args:
            number: The layer.
            values: Its values.
            bounds: (rows + 1,) where each row starts.
            rows: The rows to check.

        Raises:
            StoreError: A row is damaged.
        """
        checked = self._checked[number]
        for row in np.unique(rows[~checked[rows]]).tolist():
            if zlib.crc32(values[bounds[row] : bounds[row + 1]].tobytes()) != self._checksums[number][row]:
                raise StoreError(
                    f"{self._path(number)}: damaged (row {row} does not fit its checksum); "
                    "delete the folder and solve again"
                )
            checked[row] = True

    def write_layer(
        self,
        number: int,
        num_values: int,
        bounds: NDArray[np.int64],
        fill: Callable[[NDArray[Any]], None],
    ) -> NDArray[np.float32]:
        """Let ``fill`` write a layer's values, and keep them.

        Args:
            number: The layer.
            num_values: How many values it has.
            bounds: (rows + 1,) where each row starts.
            fill: Called with the array to fill.

        Returns:
            The values, read-only, mapped into memory.
        """
        remove_leftovers(self.folder)
        with replacing(self._path(number)) as temporary:
            values = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float32, shape=(num_values,))
            start = time.perf_counter()
            fill(values)
            seconds = time.perf_counter() - start
            checksums = np.array(
                [zlib.crc32(values[low:high].tobytes()) for low, high in itertools.pairwise(bounds)],
                dtype=np.uint32,
            )
            values.flush()
            del values
        with replacing(self._checksum_path(number)) as temporary, temporary.open("wb") as file:
            np.save(file, checksums)
        self.layers[number] = {
            "num_values": num_values,
            "checksum": zlib.crc32(checksums.tobytes()),
            "seconds": seconds,
        }
        body = {**self._identity, "layers": {str(key): entry for key, entry in sorted(self.layers.items())}}
        with replacing(self.folder / _MANIFEST) as temporary:
            text = json.dumps({**body, "checksum": _digest(body)}, indent=1)
            temporary.write_text(text + "\n", encoding="utf-8")
        written = self._open_layer(number)
        self._checked[number][:] = True
        return written


def _identity(variant: Variant, layout: str, start: tuple[int, int] | None) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": "duel",
        "fingerprint": variant.fingerprint,
        "variant": variant.to_dict(),
        "start": None if start is None else list(start),
        "layout": layout,
        "dtype": "float32",
        "versions": {name: importlib.metadata.version(name) for name in ("numba", "numpy")},
    }
