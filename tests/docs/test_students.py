"""The lesson's notebook for students: every question, no solution, from the page that the teacher has."""

import importlib.util
import re

import pytest
from driving import ROOT

from yzflow.papers.scan_and_snap import flagship
from yzflow.papers.scan_and_snap.panel.presets import PRESETS

LESSON = (ROOT / "docs" / "lesson.md").read_text(encoding="utf-8")


@pytest.fixture
def notebooks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    import notebooks

    return notebooks


def test_students_get_every_question_and_no_solution(notebooks):
    cells = notebooks.as_notebook(notebooks.without_solutions(LESSON))["cells"]
    text = "\n".join(cell["source"] for cell in cells)
    questions = re.findall(r"^## Question \d\n\n(.*?)\n\n<details>", LESSON, flags=re.MULTILINE | re.DOTALL)
    assert len(questions) == 5 and all(question in text for question in questions)
    folded = re.findall(r"<details.*?</details>", LESSON, flags=re.DOTALL)
    lines = {line for part in folded for line in part.splitlines() if len(line) > 20}
    assert len(lines) > 60 and not [line for line in lines if line in text]
    assert [cell["source"] for cell in cells if cell["cell_type"] == "code"][1:] == ["# Your answer"] * 5


def test_the_lesson_is_about_the_explorers_contrast():
    """So the sheet has the numbers of the wall."""
    assert "setting = flagship.contrast()\n" in LESSON and "SequenceClasses(" not in LESSON
    shown = flagship.explorer(flagship.contrast())
    assert PRESETS[0].name.startswith("Contrast") and PRESETS[0].setting.items() >= shown.items()


@pytest.mark.slow
def test_the_students_notebook_runs_from_end_to_end(notebooks, tmp_path):
    if importlib.util.find_spec("nbclient") is None:
        pytest.skip("needs nbclient: pip install 'yzflow[docs]'")
    import nbformat
    from nbclient import NotebookClient

    own = nbformat.read(notebooks.for_students(tmp_path), as_version=4)
    NotebookClient(own, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in own.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, 7))
    assert "10 next tokens of 1000" in code[0].outputs[0]["text"]
