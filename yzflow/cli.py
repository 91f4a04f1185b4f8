"""The command `yzflow`.

A module of commands is imported when one of them is asked for, and heavy libraries stand inside the commands, so that
``yzflow --help`` starts at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

# Module of `yzflow.commands` -> its commands. A command `new-paper` is the function `new_paper` there.
_MODULES = {
    "drawing": ("example", "explore", "figure"),
    "files": ("manifest", "rerun", "verify"),
    "fuzzing": ("fuzz",),
    "lists": ("figures", "new-paper", "options", "papers", "statements"),
    "statements": ("audit", "check", "page", "survival"),
    "study": ("study",),
    "sweeping": ("sweep",),
    "training": ("flow", "sgd"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


class _Commands(click.Group):
    """Commands that are found by name in ``yzflow.commands``."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_HOMES)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _HOMES:
            return None
        return getattr(importlib.import_module(f"yzflow.commands.{_HOMES[name]}"), name.replace("-", "_"))

    def main(self, *arguments: Any, **options: Any) -> Any:
        if sys.stderr is None:  # a closed standard error: click would print errors among the results
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, for as long as the process lives
        return super().main(*arguments, **options)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="yzflow", prog_name="yzflow")
def main() -> None:
    """A numerical laboratory for the training dynamics of attention."""
