"""Which statements of Scan and Snap survive which change of training: counts of the stored table, and its gaps."""

import numpy as np
import xarray as xr

from theory.values import Study
from yzflow.audits.survival import load, survival
from yzflow.audits.survival_verdicts import Fate
from yzflow.papers.scan_and_snap import survival as room
from yzflow_studies import CLONE

_TABLE = CLONE / "docs" / "survival" / "survival.nc"
_FULL = ("modified flow", "full flow", "modified steps", "full steps")
_HELD = (Fate.HOLDS, Fate.LATER)
# The checks of the common token's fall: of one by Theorem 2(b), of several by Corollary 2.
_COMMON = "Theorem 2(b): share of times without loss"
_DISTINCT = "Theorem 2(a): share of distinct tokens that have not gained"
_SIGNAL = "Theorem 1: g_n = Y r_n against (9)"
_LEAD = "Theorem 3: share of (time, pair) whose lead shrinks"


def _cells(table: xr.Dataset, reversible: bool, name: str = "verdict") -> tuple[np.ndarray, ...]:
    """Verdicts of signs or equations at the levels with a decoder matrix, what is asked, and what is inside."""
    part = table.sel(level=list(_FULL)).isel(check=np.flatnonzero(table["reversible"].values == reversible))
    order = ("check", "setting", "level")
    verdict, margin = part[name].transpose("option", *order).values, part["margin"].transpose(*order).values
    return verdict, verdict != Fate.NOT_ASKED, np.broadcast_to(margin >= 1, verdict.shape)


def table() -> dict[str, int]:
    """How large the table is, and how many settings its checks of signs are inside at all but SGD."""
    stored = load(_TABLE)
    _, asked, inside = _cells(stored, True)
    plain = stored["option"].values.tolist().index("plain")
    return {
        "options": stored.sizes["option"] - 1,  # besides plain steps
        "settings": stored.sizes["setting"],
        "inner": int((inside[plain] & asked[plain]).any(axis=(0, 2)).sum()),
        "missing": int((~inside[plain] & asked[plain])[:, inside[plain].any(axis=(0, 2))].sum()),
        "seeds": int(stored.attrs["seeds"]),
        "tests": int(stored.attrs["tests"]),
        "alpha": float(stored.attrs["alpha"]),
        "undecided": int((stored["verdict"] == Fate.UNDECIDED).sum()),
    }


def signs() -> dict[str, object]:
    """How many signs hold and are reversed under each option, inside and outside of the statements' assumptions."""
    stored = load(_TABLE)
    verdict, asked, inside = _cells(stored, True)
    rows = []
    for option, found, there, within in zip(stored["option"].values.tolist(), verdict, asked, inside, strict=True):
        if not there.any():
            continue
        row: dict[str, object] = {"option": option}
        for name, place in (("inside", within & there), ("outside", ~within & there)):
            row |= {f"{name}_hold": int((found[place] == Fate.HOLDS).sum()), f"{name}_of": int(place.sum())}
            row[f"{name}_reversed"] = int((found[place] == Fate.REVERSED).sum())
        rows.append(row)
    leads = stored.sel(check=_LEAD, option="plain", level=list(_FULL))
    shrink = leads["error"].values[(leads["verdict"] != Fate.HOLDS).values]
    adam = verdict[stored["option"].values.tolist().index("adam")]
    return {
        "rows": rows,
        "leads_low": float(shrink.min()),
        "leads_high": float(shrink.max()),
        "lead_places": sorted({str(leads["setting"].values[i]) for i in np.nonzero(leads["verdict"].values)[0]}),
        "adam_hold": int((adam == Fate.HOLDS).sum()),
        "adam_common": int((adam[2:6] == Fate.HOLDS).sum()),  # those of the common tokens
    }


def adam() -> dict[str, list]:
    """The first step's formula for the common and the distinct tokens of each setting, and what Adam's steps do."""
    own = load(_TABLE).sel(option="adam", level="full steps")
    rows = []
    for setting in room.settings(quick=False):
        classes = setting.classes
        shares = classes.probabilities.toarray()[0]
        f, common, distinct = shares / np.linalg.norm(shares), classes.common_tokens, classes.distinct_tokens(0)
        c = (classes.vocab_size - classes.n_classes) / (classes.vocab_size - 1)
        bound = 1 / (f[distinct].sum() + c * f[common].sum())
        cell = own.sel(setting=setting.name)
        fate, lost = Fate(int(cell["verdict"].sel(check=_COMMON))), float(cell["error"].sel(check=_DISTINCT))
        rows.append(
            {
                "setting": setting.name,
                "f": ", ".join(f"{value:.3f}" for value in f[common]),
                "bound": c * bound,
                "foreseen": "rises" if (f[common] < c * bound).all() else "falls",
                "common": "rises" if fate is Fate.REVERSED else "falls" if fate is Fate.HOLDS else fate.words,
                "above": int((f[distinct] > bound).sum()),
                "distinct": len(distinct),
                "lost": lost,
            }
        )
    return {"rows": rows}


