"""Questions that files of this distribution's kinds answer; see `answered` of the shared tests."""

from answered import OTHER_DATA, Question, bags
from yzflow_enclose.cells import Cell
from yzflow_enclose.keeping import kept, kept_cell

from dynamics.support.canonical import canonical


def enclosed(folder, **changes):
    given = {"data": bags(0.5), "eta_y": 1.0, "eta_z": 0.5, "t_end": 0.5, "bits": 60} | changes
    flow = kept(folder, given.pop("data"), **given)
    return canonical(flow.claimed), [(name, flow.arrays()[name].tobytes()) for name in sorted(flow.arrays())]


def signs(folder, **changes):
    cell = {"n_classes": 2, "vocab_size": 2, "distinct": (2.0, 1.0), "eta_y": 1.0, "eta_z": (0.2, 0.21),
            "common": (1.4, 1.45)}  # fmt: skip
    given = {"claims": [(0.0, 1.0, -1.0)], "t_end": 0.5, "degree": 1} | changes
    made = Cell(**{name: given.pop(name, value) for name, value in cell.items()})
    return repr(kept_cell(folder, made, given.pop("claims"), **given))


ANSWERED = {
    "yzflow-certificate-2": {
        "certificate": Question(
            enclosed,
            "yzflow_enclose.keeping:enclose_flow",
            OTHER_DATA | {"a rate": {"eta_z": 0.4}, "bits": {"bits": 70}, "a decoder": {"decoder": "modified"}},
            versions=False,
        )
    },
    "yzflow-cell-3": {
        "cell": Question(
            signs,
            "yzflow_enclose.cells:decide_cell",
            {
                "claims": {"claims": [(0.0, 1.0, 2.0)]},
                "a degree": {"degree": 2},
                "an end": {"t_end": 0.4},
                "rates": {"eta_z": (0.3, 0.31)},
                "weights": {"distinct": (3.0, 1.0)},
            },
            versions=False,
        )
    },
}
