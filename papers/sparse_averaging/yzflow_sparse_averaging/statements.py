"""Sparse averaging, pairs and triples: Sanford, Hsu, Telgarsky, NeurIPS 2023, arXiv 2306.02896, and its slides."""

from __future__ import annotations

from theory.statements import Source
from yzflow_sparse_averaging._register import averaging, ball, faces, matching, strict
from yzflow_sparse_averaging._register.common import LEVELS

__all__ = ["LEVELS", "NOT_EXAMINED", "SOURCE", "STATEMENTS"]

SOURCE = Source("as in the talk's slides", "slides' form")

NOT_EXAMINED = (
    "the paper of Sparse averaging itself, of which we have the slides of the talk only: theorems have the numbers"
    " that others quote, and formulas stand here as in the slides."
)

STATEMENTS = (*averaging.STATEMENTS, *faces.STATEMENTS, *ball.STATEMENTS, *matching.STATEMENTS, *strict.STATEMENTS)
