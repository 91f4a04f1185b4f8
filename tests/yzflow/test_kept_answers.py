"""Kept files answer their own question alone: the same one from disk, and another one anew or not at all."""

import importlib
import warnings

import pytest
from answered import all_questions

from dynamics.support import sealed
from yzflow.testing import GRAMMAR

ANSWERED, READ_ALONE = all_questions()
QUESTIONS = {name: question for kind in ANSWERED.values() for name, question in kind.items()}


def of_each(asked):
    """Parameters of a test: names of a question, and what ``asked`` gives of it."""
    slow = {True: [pytest.mark.slow], False: []}
    return [
        pytest.param(name, *more, marks=slow[question.slow], id="-".join([name, *more]))
        for name, question in QUESTIONS.items()
        for more in asked(question)
    ]


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
    """Asks in a folder that holds the answer of another question; nothing old may come."""
    try:
        answer, calls = counted.during(question.ask, folder, **changes)
    except ValueError as error:
        assert GRAMMAR.match(str(error)), error
        return
    assert calls > 0, "it was answered from what is kept"
    assert answer == question.ask(fresh, **changes)


@pytest.mark.parametrize("name", of_each(lambda question: [()]))
def test_the_same_question_is_answered_from_disk(name, tmp_path, monkeypatch):
    question = QUESTIONS[name]
    counted = Counted(monkeypatch, question.work)
    first, calls = counted.during(question.ask, tmp_path)
    assert calls > 0
    assert counted.during(question.ask, tmp_path) == (first, 0)


@pytest.mark.parametrize(("name", "what"), of_each(lambda question: [(what,) for what in question.others]))
def test_another_question_is_not_answered_with_what_is_kept(name, what, tmp_path, monkeypatch):
    question = QUESTIONS[name]
    counted = Counted(monkeypatch, question.work)
    question.ask(tmp_path)
    (tmp_path / "fresh").mkdir()
    differs(counted, question, tmp_path, tmp_path / "fresh", **question.others[what])


@pytest.mark.parametrize("name", of_each(lambda question: [()] * question.versions))
def test_another_version_of_yzflow_does_not_answer(name, tmp_path, monkeypatch):
    question = QUESTIONS[name]
    counted = Counted(monkeypatch, question.work)
    question.ask(tmp_path)
    monkeypatch.setattr("dynamics.version.__version__", "0.0.1")
    (tmp_path / "fresh").mkdir()
    differs(counted, question, tmp_path, tmp_path / "fresh")
