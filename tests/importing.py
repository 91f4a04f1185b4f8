"""Imports of the modules of this repository, read from their sources."""

import ast
import functools
from graphlib import TopologicalSorter
from pathlib import Path

from driving import ROOT

CORE = ("dynamics", "theory", "yzflow")
# Package -> its folder, of each distribution of the repository beside the core.
DISTRIBUTIONS = {
    file.parent.name: file.parents[1]
    for rooms in ("papers", "tools")
    for file in sorted((ROOT / rooms).glob("*/yzflow_*/__init__.py"))
}
OURS = (*CORE, *DISTRIBUTIONS)


def package_of(name: str) -> str:
    """The package of a dotted name."""
    return name.partition(".")[0]


def folder_of(package: str) -> Path:
    """The folder of the sources in which a package stands."""
    return DISTRIBUTIONS.get(package, ROOT)


def modules_of(*packages: str) -> list[str]:
    """Every module of packages or of folders below them, by its dotted name."""
    found = []
    for package in packages:
        root = folder_of(package.partition("/")[0])
        for path in (root / package).rglob("*.py"):
            found.append(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
    return sorted(found)


def source_of(module: str) -> str:
    """The text of a module."""
    path = folder_of(package_of(module)).joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(module: str) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(source_of(module))


@functools.cache
def imports_of(module: str, *, at_import: bool) -> set[str]:
    """The imports of a module, by dotted name (``a.b`` of ``from a import b`` too); or only those on import."""
    found, todo = set(), [tree_of(module)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        guarded = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not at_import or not (later or guarded):
            # No expression holds an import.
            todo.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return found


def parents(module: str) -> list[str]:
    """The packages that Python imports before a module."""
    parts = module.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def check_no_circle(*packages: str) -> None:
    """Imports of modules of these packages while they are imported; a `CycleError` names the circle."""
    modules = modules_of(*packages)
    known, graph = set(modules), {}
    for module in modules:
        needed = {other for other in imports_of(module, at_import=True) if other in known}
        needed.update(parent for other in needed.copy() for parent in parents(other))
        graph[module] = needed - {module, *parents(module)}
    list(TopologicalSorter(graph).static_order())


def check_one_direction(package: str) -> None:
    """Imports for annotations alone count, too: two files that need each other need a third."""
    modules = set(modules_of(package))
    graph = {module: (imports_of(module, at_import=False) & modules) - {module, *parents(module)} for module in modules}
    assert sum(map(len, graph.values())) > len(modules) / 2
    list(TopologicalSorter(graph).static_order())
