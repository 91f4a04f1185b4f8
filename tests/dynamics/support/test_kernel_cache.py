"""Kernels that numba kept on disk are compiled anew where a module changed that they use, or a file was damaged."""

import os
import subprocess
import sys
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics.backend.modes import IN_PYTHON, PLAIN

PART = """
from dynamics.backend.compiled import kernel

@kernel(inner=True)
def part(x):
    return {factor} * x
"""
WHOLE = """
import whole_parts
from dynamics.backend.compiled import kernel

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
from dynamics.backend.compiled import kernel

@kernel()
def scaled(rule):
    return 2 * rule.factor

if __name__ == "__main__":
    print(scaled({name}(3.0)), len(scaled.stats.cache_hits))
"""


@pytest.mark.slow
@pytest.mark.skipif(IN_PYTHON, reason="there is no cache without numba")
def test_what_was_kept_for_classes_that_are_gone_is_forgotten(tmp_path):
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
    assert run("here", "Other") == ["6.0", "0"]
    assert run("there", "Other") == ["6.0", "0"]
    assert list(tmp_path.rglob("*.nbi"))


ALONE = """
from dynamics.backend.compiled import kernel

@kernel()
def empty(x):
    return 2 * x

@kernel()
def cut(x):
    return 3 * x

@kernel()
def bit(x):
    return 4 * x

for made in (empty, cut, bit):
    print(made(2.0), len(made.stats.cache_hits))
"""
# Of a kernel: a file of its own, and the rest of that after a full disk, a crash, a bad copy.
DAMAGE = {
    "empty": ("nbi", lambda content: b""),
    "cut": ("nbc", lambda content: content[: len(content) // 2]),
    "bit": ("nbc", lambda content: content[:99] + bytes([content[99] ^ 1]) + content[100:]),
}


@pytest.mark.slow
@pytest.mark.skipif(IN_PYTHON or PLAIN, reason="there is no cache")
def test_a_damaged_file_is_set_aside_and_said_once(tmp_path):
    (tmp_path / "main.py").write_text(ALONE)
    environment = os.environ | {"PYTHONPATH": os.getcwd(), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def run():
        command = [sys.executable, str(tmp_path / "main.py")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert run().stdout.split() == ["4.0", "0", "6.0", "0", "8.0", "0"]
    files = []
    for name, (ending, damage) in DAMAGE.items():
        (file,) = tmp_path.rglob(f"main.{name}-*.{ending}")
        file.write_bytes(damage(file.read_bytes()))
        files.append(file)
    again = run()
    assert again.stdout.split() == ["4.0", "0", "6.0", "0", "8.0", "0"]
    assert again.stderr.count("UserWarning: ") == 1
    assert f"a compiled kernel on disk is damaged: {files[0]} is set aside" in again.stderr
    assert all(file.with_name(f"{file.name}.damaged").exists() for file in files)
    last = run()
    assert last.stdout.split() == ["4.0", "1", "6.0", "1", "8.0", "1"] and last.stderr == ""


@pytest.mark.skipif(IN_PYTHON or PLAIN, reason="there is no cache")
@given(st.data())
@settings(max_examples=30, deadline=None)
def test_no_change_of_a_kept_file_is_unpickled(tmp_path_factory, data):
    """Whatever changed: what is not as it was written is not there."""
    from dynamics.backend import _inside as inside

    folder = tmp_path_factory.mktemp("kept")
    files = inside._Files(str(folder), "kernel", "stamp")
    files.save("float64", ("code", b"\x00\x01"))
    assert files.load("float64") == ("code", b"\x00\x01")
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content)))
    changed = (
        content[:start] + data.draw(st.binary(max_size=8)) + content[data.draw(st.integers(start, len(content))) :]
    )
    path.write_bytes(changed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = ("code", b"\x00\x01") if changed == content else None
        assert files.load("float64") == expected
        files.save("float64", "anew")
        assert files.load("float64") == "anew"


@pytest.mark.skipif(IN_PYTHON or PLAIN, reason="there is no cache")
def test_two_processes_that_write_at_once_never_give_a_kernel_the_code_of_another(tmp_path, monkeypatch):
    """The second comes between the index and the file of the first, and has read the index before that."""
    from dynamics.backend import _inside as inside

    first, second = (inside._Files(str(tmp_path), "kernel", "stamp") for _ in range(2))
    writes = first._save_data

    def late(name, data):
        with monkeypatch.context() as patch:
            patch.setattr(second, "_load_index", dict)
            second.save("modified", "code of modified")
        writes(name, data)

    monkeypatch.setattr(first, "_save_data", late)
    first.save("full", "code of full")
    for files in (first, second, inside._Files(str(tmp_path), "kernel", "stamp")):
        for key in ("full", "modified"):
            assert files.load(key) in (None, f"code of {key}")
    second.save("modified", "code of modified")
    assert second.load("modified") == "code of modified"
