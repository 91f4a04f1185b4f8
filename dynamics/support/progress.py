"""Progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import math
import sys
import time
from contextlib import AbstractContextManager

from tqdm import tqdm

from dynamics.support import checks
from dynamics.support.limits import current

# The time left is shown once two paces, one after the other, agree up to this factor.
_KNOWN = 2.0
# A pace after that moves the mean pace by one part in so many.
_SMOOTHED = 3


class Progress(AbstractContextManager):
    """Reports a fraction of work done on standard error; a context manager.

    Parameters
    ----------
    label : str
        What is being done.
    enabled : bool
        Whether to report at all.
    """

    def __init__(self, label: str, *, enabled: bool = True) -> None:
        enabled = checks.flag("progress", enabled) and sys.stderr is not None  # closed, or a program without a console
        self.enabled = enabled
        self._label = label
        self._done = 0.0
        self._start = self._last = time.monotonic()
        # Time and fraction done at the last pace, or when the work began.
        self._before: tuple[float, float] | None = None
        self._pace = 0.0
        self._least = math.inf  # seconds left, as said last
        self._left = ""
        self._bar = None
        self._lines = enabled and not sys.stderr.isatty()
        if enabled and not self._lines:
            layout = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
            self._bar = tqdm(total=1.0, desc=label, bar_format=layout, leave=False)

    def update(self, done: float, note: str = "") -> None:
        """Set the fraction done (never going back) and a short note on the state.

        The time left is shown once two paces in a row are much the same; after that it follows the mean pace and never
        rises. Work begins with the first call: earlier time, such as the compilation of kernels, does not count.
        """
        done = max(self._done, min(done, 1.0))
        now, first = time.monotonic(), self._before is None
        due = now - self._last >= current().seconds_between_lines
        if self._before is None:
            self._before = (now, done)
            if self._bar is not None:
                self._bar.unpause()
        elif due:
            self._left = self._estimate(*self._before, now, done)
            self._before = (now, done)
        if self._bar is not None:
            self._bar.set_postfix_str(note + self._left, refresh=False)
            self._bar.update(done - self._done)
        elif self._lines and (first or due):
            print(
                f"{self._label}: {done:.0%} {note}, {now - self._start:.0f} s{self._left}", file=sys.stderr, flush=True
            )
        if first or due:
            self._last = now
        self._done = done

    def _estimate(self, then: float, before: float, now: float, done: float) -> str:
        """The time left by the smoothed pace, in words, never more than was said before; "" before it is known."""
        pace = (done - before) / (now - then) if now > then else 0.0
        if math.isinf(self._least):
            last, self._pace = self._pace, pace
            if not last or not 1 / _KNOWN - 1e-9 <= pace / last <= _KNOWN + 1e-9:
                return ""
        else:
            self._pace += (pace - self._pace) / _SMOOTHED
        self._least = min(self._least, (1 - done) / self._pace)
        return f", about {self._least:.0f} s left"

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
