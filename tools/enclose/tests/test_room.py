"""What the core asks of this distribution by name is here."""

import pytest

from dynamics.support import sealed
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
