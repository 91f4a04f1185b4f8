"""The distributions of this repository beside the core, and how one gets them."""

from __future__ import annotations

import importlib
from importlib import util
from types import ModuleType

from dynamics.support import checks

# Package -> its folder in a clone.
FOLDERS = {
    "yzflow_beyond_scan_and_snap": "papers/beyond_scan_and_snap",
    "yzflow_bounded_dyck": "papers/bounded_dyck",
    "yzflow_deep": "tools/deep",
    "yzflow_enclose": "tools/enclose",
    "yzflow_joma": "papers/joma",
    "yzflow_sparse_averaging": "papers/sparse_averaging",
    "yzflow_watch": "tools/watch",
}
# Papers that install together with the core, and that its documentation describes.
MISSION = ("yzflow_beyond_scan_and_snap", "yzflow_bounded_dyck", "yzflow_sparse_averaging")
# Name of a paper, or of its task of sweeps -> its package.
PAPERS = {
    "Bounded Dyck": "yzflow_bounded_dyck",
    "JoMA": "yzflow_joma",
    "Sparse averaging": "yzflow_sparse_averaging",
    "dyck": "yzflow_bounded_dyck",
    "joma_drift": "yzflow_joma",
}
# Name of a paper -> the package that adds statements of ours to it.
ADDITIONS = {"Scan and Snap": "yzflow_beyond_scan_and_snap"}
# Modules of tools that the core uses if they are installed: evidence in balls, certificates on pages, and closed forms
# in balls that the register of Scan and Snap quotes.
EVIDENCE = "yzflow_enclose.evidence"
CERTIFICATES = "yzflow_enclose.pages.certified"
LONG_ENOUGH = "yzflow_enclose.scan_and_snap.long_enough"
RANGES = "yzflow_enclose.scan_and_snap.ranges"
# Format of a saved file, without its version -> its package.
FORMATS = {
    "yzflow-cell": "yzflow_enclose",
    "yzflow-certificate": "yzflow_enclose",
    "yzflow-deep": "yzflow_deep",
    "yzflow-deep-checkpoint": "yzflow_deep",
    "yzflow-qsa-training": "yzflow_sparse_averaging",
    "yzflow-recording": "yzflow_watch",
}
# Command of a tool -> its package.
COMMANDS = {"manifest": "yzflow_enclose", "verify": "yzflow_enclose"}


def name_of(package: str) -> str:
    """The name under which a package is installed."""
    return package.replace("_", "-")


def cure(package: str) -> str:
    """The end of an error about a package that is not installed: how to install it."""
    return f"comes with {name_of(package)}: pip install -e {FOLDERS[package]}"


class Missing(ImportError):
    """A distribution that is asked for is not installed."""


def installed(package: str) -> bool:
    """True if the package of a module can be imported; nothing is imported."""
    return util.find_spec(package.partition(".")[0]) is not None


def bring(module: str, what: str = "") -> ModuleType:
    """Import a module of another distribution.

    Parameters
    ----------
    module : str
        Its dotted name.
    what : str
        The beginning of the error's sentence. Default: the package's name.

    Raises
    ------
    Missing
        If a distribution of the repository is not installed, with the cure.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = error.name or ""
        if package not in FOLDERS:  # something that a distribution itself needs
            raise
        raise Missing(f"{what or f'`{package}`'} {cure(package)}", name=package) from None


def more(asked: str) -> str:
    """The end of an error about an unknown name: how to install the distributions that may bring it, or "".

    Parameters
    ----------
    asked : str
        A paper, a statement "PAPER: NUMBER", a task or a figure. If it names a paper, only that paper's distribution
        counts.
    """
    whose = plain(asked.partition(":")[0])
    brings = {plain(name): (package, "a theorem that is not in the paper") for name, package in ADDITIONS.items()}
    brings |= {plain(name): (package, "it") for name, package in PAPERS.items()}
    package, subject = brings.get(whose, ("", "another"))
    absent = [package for package in ([package] if package else MISSION) if not installed(package)]
    return "".join(f"; {subject} {cure(package)}" for package in absent)


def plain(name: str) -> str:
    """The name of a paper in small letters, without spaces; a slug gives the same text."""
    return checks.plain(name.replace("_", " ").replace("-", " "))
