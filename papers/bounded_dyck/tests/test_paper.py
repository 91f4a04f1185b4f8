"""The paper passes what `yzflow.testing` asks of any paper, its proofs hold, and each refutes its mistakes."""

from pathlib import Path

import pytest
from proving import Proofs
from yzflow_bounded_dyck import PAPER

PROOFS = Proofs(PAPER, Path(__file__).parent)
# Proofs and mistakes have tests of their own here; audits and pages are those of all papers.
ELSEWHERE = ("proof: ", "mistake: ", "figure: ", "checks: ", "page: ")
# An inequality that would also hold if it said less, or more: values of its symbols, and what is left there, by hand.
SAID = [("theorem1", "unequal differences leave something", {"g": 0}, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("case", list(PROOFS.cases(*ELSEWHERE)))
def test_the_paper_passes(case):
    case()


@pytest.mark.parametrize("name", PROOFS.modules)
def test_derivation_holds(name):
    PROOFS.check_holds(name)


@pytest.mark.parametrize("mistake", PROOFS.chosen())
def test_a_wrong_claim_fails(mistake):
    PROOFS.check_refutes(mistake)


def test_every_module_has_a_mistake():
    PROOFS.check_all_have_mistakes()


@pytest.mark.parametrize(("module", "name", "values", "left"), SAID)
def test_inequalities_say_no_less_than_they_should(module, name, values, left):
    PROOFS.check_says(module, name, values, left)
