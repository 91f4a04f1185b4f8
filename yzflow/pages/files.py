"""Files of pages: reading parts from packages, and writing pages."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module, resources
from typing import TYPE_CHECKING

from dynamics.support.files import replacing

if TYPE_CHECKING:
    from theory.symbolic import Claim

__all__ = ["file", "formulas", "save", "script"]


def file(package: str, name: str) -> str:
    """The text of a file in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def script(package: str, name: str) -> str:
    """The text of a script in a package: a JavaScript file, or the result of ``script()`` in a Python module."""
    if name.endswith(".py"):
        return str(import_module(f"{package}.{name.removesuffix('.py')}").script())
    return file(package, name)


def formulas(name: str, claims: Mapping[str, tuple[Claim, str]]) -> str:
    """A script that puts claims into ``yzflow.NAME``, as functions of their arguments."""
    from theory.symbolic.printing import javascript

    lines = [f"  {json.dumps(key)}: {javascript(claim, arguments)}," for key, (claim, arguments) in claims.items()]
    return "\n".join([f"yzflow.{name} = {{", *lines, "};"])


def save(text: str, path: str | os.PathLike) -> None:
    """Write a page, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
