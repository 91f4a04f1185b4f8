"""The machine that times were measured on, without names of hosts; and one core for both sides."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from dynamics.backend.modes import processor

PACKAGES = ("numpy", "scipy", "numba", "xarray", "jax", "diffrax", "equinox", "heyoka", "torch", "torchdiffeq")

# Of a processor, those that vectors and products of matrices depend on.
FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")


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
        "features": features(),
        "cores": str(len(ALL)),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **_versions(),
    }


def _processor() -> str:
    return _told("model name") or platform.processor() or "unknown"


def features() -> str:
    """The processor as LLVM names it and what it has of `FEATURES`, or the one that stands in for it."""
    if os.environ.get("NUMBA_CPU_NAME"):
        return f"compiled as for {processor()}"
    own = [name for name in FEATURES if name in _told("flags").split()]
    return f"{processor()}: {' '.join(own) or 'none that is asked for'}"


def _told(name: str) -> str:
    """An entry of the first processor that the system lists, or nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
