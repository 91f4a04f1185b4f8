"""Bounded Dyck languages (Wen, Li, Liu and Risteski 2023): settings, tasks of sweeps, sliders, panel, questions."""

from yzflow.paper import Paper, later

PAPER = Paper(
    name="Bounded Dyck",
    slug="bounded_dyck",
    reference="Wen, Li, Liu and Risteski (2023), arXiv 2312.01429",
    levels=later("theory.bounded_dyck.statements:LEVELS"),
    statements=later("theory.bounded_dyck.statements:STATEMENTS"),
    settings=later("yzflow.papers.bounded_dyck.settings:settings"),
    columns=later("theory.bounded_dyck.statements:COLUMNS"),
    proofs=later("theory.bounded_dyck.proofs:derive"),
    tasks=later("yzflow.papers.bounded_dyck.tasks:TASKS"),
    views=later("yzflow.papers.bounded_dyck.views:VIEWS"),
    panels=later("yzflow.papers.bounded_dyck.panel:PANELS"),
    questions=later("yzflow.papers.bounded_dyck.questions:QUESTIONS"),
    not_examined=later("theory.bounded_dyck.statements:NOT_EXAMINED"),
)
