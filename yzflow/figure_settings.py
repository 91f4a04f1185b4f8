"""Settings of figures: the same keywords in Python and on the command line, and their checks.

A figure takes the keywords of its function ``compute``, with that function's defaults. The command's help reads the
table alone, without the libraries of the checks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Keyword:
    """One number or word of a setting.

    Attributes
    ----------
    name : str
        The name in Python.
    kind : type
        int, float or str.
    text : str
        A description, for the help.
    spelled : str
        The name on the command line, if it is another.
    least : int
        The least value of an integer.
    """

    name: str
    kind: type
    text: str
    spelled: str = ""
    least: int = 1

    @property
    def option(self) -> str:
        """The option of the command line."""
        return f"--{self.spelled or self.name.replace('_', '-')}"

    def checked(self, value: object) -> Any:
        """A value of this kind.

        Raises
        ------
        ValueError
            If it is no such value.
        """
        from dynamics.optimizers.optimizer import OPTIMIZERS
        from dynamics.support import checks

        if self.kind is int:
            return checks.integer(self.name, value, minimum=self.least)
        if self.kind is float:
            return checks.positive(self.name, value)
        return checks.one_of(self.name, value, OPTIMIZERS)

    def read(self, text: str) -> Any:
        """The values of an option, separated by commas.

        Raises
        ------
        ValueError
            If the text has another form.
        """
        from dynamics.support import checks

        try:
            values = tuple(self.kind(word) for word in text.split(","))
        except ValueError:
            kind = {int: "integers", float: "numbers"}[self.kind]
            raise checks.reject(self.option, f"be {kind} with commas between them", checks.brief(text)) from None
        return values if values[1:] else values[0]


KEYWORDS = {
    keyword.name: keyword
    for keyword in (
        Keyword("n_classes", int, "K, next tokens that occur.", spelled="classes", least=2),
        Keyword("vocab_size", int, "M, next tokens in all.", least=2),
        Keyword("common", float, "Unnormalised weight of the common token."),
        Keyword("n_queries", int, "Numbers of query tokens of Syn-Medium.", spelled="queries"),
        Keyword("eta_y", float, "Learning rates of the decoder, per step."),
        Keyword("eta_z", float, "Learning rates of attention, per step."),
        Keyword("ratios", float, "Ratios eta_Y / eta_Z."),
        Keyword("optimizer", str, "sgd, adam, adamw or sign."),
        Keyword("t_end", float, "Last time, in SGD steps."),
        Keyword("steps", int, "Number of steps.", least=2),
        Keyword("seeds", int, "Number of seeds.", least=2),
    )
}


def taken(compute: Callable[..., Any] | None) -> dict[str, inspect.Parameter]:
    """Keywords of a figure's data: name -> the parameter of ``compute``, with its default and its type."""
    if compute is None:
        return {}
    try:
        parameters = inspect.signature(compute).parameters.values()
    except ValueError as error:  # of some built-in classes
        from dynamics.support import checks  # the command line starts without it

        raise checks.reject("compute", "be a function whose signature is known", checks.brief(compute)) from error
    return {one.name: one for one in parameters if one.kind is one.KEYWORD_ONLY and one.name in KEYWORDS}


def complete(owner: str, takes: Mapping[str, inspect.Parameter], given: Mapping[str, object]) -> dict[str, Any]:
    """A setting for a figure: checked, with a tuple for a keyword that takes several values.

    Raises
    ------
    ValueError
        If the figure does not take a keyword, or a value is invalid.
    """
    refuse(owner, takes, {name: value for name, value in given.items() if name not in takes})
    return {name: _complete(KEYWORDS[name], takes[name], value) for name, value in given.items()}


def refuse(owner: str, takes: Collection[str], others: Mapping[str, object], *, options: bool = False) -> None:
    """Refuse keywords that a figure does not take, and say which it takes: of Python, or options of a command.

    Raises
    ------
    ValueError
        If ``others`` has entries.
    """
    from dynamics.support import checks

    def spelled(names: Iterable[str]) -> list[str]:
        return [KEYWORDS[name].option if options and name in KEYWORDS else name for name in names]

    if others:
        (name,), value = spelled(list(others)[:1]), next(iter(others.values()))
        which = f"takes {', '.join(spelled(takes))}" if takes else "has one setting only"
        raise checks.reject(name, f"be left out for {owner}, which {which}", checks.brief(value))


def _complete(keyword: Keyword, parameter: inspect.Parameter, value: object) -> Any:
    """The value or values of a keyword, checked."""
    from dynamics.support import checks

    if value is None and parameter.default is None:
        return None
    several = "Sequence" in str(parameter.annotation)
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (keyword.checked(value),) if several else keyword.checked(value)
    if not several:
        raise checks.reject(keyword.name, "be one value", checks.brief(value))
    values = tuple(map(keyword.checked, value))
    if not values or len(set(values)) < len(values):
        raise checks.reject(keyword.name, "have one value or more, each once", checks.brief(value))
    return values
