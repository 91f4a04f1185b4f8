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
# Of these the papers that install together with the core, and of which its documentation speaks.
MISSION = ("yzflow_beyond_scan_and_snap", "yzflow_bounded_dyck", "yzflow_sparse_averaging")
# Name of a paper, or of a task of sweeps that it has -> its package.
PAPERS = {
    "Bounded Dyck": "yzflow_bounded_dyck",
    "JoMA": "yzflow_joma",
    "Sparse averaging": "yzflow_sparse_averaging",
    "dyck": "yzflow_bounded_dyck",
    "joma_drift": "yzflow_joma",
}
# Name of a paper -> the package that adds statements of ours to it.
ADDITIONS = {"Scan and Snap": "yzflow_beyond_scan_and_snap"}
# Modules of tools that the core asks for, where they are installed: evidence in balls, certificates on pages, and what
# the register of Scan and Snap quotes of closed forms in balls.
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
    """The end of a sentence on something that a package brings, for where it is not installed."""
    return f"comes with {name_of(package)}: pip install -e {FOLDERS[package]}"


class Missing(ImportError):
    """A distribution that is asked for is not installed."""


def installed(package: str) -> bool:
    """Whether a package, or that of a module, can be imported; it is not imported."""
    return util.find_spec(package.partition(".")[0]) is not None


def bring(module: str, what: str = "") -> ModuleType:
    """Import a module of another distribution.

    Parameters
    ----------
    module : str
        Its dotted name.
    what : str
        Begins the sentence for where the distribution is not installed. Default: the package's name.

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
    """The end of a rule on a name that papers bring: the distributions that are not installed; else nothing.

    Parameters
    ----------
    asked : str
        A paper, a statement "PAPER: NUMBER", a task or a figure. Where it says the paper, no other one is named.
    """
    whose = plain(asked.partition(":")[0])
    brings = {plain(name): (package, "a theorem that is not in the paper") for name, package in ADDITIONS.items()}
    brings |= {plain(name): (package, "it") for name, package in PAPERS.items()}
    package, subject = brings.get(whose, ("", "another"))
    absent = [package for package in ([package] if package else MISSION) if not installed(package)]
    return "".join(f"; {subject} {cure(package)}" for package in absent)


def plain(name: str) -> str:
    """The name of a paper as a person writes it, in small letters; a slug is the same name."""
    return checks.plain(name.replace("_", " ").replace("-", " "))
