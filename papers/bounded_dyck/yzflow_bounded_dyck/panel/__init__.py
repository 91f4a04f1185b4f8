"""The explorer's panel of bounded Dyck languages: the effect of matched pairs on balanced and unbalanced layers."""

from yzflow.pages.explorer.registry import Panel
from yzflow_bounded_dyck.panel.data import collect
from yzflow_bounded_dyck.panel.presets import PRESETS

PANELS = (Panel("dyck", "Brackets and balance", 2, __name__, PRESETS, collect),)
