"""The command `yzflow`.

A module of commands is imported when one of them is asked for, and heavy libraries stand inside the commands, so that
``yzflow --help`` starts at once. Installed distributions add commands by entry points of the group ``yzflow.commands``:
the name of the command, and ``module:function``.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from importlib import metadata
from typing import Any

import click

# Module of `yzflow.commands` -> its commands. A command `new-paper` is the function `new_paper` there.
_MODULES = {
    "drawing": ("example", "explore", "figure", "film"),
    "files": ("rerun",),
    "fuzzing": ("fuzz",),
    "lists": ("figures", "new-paper", "options", "papers", "statements"),
    "statements": ("audit", "check", "page", "survival", "which"),
    "study": ("study",),
    "sweeping": ("sweep",),
    "training": ("flow", "sgd"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
GROUP = "yzflow.commands"


class _NotInstalled(click.ClickException):
    exit_code = 2


@functools.cache
def _added() -> dict[str, metadata.EntryPoint]:
    """Name -> entry point of each command of another distribution; nothing is imported.

    A command whose name is taken is left out with a warning.
    """
    points: dict[str, metadata.EntryPoint] = {}
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: point.value):
        if point.name in _HOMES or point.name in points:
            _leave_out(point, "its name is taken")
        else:
            points[point.name] = point
    return points


def _leave_out(point: metadata.EntryPoint, why: str) -> None:
    click.echo(f"Warning: the command {point.name} of {point.value} is left out: {why}", err=True)


class _Commands(click.Group):
    """Commands that are found by name in ``yzflow.commands``, or by an entry point."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*_HOMES, *_added()})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in _HOMES:
            return getattr(importlib.import_module(f"yzflow.commands.{_HOMES[name]}"), name.replace("-", "_"))
        if name in _added():
            return _loaded(_added()[name])
        from dynamics.support import distributions  # here, since ``yzflow --help`` starts at once

        if name in distributions.COMMANDS:
            raise _NotInstalled(f"`yzflow {name}` {distributions.cure(distributions.COMMANDS[name])}")
        return None

    def main(self, *arguments: Any, **options: Any) -> Any:
        if sys.stderr is None:  # a closed standard error: click would print errors among the results
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, for as long as the process lives
        return super().main(*arguments, **options)


def _loaded(point: metadata.EntryPoint) -> click.Command | None:
    """The command of an entry point; None, with a warning, if it cannot be imported or is no command."""
    try:
        command = point.load()
    except Exception as error:  # other people's code can raise anything
        _leave_out(point, " ".join(str(error).split()) or type(error).__name__)
        return None
    if not isinstance(command, click.Command):
        _leave_out(point, "it is no command of click")
        return None
    return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="yzflow", prog_name="yzflow")
def main() -> None:
    """A numerical laboratory for the training dynamics of attention."""
