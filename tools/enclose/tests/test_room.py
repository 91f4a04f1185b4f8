"""The modules that the core asks this distribution for, by name, are here."""

import pytest
from yzflow_enclose import Enclosure, enclose_flow
from yzflow_enclose.verifier import verify

from dynamics import SequenceClasses
from dynamics.support import origins, sealed
from theory.papers import papers
from theory.statements import Check, Enclosing
from yzflow import cli


def test_every_claim_that_a_check_names_is_its_papers():
    named = 0
    for paper in papers().values():
        for statement in paper.statements:
            for check in statement.checks:
                if isinstance(check.claim, str):
                    assert callable(paper.enclosing.claim_of(check)), (statement.id, check.claim)
                    named += 1
    assert named >= 20


def test_a_claim_that_a_paper_has_not_is_refused():
    check = Check("leads", ("flow",), lambda runs, level: 0.0, claim="lead")
    enclosing = Enclosing(("flow",), lambda *_, **__: None, claims={"leads": lambda *_: None})
    with pytest.raises(ValueError, match="`claim` must be"):
        enclosing.claim_of(check)


def test_kinds_and_commands_are_found():
    assert {"yzflow-certificate-2", "yzflow-cell-3"} <= set(sealed.kinds()) - set(sealed.KINDS)
    assert {"manifest", "verify"} <= set(cli._added())


def test_a_certificate_says_by_whose_code_it_was_made(tmp_path):
    classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
    enclose_flow(classes, eta_y=1.0, eta_z=0.5, t_end=0.5, bits=40).save(tmp_path / "flow.npz")
    (code,) = origins.read_outside(Enclosure.load(tmp_path / "flow.npz").environment["code"])
    assert code == origins.code_of("yzflow_enclose") and code.whose == "yzflow-enclose" and code.sha256
    assert verify.check(str(tmp_path / "flow.npz"))
