"""The explorer's panel for a reader's own classes: a table to edit, and the flow of it."""

from yzflow.pages.explorer.registry import Panel
from yzflow.papers.scan_and_snap.own_panel.data import collect, opened
from yzflow.papers.scan_and_snap.own_panel.presets import PRESETS

SCRIPTS = ("mathematics.js", "table.js", "panel.js")
PANEL = Panel("own", "Your data", 4, __name__, PRESETS, collect, SCRIPTS, opens=opened)
