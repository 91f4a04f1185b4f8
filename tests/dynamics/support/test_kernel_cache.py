"""Kernels that numba kept on disk are compiled anew where a module changed that they use."""

import os
import subprocess
import sys

import pytest

from dynamics._backend.modes import IN_PYTHON

PART = """
from dynamics._backend.compiled import kernel

@kernel(inner=True)
def part(x):
    return {factor} * x
"""
WHOLE = """
import whole_parts
from dynamics._backend.compiled import kernel

@kernel({uses})
def whole(x):
    return whole_parts.part(x) + 1

if __name__ == "__main__":
    print(whole(2.0), len(whole.stats.cache_hits))
"""


@pytest.mark.slow
@pytest.mark.skipif(IN_PYTHON, reason="there is no cache without numba")
def test_a_change_in_a_module_that_is_used_is_noticed(tmp_path):
    environment = os.environ | {"PYTHONPATH": f"{os.getcwd()}{os.pathsep}{tmp_path}", "NUMBA_CACHE_DIR": str(tmp_path)}

    def run(factor, uses):
        (tmp_path / "whole_parts.py").write_text(PART.format(factor=factor))
        main = tmp_path / "main.py"
        if not main.exists() or main.read_text() != WHOLE.format(uses=uses):
            main.write_text(WHOLE.format(uses=uses))
        os.utime(tmp_path / "whole_parts.py", (factor, factor))
        command = [sys.executable, str(main)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    used = "uses=(whole_parts,)"
    assert run(3, used) == ["7.0", "0"]
    assert run(3, used) == ["7.0", "1"]  # from disk
    assert run(5, used) == ["11.0", "0"]
    assert run(9, "") == ["19.0", "0"]
    assert run(10, "") == ["19.0", "1"]  # which is why it has to be named


ARGUMENT = """
from typing import NamedTuple

class {name}(NamedTuple):
    factor: float
"""
OF_ARGUMENT = """
from {module} import {name}
from dynamics._backend.compiled import kernel

@kernel()
def scaled(rule):
    return 2 * rule.factor

if __name__ == "__main__":
    print(scaled({name}(3.0)), len(scaled.stats.cache_hits))
"""


@pytest.mark.slow
@pytest.mark.skipif(IN_PYTHON, reason="there is no cache without numba")
@pytest.mark.parametrize(("module", "name"), [("here", "Other"), ("there", "Rule")])
def test_what_was_kept_for_classes_that_are_gone_is_forgotten(tmp_path, module, name):
    """As after an update that renamed or moved the class of an argument: numba's index cannot be read then."""
    environment = os.environ | {"PYTHONPATH": f"{os.getcwd()}{os.pathsep}{tmp_path}", "NUMBA_CACHE_DIR": str(tmp_path)}
    main = tmp_path / "main.py"

    def run(module, name):
        for file in (tmp_path / "here.py", tmp_path / "there.py"):
            file.unlink(missing_ok=True)
        (tmp_path / f"{module}.py").write_text(ARGUMENT.format(name=name))
        main.write_text(OF_ARGUMENT.format(module=module, name=name))
        command = [sys.executable, "-B", str(main)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert run("here", "Rule") == ["6.0", "0"]
    assert run(module, name) == ["6.0", "0"]
    assert list(tmp_path.rglob("*.nbi"))
