"""Ratios and exponents of the measured times in docs/benchmarks, computed from the files of the command."""

import json
from typing import Any

from theory.values import Study
from yzflow_studies import CLONE

FOLDER = CLONE / "docs" / "benchmarks"
MEASURED = ("times are those of one run, on the machine that the file names",)


def _read(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def ratios(**rows: list[str]) -> dict[str, Any]:
    """Rows of the table, by task and peer: both times, and how many times longer the slower one takes."""
    found = {}
    for name, (task, peer) in rows.items():
        (row,) = (row for row in _read("benchmarks")["rows"] if (row["task"], row["peer_name"]) == (task, peer))
        ours, theirs = row["ours"], row["peer"]
        found[f"of_{name}"] = {
            "ours": ours,
            "peer": theirs,
            "first": row["first_ours"],
            "wins": ours < theirs,
            "times": max(ours, theirs) / min(ours, theirs),
            "range": _range(row),
        }
    return found


def _range(row: dict[str, Any]) -> dict[str, Any]:
    """The ratio of a row over the processors that it was measured on, and over those with the present kernels."""
    elsewhere = row.get("elsewhere", [])
    ratios = [row["ratio"], *(one["ratio"] for one in elsewhere)]
    now = [row["ratio"], *(one["ratio"] for one in elsewhere if one["source"] == "the same command")]
    ends = {"now": {"least": min(now), "most": max(now), "processors": len(now)}}
    return {"least": min(ratios), "most": max(ratios), "processors": len(ratios), **ends}


def first_uses() -> dict[str, Any]:
    """Seconds of processor time of each first use with an empty cache, by the words of the table."""
    return {row["use"].replace(",", "").replace(" ", "_"): row["seconds"] for row in _read("first_use")["uses"]}


def long_work() -> dict[str, Any]:
    """How many statements were checked, and seconds of processor time of the check that takes longest."""
    checks = _read("long_work")["checks"]
    return {"checks": len(checks), "longest": max(checks.values())}


def equal_errors() -> dict[str, Any]:
    """How many times longer the quickest peer takes at equal error: the least and the most over the errors."""
    data = _read("equal_error")
    best = [min(row["ratios"].values()) for row in data["rows"]]
    errors = [row["error"] for row in data["rows"]]
    ends = {"least": min(best), "most": max(best), "loose": max(errors), "tight": min(errors)}
    return {"references": data["references_differ_by"], "on": data["machine"]["processor"], **ends}


def loops(task: str, peer: str, flows: int) -> dict[str, float]:
    """Milliseconds of one flow where a loop takes so many."""
    return {"milliseconds": 1e3 * ratios(row=[task, peer])["of_row"]["peer"] / flows}


def solvers(short: str, long: str, default: float, usual: float) -> dict[str, Any]:
    """The work-precision diagram in words: how far the default is from the quickest, and what others cost beside it."""
    data = _read("work_precision")
    runs = {problem: {} for problem in (short, long)}
    for problem, found in runs.items():
        for point in data[problem]["points"]:
            found[point["method"], point["time_scale"], point["rtol"]] = point["seconds"], point["error"]

    def ours(problem: str, rtol: float, scale: str = "linear") -> tuple[float, float]:
        return runs[problem]["DOP853", scale, rtol]

    def beside(problem: str, method: str) -> list[float]:
        """Times as long as DOP853 at the same tolerance, on the same time scale."""
        return [
            seconds / ours(problem, rtol, scale)[0]
            for (name, scale, rtol), (seconds, _) in runs[problem].items()
            if name == method
        ]

    def above_quickest(problem: str) -> float:
        """The most by which the default method takes longer than the quickest that is as accurate."""
        worst = 1.0
        for error in (1e-3, 1e-6, 1e-9):
            reaching = [(taken, key[:2]) for key, (taken, found) in runs[problem].items() if found <= error]
            own = min(taken for taken, key in reaching if key == ("DOP853", "linear"))
            worst = max(worst, own / min(reaching)[0])
        return worst

    lsoda = beside(long, "LSODA")
    radau = [ratio for problem in runs for ratio in beside(problem, "Radau")]
    eight = [ours(problem, 1e-10)[0] / ours(problem, default)[0] for problem in runs]
    logs = [ours(problem, 1e-12, "log")[0] / ours(problem, 1e-12)[0] for problem in runs]
    return {
        "above_quickest": {"short": above_quickest(short), "long": above_quickest(long)},
        "error_over_rtol": {
            "usual": max(ours(problem, usual)[1] for problem in runs) / usual,
            "default": max(ours(problem, default)[1] for problem in runs) / default,
        },
        "error": max(ours(problem, default)[1] for problem in runs),
        "eight_digits": {"least": min(eight), "most": max(eight)},
        "log_time": max(logs),
        # Those that change to their formulas for stiff problems stand apart from the others by far.
        "stiff": sum(ratio > 5 for ratio in lsoda),
        "of": len(lsoda),
        "lsoda": {"least": min(ratio for ratio in lsoda if ratio > 5), "most": max(lsoda)},
        "radau": {"least": min(radau), "most": max(radau)},
    }


def profile(queries: int, aim: int) -> dict[str, Any]:
    """Drawing in a step of SGD, and what the step would take if drawing cost nothing."""
    data = _read("sgd_profile")
    (found,) = (one for one in data["profiles"] if one["queries"] == queries)
    drawing, step = found["stages"]["drawing tokens"], found["step"]
    return {
        "tokens": found["tokens_drawn"],
        "nanoseconds_a_pair": round(1e3 * drawing / (found["tokens_drawn"] / 2)),
        "out_of_reach": drawing > found["peer_step"] / aim,
        "without_drawing": step / (step - drawing),
    }


def scaling() -> dict[str, Any]:
    """Milliseconds of a step of SGD and fitted exponents against one size at a time."""
    data = _read("scaling")
    return {
        "exponents": data["exponents"],
        "milliseconds": {
            size: {"first": 1e3 * times[0], "last": 1e3 * times[-1]} for size, times in data["times"].items()
        },
        "base": data["base"],
    }


def enclosed(flows: list[str], bits: list[int]) -> dict[str, Any]:
    """Rows of the table of enclosures, with radii as words, since not every flow goes as far."""
    data = _read("enclosures")
    rows = [
        {
            **{name: row[name] for name in ("flow", "variables", "bits", "steps", "seconds")},
            "end": f"{row['t_reached']:,.0f}",
            "radii": [f"{radius:.1e}" if radius == radius else "" for radius in row["widths"]],
        }
        for row in data["rows"]
        if row["flow"] in flows and row["bits"] in bits
    ]
    naive, claims = data["naive"], [row["seconds_decide"] for row in data["rows"]]
    return {
        "rows": rows,
        "claim": {"least": min(claims), "most": max(claims)},
        "naive": {"end": naive["times"][-1], "times": naive["seconds"] / naive["ours"]},
    }


_ENSEMBLE = "ensemble of {} full flows, K 2..50, M 100..100,000, to t = 10,000"
_SMALL = "full flow, K = 10, M = 1,000, to t = 700"
_COLUMNS = "diffrax Dopri8, jax, our K + 1 columns"

STUDIES = (
    Study(
        "rows",
        ratios,
        {
            "columns": [f"{_SMALL}; our use of symmetry", _COLUMNS],
            "one": [_SMALL, _COLUMNS],
            "recorded": [f"{_SMALL}, 200 recorded times; our use of symmetry", _COLUMNS],
            "read": [f"{_SMALL}, 200 recorded times; our use of symmetry, all read", _COLUMNS],
            "many": ["full flow, K = 50, M = 2,000, to t = 700", _COLUMNS],
            "stiff": ["full flow, K = 3, M = 30, eta_Z = 100, to t = 10,000", "ours, DOP853 alone"],
            "large": ["full flow, K = 200, M = 20,000, asymmetric, t = 1e5", "diffrax Dopri8, our K + 1 columns"],
            "gpt": [
                "GPT, 2 layers, Dyck words, 4 seeds, 40 steps of Adam, float32",
                "PyTorch, one seed after the other",
            ],
        },
        MEASURED,
    ),
    Study(
        "loop", loops, {"task": _ENSEMBLE.format(40), "peer": "our own gradient_flow in a loop", "flows": 40}, MEASURED
    ),
    Study(
        "solvers",
        solvers,
        {"short": "weak overlap, to t = 700", "long": "strong overlap, to t = 100,000", "default": 1e-8, "usual": 1e-6},
        MEASURED,
    ),
    Study("equal", equal_errors, {}, MEASURED),
    Study("first", first_uses, {}, MEASURED),
    Study("long", long_work, {}, MEASURED),
    Study("profile", profile, {"queries": 1, "aim": 300}, MEASURED),
    Study("scaling", scaling, {}, MEASURED),
    Study(
        "enclosed",
        enclosed,
        {
            "flows": [
                "K = M = 2, full",
                *(f"K = 10, M = 1000, {name}" for name in ("full", "modified", "theory")),
            ],
            "bits": [60, 100],
        },
        MEASURED,
    ),
)
