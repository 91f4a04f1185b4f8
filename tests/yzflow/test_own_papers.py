"""The core's own paper passes what `yzflow.testing` asks of any paper, by the same call."""

import pytest
from driving import ROOT
from proving import Proofs

from theory.papers import papers

PAPER = papers()["scan_and_snap"]
# Left to other tests of ours: proofs and mistakes `tests/theory/scan_and_snap/test_proofs.py`, as in the distribution
# that adds proofs to the paper, figures those of the paper, audits and pages of all statements `test_audit.py` and
# `test_statement_pages.py`.
ELSEWHERE = ("proof: ", "mistake: ", "every proof has a mistake", "figure: ", "checks: ", "page: ")
PROOFS = Proofs(PAPER, ROOT / "tests" / "theory" / PAPER.slug)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(PROOFS.cases(*ELSEWHERE)))
def test_our_own_paper_passes(case):
    case()
