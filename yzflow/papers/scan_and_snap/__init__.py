"""Scan and Snap (Tian, Wang, Chen and Du 2023): settings, experiments, tasks of sweeps, figures."""

from yzflow.paper import Paper, later

PAPER = Paper(
    name="Scan and Snap",
    slug="scan_and_snap",
    reference="Tian, Wang, Chen and Du (2023), arXiv 2305.16380",
    levels=later("theory.scan_and_snap.statements:LEVELS"),
    statements=later("theory.scan_and_snap.statements:STATEMENTS"),
    settings=later("yzflow.papers.scan_and_snap.settings:settings"),
    columns=later("theory.scan_and_snap.statements:COLUMNS"),
    proofs=later("theory.scan_and_snap.proofs:derive"),
    figures=later("yzflow.papers.scan_and_snap.figures:FIGURES"),
    tasks=later("yzflow.papers.scan_and_snap.tasks:TASKS"),
    survival=later("yzflow.papers.scan_and_snap.survival:ROOM"),
    enclosing=later("yzflow_enclose.scan_and_snap.enclosed:ENCLOSING"),
    drawing=later("yzflow.papers.scan_and_snap.drawing:draw"),
    tried=later("yzflow.papers.scan_and_snap.tried:TRIED"),
    own=later("yzflow.papers.scan_and_snap.settings:own"),
    watched=later("yzflow_watch.scan_and_snap.watched:place"),
    rivals=later("yzflow_watch.scan_and_snap.rivals:RIVALS"),
    views=later("yzflow.papers.scan_and_snap.views:VIEWS"),
    panels=later("yzflow.papers.scan_and_snap.panels:PANELS"),
    questions=later("yzflow.papers.scan_and_snap.questions:QUESTIONS"),
)
