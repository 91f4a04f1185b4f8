"""Files that are either complete or absent, in place of regular files only."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import platform
import re
import secrets
import stat
import tempfile
import time
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


def absolute(name: str, path: str | os.PathLike, *, folder: bool = False) -> Path:
    """A path that stays the same wherever the program goes before it is used; that of a folder may be ".".

    Raises
    ------
    ValueError
        If it is none, or begins in a folder that is gone; ``name`` is the argument that the message names.
    """
    given = _folder_path(name, path) if folder else checks.path(name, path)
    try:
        return Path(os.path.abspath(given))
    except OSError as error:
        raise reject(name, "lie in a folder that exists", f"{given} ({error.strerror})") from error


def _folder_path(name: str, path: str | os.PathLike) -> Path:
    """A folder may have no name of its own, as "..", and end in a slash: a file in it has one."""
    try:
        given = os.fspath(path)
        if not isinstance(given, str) or not given:
            raise TypeError
        return checks.path(name, os.path.join(given, "_")).parent
    except (TypeError, ValueError):
        raise checks.reject(name, "be the path of a folder", checks.brief(path)) from None


def checkpoint(path: str | os.PathLike | None) -> Path | None:
    """The path of a run's checkpoint, in a folder that is there and can be written; None if there is to be none."""
    if path is None:
        return None
    file = absolute("checkpoint", path)
    return writable("checkpoint", folder("checkpoint", file.parent) / file.name)


def writable(name: str, path: str | os.PathLike) -> Path:
    """See that a file can be written to ``path``, before long work and not after it.

    Raises
    ------
    ValueError
        If the folder of ``path`` does not exist or cannot be written, or something stands there that is no regular
        file, or one that is write-protected; ``name`` is the argument that the message names.
    """
    given = checks.path(name, path)
    try:
        final = _target(name, given)
        if not final.parent.is_dir():
            raise reject(name, "lie in a folder that exists", given)
        with tempfile.TemporaryFile(dir=final.parent):
            pass
    except OSError as error:
        raise reject(name, "be a path that can be written", f"{given} ({error.strerror})") from error
    return given


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success flush it to disk and rename it to ``path``.

    If the body raises, the temporary file is removed and whatever stood at ``path`` before is untouched. A link is
    followed, and a file that is replaced keeps its mode.

    Raises
    ------
    OSError
        If the folder of ``path`` does not exist or cannot be written.
    ValueError
        If something stands at ``path`` that is no regular file.
    """
    with _beside(path) as (temporary, _):
        yield temporary
        with open(temporary, "rb+") as file:  # again, as what wrote it may have made it anew
            os.fsync(file.fileno())


def write(path: str | os.PathLike, *parts: bytes | memoryview, clean: bool = True) -> None:
    """Write ``parts`` to ``path``, completely or not at all, as `replacing` does but in fewer calls.

    Parameters
    ----------
    path : path-like
    *parts : bytes
        One after the other.
    clean : bool
        Whether to look for what processes that were killed left in the folder, which takes time where it is large.

    Raises
    ------
    OSError
        If the folder of ``path`` does not exist or cannot be written, or the disk is full.
    ValueError
        If something stands at ``path`` that is no regular file.
    """
    with _beside(path, clean=clean) as (_, file):
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def read(name: str, path: str | os.PathLike) -> bytes:
    """The bytes of a regular file; a pipe or a device, which could keep the reader waiting, is refused.

    Raises
    ------
    ValueError
        If it is something else; ``name`` is the argument that the message names.
    OSError
        If it is not there or cannot be read.
    """
    with opened(name, path) as file:
        return file.read()


def opened(name: str, path: str | os.PathLike) -> BinaryIO:
    """Open a regular file to read; errors are those of `read`."""
    given = checks.path(name, path)

    def at_once(path: str, flags: int) -> int:
        number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
        mode = os.fstat(number).st_mode
        if not stat.S_ISREG(mode):
            os.close(number)
            raise reject(name, "be a regular file", f"{given}, {_kind(mode)}")
        return number

    if os.path.isdir(given):
        raise reject(name, "be a regular file", f"{given}, a folder")
    try:
        return open(given, "rb", opener=at_once)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(given)) from None


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that a writer of this module has in hand, or left when it was killed."""
    return _TEMPORARY.fullmatch(name) is not None


def sweep_up(path: Path) -> None:
    """Remove the temporary files that processes which are no more left in a folder.

    Gone are a process of this machine whose number nobody has, and one of another machine that has not touched its file
    for a day. No clock ends the file of a process that lives here: clocks jump.
    """
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if (found := _TEMPORARY.fullmatch(entry.name)) is None:
                continue
            with suppress(OSError):
                if found["host"] == _host():
                    gone = not _lives(int(found["process"]))
                else:
                    gone = time.time() - entry.stat(follow_symlinks=False).st_mtime > _OLD
                if gone:
                    os.unlink(entry.path)


_OLD = 86400.0  # seconds
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_TEMPORARY = re.compile(r"\.yzflow-(?P<host>[0-9a-f]{8})-(?P<process>\d+)-[0-9a-f]{12}(\..*)?", re.DOTALL)
_LONGEST_SUFFIX = 32  # bytes


@contextmanager
def _beside(path: str | os.PathLike, *, clean: bool = True) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file, by name and open, that takes the place of ``path`` in the end, or goes if the body raises."""
    given = checks.path("path", path)
    final = _target("path", given)
    if clean:
        sweep_up(final.parent)
    before = os.stat(final) if final.exists() else None
    # The suffix stays last: libraries choose the file format by it.
    suffix = final.suffix if len(os.fsencode(final.suffix)) <= _LONGEST_SUFFIX else ""
    temporary = final.with_name(f".yzflow-{_host()}-{os.getpid()}-{secrets.token_hex(6)}{suffix}")
    try:
        # With the permissions of any new file, which mkstemp's would not be.
        with open(os.open(temporary, _NEW, 0o666 if before is None else 0o600), "wb", buffering=0) as file:
            yield temporary, file
        if before is not None:
            with suppress(PermissionError, AttributeError):  # for the owner, or where there are none
                os.chown(temporary, before.st_uid, before.st_gid)
            os.chmod(temporary, stat.S_IMODE(before.st_mode))
        os.replace(temporary, final)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, os.fspath(temporary)):
            raise OSError(error.errno, error.strerror, os.fspath(given)) from error
        raise


def _target(name: str, given: Path) -> Path:
    """The target of a path, links followed: a regular file that may be written, or nothing yet."""
    try:
        mode = os.stat(given).st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(given))
    if not stat.S_ISREG(mode):
        raise reject(name, "be a regular file or a new one", f"{given}, {_kind(mode)}")
    if not os.access(given, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(given))
    return Path(os.path.realpath(given))


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


@functools.cache
def _host() -> str:
    """Eight characters for the processes among which a number means one of them."""
    facts = [platform.node()]
    with suppress(OSError):  # elsewhere than on Linux
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        facts.append(str(os.stat("/proc/self/ns/pid").st_ino))
    return hashlib.sha256(" ".join(facts).encode()).hexdigest()[:8]


def _lives(process: int) -> bool:
    if os.name != "posix":
        return True  # where asking would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True
