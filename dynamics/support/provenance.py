"""Provenance of a result: the simulator, its arguments, the versions of the software, the machine."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from dynamics.backend.modes import COMPILATION, processor, threads
from dynamics.version import __version__

_PACKAGES = ("numpy", "scipy", "numba", "xarray")


@functools.cache  # reads a file for each package
def versions() -> str:
    """Versions of the packages that determine the numbers, as JSON."""
    known = {"yzflow": __version__, "python": platform.python_version()}
    return json.dumps(known | {name: metadata.version(name) for name in _PACKAGES})


@functools.cache
def machine() -> dict[str, str]:
    """The platform, and the processor that numba compiles for: another one may round sums differently."""
    return {
        "platform": platform.platform(),
        "cpu": processor(),
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


def environment() -> dict[str, str]:
    """Causes of other bits in a result: versions, platform, processor, BLAS, threads, the code of yzflow.

    ``blas`` names each loaded BLAS with its version, the processor that it detects, and its threads. ``threads`` is the
    number of threads of numba's kernels, which run as Python if ``compilation`` is off. ``source`` is the SHA-256 of
    the code of `dynamics` and `theory`, ``commit`` the commit of the clone, or "" outside a clone.
    """
    import threadpoolctl

    blas = sorted(
        f"{pool['internal_api']} {pool.get('version')} for {pool.get('architecture')}, {pool['num_threads']} threads"
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"
    )
    return {
        "versions": versions(),
        **machine(),
        "cores": str(os.cpu_count()),
        "blas": "; ".join(blas),
        "threads": str(threads()),
        "compilation": COMPILATION,
        "source": _source(),
        "commit": _commit(),
    }


@functools.cache
def _source() -> str:
    """SHA-256 of the code of `dynamics` and `theory`."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(path for package in ("dynamics", "theory") for path in (root / package).rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@functools.cache
def _commit() -> str:
    """The commit of the clone, read without git; "" if this is no clone."""
    git = Path(__file__).parents[2] / ".git"
    try:
        if git.is_file():  # a worktree
            git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head
        name = head.removeprefix("ref:").strip()
        common = git / (git / "commondir").read_text(encoding="utf-8").strip() if (git / "commondir").exists() else git
        if (common / name).exists():
            return (common / name).read_text(encoding="utf-8").strip()
        packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except (OSError, UnicodeDecodeError):
        return ""
