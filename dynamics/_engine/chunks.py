"""Work on many members in chunks: threads, progress, interruption, and results in memory or on disk."""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

import numpy as np

from dynamics import version
from dynamics.support import checks, files, sealed
from dynamics.support.progress import Progress

_FORMAT = "yzflow-ensemble-2"
MARKER = "ensemble.json"
_DIGEST = 32  # bytes of a SHA-256

# Name -> array; rows of a chunk's members, in order.
Parts = Mapping[str, np.ndarray]


class Store(Protocol):
    """Destination of results, which knows the finished chunks."""

    def has(self, chunk: int, lo: int, hi: int) -> bool: ...

    def put(self, chunk: int, lo: int, hi: int, parts: Parts) -> None: ...


class Held:
    """Results in memory: one array for each variable, with members on its first axis."""

    def __init__(self, size: int, variables: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> None:
        need = sum(size * int(np.prod(shape)) * dtype.itemsize for shape, dtype in variables.values())
        checks.fits_in_memory("settings", need, "hold the results; a `path` keeps them on disk")
        self.arrays = {name: np.empty((size, *shape), dtype) for name, (shape, dtype) in variables.items()}

    def has(self, chunk: int, lo: int, hi: int) -> bool:
        """False: memory holds no results of earlier calls."""
        return False

    def put(self, chunk: int, lo: int, hi: int, parts: Parts) -> None:
        """Store the results of members ``lo`` to ``hi``."""
        for name, values in parts.items():
            self.arrays[name][lo:hi] = values


class Kept:
    """Results in a folder: a ``.npy`` file of full length for each variable, and a digest for each finished chunk.

    A digest covers a chunk's bytes, its number and ``identity``, and is written after the bytes are on disk. A chunk
    whose digest does not agree, after a crash or a change of the files, is computed again. Several processes may work
    on one folder, since they write the same bytes.

    Parameters
    ----------
    path : path-like
        A new or empty folder, or a folder of results with the same ``identity``.
    identity : mapping
        All facts that determine the results, JSON-serialisable.

    Raises
    ------
    ValueError
        If the folder holds anything else, cannot be written, or the disk has no room for the whole.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        identity: Mapping[str, object],
        size: int,
        chunks: int,
        variables: Mapping[str, tuple[tuple[int, ...], np.dtype]],
    ) -> None:
        checks.instance("path", path, (str, os.PathLike), rule="be None or the path of a folder")
        self.path = files.folder("path", files.absolute("path", path, folder=True))
        self._files = {name: self.path / f"{name}.npy" for name in variables}
        self._key = self._claim(identity)
        wanted = {self._files[name]: ((size, *shape), dtype) for name, (shape, dtype) in variables.items()}
        wanted[self.path / "done.npy"] = ((chunks, _DIGEST), np.dtype(np.uint8))
        try:
            damaged = [path for path, layout in wanted.items() if path.exists() and _start(path, *layout) is None]
            for path in damaged:
                sealed.set_aside(path, "its size or its head is wrong", "what it held is computed again", stacklevel=5)
            if damaged:
                (self.path / "done.npy").unlink(missing_ok=True)
            starts = {path: _reserve(path, *layout) for path, layout in wanted.items()}
        except OSError as error:
            raise checks.reject(
                "path", "be a folder with room for the results", f"{path} ({error.strerror})"
            ) from error
        self._starts = {name: starts[file] for name, file in self._files.items()}
        self._done = np.load(self.path / "done.npy", mmap_mode="r")

    def _claim(self, identity: Mapping[str, object]) -> bytes:
        """Check that the folder belongs to these settings, or claim it. Returns the prefix of its digests."""
        marker = self.path / MARKER
        text = json.dumps({"format": _FORMAT, "yzflow": version.__version__, **identity}, sort_keys=True)
        held = {"done.npy", *(file.name for file in self._files.values())}
        others = {name for name in os.listdir(self.path) if not files.is_temporary(name) and name != MARKER}
        ours = {name.split(".damaged")[0] for name in others} <= held
        claimed = files.read("path", marker).decode(errors="replace") if marker.exists() else None
        if claimed is not None and claimed != text and ours and not _is_marker(claimed):
            then = "what is not of these settings is computed again"
            sealed.set_aside(marker, "it is no JSON", then, stacklevel=5)
        elif claimed is None and others:
            rule = "be an ensemble's folder, or a new or empty one"
            raise checks.reject("path", rule, f"{self.path}, which holds other files")
        elif claimed not in (None, text):
            rule = f"hold the ensemble of these settings and arguments, made by yzflow {version.__version__}"
            raise checks.reject("path", rule, f"{self.path}, which holds another: take a new folder")
        if not marker.exists():
            files.write(marker, text.encode())
        return hashlib.sha256(text.encode()).digest()

    def _digest(self, chunk: int) -> hashlib._Hash:
        return hashlib.sha256(self._key + chunk.to_bytes(8, "little"))

    def _rows(self, name: str, lo: int, hi: int) -> tuple[int, int]:
        array = np.load(self._files[name], mmap_mode="r")
        row = array.itemsize * int(np.prod(array.shape[1:]))
        return self._starts[name] + lo * row, (hi - lo) * row

    def has(self, chunk: int, lo: int, hi: int) -> bool:
        """True if the bytes of members ``lo`` to ``hi`` agree with their digest."""
        stored = bytes(self._done[chunk])
        if not any(stored):
            return False
        digest = self._digest(chunk)
        for name, path in self._files.items():
            start, length = self._rows(name, lo, hi)
            with open(path, "rb") as file:
                file.seek(start)
                digest.update(file.read(length))
        if digest.digest() != stored:
            warnings.warn(f"{self.path}: chunk {chunk} is damaged, and is computed again", stacklevel=2)
            return False
        return True

    def put(self, chunk: int, lo: int, hi: int, parts: Parts) -> None:
        """Write the results of members ``lo`` to ``hi``, then their digest."""
        digest = self._digest(chunk)
        for name, path in self._files.items():
            content = np.ascontiguousarray(parts[name]).tobytes()
            digest.update(content)
            _write_at(path, self._rows(name, lo, hi)[0], content)
        done = self.path / "done.npy"
        _write_at(done, done.stat().st_size - self._done.nbytes + chunk * _DIGEST, digest.digest())

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The variables, mapped from their files, so only the parts in use take memory."""
        return {name: np.load(path, mmap_mode="r") for name, path in self._files.items()}


def _reserve(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Make a ``.npy`` file of zeros, fully allocated on disk, if it is missing; returns the offset of its data."""
    if not path.exists():
        with files.replacing(path) as temporary, open(temporary, "wb") as file:
            file.write(_head(shape, dtype))
            size = int(np.prod(shape)) * dtype.itemsize
            file.flush()
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), file.tell(), size)
            else:
                file.truncate(file.tell() + size)
    start = _start(path, shape, dtype)
    if start is None:
        raise checks.reject("path", "hold the results of these settings", f"{path}, which holds others")
    return start


def _start(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> int | None:
    """Offset of the data in a ``.npy`` file of this shape and dtype; None for any other file."""
    head, size = _head(shape, dtype), int(np.prod(shape)) * dtype.itemsize
    with files.opened("path", path) as file:
        whole = os.fstat(file.fileno()).st_size == len(head) + size
        return len(head) if whole and file.read(len(head)) == head else None


def _head(shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    file = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def _is_marker(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _write_at(path: Path, start: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def bounds(size: int, chunk: int) -> list[tuple[int, int]]:
    """(lo, hi) of each chunk; ``hi`` is excluded."""
    return [(lo, min(lo + chunk, size)) for lo in range(0, size, chunk)]


def work(
    compute: Callable[[int, int], Parts],
    store: Store,
    parts: list[tuple[int, int]],
    *,
    threads: int,
    stop: np.ndarray,
    report: Progress,
) -> None:
    """Compute missing chunks by ``compute(lo, hi)`` and put them into ``store``.

    An interrupt of this thread sets ``stop[0]``, which ``compute`` should check.
    """
    size = parts[-1][1]
    running: dict[Future, int] = {}
    done = 0
    missing: Iterator[int] = (i for i, span in enumerate(parts) if not store.has(i, *span))
    with ThreadPoolExecutor(threads) as pool:
        try:
            exhausted = False
            while running or not exhausted:
                while not exhausted and len(running) < 2 * threads:
                    i = next(missing, None)
                    if i is None:
                        exhausted = True
                    else:
                        running[pool.submit(compute, *parts[i])] = i
                for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                    i = running.pop(future)
                    store.put(i, *parts[i], future.result())
                    done = max(done, parts[i][1])
                    report.update(done / size, f"{done:,} of {size:,} flows")
        except BaseException:
            stop[0] = 1
            pool.shutdown(cancel_futures=True)
            raise
