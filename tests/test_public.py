"""The names that hostile tests must cover are found."""

from public import callables


class Base:
    def inherited(self, number): ...


class Example(Base):
    def __init__(self, number): ...

    def __add__(self, other): ...

    def plain(self): ...

    def _own(self, number): ...

    @classmethod
    def of(cls, number): ...

    @staticmethod
    def static(number): ...

    @property
    def read(self): ...

    @property
    def written(self): ...

    @written.setter
    def written(self, value): ...


def test_constructors_methods_operators_and_setters_are_found():
    own = Example.__module__.split(".")[0]
    found = {name.rpartition("Example")[2] for name in callables(Example, packages=(own,))}
    assert found == {"", ".inherited", ".__add__", ".of", ".static", ".written"}
