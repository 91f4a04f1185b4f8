"""Scan and snap inside the assumptions of Theorems 1 to 4, and outside of them: settings, and sentences on flows."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynamics import SequenceClasses, Trajectory
from theory import statements
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.settings import PAPER, Setting
from yzflow.sweeps.store import Store
from yzflow.values.marks import as_text

# Theorem 4's task with five distinct tokens a class, of ratios 1, 0.8, .., 0.2, and one common token of ratio `common`.
# Inside: two next tokens of a large vocabulary, a rare common token, and attention 500 times slower than the decoder.
# See finding 7 for how large M must be for more next tokens. Contrast: a common token twice as frequent as any other,
# and attention half as fast as the decoder.
INSIDE: dict[str, Any] = {
    "n_classes": 2,
    "vocab_size": 100_000,
    "common": 0.25,
    "eta_y": 0.5,
    "eta_z": 1e-3,
    "t_end": 1e5,
}
CONTRAST = INSIDE | {
    "n_classes": pt.N_CLASSES,
    "vocab_size": pt.VOCAB_SIZE,
    "common": 2.0,
    "eta_y": 1.0,
    "eta_z": pt.ETA_Z,
}
THEOREMS = tuple(f"Theorem {number}" for number in (1, 2, 3, 4))
# Limits of "fastest about t*", "slow at 10 t*" and "no growth or fall of a speed": see `told`, `rises_and_falls`.
NEAR, SLOW, STEADY = 0.25, 0.1, 1e-3


def made(
    name: str, *, n_classes: int, vocab_size: int, common: float, eta_y: float, eta_z: float, t_end: float
) -> Setting:
    """Theorem 4's task from the numbers of a setting."""
    classes = SequenceClasses.single_common_token(n_classes, vocab_size, common=common)
    return Setting(name, classes, eta_y, eta_z, t_end)


def inside() -> Setting:
    """The project's first setting, inside all assumptions of Theorems 1 to 4."""
    return made("inside", **INSIDE)


def contrast() -> Setting:
    """A frequent common token and attention half as fast as the decoder: attention visibly moves."""
    return made("contrast", **CONTRAST)


def margins(setting: Setting, level: str = "full flow") -> dict[str, float]:
    """The register's assumptions of Theorems 1 to 4 and their checks at a setting: text -> margin, 1 or more inside.

    With a level: only the assumptions that concern it, since sequences have no length in a flow. All flows have the
    same assumptions.
    """
    found: dict[str, float] = {}
    for one in statements.REGISTER.values():
        if one.paper == PAPER and one.number.startswith(THEOREMS):
            for check in (None, *one.checks):
                found |= one.margins(setting, check, level)
    return found


def broken(setting: Setting, level: str = "full flow") -> list[str]:
    """The violated assumptions of a setting, without repetition: by number, or by the evaluated condition."""
    texts = [text for text, margin in margins(setting, level).items() if margin < 1]
    numbered = [re.match(r"Assumption (\S+),", text) for text in texts]
    names = {match[1] if match else text.split(": ")[-1] for match, text in zip(numbered, texts, strict=True)}
    return sorted(names, key=lambda text: (not text[0].isdigit(), text))


def standing(setting: Setting) -> str:
    """Where a setting stands: "inside all assumptions of Theorems 1 to 4", or outside which."""
    missed = broken(setting)
    if not missed:
        return f"inside all assumptions of Theorems {THEOREMS[0][-1]} to {THEOREMS[-1][-1]}"
    numbers = [text for text in missed if text[0].isdigit()]
    words = [text for text in missed if not text[0].isdigit()]
    numbered = f"Assumption{'s' if numbers[1:] else ''} {_and(numbers)}"
    return f"outside {', and '.join([*([numbered] if numbers else []), *words])}"


def named(setting: Setting) -> str:
    """The numbers of a setting, enough for a reader to build it."""
    classes = setting.classes
    return (
        f"K = {classes.n_classes}, M = {classes.vocab_size:,}, overlap {setting.overlap:.3g}, "
        f"eta_Y = {setting.eta_y:g}, eta_Z = {setting.eta_z:g}"
    )


def flows(
    setting: Setting, *, n_times: int = 400, progress: bool = False, store: str | os.PathLike | Store | None = None
) -> dict[str, Trajectory]:
    """The theory, the modified and the full flow of a setting, on a logarithmic grid of times."""
    return pt.fidelity_flows(
        setting.classes,
        eta_y=setting.eta_y,
        eta_z=setting.eta_z,
        t_end=setting.t_end,
        n_times=n_times,
        progress=progress,
        store=store,
    )


def explorer(setting: Setting) -> dict[str, Any]:
    """A setting in the explorer panel's form: next tokens, rates, length, and token frequencies as ratios."""
    classes = setting.classes
    shares = classes.probabilities.toarray()[0]
    own = shares[classes.distinct_tokens(0)]
    sizes = {"K": classes.n_classes, "M": classes.vocab_size, "etaY": setting.eta_y, "etaZ": setting.eta_z}
    ratios = np.round(np.append(shares[classes.common_tokens[0]], own) / own.max(), 9).tolist()
    return {**sizes, "end": setting.t_end, "common": ratios[0], "distinct": tuple(ratios[1:])}


