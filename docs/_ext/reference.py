"""Reference pages: one for each public module of the three packages and of the distributions beside them.

They are found and not listed. Of a distribution that cannot be imported here, there is a page that says so.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from sphinx.application import Sphinx

PACKAGES = {"dynamics": "Simulate", "theory": "Predict", "yzflow": "Compare"}
ROOT = Path(__file__).parents[2]


def beside() -> dict[str, str]:
    """Package of each distribution beside the core -> its folder in the repository."""
    found = sorted(path for place in ("papers", "tools") for path in (ROOT / place).glob("*/yzflow_*/__init__.py"))
    return {path.parent.name: path.parents[1].relative_to(ROOT).as_posix() for path in found}


def absent(package: str) -> str:
    """Why a package and its modules cannot be imported here; nothing if they can."""
    try:
        for module in modules(package):
            public_names(module)
    except ImportError as error:
        return str(error)
    return ""


def modules(package: str) -> list[str]:
    """``package`` and its public modules. Proofs are on the pages on theory, and commands in ``yzflow --help``.

    Of a paper's distribution the panel and the views are pages of their own.
    """
    root = importlib.import_module(package)
    found = [package] + [module.name for module in pkgutil.walk_packages(root.__path__, f"{package}.")]
    hidden = (
        "yzflow.cli",
        "yzflow.commands",
        *(f"{package}.{name}" for name in ("commands", "panel", "proofs", "views") if package in beside()),
    )
    return [name for name in found if "._" not in name and not name.startswith(hidden)]


def public_names(module: str) -> list[str]:
    """The functions and classes that ``module`` defines for others: those of its ``__all__``, or without a ``_``.

    A package has those, too, that it takes from private modules: people import them from there.
    """
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]
    objects = {name: getattr(loaded, name) for name in names}
    return [name for name, found in objects.items() if callable(found) and home(found) == module]


def home(found: object) -> str:
    """The module whose page documents an object: its own, or of a private one the package."""
    name = getattr(found, "__module__", None) or ""
    private = any(part.startswith("_") for part in name.split("."))
    return name.split(".")[0] if private else name


def _page(module: str) -> str:
    kinds = {True: "autoclass", False: "autofunction"}
    lines = [module, "=" * len(module), "", f".. automodule:: {module}", "   :no-members:", ""]
    for name in public_names(module):
        found = inspect.unwrap(getattr(importlib.import_module(module), name))
        directive = kinds[inspect.isclass(found)]
        lines += [f".. {directive}:: {module}.{name}"]
        lines += ["   :members:", ""] if directive == "autoclass" else [""]
    return "\n".join(lines)


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "_generated" / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {}
    for package, title in {**PACKAGES, **beside()}.items():
        heading = f"{title}: {package}"
        parts = [heading, "=" * len(heading), ""]
        if package not in PACKAGES and (why := absent(package)):
            parts += [f"Not in this site, as it was built where the package cannot be imported: {why}.", ""]
        else:
            names = modules(package)
            wanted.update({name: _page(name) for name in names})
            parts += [".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in names), ""]
        wanted[f"index_{package}"] = "\n".join(parts)
    for old in folder.glob("*.rst"):
        if old.stem not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = folder / f"{name}.rst"
        # An unchanged page keeps its time, so that sphinx need not read it again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def plain_text(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings write formulas as plain text: their bars, stars and final underscores are no markup."""
    literal = False
    for i, line in enumerate(lines):
        doctest = line.lstrip().startswith((">>>", "..."))
        literal = (literal and bool(line.strip())) or doctest
        if not literal:
            parts = re.split(r"(``.*?``|`[^`]*`)", line)
            parts[::2] = [re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", plain_text, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
