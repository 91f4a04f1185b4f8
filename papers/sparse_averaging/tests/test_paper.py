"""The paper passes what `yzflow.testing` asks of any paper, its proofs hold, and each refutes its mistakes."""

from pathlib import Path

import pytest
import sympy as sp
from proving import Proofs
from yzflow_sparse_averaging import PAPER

PROOFS = Proofs(PAPER, Path(__file__).parent)
# Proofs and mistakes have tests of their own here, and audits in `test_statements.py`; pages are those of all papers.
ELSEWHERE = ("proof: ", "mistake: ", "figure: ", "checks: ", "page: ")
# Inequalities that would also hold if they said less, or more: values of their symbols, and what is left, by hand.
SAID = [
    ("match3", "more weight on ones, smaller share of blanks", {"k": 0}, 0),
    # One token that agrees of two, M = 2: relative errors of 1/128, a leak of 1/32, rounding to 1/2.
    (
        "sorted_groups",
        "a residue of zero, too large by less than 1/2",
        {"n": 0, "h": 0, "r": 1, "e": 0},
        sp.Rational(1, 4) - sp.Rational(129, 127 * 33),
    ),
    # One group, of four tokens at most.
    ("sorted_groups", "sizes: groups have at most G + 3 tokens", {}, 0),
]


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
