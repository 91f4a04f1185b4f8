"""The explorer's panel of bounded Dyck languages: what matched pairs do to a layer on and off balance."""

from yzflow.pages.explorer.registry import Panel
from yzflow_bounded_dyck.panel.data import collect
from yzflow_bounded_dyck.panel.presets import PRESETS

PANELS = (Panel("dyck", "Brackets and balance", 2, __name__, PRESETS, collect),)
