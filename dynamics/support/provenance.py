"""What a result was made with: the simulator, its arguments, the versions of the software, the platform."""

from __future__ import annotations

import functools
import json
import platform
from collections.abc import Mapping
from importlib import metadata

from dynamics.version import __version__

_PACKAGES = ("numpy", "scipy", "numba", "xarray")


@functools.cache  # each of which reads a file
def versions() -> str:
    """Versions of the packages that decide about the numbers, as JSON."""
    own = {"yzflow": __version__, "python": platform.python_version()}
    return json.dumps(own | {name: metadata.version(name) for name in _PACKAGES})


def provenance(kind: str, parameters: Mapping, file_format: str) -> dict[str, str]:
    """The attributes of a result: the simulator, its arguments (JSON), versions and platform."""
    return {
        "format": file_format,
        "simulator": kind,
        "parameters": json.dumps(dict(parameters)),
        "versions": versions(),
        "platform": platform.platform(),
    }
