"""Plots with sliders on the pages of JoMA's statements; the page computes the reduced flows."""

from yzflow.pages.live import Start, Views
from yzflow_joma.settings import PAPER


def _mu(*values: float) -> dict[str, float]:
    return {f"mu{i}": value for i, value in enumerate(values, 1)} | {"end": 30.0}


VIEWS = Views(
    paper=PAPER,
    scripts=((__package__ or "yzflow_joma", "views.js"),),
    views={"First sparse, then dense": "turning", "Linear activation": "blowUp", "Nonlinear activation": "ratio"},
    starts={
        "turning": (
            Start(
                "Four entries of all sizes",
                "Sparsest while the largest is there alone.",
                _mu(3, 2, 1, 0.5),
            ),
            Start("One salient entry", "The others are alike, and come late.", _mu(2, 1, 1, 1)),
            Start("Alike, beside a zero", "It never turns: attention only leaves the zero.", _mu(2, 2, 2, 0)),
        ),
        "blowUp": (
            Start("Three entries", "The largest takes all.", {"d1": 1.0, "d2": 0.6, "d3": 0.3}),
            Start(
                "Two that are near",
                "The second stays far behind.",
                {"d1": 1.0, "d2": 0.95, "d3": 0.3},
            ),
        ),
        "ratio": (
            Start("Twice as large", "The limit is far from where it begins.", {"mu1": 2.0, "mu2": 1.0, "end": 30.0}),
            Start("Nearly alike", "The limit is near one.", {"mu1": 1.1, "mu2": 1.0, "end": 30.0}),
        ),
    },
    collect=lambda view, start: {"runs": None},
)
