"""The explorer's panel of bounded Dyck languages: what matched pairs do to a layer on and off balance."""

from yzflow.pages.explorer.registry import Panel
from yzflow.papers.bounded_dyck.panel.data import collect
from yzflow.papers.bounded_dyck.panel.presets import PRESETS


def _plots() -> dict[str, dict]:
    from yzflow.papers.bounded_dyck.panel.plots import items  # needs bokeh

    return items()


PANEL = Panel("dyck", "Brackets and balance", 2, __name__, PRESETS, collect, _plots)
