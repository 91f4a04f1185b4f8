"""How many tokens look distinct in a small data set only, and how much attention they get."""

from collections.abc import Sequence

import numpy as np

from theory.values import Study
from yzflow_studies.spurious_tokens import study as spurious


def data_sets(
    k: int, n_tokens: int, m: int, eta_y: float, eta_z: float, t: float, sizes: Sequence[int], seeds: int
) -> dict:
    """Counted in trained data sets and expected, by the number of contextual tokens of each class."""
    found = spurious.suppression(
        tokens_per_class=sizes,
        seeds=seeds,
        n_classes=k,
        n_tokens=n_tokens,
        vocab_size=m,
        eta_y=eta_y,
        eta_z=eta_z,
        t_end=t,
    )
    rows = []
    for n in sizes:
        at = found.sel(tokens_per_class=n)
        rows.append(
            {
                "n": n,
                "number": float(at["number"].mean()),
                "expected_number": float(at["expected_number"]),
                "end": float(at["end"].mean()),
                "expected_end": float(at["expected_end"]),
            }
        )
    risen = found["risen"].values[found["number"].values > 0]
    common = spurious.zipf_common(n_tokens)
    return {
        "rows": rows,
        "rose": risen.mean(),
        "all_rose": bool((risen == 1).all()),
        "falls": bool((np.diff(found["end"].mean("seed")) < 0).all()),
        "number_grows": bool(rows[1]["number"] > rows[0]["number"]),
        "lift": found.attrs["lift"],
        "share": common.sum(),
        "rarest": 1 / common.min(),
    }


STUDIES = (
    Study(
        "data_sets",
        data_sets,
        {
            "k": 4,
            "n_tokens": 200,
            "m": 50,
            "eta_y": 1.0,
            "eta_z": 1.0,
            "t": 200.0,
            "sizes": [30, 100, 300, 1000, 3000],
            "seeds": 8,
        },
        tolerance=1e-3,
    ),
)
