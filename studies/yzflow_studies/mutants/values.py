"""How many small wrong changes of the code the tests notice: counts and intervals of the samples that were drawn."""

import json
import sys
from typing import Any

from scipy.stats import binomtest

from theory.values import Study
from yzflow_studies import CLONE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = CLONE / ".ci" / "mutants"


def _share(noticed: int, of: int) -> dict[str, float]:
    low, high = binomtest(noticed, of).proportion_ci(method="wilson")
    return {"share": noticed / of, "low": low, "high": high}


def kept(noticed: list[str]) -> dict[str, Any]:
    """The sample whose results are kept: what became of each change, and of those that no test noticed."""
    lines = (FOLDER / "results.jsonl").read_text(encoding="utf-8").splitlines()
    status = {found["mutant"]: found["status"] for found in map(json.loads, lines)}
    said = tomllib.loads((FOLDER / "judged.toml").read_text(encoding="utf-8"))
    drawn = [name for name in (FOLDER / "sample.txt").read_text(encoding="utf-8").split() if name in status]
    killed = [name for name in drawn if status[name] in noticed]
    verdicts = [said[name]["verdict"] for name in drawn if status[name] not in noticed]
    rest = len(drawn) - verdicts.count("same")
    return {
        "drawn": len(drawn),
        "same": verdicts.count("same"),
        "rest": rest,
        "killed": len(killed),
        "open": verdicts.count("open"),
        **_share(len(killed), rest),
    }


def later(drawn: list[int], same: list[int], killed: list[int], alone: int) -> dict[str, Any]:
    """Samples of changes that no test had been written for: shares, that of all together, and what quick tests keep.

    ``alone`` of the last sample are noticed by the quick tests alone.
    """
    rest = [whole - none for whole, none in zip(drawn, same, strict=True)]
    return {
        "rest": rest,
        "left": [whole - found for whole, found in zip(rest, killed, strict=True)],
        "each": [_share(found, whole) for found, whole in zip(killed, rest, strict=True)],
        "together": _share(sum(killed), sum(rest)),
        "quick": _share(alone, killed[-1]),
    }


STUDIES = (
    Study("kept", kept, {"noticed": ["killed", "timeout", "crash"]}),
    Study(
        "later",
        later,
        {"drawn": [100, 60, 150], "same": [6, 3, 0], "killed": [80, 46, 131], "alone": 125},
        ("drawn once each; what is in the setting was counted then; of the last none was looked at",),
    ),
)
