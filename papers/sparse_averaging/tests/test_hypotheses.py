"""The register has the hypotheses of the slides' statements and of ours, and the runs satisfy them."""

import dataclasses
import runpy
from pathlib import Path

import pytest
from yzflow_sparse_averaging.settings import settings

from theory.statements import REGISTER, Assumption

TABLE = runpy.run_path(str(Path(__file__).parent / "hypotheses.py"))
ROWS = [*TABLE["GIVEN"], *TABLE["NOT_GIVEN"]]
PAPER = "Sparse averaging: "


def missing(statement, where, words):
    """Whether a statement does not say so."""
    assumed = [text for texts in statement.assumes.values() for text in texts]
    said = [
        statement.text,
        statement.title,
        statement.printed,
        *statement.errata,
        *(c.formula for c in statement.clauses),
    ]
    return not any(words in text for text in (assumed if where == TABLE["ASSUMED"] else said))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_the_register_has_each_hypothesis(row):
    number, _, where, words = row
    assert not missing(REGISTER[PAPER + number], where, words)


def without(statement, assumption):
    """The statement with one assumption dropped."""
    clauses = tuple(
        dataclasses.replace(clause, assumptions=tuple(one for one in clause.assumptions if one != assumption))
        for clause in statement.clauses
    )
    kept = tuple(one for one in statement.assumptions if one != assumption)
    if statement.prove is not None:
        return dataclasses.replace(statement, assumptions=kept)
    return dataclasses.replace(statement, assumptions=kept, clauses=clauses, checks=(), argued=(), not_examined=())


def test_no_assumption_can_be_dropped_unseen():
    for statement in (one for one in REGISTER.values() if one.paper == "Sparse averaging"):
        of_all = {*statement.assumptions, *(one for clause in statement.clauses for one in clause.assumptions)}
        assert all(isinstance(one, Assumption) for one in of_all)
        rows = [(where, words) for number, _, where, words in ROWS if PAPER + number == statement.id]
        for one in of_all:
            seen = [missing(without(statement, one), where, words) for where, words in rows]
            assert any(seen), f"{statement.id} without {one.text!r}"


@pytest.mark.parametrize("quick", [True, False])
def test_all_settings_are_inside_all_assumptions(quick):
    for setting in settings(quick=quick):
        for statement in (one for one in REGISTER.values() if one.paper == "Sparse averaging"):
            for check in statement.checks:
                assert all(margin >= 1 for margin in statement.margins(setting, check).values()), (statement.id, check)


def test_margins_are_of_the_sizes_that_are_run():
    margins = {one.text: one.margin for one in (*REGISTER[PAPER + "Fully connected"].clauses[0].assumptions,
                                                *REGISTER[PAPER + "Recurrent"].assumptions)}  # fmt: skip
    setting = settings(quick=True)[0]
    beyond = dataclasses.replace(setting, subset_size=21)
    assert margins["q <= N/2"](setting) == 40 / 6 and margins["q <= N/2"](beyond) < 1
    assert margins["q < N"](setting) == 13 and margins["q < N"](dataclasses.replace(setting, subset_size=40)) < 1
