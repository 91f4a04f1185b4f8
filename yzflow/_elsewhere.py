"""Names of the public face that other distributions bring, imported from there when they are first asked for."""

from __future__ import annotations

from importlib import util
from typing import Any

# Name -> the package that has it, under the same name.
HOMES = {
    "DyckLanguage": "yzflow_bounded_dyck",
    "Recorder": "yzflow_watch",
    "WatchReport": "yzflow_watch",
    "averaging": "yzflow_sparse_averaging",
    "balance": "yzflow_bounded_dyck",
    "enclose": "yzflow_enclose",
    "enclosures": "yzflow_enclose",
    "watch": "yzflow_watch",
    "watch_checkpoints": "yzflow_watch",
}
# The names that stand for the package itself.
PACKAGES = ("enclosures",)


def missing() -> set[str]:
    """The names without an installed distribution, which ``from yzflow import *`` leaves out."""
    # The check of `distributions.installed`, a module that `import yzflow` must not load.
    absent = {home for home in set(HOMES.values()) if util.find_spec(home) is None}
    return {name for name, home in HOMES.items() if home in absent}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dynamics.support import distributions  # here, so that `import yzflow` stays without libraries

    package = distributions.bring(HOMES[name], f"`yz.{name}`")
    return package if name in PACKAGES else getattr(package, name)
