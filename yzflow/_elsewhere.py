"""Names of the public face that other distributions bring, imported from there when they are first asked for."""

from __future__ import annotations

from importlib import util
from typing import Any

from dynamics.support import distributions

# Name -> the package that has it, under the same name.
HOMES = {
    "DyckLanguage": "yzflow_bounded_dyck",
    "Recorder": "yzflow_watch",
    "WatchReport": "yzflow_watch",
    "averaging": "yzflow_sparse_averaging",
    "balance": "yzflow_bounded_dyck",
    "watch": "yzflow_watch",
    "watch_checkpoints": "yzflow_watch",
}


def missing() -> set[str]:
    """The names whose distribution is not installed, which ``from yzflow import *`` leaves out."""
    absent = {home for home in set(HOMES.values()) if util.find_spec(home) is None}
    return {name for name, home in HOMES.items() if home in absent}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(distributions.load(HOMES[name], f"yz.{name}"), name)
