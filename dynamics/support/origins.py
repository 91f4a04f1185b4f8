"""The origin of an object of a user's class: its class by name, its configuration, and the version of its code.

A file holds names and hashes, and no code, and it does not decide what runs. A name stands for a class that the user
handed over in this process, or for an entry point of an installed distribution. See `Origin.make`.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from dynamics.support import checks

PAPERS, FIELDS, FLOWS = "yzflow.papers", "yzflow.fields", "yzflow.flows"
OURS = ("dynamics", "theory", "yzflow")
_NONE = "none"


@dataclass(frozen=True)
class Code:
    """The code that made a result.

    Attributes
    ----------
    package : str
        The module at the top, which is hashed with all modules beneath it.
    distribution : str
        The installed distribution, or "none".
    version : str
        Its version, or "none".
    sha256 : str
        SHA-256 of the source files; "" if there are none, as in a notebook.
    """

    package: str
    distribution: str = _NONE
    version: str = _NONE
    sha256: str = ""

    @property
    def whose(self) -> str:
        """The name to install: the distribution, or the package if it has none."""
        return self.package if self.distribution == _NONE else self.distribution

    def factors(self, now: Code | None = None) -> dict[str, tuple[str, str]]:
        """The parts that changed: name -> (then, now). Default: ``now`` is the package as installed here."""
        now = now or code_of(self.package)
        pairs = {
            f"distribution of {self.package}": (self.distribution, now.distribution),
            f"version of {self.whose}": (self.version, now.version),
            f"code of {self.whose}": (self.sha256, now.sha256),
        }
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def code_of(module: str) -> Code:
    """The code of the package that a module is in."""
    package = module.partition(".")[0]
    installed = _distribution(package)
    name, version = (installed.metadata["Name"], installed.version) if installed is not None else (_NONE, _NONE)
    return Code(package, name, version, _sha256(package, name))


def outside(modules: Iterable[str]) -> str:
    """The code of all packages outside the core, as JSON text for a file; "" if there are none."""
    packages = sorted({module.partition(".")[0] for module in modules} - set(OURS))
    return json.dumps({name: asdict(code_of(name)) for name in packages}) if packages else ""


def read_outside(text: object) -> list[Code]:
    """The code in a text of `outside`, or in a JSON list of such texts; empty for anything else."""
    try:
        content = json.loads(str(text))
        texts = [json.loads(one) for one in content] if isinstance(content, list) else [content]
        return [Code(**{str(key): str(value) for key, value in one.items()}) for each in texts for one in each.values()]
    except (ValueError, TypeError, AttributeError):
        return []


def check_is_here(codes: Iterable[Code]) -> None:
    """Refuse the code of packages that are not installed here."""
    for code in codes:
        # Look for the module at the top only: to look for a module beneath it would import it.
        if code.package not in sys.modules and ("." in code.package or util.find_spec(code.package) is None):
            whose = code.whose if code.distribution == _NONE else f"{code.whose} {code.version}"
            raise checks.reject("path", "be of code that is here", f"that of {whose}, which is not installed")


# Classes of flows that a person handed over in this process, by "module:name".
_handed: dict[str, type] = {}


def _flow_class(target: str, whose: str) -> type:
    """The class of a flow that a file names: handed over in this process, or offered by an entry point.

    Raises
    ------
    ValueError
        If it is neither: a file does not decide what is imported and run.
    """
    if target in _handed:
        return _handed[target]
    for point in metadata.entry_points(group=FLOWS):
        if point.value == target:
            try:
                kind = point.load()
            except (Exception, SystemExit) as error:  # code of other people can raise anything
                rule = f"be of code that can be imported: install {whose}"
                raise checks.reject("path", rule, f"{target} ({type(error).__name__}: {error})") from error
            if inspect.isclass(kind):
                return kind
    rule = (
        f"name a flow that is known here: hand it over, as in rerun(path, flow=..) and verify(flow=..), or install "
        f"{whose} with an entry point in the group {FLOWS!r}"
    )
    raise checks.reject("path", rule, target)


def _distribution(package: str) -> metadata.Distribution | None:
    """The distribution that installed a package; an editable installation is found by its entry points."""
    names = _distributions().get(package, [])
    if names:
        return metadata.distribution(names[0])
    every = metadata.entry_points()  # once: it reads a file of each distribution
    points = [point for group in (PAPERS, FIELDS, FLOWS) for point in every.select(group=group)]
    known = [point.dist for point in points if point.module.partition(".")[0] == package]
    return next((dist for dist in known if dist is not None), None)


@functools.cache  # reads a file of each distribution
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _sha256(package: str, distribution: str) -> str:
    """SHA-256 of all source files of the packages of a distribution, or of one package or module."""
    tops = [top for top, names in _distributions().items() if distribution in names] or [package]
    digest, empty = hashlib.sha256(), True
    for top in sorted({*tops, package}):
        for name, content in _sources(top):
            digest.update(f"{top}/{name}\0".encode() + content)
            empty = False
    return "" if empty else digest.hexdigest()


def _sources(package: str) -> Iterator[tuple[str, bytes]]:
    """Source files of a package or module, with their names beneath it."""
    module = sys.modules.get(package)
    try:
        spec = getattr(module, "__spec__", None) or (None if module is not None else util.find_spec(package))
    except (ImportError, ValueError):
        return
    places = list(getattr(module, "__path__", None) or getattr(spec, "submodule_search_locations", None) or ())
    files = [(Path(folder), path) for folder in places for path in sorted(Path(folder).rglob("*.py"))]
    if not places:
        origin = getattr(module, "__file__", None) or getattr(spec, "origin", None)
        files = [(Path(origin).parent, Path(origin))] if origin and Path(origin).suffix == ".py" else []
    for root, path in files:
        try:
            yield path.relative_to(root).as_posix(), path.read_bytes()
        except OSError:
            continue


@dataclass(frozen=True)
class Origin:
    """How an object is made again.

    Attributes
    ----------
    target : str
        "module:name" of its class.
    config : mapping
        Its keyword arguments, plain data.
    code : Code, optional
        For an origin from a file: the code that made the object.
    """

    target: str
    config: Mapping[str, Any]
    code: Code | None = None

    @property
    def package(self) -> str:
        """The module at the top."""
        return self.target.partition(":")[0].partition(".")[0]

    def found(self) -> Code:
        """The code that the file names, or else the code that is installed here."""
        return self.code or code_of(self.package)

    def is_of(self, kind: type) -> bool:
        """True if a class has this name; either may be in `__main__`, the module of a script while it runs."""
        module, _, qualname = self.target.partition(":")
        return kind.__qualname__ == qualname and (kind.__module__ == module or "__main__" in (kind.__module__, module))

    def make(self, kind: type | None = None) -> Any:
        """Make the object anew.

        Default for ``kind``: a class that was handed over in this process, or an entry point's.

        Raises
        ------
        ValueError
            If it is neither, or refuses the configuration.
        """
        if kind is None:
            kind = _flow_class(self.target, self.code.whose if self.code is not None else self.package)
        try:
            return kind(**self.config)
        except TypeError as error:
            rule = f"hold a configuration that {self.target} takes"
            raise checks.reject("path", rule, f"{', '.join(self.config)} ({error})") from error


def origin_of(value: object) -> Origin | None:
    """The origin of an object; None if it has no ``config`` or its class has no name that can be imported.

    The class of a flow is noted: files that name it may make it again in this process, since a user handed it over.
    """
    kind, config = type(value), getattr(value, "config", None)
    module, qualname = kind.__module__, kind.__qualname__
    if not callable(config) or "<" in qualname or module not in sys.modules:
        return None
    known: Any = sys.modules[module]
    for name in qualname.split("."):
        known = getattr(known, name, None)
    if known is not kind:
        return None
    arguments = checks.instance("config", config(), Mapping, rule="return a mapping of the arguments of its class")
    for name in arguments:
        if not isinstance(name, str) or not name.isidentifier():
            raise checks.reject("config", "return names of arguments", checks.brief(name))
    origin = Origin(f"{module}:{qualname}", copy.deepcopy(dict(arguments)))
    if any(callable(getattr(kind, name, None)) for name in ("derivative", "field")):
        _handed[origin.target] = kind
    return origin


def described(value: object) -> str:
    """The text by which a trajectory records a function, or a dataclass that can be called."""
    shown = repr(value) if is_dataclass(value) else getattr(value, "__qualname__", type(value).__qualname__)
    return f"{getattr(value, '__module__', None) or type(value).__module__}:{shown}"
