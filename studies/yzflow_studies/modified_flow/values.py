"""How far the modified flow of Lemma 3 is from the theory, by the ratio of the rates."""

from collections.abc import Sequence

from dynamics import gradient_flow
from theory.values import Study
from yzflow.papers.scan_and_snap.settings import single_common_token


def differences(k: int, m: int, rho: float, eta_y: float, ratios: Sequence[float], t: float) -> dict:
    """Relative difference of the final logits, and how much a tenth of eta_Z changes it."""
    classes = single_common_token(k, m, rho)
    distinct = int(classes.distinct_tokens(0)[0])
    rows = []
    for ratio in ratios:
        options = {"eta_y": eta_y, "eta_z": ratio * eta_y, "t_end": t, "rtol": 1e-11, "atol": 1e-18}
        modified, theory = (
            gradient_flow(classes, decoder=name, **options).final.Z[0] for name in ("modified", "theory")
        )
        off = modified / theory - 1
        rows.append({"ratio": ratio, "common": off[0], "distinct": off[distinct]})
    last, before = rows[-1], rows[-2]
    return {"rows": rows, "tenth": {name: last[name] / before[name] for name in ("common", "distinct")}}


STUDIES = (
    Study(
        "differences",
        differences,
        {"k": 10, "m": 1000, "rho": 0.01, "eta_y": 1.0, "ratios": [1e-1, 1e-2, 1e-3, 1e-4], "t": 700.0},
        ("overlap below 1/(K (K - 1)), the upper half of Assumption 2",),
    ),
)