def equations() -> dict[str, object]:
    """How many equations hold in each setting, as they stand and in the form that they have under the option."""
    stored = load(_TABLE)
    plain, asked, _ = _cells(stored, False)
    own, _, _ = _cells(stored, False, "verdict_corrected")
    counts = [np.isin(found, _HELD).sum(axis=(1, 3)) for found in (plain, own)]
    inner = [name.startswith("inside") for name in stored["setting"].values.tolist()]
    rows = {}
    for place, option in enumerate(stored["option"].values.tolist()):
        held = {}
        for name, found in zip(("stand", "own"), counts, strict=True):
            numbers = found[place]
            inside, outside = (", ".join(map(str, numbers[np.array(inner) == one])) for one in (True, False))
            held[name] = f"{inside} ({outside})"
        rows[option.replace(" ", "_").replace("-", "_")] = held
    where = {"check": _SIGNAL, "level": "modified flow", "setting": stored["setting"].values[0]}
    signal = {
        option.replace(" ", "_").replace("-", "_"): {
            "stand": float(stored["error"].sel(option=option, **where)),
            "own": float(stored["error_corrected"].sel(option=option, **where)),
        }
        for option in ("coupled weight decay", "label smoothing", "warm-up")
    }
    first = stored["option"].values.tolist().index("plain")
    return {"cells": int(asked[first].sum(axis=(0, 2))[0]), "options": rows, "signal": signal}


def batches() -> dict[str, object]:
    """Mini-batch runs: the common token by option and setting, and the distinct tokens of plain steps."""
    stored = load(_TABLE).sel(level="SGD")
    inner = [name for name in stored["setting"].values.tolist() if name.startswith("inside")]
    common = stored.sel(check=_COMMON)
    found: dict[str, object] = {}
    for option in stored["option"].values.tolist():
        fates = [Fate(int(one)) for one in common["verdict"].sel(option=option).values]
        counts = {one.name.lower(): fates.count(one) for one in (Fate.HOLDS, Fate.REVERSED, Fate.UNDECIDED)}
        counts["at_overlap"] = fates[2].words  # at K = 2
        found[option.replace(" ", "_").replace("-", "_")] = counts
    lost = stored.sel(check=_DISTINCT)
    shares = lost["error"].sel(option="plain")
    single = [name for name in inner if "two common" not in name]
    return {
        "common": found,
        "unanimous": int(common["votes"].sel(option="adam", setting=stored["setting"].values[0]).max()),
        "single_low": float(shares.sel(setting=single).min()),
        "single_high": float(shares.sel(setting=single).max()),
        "two": float(shares.sel(setting=[name for name in inner if name not in single]).squeeze()),
        "small": float(shares.sel(setting=stored["setting"].values[1])),
        "paper": float(shares.sel(setting=stored["setting"].values[4])),
        "modified": float(lost["error"].sel(option="modified decoder").max()),
    }


def settings() -> dict[str, list]:
    """The settings of the table, the inner ones first."""
    rows = [
        {
            "name": one.name,
            "k": one.classes.n_classes,
            "m": one.classes.vocab_size,
            "rho": one.overlap,
            "eta_y": one.eta_y,
            "eta_z": one.eta_z,
            "ratio": round(one.eta_y / one.eta_z),
            "steps": int(one.t_end),
            "length": one.length,
            "batch": one.batch_size,
        }
        for one in room.settings(quick=False)
    ]
    return {"rows": sorted(rows, key=lambda row: not row["name"].startswith("inside"))}


def still() -> dict[str, float]:
    """The largest logit under LayerNorm that subtracts the mean, after all full steps, inside and outside."""
    option = next(one for one in room.OPTIONS if one.name == "LayerNorm with mean")
    inside, outside = (
        float(np.abs(option.simulate(one, "full steps", 0).dataset["z"].values[-1]).max())
        for one in room.settings(quick=True)
    )
    return {"inside": inside, "outside": outside}


def momentum(eta: float, ratio: int) -> dict[str, float]:
    """How far Lemma 4 and Theorem 1 are off on momentum's clock, at the outer setting's sizes and ratio eta_Y/eta_Z."""
    outer = room.settings(quick=True)[1]
    own = {"data": outer.classes, "eta_y": eta, "eta_z": eta / ratio, "t_end": 6 / eta}
    found = survival(["Lemma 4", "Theorem 1"], ["momentum"], settings=[own]).sel(level="modified flow").squeeze()
    errors = dict(zip(found["statement"].values.tolist(), found["error_corrected"].values.tolist(), strict=True))
    return {"lemma4": errors["Scan and Snap: Lemma 4"], "theorem1": errors["Scan and Snap: Theorem 1"]}


STUDIES = (
    Study("table", table, {}),
    Study("signs", signs, {}),
    Study("adam", adam, {}),
    Study("equations", equations, {}),
    Study("batches", batches, {}),
    Study("settings", settings, {}),
    Study("still", still, {}, tolerance=1e-4),
    *(
        Study(f"momentum{i}", momentum, {"eta": eta, "ratio": 100}, quick=False)
        for i, eta in enumerate((0.02, 0.005, 0.002))
    ),
)
