"""Films: the pictures of a figure at one time after the other, as a GIF or an MP4 file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.figure import Figure

from dynamics.support import checks
from dynamics.support.files import replacing, writable


class _GifWriter(PillowWriter):
    """Writer of films that last as long as they should: a GIF counts hundredths of a second, and so do its pictures."""

    _frames: list[Any]

    def finish(self) -> None:
        ends = [round(100 * number / self.fps) for number in range(len(self._frames) + 1)]
        lasting = [10 * (end - start) for start, end in pairwise(ends)]  # milliseconds
        first, *others = self._frames
        first.save(self.outfile, save_all=True, append_images=others, duration=lasting, loop=0)


_WRITERS: dict[str, type[AbstractMovieWriter]] = {".gif": _GifWriter, ".mp4": FFMpegWriter}
_DPI = 100
_MOST = 1000  # pictures, of 2 MB each while a GIF is made
_FASTEST = 50  # pictures a second: browsers slow a faster GIF down


def check(name: str, path: str | os.PathLike) -> Path:
    """Path of a film that can be written here; ``name`` is the argument that an error names.

    Raises
    ------
    ValueError
        If the ending is unknown, ffmpeg is missing for an MP4 file, or nothing can be written there.
    """
    given = writable(name, path)
    kind = _WRITERS.get(given.suffix.lower())
    if kind is None:
        raise checks.reject(name, f"end in {' or '.join(_WRITERS)}", given)
    if not kind.isAvailable():
        cure = "install ffmpeg by `apt install ffmpeg` or `conda install ffmpeg`"
        raise checks.reject(name, f"end in .gif where there is no ffmpeg, which makes MP4 files: {cure}", given)
    return given


def size(seconds: object, fps: object) -> int:
    """Number of pictures of a film of so many seconds.

    Raises
    ------
    ValueError
        If ``fps`` is no whole number up to 50, or the film would have fewer than 2 pictures or more than 1000.
    """
    rate = checks.integer("fps", fps, minimum=1, maximum=_FASTEST)
    pictures = round(min(checks.positive("seconds", seconds), _MOST + 1) * rate)
    if not 2 <= pictures <= _MOST:
        raise checks.reject("seconds", f"make 2 to {_MOST} pictures at {rate} a second", seconds)
    return pictures


class Plan(NamedTuple):
    """A film that can be written: its checked file, and its number of pictures."""

    path: Path
    pictures: int


def plan(name: str, path: str | os.PathLike, seconds: object, fps: object) -> Plan:
    """The plan of a film; ``name`` is the argument of the file that an error names. Raises as `check` and `size` do."""
    return Plan(check(name, path), size(seconds, fps))


def write(path: Path, pictures: Iterable[Figure], fps: int) -> None:
    """Write pictures of one size to a file, completely or not at all; axes and titles stay where the first has them.

    Raises
    ------
    RuntimeError
        If ffmpeg fails.
    """
    writer = _WRITERS[path.suffix.lower()](fps=fps)
    # A picture that is cut to what is drawn has another size.
    with rc_context({"savefig.bbox": None}), replacing(path) as temporary:
        try:
            _grab(writer, pictures, temporary)
            writer.finish()
        except (subprocess.CalledProcessError, BrokenPipeError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
            raise RuntimeError(f"ffmpeg made no film: {said}") from error


def _grab(writer: AbstractMovieWriter, pictures: Iterable[Figure], path: Path) -> None:
    try:
        for number, picture in enumerate(pictures):
            if number == 0:
                picture.draw_without_rendering()
                places = [part.get_position() for part in (*picture.axes, *picture.texts)]
                writer.setup(picture, os.fspath(path), dpi=_DPI)
            picture.set_layout_engine("none")
            for part, place in zip((*picture.axes, *picture.texts), places, strict=True):
                part.set_position(place)
            writer.fig = picture
            writer.grab_frame()
    except BrokenPipeError:
        writer.finish()  # raises what ffmpeg said
        raise
    except BaseException:
        if isinstance(writer, FFMpegWriter):
            with suppress(Exception):  # none of its faults is the first
                writer.finish()  # ffmpeg ends
        raise
