"""Where the full flow's lead is proved never to shrink, and where Theorem 2 is: single settings, and cells of them."""

from collections.abc import Sequence

import numpy as np

from theory.values import Study
from yzflow_studies.certified_leads.cells import CLAIMS, Plane, certified_cells
from yzflow_studies.certified_leads.cells import shares as areas
from yzflow_studies.certified_leads.lattice import FALSE, TRUE, certified

LEAD, THEOREM2 = CLAIMS


def lattice(
    n: int, first: float, last: float, low: float, high: float, large: float, distinct: Sequence[float], t: float
) -> dict:
    """Single settings: from which eta_Z/eta_Y on the lead shrinks at every overlap, and at ``large`` ones."""
    found = certified(np.linspace(first, last, n), np.geomspace(low, high, n), t_end=t)
    rows = []
    for i in range(found.sizes["sizes"]):
        lead = found["value"].isel(claim=0, sizes=i)
        # Of each overlap, the least ratio at which the lead is refuted.
        least = found["ratio"].where(lead == FALSE).min("ratio")
        rows.append(
            {
                "sizes": str(found["sizes"].values[i]),
                "from": float(least.max()),
                "below": bool(((lead == TRUE) | (found["ratio"] >= least)).all()),
            }
        )
        # Of the last sizes.
        at_large = float(least.where(least["overlap"] > large - 1e-9).max())
    return {
        "rows": rows,
        "at_large": at_large,
        "each": int(lead.size),
        "settings": int(found["value"].isel(claim=1).size),
        "theorem2": int((found["value"].isel(claim=1) == TRUE).sum()),
    }


def cells(planes: Sequence[dict], t: float) -> dict:
    """Every setting of a cell: shares of the area that are proved, false and open, and ratios true for all overlaps."""
    found = certified_cells(
        [
            Plane(one["k"], one["m"], tuple(one["overlaps"]), tuple(2.0**k for k in one["log2_ratios"]), one["levels"])
            for one in planes
        ],
        t_end=t,
    )
    rows = []
    for one in planes:
        sizes = f"K = {one['k']}, M = {one['m']}"
        row: dict = {"k": one["k"], "m": one["m"], "first": one["overlaps"][0], "last": one["overlaps"][-1]}
        row |= {"low": 2.0 ** one["log2_ratios"][0], "high": 2.0 ** one["log2_ratios"][-1]}
        for name, claim in (("lead", LEAD), ("theorem2", THEOREM2)):
            part = areas(found, claim, sizes)
            row |= {f"{name}_true": part[TRUE], f"{name}_false": part[FALSE]}
            row[f"{name}_open"] = 1 - part[TRUE] - part[FALSE]
        lead = found.isel(cell=np.flatnonzero((found["claim"] == LEAD) & (found["sizes"] == sizes)))
        row["grows_to"] = min([row["high"], *lead["low"].values[lead["value"].values != TRUE].tolist()])
        row["shrinks_from"] = max([row["low"], *lead["high"].values[lead["value"].values != FALSE].tolist()])
        rows.append(row)
    return {"rows": rows}


STUDIES = (
    Study(
        "lattice",
        lattice,
        {
            "n": 8,
            "first": 0.1,
            "last": 0.8,
            "low": 0.03125,
            "high": 4.0,
            "large": 0.6,
            "distinct": [2.0, 1.0],
            "t": 1e4,
        },
        quick=False,
    ),
    Study(
        "cells",
        cells,
        {
            "planes": [
                {
                    "k": 2,
                    "m": 2,
                    "overlaps": [0.2, 0.3, 0.4, 0.5, 0.6],
                    "log2_ratios": [-3.0, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5],
                    "levels": 1,
                },
                {
                    "k": 3,
                    "m": 50,
                    "overlaps": [0.3, 0.35],
                    "log2_ratios": [-4.0, -3.75, -3.5, -3.25, -3.0, -2.75, -2.5, -2.25, -2.0],
                    "levels": 1,
                },
            ],
            "t": 1000.0,
        },
        quick=False,
    ),
)
