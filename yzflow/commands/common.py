"""Tools of all commands: errors as one line, shared options, printing."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from yzflow.audits import rendered


class _BadInput(click.ClickException):
    exit_code = 2


class Command(click.Command):
    """A command that reports errors in one line. Exit status: 2 for bad input, 1 without memory, 130 for Ctrl-C."""

    def invoke(self, context: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = lambda message, *_: click.echo(f"Warning: {message}", err=True)
                return super().invoke(context)
        except click.exceptions.Exit:  # itself a RuntimeError
            raise
        except OSError as error:  # without its number
            named = error.strerror is not None and error.filename is not None
            raise _BadInput(f"{error.filename}: {error.strerror}" if named else str(error)) from error
        except (ValueError, ImportError) as error:
            raise _BadInput(str(error)) from error
        except MemoryError as error:
            raise click.ClickException(f"out of memory: {error}".removesuffix(": ")) from error
        except RuntimeError as error:  # a simulation that failed is no bad input
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            what = context.meta.get("interrupted", "every file that is there is complete; the same command starts over")
            click.echo(f"\ninterrupted: {what}", err=True)
            context.exit(130)


def beside_person(*named: str | None) -> None:
    """Add the present folder to the end of the module path if an argument names a module.

    At the end, since a library may import a module of the same name.
    """
    if any(named) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def read(data: str | Path, rule: str = "be a file that exists", **options: Any) -> Any:
    """The data in the file after ``--data``."""
    from dynamics.data.reading import read_data

    if not Path(data).is_file():
        raise ValueError(f"`--data` must {rule}, but got {str(data)!r}")
    return read_data(data, **options)


def files_to_write(*paths: Path | None) -> None:
    """Refuse paths that cannot be written, before long work; None stands for no file."""
    from dynamics.support.files import writable

    for path in paths:
        if path is None:
            continue
        if path.name.startswith("--"):
            raise ValueError(f"`--out` must be the path of a file, but got {path}, which reads like an option")
        writable("--out", path)


def print_facts(as_json: bool, facts: dict, lines: list[str]) -> None:
    """Facts for a machine, or lines for a person."""
    click.echo(rendered.as_json(facts) if as_json else "\n".join(lines))


def print_text(text: str, out: Path | None) -> None:
    """Print a result, and write it to ``out`` if given."""
    from dynamics.support.files import replacing

    click.echo(text)
    if out is not None:
        with replacing(out) as temporary:
            temporary.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        click.echo(f"wrote {out}", err=True)


def asked_for(context: click.Context, *names: str) -> list[str]:
    """Options, among these names, that a person wrote."""
    return [name for name in names if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT]


def of_paper(option: str, names: tuple[str, ...], paper: str | None) -> Any:
    """The statements that an option names, or those of a paper; None for neither."""
    from yzflow.parts import paper_of

    if paper is None:
        return names or None
    if names:
        raise ValueError(f"`--paper` must be left out beside {option}, but got both")
    return paper_of(paper)


class _Path(click.Path):
    """A path. An empty word is refused: an unset variable of a shell would become the present folder."""

    def __init__(self, **rules: bool) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            name = param.get_error_hint(ctx).strip("'") if param is not None and ctx is not None else "path"
            raise _BadInput(f"`{name}` must be the path of a file or a folder, but got ''")
        return super().convert(value, param, ctx)


PATH = _Path()
FILE = _Path(exists=True, dir_okay=False)
FOLDER = _Path(exists=True, file_okay=False)
