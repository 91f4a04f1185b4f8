"""Names of `dynamics` that the public face offers, imported from there when they are first asked for."""

from typing import TYPE_CHECKING

import dynamics

if TYPE_CHECKING:
    from dynamics import *  # noqa: F403
    from dynamics import __version__ as __version__  # which a star leaves out


def __getattr__(name: str) -> object:
    return getattr(dynamics, name)
