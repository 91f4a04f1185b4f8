"""The explorer's panels of Scan and Snap."""

from yzflow.papers.scan_and_snap import own_panel, panel

PANELS = (panel.PANEL, own_panel.PANEL)
