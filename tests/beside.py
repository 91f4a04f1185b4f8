"""Files that the distributions of the repository keep beside their own tests, for tests that go through all."""

import importlib.util
import sys
from types import ModuleType

from driving import ROOT

from dynamics.support.distributions import FOLDERS, installed


def beside(name: str) -> list[ModuleType]:
    """The module of this name in the tests of each distribution that is installed and has one."""
    found = []
    for package, folder in FOLDERS.items():
        file = ROOT / folder / "tests" / f"{name}.py"
        if not (file.is_file() and installed(package)):
            continue
        spec = importlib.util.spec_from_file_location(f"{name}_of_{package}", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        found.append(module)
    return found
