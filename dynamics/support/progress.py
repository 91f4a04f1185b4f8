"""Progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm

from dynamics.support import checks

_SECONDS_BETWEEN_LINES = 5.0


class Progress:
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
        # When the last line was printed, or the work began, and what was done by then.
        self._before: tuple[float, float] | None = None
        self._bar = None
        self._lines = enabled and not sys.stderr.isatty()
        if enabled and not self._lines:
            layout = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} < {remaining}{postfix}"
            self._bar = tqdm(total=1.0, desc=label, bar_format=layout, leave=False)

    def update(self, done: float, note: str = "") -> None:
        """Set the fraction done (never going back) and a short note on the state.

        The time left is that at the pace since the last line. The first call only notes when work began: what came
        before it, such as the compilation of kernels, happens once.
        """
        done = max(self._done, min(done, 1.0))
        if self._before is None:
            self._before = (time.monotonic(), done)
            if self._bar is not None:
                self._bar.unpause()
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(done - self._done)
        elif self._lines and time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            now = self._last = time.monotonic()
            then, before = self._before
            left = f", about {(now - then) * (1 - done) / (done - before):.0f} s left" if done > before else ""
            print(f"{self._label}: {done:.0%} {note}, {now - self._start:.0f} s{left}", file=sys.stderr, flush=True)
            self._before = (now, done)
        self._done = done

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
