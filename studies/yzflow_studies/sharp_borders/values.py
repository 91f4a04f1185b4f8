"""Eleven true statements at their sharp borders, and fifty false ones: what falls to the fuzzer."""

import subprocess
import sys
from typing import Any

import numpy as np

from theory.values import Study
from yzflow_studies import CLONE
from yzflow_studies.sharp_borders.study import BORDERS, campaign


def campaigns(examples: int, seed: int, flows: bool) -> dict[str, Any]:
    """Borders in closed form, or those of flows: settings that fell, how near the nearest came, and what is closer."""
    asked = [one for one in BORDERS.values() if one.flows == flows]
    rows = [{"name": one.name, "says": one.says, **campaign(one.name, examples, seed)} for one in asked]
    return {
        "statements": len(rows),
        "fell": sum(row["fell"] for row in rows),
        "least": min(row["nearest"] for row in rows),
        "latest": max(row["closer"] for row in rows),
        "all_fall": all(row["closer"] for row in rows),
        "rows": rows,
    }


def false_statements() -> dict[str, Any]:
    """Settings that each of ``tests/false_statements.py`` needs to fall: how they spread, and the hardest."""
    script = CLONE / "tests" / "false_statements.py"
    shown = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True, cwd=CLONE).stdout
    needed = {}
    for line in shown.splitlines()[:-1]:
        count, name = line.split(maxsplit=1)
        needed[name] = int(count)
    counts = list(needed.values())
    quarters = np.quantile(counts, [0.5, 0.9], method="inverted_cdf").astype(int)
    return {
        "statements": len(counts),
        "median": int(quarters[0]),
        "most_of_them": int(quarters[1]),
        "most": max(counts),
        "hardest": max(needed, key=needed.__getitem__),
        "at_once": counts.count(1),
    }


STUDIES = (
    Study("closed", campaigns, {"examples": 20_000, "seed": 1, "flows": False}, quick=False),
    Study("flows", campaigns, {"examples": 2000, "seed": 1, "flows": True}, quick=False),
    Study("false_statements", false_statements, quick=False),
)
