"""The scripts of the folder ``examples``, wherever yzflow was installed from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path

from dynamics.support import checks, distributions, files
from yzflow import studies

# The folder into which `setup.cfg` installs them from a wheel.
_SHARED = "share/yzflow/examples"


def folder() -> Path:
    """The folder of the examples: in the clone, or beside an installed wheel.

    Raises
    ------
    FileNotFoundError
        If they were not installed.
    """
    clone = Path(__file__).parents[1] / "examples"
    if (clone / "phase_transition.py").is_file():
        return clone
    for file in metadata.files("yzflow") or ():
        if file.suffix == ".py" and file.parent.as_posix().endswith(_SHARED):  # pip compiles them as well
            return Path(str(file.locate())).resolve().parent
    raise FileNotFoundError(f"the examples are not installed: no {_SHARED} in the distribution yzflow")


def names() -> dict[str, str]:
    """Name of each example -> the first line of its description."""
    lines = {}
    for file in sorted(folder().iterdir()):
        if file.suffix == ".py":
            text = file.read_text(encoding="utf-8").split('"""')
            lines[file.stem] = text[1].splitlines()[0] if len(text) > 1 else ""
        elif file.suffix == ".toml":
            lines[file.name] = file.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
    return lines


def of_studies(name: str) -> bool:
    """True if an example imports the studies, which are another distribution."""
    return "yzflow_studies" in find(name).read_text(encoding="utf-8")


def find(name: str) -> Path:
    """The file of an example; ``.py`` may be left out.

    Raises
    ------
    ValueError
        If there is no example of this name.
    """
    known = names()
    name = checks.one_of("name", checks.instance("name", name, str).removesuffix(".py"), tuple(known))
    return folder() / (name if "." in name else f"{name}.py")


def copy(name: str, to: str | os.PathLike) -> Path:
    """Put a copy of an example into the folder ``to``; a file with its name is never replaced.

    Raises
    ------
    ValueError
        If there is no example of this name, or it cannot be put there.
    """
    source = find(name)
    final = files.folder("to", checks.instance("to", to, (str, os.PathLike))) / source.name
    if final.exists():
        raise checks.reject("to", f"hold no {source.name} yet", to)
    with files.replacing(final) as temporary:
        shutil.copyfile(source, temporary)
    return final


def run(name: str, arguments: Sequence[str] = ()) -> int:
    """Run an example in another process, as ``python examples/NAME.py ARGUMENTS`` does; returns its exit status.

    Raises
    ------
    ValueError
        If there is no example of this name, or it is no script.
    ImportError
        If it needs the studies or another distribution, and they are not installed.
    """
    file = find(name)
    if file.suffix != ".py":
        raise checks.reject("name", "be a script; others can be copied", name)
    if of_studies(name) and util.find_spec("yzflow_studies") is None:
        raise ImportError(studies.MISSING)
    text = file.read_text(encoding="utf-8")
    for package in distributions.FOLDERS:
        if package in text and not distributions.installed(package):
            raise distributions.Missing(f"what `{name}` imports {distributions.cure(package)}")
    module = ["-m", "pytest"] if file.stem.startswith("test_") else []
    return subprocess.call([sys.executable, *module, str(file), *arguments])
