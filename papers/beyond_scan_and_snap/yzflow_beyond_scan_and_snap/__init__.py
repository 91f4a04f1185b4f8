"""Our own theorems on the layer of Scan and Snap; the paper's register lists them as "(not in the paper)".

`statements` has the theorems: the transition's time, the least length at which finite sequences have Theorem 2's signs,
late attention, the true gradient, and closed forms under options of training. `proofs` derives them. `late_attention`,
`late` and `lengths` measure; `views` and `questions` show them on pages.
"""

from yzflow.paper import Paper, later

PAPER = Paper(
    name="Beyond Scan and Snap",
    slug="beyond_scan_and_snap",
    reference="yzflow; on Tian, Wang, Chen and Du (2023), arXiv 2305.16380",
    adds_to="Scan and Snap",
    levels=later("theory.scan_and_snap.statements:LEVELS"),
    statements=later("yzflow_beyond_scan_and_snap.statements:STATEMENTS"),
    proofs=later("yzflow_beyond_scan_and_snap.proofs:derive"),
    views=later("yzflow_beyond_scan_and_snap.views:VIEWS"),
    questions=later("yzflow_beyond_scan_and_snap.questions:QUESTIONS"),
)
