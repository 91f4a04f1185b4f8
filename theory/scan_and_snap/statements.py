"""Scan and Snap: Tian, Wang, Chen, Du, NeurIPS 2023, arXiv 2305.16380."""

from __future__ import annotations

from theory.scan_and_snap._register import around, assumptions, attention, classes, decoder, transition, visits
from theory.scan_and_snap._register.common import COLUMNS, FLOWS, LEVELS

__all__ = ["COLUMNS", "FLOWS", "LEVELS", "STATEMENTS", "assumptions"]

STATEMENTS = (
    *decoder.STATEMENTS,
    *visits.STATEMENTS,
    *classes.STATEMENTS,
    *attention.STATEMENTS,
    *transition.STATEMENTS,
    *around.STATEMENTS,
)