def rises_and_falls(speed: xr.DataArray) -> bool:
    """Whether a speed over ``time`` grows up to its largest value and falls after it, up to `STEADY` of that value."""
    values = speed.values / float(speed.max())
    top = int(values.argmax())
    return bool((np.diff(values[: top + 1]) >= -STEADY).all() and (np.diff(values[top:]) <= STEADY).all())


def told(setting: Setting, runs: Mapping[str, Trajectory]) -> str:
    """Sentences on the flows of a setting: when attention is fastest, how much is done by t*, how much moves.

    *Scans and snaps* is said of flows in which attention's speed grows up to a time within a quarter of t*, falls after
    it, and at 10 t* is below a tenth of its largest value. All words and numbers are made from the flows.
    """
    found, place = pt.around_transition(runs), standing(setting)
    names, peak = list(runs), float(found["transition_time"])
    tokens = _where(
        [scanned(run) for run in runs.values()],
        names,
        "The common token's logit falls and those of distinct tokens rise, the more frequent the more",
        none="Logits do not move in the order of frequency",
    )
    near = np.abs(found["fastest_attention"].values / peak - 1) <= NEAR
    steady = [rises_and_falls(pt.attention_speed(run)) for run in runs.values()]
    snaps = near & steady & (found["late_speed"].values < SLOW)
    verdict = _where(
        snaps,
        names,
        f"attention scans and snaps at t* = {peak:.0f}",
        none=f"attention does not scan and snap at t* = {peak:.0f}",
    )
    late = found["done"].values < 0.5
    most = _where(late, names, "most of it comes after t*", "before t*", none="most of it comes before t*")
    return (
        f"{place[0].upper()}{place[1:]} ({named(setting)}), {verdict}. {tokens}. In the {_and(names)} flow attention "
        f"is fastest at t = {_all(found['fastest_attention'], '.2g')}, and at 10 t* it has "
        f"{_all(found['late_speed'], '.2g%')} of that speed. By t* {_all(found['done'], '.0%')} of the "
        f"change up to t = {setting.t_end:,.0f} is done: {most}. The change is {_all(found['change'], '.2g')} of "
        f"all attention{_apart(found)}. {_fits(near, names, peak)}."
    )


def theory_over_full(found: xr.Dataset) -> float:
    """How many times as much the theory moves attention as the full flow; nan where one of them is missing."""
    change = {name: float(found["change"].sel(flow=name)) for name in found["flow"].values.tolist()}
    return change.get("theory", math.nan) / change.get("full", math.nan)


def _apart(found: xr.Dataset) -> str:
    """Sentence on the ratio of sizes, which curves divided by their largest values do not show."""
    times = theory_over_full(found)
    if math.isnan(times):
        return ""
    words = f"{float(f'{times:.2g}'):,.4g}" if times < 1000 else f"{float(f'{times:.2g}'):,.0f}"
    return f", {words} times as much in the theory as in the full flow, which curves over their own largest do not show"


def _fits(near: np.ndarray, names: Sequence[str], peak: float) -> str:
    """Words on the flows in which attention is fastest at t*."""
    yes = f"t* = {peak:.0f} is within a quarter of the time of largest speed"
    if near.all():
        return f"{yes} in every flow"
    return _where(near, names, yes, none=yes.replace(" is ", " is not ") + " in any flow")


def scanned(run: Trajectory, *, next_token: int = 0) -> bool:
    """Whether common tokens' logits fell up to the end, and distinct ones' rose, the more frequent the more.

    The claim concerns logits. If the common token has little attention to lose, a rare distinct token's share can fall
    although its logit rises.
    """
    part = run.dataset.sel(next_token=next_token)
    shares, distinct = part["attention"].isel(time=0).values, part["distinct"].values
    moved = (part["z"].isel(time=-1) - part["z"].isel(time=0)).sel(query=int(part["query_of"])).values
    own, common = moved[distinct], moved[~distinct & (shares > 0)]
    ordered = np.diff(own[np.argsort(-shares[distinct], kind="stable")])
    return bool((own > 0).all() and (common < 0).all() and (ordered <= 0).all())


def _where(holds: Sequence[bool] | np.ndarray, names: Sequence[str], yes: str, no: str = "not", *, none: str) -> str:
    """The answer in words: ``yes``, or ``none``, or ``yes`` in some flows and ``no`` in the others."""
    if all(holds) or not any(holds):
        return yes if all(holds) else none
    sides = [_and([name for name, held in zip(names, holds, strict=True) if held == side]) for side in (True, False)]
    return f"{yes} in the {sides[0]} flow, {no} in the {sides[1]} flow"


def _all(values: xr.DataArray, how: str) -> str:
    """ "38, 38 and 39"; "no recorded time" for what lies outside the recorded times."""
    return _and([as_text(value, how) if np.isfinite(value) else "no recorded time" for value in values.values.tolist()])


def _and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
