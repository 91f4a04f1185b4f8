"""Kept files answer their own question alone: the same one from disk, and another one anew or not at all."""

import importlib
import shutil
import warnings

import pytest
from answered import all_questions

from dynamics.support import sealed
from yzflow.testing import GRAMMAR

ANSWERED, READ_ALONE = all_questions()
QUESTIONS = {name: question for kind in ANSWERED.values() for name, question in kind.items()}


def test_every_kind_of_file_is_declared():
    assert {*READ_ALONE, *ANSWERED} - {""} == set(sealed.kinds()) and not set(READ_ALONE) & set(ANSWERED)
    assert all(ANSWERED.values())


class Counted:
    """Counts the calls of what computes."""

    def __init__(self, patch, work):
        module, _, path = work.partition(":")
        *outer, name = path.split(".")
        holder = importlib.import_module(module)
        for part in outer:
            holder = getattr(holder, part)
        called = getattr(holder, name)

        def counting(*arguments, **options):
            self.calls += 1
            return called(*arguments, **options)

        for attribute in ("__module__", "__qualname__", "__name__"):
            if hasattr(called, attribute):
                setattr(counting, attribute, getattr(called, attribute))
        self.calls = 0
        patch.setattr(holder, name, counting)

    def during(self, ask, *arguments, **options):
        before = self.calls
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what is set aside
            return ask(*arguments, **options), self.calls - before


def differs(counted, question, folder, fresh, **changes):
    """Asks in a folder that holds answers of other questions; nothing old may come."""
    fresh.mkdir()
    try:
        answer, calls = counted.during(question.ask, folder, **changes)
    except ValueError as error:
        assert GRAMMAR.match(str(error)), error
        return
    assert calls > 0, f"{changes} was answered from what is kept"
    assert answer == question.ask(fresh, **changes), changes


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * question.slow) for name, question in QUESTIONS.items()]
)
def test_what_is_kept_answers_its_own_question_alone(name, tmp_path, monkeypatch):
    """The same question from disk; no other one, and none of another version of yzflow."""
    question, kept = QUESTIONS[name], tmp_path / "kept"
    kept.mkdir()
    counted = Counted(monkeypatch, question.work)
    first, calls = counted.during(question.ask, kept)
    assert calls > 0
    assert counted.during(question.ask, kept) == (first, 0)
    if question.versions:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dynamics.version.__version__", "0.0.1")
            differs(counted, question, shutil.copytree(kept, tmp_path / "older"), tmp_path / "fresh")
    for what, changes in question.others.items():
        differs(counted, question, kept, tmp_path / f"fresh for {what}", **changes)
