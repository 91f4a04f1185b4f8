"""Names of `theory` that the public face offers, imported from there when they are first asked for."""

from typing import TYPE_CHECKING

import theory

if TYPE_CHECKING:
    from theory import *  # noqa: F403


def __getattr__(name: str) -> object:
    return getattr(theory, name)
