"""The machine that times were measured on, without names of hosts; and one core for both sides."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "xarray", "jax", "diffrax", "equinox", "heyoka", "torch", "torchdiffeq")


def cores() -> set[int]:
    """The cores that this process may use, where the system tells."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


ALL = cores()


@contextmanager
def _on(chosen: set[int]) -> Iterator[None]:
    before = cores()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, chosen)
    try:
        yield
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, before)


def one_core():
    """Run on one core, whatever number of threads a library starts."""
    return _on({max(ALL)})


def all_cores():
    """Run on all cores within `one_core`."""
    return _on(ALL)


def busy() -> bool:
    """Whether more processes want to run than there are cores, where the system tells."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > len(ALL)


def describe() -> dict[str, str]:
    """Processor, cores, system and versions."""
    return {
        "processor": _processor(),
        "cores": str(len(ALL)),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **_versions(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
