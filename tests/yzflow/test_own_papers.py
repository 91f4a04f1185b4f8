"""Our own papers pass what `yzflow.testing` asks of any paper, by the same call."""

import runpy

import pytest
from driving import ROOT

from theory.papers import built_in
from yzflow.testing import check_paper

# Left to other tests of ours: proofs and mistakes `tests/theory/test_symbolic.py`, figures those of each paper.
ELSEWHERE = ("proof: ", "mistake: ", "figure: ")
# Audits and pages of all statements `test_audit.py` and `test_statement_pages.py`; those of one paper are here, too.
AUDITED = ("checks: ", "page: ")
SMALLEST = "sparse_averaging"


def _cases():
    for paper in built_in():
        given = runpy.run_path(str(ROOT / "tests" / "theory" / paper.slug / "mistakes.py"))["MISTAKES"]
        mistakes = {name: (module.derive, claims, start) for name, (module, claims, start) in given.items()}
        left_out = ELSEWHERE if paper.slug == SMALLEST else (*ELSEWHERE, *AUDITED)
        for one in check_paper(paper, mistakes=mistakes):
            (case,) = one.values
            if not case.name.startswith(left_out):
                yield pytest.param(case, id=f"{paper.slug}: {case.name}")


@pytest.mark.slow
@pytest.mark.parametrize("case", list(_cases()))
def test_our_own_papers_pass(case):
    case()


def test_a_paper_of_ours_with_a_fault_does_not_pass():
    """One whose proofs have no mistakes beside them."""
    paper = next(one for one in built_in() if one.slug == SMALLEST)
    (without,) = (one.values[0] for one in check_paper(paper, mistakes={}) if one.id == "every proof has a mistake")
    with pytest.raises(AssertionError, match="nothing shows that these proofs can fail"):
        without()
