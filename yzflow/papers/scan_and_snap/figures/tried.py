"""The map of worst margins: how near campaigns of the fuzzer came to breaking each statement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from matplotlib.figure import Figure

from dynamics.support import checks
from yzflow.audits.campaign_table import CampaignRow
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import CATEGORIES, canvas, styled
from yzflow.papers.scan_and_snap.settings import PAPER

_FLOOR = 1e-6


@styled
def worst_margins(rows: Sequence[CampaignRow]) -> Figure:
    """Largest share of its tolerance that an error of a statement takes in a campaign of the fuzzer, by level.

    Settings are drawn inside all assumptions, up to their borders. Right of the line at 1 a statement would be broken.
    Shares below 1e-6 are drawn there; inequalities and signs that hold everywhere have the share 0, and are left out.

    Parameters
    ----------
    rows : sequence of yzflow.audits.campaign_table.CampaignRow
        From `yzflow.audits.campaign_table.load`, as ``yzflow fuzz --table`` writes them.
    """
    shown = sorted((row for row in rows if row.share > 0), key=lambda row: row.share)
    if not shown:
        raise checks.reject("rows", "have a campaign in which an error takes a share of its tolerance", len(rows))
    names = list(dict.fromkeys(row.statement.partition(": ")[2] for row in reversed(shown)))[::-1]
    levels = sorted({row.level for row in shown})
    figure = canvas(figsize=(8.0, 1.4 + 0.24 * len(names)))
    axes = figure.subplots()
    for level, (colour, _), marker in zip(levels, cycle(CATEGORIES), cycle("osD^vP"), strict=False):
        own = [row for row in shown if row.level == level]
        places = [names.index(row.statement.partition(": ")[2]) for row in own]
        axes.plot([max(row.share, _FLOOR) for row in own], places, marker, color=colour, markersize=6, label=level)
    axes.axvline(1, color="0.3", linewidth=1)
    axes.set(xscale="log", xlim=(_FLOOR / 2, 4), xlabel="largest error, in tolerances of its check", ylabel="statement")
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    figure.suptitle("How near campaigns came to breaking each statement")
    return figure


def _counts(rows: Sequence[CampaignRow]) -> str:
    """How many campaigns there are, of how many settings, and what they found."""
    broken = sum(row.violations > 0 for row in rows)
    worst = max(rows, key=lambda row: row.share)
    fewest = min(row.examples for row in rows)
    return (
        f"{len(rows)} campaigns of {fewest:,} settings or more; in {broken or 'none'} of them a statement was broken. "
        f"The nearest: {worst.statement.partition(': ')[2]}, {worst.level}, {worst.share:.2g} at {worst.setting}."
    )


def _published(effort: Effort) -> Sequence[CampaignRow]:
    from yzflow.papers.scan_and_snap.tried import TRIED

    return TRIED


FIGURES = (Entry("worst_margins", PAPER, worst_margins, _published, claims=_counts),)

# <!-- numbers
# typed: 1e-6 (end of the axis, in the code of the figure)
# -->
