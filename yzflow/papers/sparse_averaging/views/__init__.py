"""What pages of sparse averaging show with sliders: the bits that constructions have and the lower bound asks for."""

from yzflow.pages.live import Start, Views
from yzflow.papers.sparse_averaging.settings import PAPER

_STARTS = (
    Start("A thousand tokens, 16 bits", "Half precision.", {"N": 1000, "p": 16, "d": 1}),
    Start("A million tokens, 8 bits", "A long context in small numbers.", {"N": 1000000, "p": 8, "d": 1}),
    Start(
        "Values of 64 dimensions",
        "A head of usual width: its values alone carry 1024 bits.",
        {"N": 100000, "p": 16, "d": 64},
    ),
)
VIEWS = Views(
    paper=PAPER,
    scripts=((__name__, "views.js"),),
    views={"Theorem 2": "widths", "Theorem 2, exact": "widths", "Theorem 4": "widths"},
    starts={None: _STARTS},
    collect=lambda view, start: {"seeds": 0, "runs": None},
)
