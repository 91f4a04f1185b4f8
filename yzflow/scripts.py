"""Helpers of the scripts in ``examples``: their options, refusals of bad input, and their end at Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from dynamics.support import distributions
from dynamics.support.files import folder


class Script(argparse.ArgumentParser):
    """The options of a script.

    Parameters
    ----------
    doc : str
        The script's docstring, whose first line describes it.
    out : str, optional
        Adds ``--out``, the folder for the results, with this default.
    quick : str, optional
        Adds ``--quick``, with this help.
    """

    def __init__(self, doc: str, *, out: str | None = None, quick: str | None = None):
        super().__init__(description=doc.splitlines()[0])
        if out is not None:
            self.add_argument("--out", type=Path, default=Path(out), help="folder for the results")
        if quick is not None:
            self.add_argument("--quick", action="store_true", help=quick)

    def options(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """The options given, by default on the command line; creates the folder ``out``, or refuses it."""
        parsed = self.parse_args(arguments)
        if "out" in parsed:
            with self.refusing():
                folder("--out", parsed.out)
        return parsed

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn an error about the input into one line and exit status 2."""
        try:
            yield
        except (ValueError, OSError) as error:
            self.error(str(error))


def run(
    main: Callable[[], int],
    *,
    interrupted: str = "every file that is there is complete, and the same command starts over",
) -> NoReturn:
    """Run a script and exit with its status; Ctrl-C ends it in one line, which says what was kept.

    A distribution that is not installed ends it in one line, too, and exit status 2.
    """
    try:
        sys.exit(main())
    except distributions.Missing as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(f"interrupted: {interrupted}")
