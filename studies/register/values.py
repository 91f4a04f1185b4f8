"""What the register's statements rest on, counted."""

from theory import statements
from theory.values import Study
from yzflow.audits.audit import AuditReport, prove


def counts() -> dict:
    """How many statements and clauses there are, how many have proofs of which reach, and whether all proofs hold."""
    register, done = tuple(statements.REGISTER.values()), {}
    report = AuditReport([], register, {one.id: prove(one, done) for one in register if one.proofs})
    return {**report.counts(), "hold": report.passed}


STUDIES = (Study("counts", counts, quick=False),)
