"""Sparse averaging, pairs and triples: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896.

`instances` has the tasks, `attention_unit` the units, layers and transformers. `averaging` has all constructions and
bounds for users. `keys`, `moments`, `precision` and `constructed_units` average. `matching`, `windows`, `groups`,
`sorted_groups`, `power_sums`, `strict`, `transform`, `circuits` and `attention_only` find pairs and triples; `sizes`
computes their sizes. `protocols`, `recurrent` and `other_architectures` are executable lower bounds. `trained` has a
trained unit. `statements`, `proofs` and `measures` state, prove and check the claims; `views`, `panel` and `questions`
show them on pages.
"""

import lazy_loader

from yzflow.paper import Paper, later

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

PAPER = Paper(
    name="Sparse averaging",
    slug="sparse_averaging",
    reference="Sanford, Hsu and Telgarsky (2023), arXiv 2306.02896",
    levels=later("yzflow_sparse_averaging.statements:LEVELS"),
    statements=later("yzflow_sparse_averaging.statements:STATEMENTS"),
    settings=later("yzflow_sparse_averaging.settings:settings"),
    source=later("yzflow_sparse_averaging.statements:SOURCE"),
    proofs=later("yzflow_sparse_averaging.proofs:derive"),
    views=later("yzflow_sparse_averaging.views:VIEWS"),
    panels=later("yzflow_sparse_averaging.panel:PANELS"),
    questions=later("yzflow_sparse_averaging.questions:QUESTIONS"),
    not_examined=later("yzflow_sparse_averaging.statements:NOT_EXAMINED"),
)
