"""Sparse averaging, pairs and triples: Sanford, Hsu, Telgarsky, NeurIPS 2023, arXiv 2306.02896, and its slides."""

from __future__ import annotations

from theory.sparse_averaging._register import averaging, matching
from theory.sparse_averaging._register.common import LEVELS

__all__ = ["LEVELS", "NOT_EXAMINED", "STATEMENTS"]

NOT_EXAMINED = (
    "the paper of Sparse averaging itself, of which we have the slides of the talk only: theorems have the numbers"
    " that others quote, and what is called printed is what the slides print."
)

STATEMENTS = (*averaging.STATEMENTS, *matching.STATEMENTS)
