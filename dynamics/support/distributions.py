"""The distributions of this repository beside the core, and how one gets them."""

from __future__ import annotations

import importlib
from importlib import util
from typing import Any

# Package -> its folder in a clone.
FOLDERS = {
    "yzflow_bounded_dyck": "papers/bounded_dyck",
    "yzflow_deep": "tools/deep",
    "yzflow_sparse_averaging": "papers/sparse_averaging",
    "yzflow_watch": "tools/watch",
}
# Of these the papers that install together with the core, and of which its documentation speaks.
MISSION = ("yzflow_bounded_dyck", "yzflow_sparse_averaging")


def name_of(package: str) -> str:
    """The name under which a package is installed."""
    return package.replace("_", "-")


def cure(package: str) -> str:
    """The end of a sentence on something that a package brings, for where it is not installed."""
    return f"comes with {name_of(package)}: pip install -e {FOLDERS[package]}"


def more() -> str:
    """The end of a rule on names that papers bring: those of the mission that are not installed; else nothing."""
    absent = [package for package in MISSION if util.find_spec(package) is None]
    return "".join(f"; another {cure(package)}" for package in absent)


def load(package: str, asked: str | None = None) -> Any:
    """A package of another distribution, for ``asked``, a name of it.

    Raises
    ------
    ImportError
        If it is not installed: what is asked for, and how one gets it.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # something that the distribution itself needs
            raise
        raise ImportError(f"`{asked or package}` {cure(package)}", name=package) from None
