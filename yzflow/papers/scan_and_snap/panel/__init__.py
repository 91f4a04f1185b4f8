"""The explorer's panel of Scan and Snap: how attention moves, by the closed form, three flows and SGD."""

from yzflow.pages.explorer.registry import Panel
from yzflow.papers.scan_and_snap.panel.data import collect
from yzflow.papers.scan_and_snap.panel.presets import PRESETS

SCRIPTS = ("formulas.py", "mathematics.js", "levels.js", "panel.js")
PANEL = Panel("transition", "Scan and snap", 1, __name__, PRESETS, collect, SCRIPTS)
