"""The distributions of this repository beside the core, and how one gets them."""

from __future__ import annotations

from importlib import util

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
