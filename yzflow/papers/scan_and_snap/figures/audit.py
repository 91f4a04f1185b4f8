"""The picture of one statement's audit."""

from __future__ import annotations

from yzflow.audits.audit import AuditReport, audit
from yzflow.audits.plots import audit_errors
from yzflow.figures.registry import Effort, Entry
from yzflow.papers.scan_and_snap.settings import PAPER


def _one_statement(effort: Effort) -> AuditReport:
    return audit([f"{PAPER}: Theorem 3"], quick=effort.quick, progress=effort.progress)


FIGURES = (Entry("audit_errors", PAPER, audit_errors, _one_statement),)
