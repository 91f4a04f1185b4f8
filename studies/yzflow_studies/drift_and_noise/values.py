"""Theorem 2's signs in SGD: what drifts, what finite sequences add, what noise hides, and what SGD does."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow.intervals import standard_error
from yzflow.papers.scan_and_snap.settings import Setting, classes_with_common_shares, single_common_token
from yzflow_studies.drift_and_noise import study as model


def mean_of(values: xr.DataArray) -> dict:
    """Mean over seeds, with its standard error."""
    return {"mean": float(values.mean()), "half": float(standard_error(values))}


def inside(k: int, m: int, rho: float, eta_z: float) -> Setting:
    """One common and five distinct tokens a class."""
    return Setting(f"K = {k}, M = {m}, rho = {rho:g}", single_common_token(k, m, rho), 1.0, eta_z, 100.0)


def from_when(found: xr.Dataset) -> tuple[float, int]:
    """T from which on the mean has all signs, and b from which on they can be seen at four times that T."""
    length = float(model.shortest(found).max())
    return length, int(np.ceil(model.smallest_batch(found, length=4 * length).max()))


def means(
    k: int, m: int, rho: float, eta_z: float, steps: Sequence[int], at: int, batch_size: int, length: int
) -> dict:
    """Mean moves and deviations after ``at`` steps, in 1e-6; and from which T and b on the signs can be seen."""
    found = model.predict(inside(k, m, rho, eta_z), [0, *steps])
    now = found.sel(time=at).isel(logit=slice(1 + 5))  # the first class, with the common token in front
    deviation = model.moments(now, batch_size=batch_size, length=length)[1]
    rows = []
    for step in steps:
        then = found.sel(time=step)
        needs, batch = from_when(then)
        limit = int(np.ceil(model.smallest_batch(then, length=None).max()))
        rows.append({"step": step, "length": needs, "batch": batch, "batch_at_infinity": limit})
    added = now["shift"] / (length - 1)
    return {
        "drift": 1e6 * now["drift"].values,
        "added": 1e6 * added.values,
        "deviation": 1e6 * deviation.values,
        "shortest": model.shortest(now).values,
        "lose": int((now["drift"] + added < 0).sum()) - 1,
        "times": rows,
    }


def shares(k: int, m: int, rho: float, eta_z: float, sizes: Sequence, limits: Sequence, steps: int, seeds: int) -> dict:
    """Measured less predicted share of wrong signs at pairs of b and T, and b at T = infinity."""
    setting = inside(k, m, rho, eta_z)
    found = model.predict(setting, [0, steps]).sel(time=steps)
    rows, right = [], 0
    for b, length in [*sizes, *((b, None) for b in limits)]:
        z = model.measure(setting, batch_size=b, length=length, every=steps, steps=steps, seeds=range(seeds))
        wrong = (z.isel(time=-1) <= 0).mean("logit")
        chance = float(model.wrong(found, batch_size=b, length=length).mean())
        rows.append({"b": b, "t": length or 0, "predicted": chance, **mean_of(wrong)})
        if (b, length) == (1, None):
            right = int((wrong == 0).sum())
    off = max(rows, key=lambda row: abs(row["mean"] - row["predicted"]))
    return {
        "rows": rows,
        "pairs": len(rows),
        "off": abs(off["mean"] - off["predicted"]),
        "off_error": off["half"],
        "right_at_infinity": right,
    }


def rarest(k: int, m: int, rho: float, eta_z: float, lengths: Sequence[int], b: int, steps: int, seeds: int) -> dict:
    """The logit of the rarest distinct token, in 1e-6, on both sides of the length from which on it gains."""
    setting = inside(k, m, rho, eta_z)
    found = model.predict(setting, [0, steps]).sel(time=steps)
    rows = []
    for length in lengths:
        z = model.measure(setting, batch_size=b, length=length, every=steps, steps=steps, seeds=range(seeds))
        # The fifth distinct token of each class.
        own = 1e6 * z.isel(time=-1, logit=slice(5, None, 5)).mean("logit")
        predicted = 1e6 * float(model.moments(found, batch_size=b, length=length)[0][5])
        rows.append({"t": length, "predicted": predicted, "seen": mean_of(own)})
    return {"rows": rows}


def cases() -> list[tuple[str, int, Setting]]:
    """Name, steps and setting of four of the audit inside Assumption 2, and of the paper's sizes."""
    two_queries = classes_with_common_shares([0.075**0.5] * 4, 8000, n_queries=2)
    unequal = classes_with_common_shares([0.45, 0.4, 0.3], 10_000)
    return [
        ("K = 2, M = 1000, rho = 0.3", 100, inside(2, 1000, 0.3, 1e-3)),
        ("K = 3, M = 2000, rho = 0.15", 100, inside(3, 2000, 0.15, 1e-3)),
        ("K = 4, M = 8000, rho = 0.075, two queries", 150, Setting("two queries", two_queries, 1.0, 1e-3, 150.0)),
        ("K = 3, M = 10,000, rho = 0.12 to 0.18", 100, Setting("unequal", unequal, 1.0, 1e-3, 100.0)),
        ("the paper's sizes: K = 10, M = 1000, rho = 0.009", 300, inside(10, 1000, 0.009, 1e-3)),
    ]


def settings(batch_size: int, length: int, every: int, seeds: int) -> dict:
    """Predicted and measured shares of wrong signs over all times at each of `cases`."""
    rows = []
    for name, steps, setting in cases():
        found = model.predict(setting, range(0, steps + 1, every))
        options = {"batch_size": batch_size, "length": length}
        z = model.measure(setting, **options, every=every, steps=steps, seeds=range(seeds)).isel(time=slice(1, None))
        chance = model.wrong(found, **options).isel(time=slice(1, None))
        needs, batch = from_when(found.isel(time=-1))
        row = {"name": name, "steps": steps, "length": needs, "batch": batch}
        for kind, sign in (("distinct", 1), ("common", -1)):
            own = (found["sign"] == sign).values
            seen = (z.isel(logit=own) <= 0).mean(("time", "logit"))
            row[kind] = {"predicted": float(chance.isel(logit=own).mean()), **mean_of(seen)}
        mean = model.moments(found, **options)[0].isel(time=-1)
        row["lose"] = float((mean.isel(logit=(found["sign"] == 1).values) < 0).mean())
        rows.append(row)
    return {"rows": rows}


FIRST = {"k": 2, "m": 1000, "rho": 0.3, "eta_z": 1e-3}
SLOW = ("eta_Y = 1, full decoder, zero start, no momentum", "predictions: to first order in 1/b and 1/T")
PAIRS = [(4, 4**n) for n in range(3, 9)] + [(64, 4**n) for n in range(3, 8)] + [(1024, 4**n) for n in range(3, 6)]
STUDIES = (
    Study(
        "means",
        means,
        {**FIRST, "steps": [10, 20, 50, 100, 400], "at": 100, "batch_size": 64, "length": 256},
        SLOW,
        quick=False,
        tolerance=1e-4,
    ),
    Study("shares", shares, {**FIRST, "sizes": PAIRS, "limits": [1, 64], "steps": 100, "seeds": 60}, SLOW, quick=False),
    Study("rarest", rarest, {**FIRST, "lengths": [3000, 6000], "b": 1024, "steps": 100, "seeds": 6}, SLOW, quick=False),
    Study("settings", settings, {"batch_size": 64, "length": 256, "every": 10, "seeds": 20}, SLOW, quick=False),
)
