"""Runs the examples in the README, the documentation, studies' pages and docstrings as tests; sums up coverage."""

import os
import sys
from collections import Counter
from pathlib import Path

# Proofs and their false variants simplify the same expressions again and again; SymPy reads this as it is imported.
os.environ.setdefault("SYMPY_CACHE_SIZE", "None")
# Small models of JAX are compiled for longer than they run.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import pytest
from shown_output import BlockParser
from sybil import Sybil
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import SkipParser
from sybil.sybil import SybilCollection

pytest_plugins = ["shared_fixtures"]  # of `tests`


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Examples write their files here."""
    monkeypatch.chdir(tmp_path)


def _forget(namespace):
    """Fields and papers that a document registered are none of the next one's."""
    papers = sys.modules.get("theory.papers")
    if papers:
        papers.forget()
    registry = sys.modules.get("dynamics.fields.table")
    for name, entry in list(registry.SYSTEMS.items() if registry else ()):
        if entry.field is not None:
            del registry.SYSTEMS[name]


_collect = SybilCollection(
    [
        Sybil(
            parsers=[BlockParser(), SkipParser()],
            patterns=["README.md", "docs/*.md", "docs/howto/*.md", "docs/theory/*.md", "studies/*/*/page.md"],
            fixtures=["empty_folder"],
            teardown=_forget,
        ),
        Sybil(
            parsers=[DocTestParser()],
            patterns=[
                f"{package}{depth}/*.py"
                for package in ("dynamics", "theory", "yzflow", "papers/*/yzflow_*", "tools/*/yzflow_*")
                for depth in ("", "/*", "/*/*", "/*/*/*")
            ],
            fixtures=["empty_folder"],
            teardown=_forget,
        ),
    ]
).pytest()


def pytest_collect_file(file_path, parent):
    """Documents, and modules with examples: nine in ten have none, and Sybil would parse them all."""
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text(encoding="utf-8"):
        return None
    return _collect(file_path, parent)


# What is traced with ``--cov``: the tests of the simulators and of the theory, but those of proofs, since SymPy crawls
# under a tracer.
_TRACED = ("tests/dynamics", "tests/theory")
_NOT_TRACED = ("tests/theory/scan_and_snap/test_proofs.py",)
# Files that took longest in a run of all tests, or compile most, about in that order.
_LONGEST = (
    "tests/docs/test_docs.py",
    "tests/test_formal.py",
    "tests/yzflow/audits/test_audit.py",
    "tools/enclose/tests/test_certified_pages.py",
    "tests/yzflow/test_commands.py",
    "tests/yzflow/test_fields.py",
    "tests/yzflow/test_live_pages.py",
    "tests/yzflow/pages/explorer/test_access.py",
    "studies/yzflow_studies/precise_dyck/test_study.py",
    "tests/yzflow/sweeps/test_killed.py",
    "tests/theory/scan_and_snap/test_proofs.py",
    "tests/dynamics/test_layer_parts.py",
    "tools/watch/tests/test_undisturbed.py",
    "tools/enclose/tests/test_cell_certificates.py",
    "tools/enclose/tests/test_game.py",
    "tests/yzflow/test_damaged_files.py",
    "studies/yzflow_studies/paper_rates/test_study.py",
    "studies/yzflow_studies/ordinary_dyck/test_study.py",
    "tests/yzflow/test_statement_pages.py",
    "tests/yzflow/audits/test_check.py",
    "tests/yzflow/papers/scan_and_snap/test_views.py",
    "tests/yzflow/test_values.py",
    "tests/dynamics/test_fields.py",
    "tests/dynamics/test_touched_rows.py",
    "tests/dynamics/test_training_options.py",
    "papers/bounded_dyck/tests/test_false_statements.py",
    "tools/deep/tests/test_training.py",
    "tools/deep/tests/test_model.py",
    "papers/beyond_scan_and_snap/tests/test_late_times.py",
)


def _file(item):
    return item.nodeid.partition("::")[0]


def pytest_collection_modifyitems(config, items):
    """Long files first, then those of many tests: at the end no worker is left alone with a long one."""
    first, number = {name: place for place, name in enumerate(_LONGEST)}, Counter(map(_file, items))
    items.sort(key=lambda item: (first.get(_file(item), len(first)), -number[_file(item)]))
    if not getattr(config.option, "cov_source", None):
        return
    for item in items:
        if not item.nodeid.startswith(_TRACED) or item.nodeid.startswith(_NOT_TRACED):
            item.add_marker("no_cover")


def pytest_terminal_summary(terminalreporter, config):
    """With ``--cov``: the share of lines that ran in each package, before pytest's own summary."""
    if not getattr(config.option, "cov_source", None):
        return
    import coverage

    data = coverage.Coverage()
    data.load()
    lines, ran = Counter(), Counter()
    for file in data.get_data().measured_files():
        _, statements, _, missing, _ = data.analysis2(file)
        *folders, _ = Path(file).relative_to(config.rootpath).parts
        for depth in range(1, len(folders) + 1):
            lines[tuple(folders[:depth])] += len(statements)
            ran[tuple(folders[:depth])] += len(statements) - len(missing)
    terminalreporter.section("lines that the tests of dynamics and theory ran, without compiled kernels and proofs")
    for package in sorted(lines):
        if lines[package]:
            name = "  " * (len(package) - 1) + package[-1]
            terminalreporter.write_line(f"{name:30} {ran[package] / lines[package]:5.1%} of {lines[package]}")
