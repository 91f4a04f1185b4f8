"""The explorer's panel of sparse averaging: one attention unit with random keys."""

from yzflow.pages.explorer.registry import Panel
from yzflow_sparse_averaging.panel.data import collect
from yzflow_sparse_averaging.panel.presets import PRESETS

PANELS = (Panel("averaging", "Sparse averaging", 3, __name__, PRESETS, collect),)
