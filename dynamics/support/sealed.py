"""One container for everything that is saved: its bytes, and behind them their SHA-256 in 64 hexadecimal digits.

The bytes are netCDF (`dynamics.support.netcdf`) or a zip archive (`dynamics.support.archive`), whose other readers do
not look at what stands behind them. Every change is noticed: where loading was asked for it is an error, and what is
kept to save work is set aside, with a warning, and made again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from dynamics import version
from dynamics.support import checks, distributions, files, raised
from dynamics.support.formats import ARCHIVE, NETCDF, format_of

Content = TypeVar("Content")

DIGITS = 64
FILES = "yzflow.files"


# The format that a file of the core says it has -> what it is, for messages; `kinds` has those of other distributions.
KINDS = {
    "yzflow-trajectory-1": "a trajectory",
    "yzflow-run-1": "a run of an open flow",
    "yzflow-bags-2": "a file of bags",
    "yzflow-flow-ensemble-1": "an ensemble of flows",
    "yzflow-noise-1": "the noise of a layer",
    "yzflow-sweep-run-1": "a run of a sweep",
    "yzflow-runs-1": "the runs of a store",
    "yzflow-sweep-1": "a sweep",
    "yzflow-survival-1": "a survival table",
}


@functools.cache
def kinds() -> dict[str, str]:
    """Format -> what such a file is, of the core and of installed distributions; what is not here is no file of ours.

    An entry point of the group ``yzflow.files`` names a mapping like `KINDS`. One that cannot be imported, or that has
    a format of another, is left out with a warning.
    """
    found = dict(KINDS)
    for point in sorted(metadata.entry_points(group=FILES), key=lambda point: point.value):
        try:
            added = checks.instance(point.value, point.load(), dict)
            for name, what in added.items():
                checks.instance(point.value, what, str, rule="map formats to words")
                if name in found:
                    raise checks.reject(point.value, "have formats of its own", repr(name))
        except Exception as error:  # other people's code can raise anything
            why = raised.said(error)
            warnings.warn(f"the kinds of files of {point.value} are left out: {why}", UserWarning, stacklevel=2)
            continue
        found.update(added)
    return found


class Damaged(ValueError):
    """Bytes are not as they were written: the SHA-256 at their end is not that of the bytes before it."""


def digest(*parts: bytes | memoryview) -> bytes:
    """The seal of bytes, one part after the other."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest().encode()


def body(content: bytes | memoryview) -> memoryview:
    """The bytes before the seal.

    Raises
    ------
    Damaged
        If the seal is that of something else.
    """
    whole = memoryview(content)
    before, seal = whole[:-DIGITS], bytes(whole[-DIGITS:])
    if digest(before) != seal:
        raise Damaged("its checksum is wrong")
    return before


def read(path: str | os.PathLike, what: str, *, name: str = "path") -> bytes:
    """A sealed file, seal and all, to be ``what``; ``name`` is the argument that errors name.

    Raises
    ------
    Damaged
        If a byte is not as it was written.
    ValueError
        If it is no regular file.
    OSError
        If it is not there or cannot be read.
    """
    content = files.read(name, path)
    try:
        body(content)
    except Damaged as error:
        found = f"a changed or other file {os.fspath(path)!r} ({error})"
        raise Damaged(str(checks.reject(name, f"be {what} written by yzflow", found))) from None
    return content


def load(
    path: str | os.PathLike, file_format: str, what: str, decode: Callable[[bytes], Content], *, name: str = "path"
) -> Content:
    """The content of a sealed file, by ``decode``, if it says that it has the format ``file_format``.

    Raises
    ------
    Damaged
        If a byte is not as it was written.
    ValueError
        If it is another file, or none that ``decode`` takes; ``what`` it is to be goes into the message.
    OSError
        If it is not there or cannot be read.
    """
    content = read(path, what, name=name)
    if _said(content) == file_format:
        with suppress(ValueError):
            return decode(content)
    raise another(path, what, content, name=name)


def _said(content: bytes | memoryview) -> str | None:
    """The format that bytes say they have, "" if they say none; None if they are neither netCDF nor an archive."""
    try:
        return format_of(content)
    except ValueError:
        return None


def another(path: str | os.PathLike, what: str, content: bytes | memoryview, *, name: str = "path") -> ValueError:
    """The error for a file whose ``content`` is not a ``what``."""
    found, said = f"another file {os.fspath(path)!r}", _said(content)
    if said is not None:
        found += f", {kinds()[said]}" if said in kinds() else f", of the unknown kind {checks.brief(said)}"
        home = distributions.FORMATS.get(said.rpartition("-")[0])
        if home is not None and not distributions.installed(home):
            found += f", which {distributions.cure(home)}"
    return checks.reject(name, f"be {what} written by yzflow", found)


def kind_of(path: str | os.PathLike) -> str:
    """The format of a sealed file, a key of `kinds`.

    Raises
    ------
    Damaged
        If a byte is not as it was written.
    ValueError
        If it is none of these.
    OSError
        If it is not there or cannot be read.
    """
    what = "a file"
    content = read(path, what)
    said = _said(content)
    if said not in kinds():
        raise another(path, what, content)
    return said


def was_ours(content: bytes | memoryview) -> bool:
    """Whether bytes without a right seal may be left of a file of ours, and not be somebody's own file."""
    said = _said(content)
    if said is not None:
        return said in kinds()
    start, end = bytes(content[:4]), bytes(content[-DIGITS:])
    begins = start == NETCDF or start.startswith(ARCHIVE)
    return begins or re.fullmatch(rb"[0-9a-f]{64}", end) is not None or not bytes(content).strip(b"\0")


def set_aside(path: Path, why: str, then: str, *, stacklevel: int = 2) -> None:
    """Give another name to what is kept at ``path`` and damaged, whatever it is, and warn of it.

    Raises
    ------
    OSError
        If it cannot be renamed.
    """
    aside = path.with_name(f"{path.name}.damaged")
    if os.path.lexists(aside) and not (aside.is_file() and path.is_file()):
        aside = path.with_name(f"{path.name}.damaged-{secrets.token_hex(3)}")
    try:
        os.replace(path, aside)
    except FileNotFoundError:  # another process was faster
        return
    warnings.warn(
        f"{path} is damaged ({why}): set aside as {aside.name}, {then}", UserWarning, stacklevel=stacklevel + 1
    )


def sound(path: Path, what: str, then: str, *, name: str = "path", stacklevel: int = 2) -> bool:
    """Whether a file that is kept to save work is there, as it was written; a damaged one is set aside.

    Parameters
    ----------
    path : Path
    what : str
        The expected content, in words.
    then : str
        What happens instead, for the warning: "training starts again".
    name : str
        The argument that errors name.
    stacklevel : int
        As `warnings.warn` takes it, from the caller on.

    Raises
    ------
    ValueError
        If it is another file, which nothing of ours has damaged.
    OSError
        If it cannot be read or set aside.
    """
    if not path.exists():
        return False
    try:
        read(path, what, name=name)
    except Damaged:
        if not was_ours(files.read(name, path)):
            raise
        set_aside(path, "its checksum is wrong", then, stacklevel=stacklevel + 1)
        return False
    return True


def check_version(name: str, made_by: object) -> None:
    """Raise ``ValueError`` for what another version of yzflow has kept of a run, which would be of two halves."""
    if made_by != version.__version__:
        rule = f"be of yzflow {version.__version__}, which is to go on with it"
        told = f"one of yzflow {made_by}" if isinstance(made_by, str) else "one of an older yzflow"
        raise checks.reject(name, rule, f"{told}: install that, or take another path")
