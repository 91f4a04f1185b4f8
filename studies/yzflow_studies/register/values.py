"""Counts of the statements of our own papers by what they rest on."""

from theory import papers
from theory.values import Study
from yzflow.audits.audit import AuditReport, prove


def counts() -> dict:
    """How many statements and clauses there are, how many have proofs of which reach, and whether all proofs hold."""
    register = tuple(one for paper in papers.built_in() for one in paper.statements)
    report = AuditReport([], register, {one.id: prove(one) for one in register if one.proofs})
    return {**report.counts(), "hold": report.passed}


STUDIES = (Study("counts", counts, quick=False),)
