"""Sparse averaging, pairs and triples (Sanford, Hsu and Telgarsky 2023): settings, sliders, panel, questions."""

from yzflow.paper import Paper, later

PAPER = Paper(
    name="Sparse averaging",
    slug="sparse_averaging",
    reference="Sanford, Hsu and Telgarsky (2023), arXiv 2306.02896",
    levels=later("theory.sparse_averaging.statements:LEVELS"),
    statements=later("theory.sparse_averaging.statements:STATEMENTS"),
    settings=later("yzflow.papers.sparse_averaging.settings:settings"),
    source=later("theory.sparse_averaging.statements:SOURCE"),
    proofs=later("theory.sparse_averaging.proofs:derive"),
    views=later("yzflow.papers.sparse_averaging.views:VIEWS"),
    panels=later("yzflow.papers.sparse_averaging.panel:PANELS"),
    questions=later("yzflow.papers.sparse_averaging.questions:QUESTIONS"),
    not_examined=later("theory.sparse_averaging.statements:NOT_EXAMINED"),
)
