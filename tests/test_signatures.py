"""Every public signature says what it takes and returns: all arguments and the result are annotated."""

import ast
from pathlib import Path

import pytest
from driving import ROOT

PACKAGES = ("dynamics", "theory", "yzflow")


def public(body, name="", own=False):
    """Public functions and methods by name, of classes too; of each whether its first argument is the object."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, f"{name}{node.name}.", own=True)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            special = node.name.startswith("__") and node.name.endswith("__")
            if special or not node.name.startswith("_"):
                static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
                yield name + node.name, node, own and not static


def compiled(function) -> bool:
    """A numba kernel has the types of its call."""
    decorators = [ast.dump(decorator) for decorator in function.decorator_list]
    return any("njit" in decorator or "id='kernel'" in decorator for decorator in decorators)


def unannotated(source: str) -> list[str]:
    """``function(argument)`` or ``function -> `` for each annotation that is missing."""
    missing = []
    for name, function, own in public(ast.parse(source).body):
        if compiled(function):
            continue
        given = function.args
        arguments = [*given.posonlyargs, *given.args][own:] + given.kwonlyargs
        arguments += [argument for argument in (given.vararg, given.kwarg) if argument]
        missing += [f"{name}({argument.arg})" for argument in arguments if argument.annotation is None]
        if function.returns is None and not name.endswith(("__init__", "__post_init__")):
            missing.append(f"{name} ->")
    return missing


def modules(package: str) -> list[Path]:
    """The public ones: no part of their path has a leading underscore."""
    return [
        path
        for path in sorted((ROOT / package).rglob("*.py"))
        if not any(part.startswith("_") and part != "__init__.py" for part in path.relative_to(ROOT).parts)
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_signature_is_annotated(package):
    found = {path: unannotated(path.read_text()) for path in modules(package)}
    lines = [f"{path.relative_to(ROOT)}: {', '.join(names)}" for path, names in found.items() if names]
    assert not lines, f"{sum(map(len, found.values()))} annotations are missing\n" + "\n".join(lines)
