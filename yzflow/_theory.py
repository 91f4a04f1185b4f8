"""What the public face offers of `theory`, imported from there when it is first asked for."""

from typing import TYPE_CHECKING

import theory

if TYPE_CHECKING:
    from theory import *  # noqa: F403


def __getattr__(name: str) -> object:
    return getattr(theory, name)
