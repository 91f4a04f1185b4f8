"""Files of pages: read out of a package, and written."""

from __future__ import annotations

import os
from importlib import resources

from dynamics.support.files import replacing

__all__ = ["file", "save"]


def file(package: str, name: str) -> str:
    """The text of a file in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def save(text: str, path: str | os.PathLike) -> None:
    """Write a page, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
