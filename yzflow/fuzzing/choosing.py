"""Named choices that make a setting: drawn by hypothesis, or those of an earlier example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dynamics.support import checks

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_Option = TypeVar("_Option")

_STEPS = 10_000  # between the ends of a range
_AT_AN_END = 20  # draws: of these, one is at each end


class Choose(Protocol):
    """The choices by which a paper's ``drawing`` makes a setting; each has its own name.

    Attributes
    ----------
    made : dict
        Name -> value, of the choices so far.
    """

    made: dict[str, Any]

    def integer(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """A whole number from low to high, both included; with ``log``, 10 to 100 is as likely as 100 to 1000."""

    def real(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number from low to high, both included, with three digits inside."""

    def one_of(self, name: str, options: Sequence[_Option]) -> _Option:
        """Choose one of these."""


class Drawn:
    """Choices that hypothesis draws; it shrinks towards small, round and early ones.

    One draw in ten is at an end of its range, since assumptions are equalities there.
    """

    def __init__(self, draw: Callable[[SearchStrategy[int]], int]):
        self._draw = draw
        self.made: dict[str, Any] = {}

    def integer(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        if not log:
            return self._keep(name, low + self._number(high - low))
        return self._keep(name, min(max(round(self._between(low, high, log)), low), high))

    def real(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return self._keep(name, self._between(low, high, log))

    def one_of(self, name: str, options: Sequence[_Option]) -> _Option:
        return options[self._keep(name, self._number(len(options) - 1))]

    def _keep(self, name: str, value: Any) -> Any:
        if name in self.made:
            raise checks.reject("name", "be another for each choice", repr(name))
        self.made[name] = value
        return value

    def _number(self, largest: int) -> int:
        from hypothesis import strategies as st

        return self._draw(st.integers(0, largest)) if largest > 0 else 0

    def _between(self, low: float, high: float, log: bool) -> float:
        drawn = self._number(_AT_AN_END - 1)
        if drawn < 2:
            return float((low, high)[drawn])
        share = self._number(_STEPS) / _STEPS
        value = low * (high / low) ** share if log else low + (high - low) * share
        return min(max(float(f"{value:.3g}"), low), high)


class Recorded:
    """The choices of an example, once more.

    Raises
    ------
    ValueError
        If a choice is missing or out of its range.
    """

    def __init__(self, made: Mapping[str, Any]):
        self.made = dict(checks.instance("choices", made, Mapping))

    def integer(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        value = checks.integer(f"choices[{name!r}]", self._of(name), minimum=low)
        if value > high:
            raise checks.reject(f"choices[{name!r}]", f"be at most {high}", value)
        return value

    def real(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        value = checks.real(f"choices[{name!r}]", self._of(name))
        if not low <= value <= high:
            raise checks.reject(f"choices[{name!r}]", f"be between {low:g} and {high:g}", value)
        return value

    def one_of(self, name: str, options: Sequence[_Option]) -> _Option:
        return options[self.integer(name, 0, len(options) - 1)]

    def _of(self, name: str) -> Any:
        if name not in self.made:
            raise checks.reject("choices", f"have {name!r}", sorted(self.made))
        return self.made[name]
