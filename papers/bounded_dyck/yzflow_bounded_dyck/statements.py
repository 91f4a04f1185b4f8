"""Bounded Dyck grammars: Wen, Li, Liu, Risteski, NeurIPS 2023, arXiv 2312.01429."""

from __future__ import annotations

from yzflow_bounded_dyck._register import approximate, balance, heads, models, pruning
from yzflow_bounded_dyck._register.common import COLUMNS, LEVELS

__all__ = ["COLUMNS", "LEVELS", "NOT_EXAMINED", "STATEMENTS"]

NOT_EXAMINED = (
    "the wording of the lemmas behind Theorems 1 and 3 of Bounded Dyck (Lemmas 3 to 20), whose formulas our text of "
    "the paper lacks: they are stated and derived anew, with constants of our own, but for Lemma 20."
)

STATEMENTS = (
    *balance.STATEMENTS,
    *approximate.STATEMENTS,
    *balance.HEADS,
    *pruning.STATEMENTS,
    *balance.ATTENTION,
    *heads.STATEMENTS,
    *models.STATEMENTS,
)
