"""Files that are either complete or absent."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from dynamics.support import checks
from dynamics.support.checks import reject


def folder(name: str, path: str | os.PathLike) -> Path:
    """Make the folder ``path`` if it is not there, and see that files can be written into it.

    Raises
    ------
    ValueError
        If not; ``name`` is the argument that the message names.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=os.fspath(path)):
            pass
    except OSError as error:
        raise reject(name, "be a folder that can be written", f"{os.fspath(path)} ({error.strerror})") from error
    return Path(path)


def checkpoint(path: str | os.PathLike | None) -> Path | None:
    """The path of a run's checkpoint, in a folder that is there and can be written; None if there is to be none."""
    if path is None:
        return None
    file = checks.path("checkpoint", path)
    return folder("checkpoint", file.parent) / file.name


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success flush it to disk and rename it to ``path``.

    If the body raises, the temporary file is removed and whatever stood at ``path`` before is untouched.

    Raises
    ------
    OSError
        If the folder of ``path`` does not exist or cannot be written.
    """
    with _beside(path) as temporary:
        # With the permissions of any new file, which mkstemp's would not be.
        os.close(os.open(temporary, _NEW, 0o666))
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())


def write(path: str | os.PathLike, content: bytes) -> None:
    """Write ``content`` to ``path``, completely or not at all, as `replacing` does but in fewer calls.

    Raises
    ------
    OSError
        If the folder of ``path`` does not exist or cannot be written, or the disk is full.
    """
    with _beside(path) as temporary, open(os.open(temporary, _NEW, 0o666), "wb", buffering=0) as file:
        rest = memoryview(content)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def sha256(file: BinaryIO, size: int | None = None) -> str:
    """SHA-256 of what an open file holds from here on, or of its next ``size`` bytes, in hexadecimal."""
    found, rest = hashlib.sha256(), float("inf") if size is None else size
    while block := file.read(int(min(rest, 2**20))):
        found.update(block)
        rest -= len(block)
    return found.hexdigest()


def seal(path: str | os.PathLike) -> None:
    """Append the SHA-256 of a file to it, where readers of HDF5 and thus of netCDF do not look."""
    with open(path, "rb+") as file:
        digest = sha256(file)
        file.write(digest.encode())


def sealed(path: str | os.PathLike) -> bool:
    """Whether every byte of a file is as it was when `seal` was called."""
    size = os.path.getsize(path) - hashlib.sha256().digest_size * 2
    with open(path, "rb") as file:
        return size >= 0 and sha256(file, size) == file.read().decode("ascii", errors="replace")


_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY


@contextmanager
def _beside(path: str | os.PathLike) -> Iterator[Path]:
    """A name for a temporary file that takes the place of ``path`` in the end, or goes if the body raises."""
    final = Path(path)
    # The suffix stays last: libraries choose the file format by it.
    temporary = final.with_name(f".{final.stem}-{secrets.token_hex(6)}{final.suffix}")
    try:
        yield temporary
        os.replace(temporary, final)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
