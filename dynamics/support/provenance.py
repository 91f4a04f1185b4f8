"""What a result was made with: the simulator, its arguments, the versions of the software, the machine."""

from __future__ import annotations

import functools
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata

import llvmlite.binding

from dynamics.version import __version__

_PACKAGES = ("numpy", "scipy", "numba", "xarray")


@functools.cache  # each of which reads a file
def versions() -> str:
    """Versions of the packages that decide about the numbers, as JSON."""
    own = {"yzflow": __version__, "python": platform.python_version()}
    return json.dumps(own | {name: metadata.version(name) for name in _PACKAGES})


@functools.cache
def machine() -> dict[str, str]:
    """The platform, and the processor that numba compiles for: another one may round sums differently."""
    return {
        "platform": platform.platform(),
        "cpu": os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name(),
    }


def provenance(kind: str, parameters: Mapping, file_format: str) -> dict[str, str]:
    """The attributes of a result: the simulator, its arguments (JSON), versions, platform and processor."""
    return {
        "format": file_format,
        "simulator": kind,
        "parameters": json.dumps(dict(parameters)),
        "versions": versions(),
        **machine(),
    }
