"""Commands from signatures: the parameters of a function are the arguments and the options of its command.

A parameter before the ``*`` is an argument, a parameter after it is an option, and ``context`` is click's context.
Types and defaults come from the signature. ``Annotated`` adds the help text; a word with two dashes, the option's name
if it differs from the parameter's; a type of click; or a mapping of click's settings.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import click

from yzflow.commands.common import PATH, Command

Json = Annotated[bool, "--json", "Print JSON in place of text."]
Copy = Annotated[Path | None, "Write what is printed to this file as well."]
OfPaper = Annotated[str | None, "Only of this paper, by its name; `yzflow papers` lists all. Default: all."]


def command(
    name: str | None = None, *, cls: type[Command] = Command, more: Sequence[click.Parameter] = (), **settings: Any
) -> Callable[[Callable[..., None]], click.Command]:
    """Decorator that makes a command from a function; ``more`` options go to its ``**keywords``.

    A parameter with a dataclass as its type stands for one option per field.
    """

    def made(function: Callable[..., None]) -> click.Command:
        parameters = inspect.signature(function, eval_str=True).parameters
        groups = {key: parameter.annotation for key, parameter in parameters.items() if _is_group(parameter.annotation)}

        @functools.wraps(function)
        def call(**values: Any) -> None:
            for key, group in groups.items():
                values[key] = group(**{field.name: values.pop(field.name) for field in dataclasses.fields(group)})
            if "context" in parameters:
                values["context"] = click.get_current_context()
            function(**values)

        listed = [option for parameter in parameters.values() for option in _listed(parameter)]
        return click.command(name, cls=cls, params=[*listed, *more], **settings)(call)

    return made


def _is_group(annotation: Any) -> bool:
    return inspect.isclass(annotation) and dataclasses.is_dataclass(annotation)


def _listed(parameter: inspect.Parameter) -> Iterator[click.Parameter]:
    """The arguments and options for a parameter; none for ``context`` and ``**keywords``."""
    if _is_group(parameter.annotation):
        yield from map(_option, inspect.signature(parameter.annotation, eval_str=True).parameters.values())
    elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        yield _option(parameter)
    elif parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and parameter.name != "context":
        kind, several, _, settings = _read(parameter)
        if several:  # without words it is empty; click before 8.2 refuses a default
            settings.pop("default", None)
        yield click.Argument([parameter.name], type=kind, nargs=-1 if several else 1, **settings)


def _option(parameter: inspect.Parameter) -> click.Option:
    kind, several, words, settings = _read(parameter)
    spelled = next((word for word in words if word.startswith("--")), f"--{parameter.name.replace('_', '-')}")
    text = next((word for word in words if not word.startswith("--")), None)
    how = {"is_flag": True} if kind is bool else {"type": kind, "multiple": several, "show_default": True}
    return click.Option([spelled, parameter.name], help=text, **how | settings)


def _read(parameter: inspect.Parameter) -> tuple[Any, bool, list[str], dict[str, Any]]:
    """Type of a parameter, True for several values, its words from ``Annotated``, and click's settings."""
    added = getattr(parameter.annotation, "__metadata__", ())
    plain = parameter.annotation.__origin__ if added else parameter.annotation
    kind = (*typing.get_args(plain), plain)[0]  # the first type in `int | None` and `tuple[int, ...]`
    kind = next((extra for extra in added if isinstance(extra, click.ParamType)), PATH if kind is Path else kind)
    words = [extra for extra in added if isinstance(extra, str)]
    required = parameter.default is inspect.Parameter.empty
    settings: dict[str, Any] = {"required": required} | ({} if required else {"default": parameter.default})
    for extra in added:
        settings |= extra if isinstance(extra, dict) else {}
    return kind, typing.get_origin(plain) is tuple, words, settings
