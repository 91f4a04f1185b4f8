"""Bounded Dyck languages and balance: Wen, Li, Liu, Risteski (NeurIPS 2023), arXiv 2312.01429.

`dyck` is the language, `languages` and `loops` are about others. `from_tokens` is an exact transformer; `models` and
`outputs` measure any other model. `balance`, `silence`, `approximate`, `hypotheses`, `heads`, `smoothing` and `gpt` are
Theorems 1 and 2 on layers, `pruning`, `lottery`, `bounds`, `widths`, `interpolating`, `subset_law`, `larger` and
`transformers` Theorem 3 on random networks. `training`, `settings` and `tasks` train layers. `statements`, `proofs` and
`measures` state, prove and check the claims; `views`, `panel` and `questions` show it on pages.
"""

import lazy_loader

from yzflow.paper import Paper, later

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

PAPER = Paper(
    name="Bounded Dyck",
    slug="bounded_dyck",
    reference="Wen, Li, Liu and Risteski (2023), arXiv 2312.01429",
    levels=later("yzflow_bounded_dyck.statements:LEVELS"),
    statements=later("yzflow_bounded_dyck.statements:STATEMENTS"),
    settings=later("yzflow_bounded_dyck.settings:settings"),
    own=later("yzflow_bounded_dyck.settings:own"),
    columns=later("yzflow_bounded_dyck.statements:COLUMNS"),
    proofs=later("yzflow_bounded_dyck.proofs:derive"),
    tasks=later("yzflow_bounded_dyck.tasks:TASKS"),
    views=later("yzflow_bounded_dyck.views:VIEWS"),
    panels=later("yzflow_bounded_dyck.panel:PANELS"),
    questions=later("yzflow_bounded_dyck.questions:QUESTIONS"),
    not_examined=later("yzflow_bounded_dyck.statements:NOT_EXAMINED"),
)
