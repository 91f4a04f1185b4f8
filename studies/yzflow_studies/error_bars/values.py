"""How often intervals over seeds hold the truth: ranges from the benchmark's file, and the tails of its populations."""

import json
from collections.abc import Sequence

import numpy as np

from benchmarks.error_bars import populations
from theory.values import Study
from yzflow.intervals import factor
from yzflow_studies import CLONE

TABLE = CLONE / "docs" / "benchmarks" / "error_bars.json"


def reach(rows: Sequence[dict], name: str) -> dict:
    """Smallest and largest share of the replicates whose interval holds the truth, and the mean."""
    shares = [row[name] for row in rows]
    return {"low": min(shares), "high": max(shares), "mean": float(np.mean(shares))}


def shares(low: float, high: float, far_rows: Sequence[str], mild_rows: Sequence[str]) -> dict:
    """Shares by method: of quantities that are inside at every number of seeds, and of the others."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    rows = table["rows"]
    outside = {row["quantity"] for row in rows if not low <= row["student"] <= high}
    usual = [row for row in rows if row["quantity"] not in outside]
    few = [row["coverage"] for row in table["ranks"] if row["n"] <= 6]
    return {
        "quantities": len({row["quantity"] for row in rows}),
        "usual": {name: reach(usual, name) for name in ("one", "two", "student")},
        "missed": {f"at{n}": 1 - reach([row for row in usual if row["n"] == n], "two")["mean"] for n in (3, 4)},
        "others_are_named": outside == {*far_rows, *mild_rows},
        "far": reach([row for row in rows if row["quantity"] in far_rows], "student"),
        "mild": reach([row for row in rows if row["quantity"] in mild_rows], "student"),
        "ranks": {"low": min(few), "high": max(few)},
        "replicates": table["replicates"],
        "error": max(np.sqrt(row["student"] * (1 - row["student"]) / table["replicates"]) for row in rows),
    }


def factors(seeds: Sequence[int]) -> dict:
    """Half of a 95% interval in standard errors."""
    return {f"at{n}": factor(n) for n in seeds}


def tails(runs: Sequence[int], quarter: float, few: float) -> dict:
    """Where most runs of Syn-Medium end and the lowest, and what the farthest layers make of the variation."""
    found = populations(runs=tuple(runs))
    entropy = found["entropy, Syn-Medium, eta_Z = 3, ratio 10"]
    maps = found["attention after 200 steps, Dyck, Z of scale 0.1"].reshape(runs[1], -1)
    apart = np.sort(((maps - maps.mean(axis=0)) ** 2).sum(axis=1))
    return {
        "from": np.quantile(entropy, quarter),
        "to": entropy.max(),
        "lowest": entropy.min(),
        "share": apart[-round(few * apart.size) :].sum() / apart.sum(),
    }


FAR = ["entropy, Syn-Medium, eta_Z = 3, ratio 10", "variation after 200 steps, Dyck, Z of scale 0.1"]
STUDIES = (
    Study(
        "shares",
        shares,
        {"low": 0.93, "high": 0.97, "far_rows": FAR, "mild_rows": ["violation, Dyck, Z of scale 1"]},
        ("replicates are drawn from populations of 300 to 1000 runs, whose mean is the truth",),
    ),
    Study("factors", factors, {"seeds": [3, 4, 5, 8, 10, 20]}),
    Study(
        "tails",
        tails,
        {"runs": [1000, 600, 300], "quarter": 0.25, "few": 0.05},
        ("the populations of benchmarks/error_bars.py",),
        quick=False,
    ),
)
