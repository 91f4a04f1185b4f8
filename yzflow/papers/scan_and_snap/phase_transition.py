"""The phase transition of Scan and Snap: the paper's settings, simulated at each level of fidelity.

Settings: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Figs. 3, 8 and 9.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from dynamics import SequenceClasses, Solver, Trajectory, gradient_flow
from dynamics.support import checks
from dynamics.support.rounded import faithful
from theory import attention, decoder, tokens
from yzflow.sweeps import cache
from yzflow.sweeps.store import Store

LEVELS = ("theory", "modified", "full")  # the simulated levels of fidelity, from the theory down
N_CLASSES = 10
VOCAB_SIZE = 1000
COMMON = 0.15  # weight of the common token, beside distinct ones of 1, 0.8, .., 0.2
ETA_Z = 0.5
ETA_Y = (0.5, 1.0, 2.0, 5.0)
T_END = 700.0
# In the fidelity figure attention learns this much slower than the decoder, as Assumption 1(c) wants it.
SLOW_RATIO = 1e-3

FIGURE_8 = ((50, (0.1, 0.2, 0.5, 1.0, 2.0), 80), (1000, (0.2, 0.5, 1.0, 2.0, 4.0), 70))  # M, eta_Y, steps
FIGURE_9 = ((10.0, 100, 5.0), (1.0, 10_000, 50.0))  # nu = eta_Y / eta_Z, M, last time
FIGURE_9_ETA_Z = (0.5, 1.0, 2.0, 4.0, 8.0)


def weak_classes() -> SequenceClasses:
    """K = 10 classes with one common token, of overlap 0.0101: below 1/(K (K - 1)), so |lambda_1(E)| < 1/K."""
    return SequenceClasses.single_common_token(N_CLASSES, VOCAB_SIZE, common=COMMON)


def speed_constant(classes: SequenceClasses) -> float:
    """C_0 = 1 / ((K - 1) rho^2) of these classes, rho their (equal) overlap at the start."""
    return attention.speed_constant(n_classes=classes.n_classes, overlap=float(classes.overlap()[0, 1]))


def fidelity_flows(
    classes: SequenceClasses,
    *,
    eta_y: float,
    eta_z: float = ETA_Z,
    t_end: float = T_END,
    n_times: int = 400,
    decoders: Sequence[str] = LEVELS,
    time_scale: str = "log",
    progress: bool = False,
    store: str | os.PathLike | Store | None = None,
) -> dict[str, Trajectory]:
    """The same training at each simulated level: decoder -> trajectory; from ``store`` if it is there."""
    return {
        name: cache.trajectory(
            gradient_flow,
            classes,
            eta_y=eta_y,
            eta_z=eta_z,
            t_end=t_end,
            decoder=name,
            n_times=n_times,
            rtol=1e-10,
            atol=1e-12,
            solver=Solver(time_scale=time_scale),
            progress=progress,
            store=store,
        )
        for name in decoders
    }


def decoder_curves(
    vocab_size: Sequence[int] | None = None, eta_y: Sequence[float] | None = None, steps: int | None = None
) -> xr.Dataset:
    """Fig. 8: the discrete h*(s) (33) and the continuous h(t) (44) at whole steps, for each M and eta_Y.

    Parameters
    ----------
    vocab_size : sequence of int, optional
        M of each panel. Default: the paper's two.
    eta_y : sequence of float, optional
        The same in each panel. Default: the paper's for this M, or for its first.
    steps : int, optional
        Default: the paper's for this M, or for its first.
    """
    usual = {size: (rates_of, last) for size, rates_of, last in FIGURE_8}
    parts: dict[str, tuple] = {}
    for own in usual if vocab_size is None else vocab_size:
        usual_rates, usual_steps = usual.get(own, FIGURE_8[0][1:])
        rates = usual_rates if eta_y is None else eta_y
        n_steps = usual_steps if steps is None else steps
        times = np.arange(n_steps + 1)
        discrete = np.stack([decoder.h_steps(n_steps, vocab_size=own, eta_y=rate) for rate in rates])
        continuous = np.stack([decoder.h(times, vocab_size=own, eta_y=rate) for rate in rates])
        names = (f"eta_y_{own}", f"time_{own}")
        parts[f"h_steps_{own}"] = (names, discrete, {"long_name": "h* (33)", "units": "1"})
        parts[f"h_{own}"] = (names, continuous, {"long_name": "h (44)", "units": "1"})
        parts[names[0]] = (names[0], list(rates), {"long_name": "eta_Y", "units": "1 / SGD step"})
        parts[names[1]] = (names[1], times, {"long_name": "time", "units": "SGD steps"})
    return xr.Dataset(parts)


def exponent_curves(
    n_times: int = 400,
    vocab_size: Sequence[int] | None = None,
    ratios: Sequence[float] | None = None,
    eta_z: Sequence[float] = FIGURE_9_ETA_Z,
    t_end: float | None = None,
) -> xr.Dataset:
    """Fig. 9: B(t) at fixed nu = eta_Y / eta_Z, K = 1, C_0 = 1, with t0 and B(t0).

    Parameters
    ----------
    n_times : int
    vocab_size, ratios : sequences, optional
        M and nu of each panel. Default: the paper's; of ratios for another M, one.
    eta_z : sequence of float
    t_end : float, optional
        Default: the paper's, or one and a half of the last t0.
    """
    parts: dict[str, tuple] = {"eta_z": ("eta_z", list(eta_z), {"long_name": "eta_Z", "units": "1 / SGD step"})}
    for nu, own, usual_end in _panels_of_figure_9(vocab_size, ratios):
        settings: list[dict[str, Any]] = [
            {"vocab_size": own, "n_classes": 1, "eta_y": nu * rate, "eta_z": rate, "c0": 1.0} for rate in eta_z
        ]
        snap = [decoder.snapping_time(vocab_size=own, n_classes=1, eta_y=setting["eta_y"]) for setting in settings]
        usual = usual_end if tuple(eta_z) == FIGURE_9_ETA_Z else None
        times = np.linspace(0, next(end for end in (t_end, usual, 1.5 * max(snap)) if end is not None), n_times)
        exponents = np.stack([attention.growth_exponent(times, **setting) for setting in settings])
        at_snap = [attention.growth_exponent(t, **setting) for t, setting in zip(snap, settings, strict=True)]
        parts[f"nu_{own}"] = ((), float(nu), {"long_name": "eta_Y / eta_Z"})
        parts[f"time_{own}"] = (f"time_{own}", times, {"long_name": "time", "units": "SGD steps"})
        parts[f"exponent_{own}"] = (("eta_z", f"time_{own}"), exponents, {"long_name": "B", "units": "1"})
        parts[f"t0_{own}"] = ("eta_z", snap, {"long_name": "t0", "units": "SGD steps"})
        parts[f"exponent_at_t0_{own}"] = ("eta_z", at_snap, {"long_name": "B(t0)", "units": "1"})
    return xr.Dataset(parts)


def _panels_of_figure_9(
    vocab_size: Sequence[int] | None, ratios: Sequence[float] | None
) -> list[tuple[float, int, float | None]]:
    """nu, M and the paper's last time of each panel, None for a panel that is not the paper's."""
    usual = {own: (nu, end) for nu, own, end in FIGURE_9}
    sizes = list(usual if vocab_size is None else vocab_size)
    if ratios is None:
        ratios = [usual.get(own, (1.0, None))[0] for own in sizes]
    ratios = [float(nu) for nu in ratios] * (len(sizes) if len(ratios) == 1 else 1)
    if len(ratios) != len(sizes):
        raise checks.reject("ratios", f"have one value, or one for each M of {sizes}", ratios)
    return [
        (nu, own, usual[own][1] if own in usual and nu == usual[own][0] else None)
        for nu, own in zip(ratios, sizes, strict=True)
    ]


def peak_time(speed: xr.DataArray) -> float:
    """Time at which a speed over ``time`` is largest, by a parabola through the three samples around the largest.

    Raises
    ------
    ValueError
        If the largest sample is the first or the last: the peak lies outside what was recorded.
    """
    times, values = speed["time"].values, speed.values
    top = int(np.argmax(values))
    if top in (0, len(values) - 1):
        raise ValueError(f"`speed` must peak inside the recorded times, but got its maximum at t = {times[top]:g}")
    near = slice(top - 1, top + 2)
    curvature, slope, _ = np.polyfit(times[near] - times[top], values[near], 2)
    return float(times[top] - slope / (2 * curvature))


def share_done(trajectory: Trajectory, *, next_token: int = 0) -> xr.DataArray:
    """Completed share of the change of attention given ``next_token``, over ``time``: from zero to one.

    The change is the sum of |c(t) - c(0)| over tokens, twice the total variation.
    """
    shares = trajectory.dataset["attention"].sel(next_token=next_token)
    change = np.abs(shares - shares.isel(time=0)).sum("token")
    return change / change.isel(time=-1)


def attention_speed(trajectory: Trajectory, *, next_token: int = 0) -> xr.DataArray:
    """How fast attention given ``next_token`` moves, over ``time``: half the sum of |dc/dt| over tokens, per SGD step.

    By c_l' = c_l (z_l' - sum c z'), from the recorded dz/dt: no difference of neighbouring times is taken.
    """
    part = trajectory.dataset.sel(next_token=next_token)
    shares, velocity = part["attention"], part["z_velocity"].sel(query=int(part["query_of"]))
    return np.abs(shares * (velocity - (shares * velocity).sum("token"))).sum("token") / 2


def curves(trajectory: Trajectory, *, next_token: int = 0) -> xr.Dataset:
    """The curves of a flow that figures of the transition draw, over ``time``, given one next token.

    Parameters
    ----------
    trajectory : Trajectory
    next_token : int

    Returns
    -------
    xarray.Dataset
        ``speed`` of attention, per SGD step; ``share_done`` of its change; logits ``z`` and their velocities
        ``z_velocity`` (``token``: the most attended common and the most attended distinct one); ``loss`` in nats.
    """
    dataset = trajectory.dataset
    shown = list(_most_attended(dataset.sel(next_token=next_token)))
    logits = dataset[["z", "z_velocity"]].sel(query=int(dataset["query_of"].sel(next_token=next_token)))
    drawn = logits.sel(token=shown).assign(
        speed=attention_speed(trajectory, next_token=next_token).assign_attrs(units="1 / SGD step"),
        share_done=share_done(trajectory, next_token=next_token).assign_attrs(units="1"),
        loss=dataset["loss"],
    )
    # Nothing reads curves as a trajectory, so they carry no format.
    drawn.attrs = {name: dataset.attrs[name] for name in ("simulator", "parameters", "versions")}
    return drawn


def _most_attended(given: xr.Dataset) -> tuple[int, int]:
    """The common and the distinct token with the most attention at the start, in a dataset of one next token."""
    attended = given["attention"]
    common, distinct = (
        int(attended["token"][int(attended.isel(time=0).where(group, -1).argmax("token"))])
        for group in (~given["distinct"], given["distinct"])
    )
    return common, distinct


def exact_transition(trajectory: Trajectory) -> float:
    """t* for the sizes and the rate of a trajectory, of next tokens drawn equally often, by plain steps from zero."""
    return decoder.transition_time(**recorded_sizes(trajectory), eta_y=trajectory.parameters["eta_y"])


def recorded_sizes(trajectory: Trajectory) -> dict[str, int]:
    """M and K of a trajectory's data, as keyword arguments for the functions of `theory`."""
    dataset = trajectory.dataset
    return {"vocab_size": int(dataset["multiplicity"].sum()), "n_classes": dataset.sizes["next_token"]}


def around_transition(flows: Mapping[str, Trajectory], *, next_token: int = 0) -> xr.Dataset:
    """Numbers around the transition time t*, for each flow of one training.

    Parameters
    ----------
    flows : mapping
        decoder -> trajectory, recorded on a logarithmic grid of times that ends where attention hardly moves.
    next_token : int
        The next token whose attention is measured.

    Returns
    -------
    xarray.Dataset
        Over ``flow``: ``done``, the share of the change of attention up to the last time that is done at t*;
        ``change``, that change as total variation, between 0 and 1; ``time_of_90_percent``; ``fastest_attention``,
        when attention moves fastest, and ``late_speed``, its speed at 10 t* over its largest; ``fastest_common`` and
        ``fastest_distinct``, when the logits of the most attended common and of the most attended distinct token do.
        NaN where that is outside the recorded times. ``transition_time``, t*, is the same for all. Times in SGD steps.
    """
    rows = {name: _around(flow, next_token) for name, flow in flows.items()}
    columns = {key: ("flow", [row[key] for row in rows.values()]) for key in next(iter(rows.values()))}
    peak = exact_transition(next(iter(flows.values())))
    return xr.Dataset({**columns, "transition_time": peak}, {"flow": list(rows)})


def _around(flow: Trajectory, next_token: int) -> dict[str, float]:
    part = flow.dataset.sel(next_token=next_token)
    share, attended = share_done(flow, next_token=next_token), part["attention"]
    moving, peak = attention_speed(flow, next_token=next_token), exact_transition(flow)
    common, distinct = _most_attended(part)
    speed = np.abs(part["z_velocity"].sel(query=int(part["query_of"])))
    enough = int(np.argmax(share.values >= 0.9))
    near = slice(max(enough - 1, 0), enough + 1)
    return {
        "done": float(share.interp(time=peak)),
        "change": float(np.abs(attended.isel(time=-1) - attended.isel(time=0)).sum()) / 2,
        "time_of_90_percent": float(np.interp(0.9, share.values[near], share["time"].values[near])),
        "fastest_attention": _peak_if_any(moving),
        "late_speed": float(moving.interp(time=10 * peak) / moving.max()),
        "fastest_common": _peak_if_any(speed.sel(token=common)),
        "fastest_distinct": _peak_if_any(speed.sel(token=distinct)),
    }


def _peak_if_any(speed: xr.DataArray) -> float:
    try:
        return peak_time(speed)
    except ValueError:
        return float("nan")


def simulated_gamma(trajectory: Trajectory) -> xr.DataArray:
    """gamma of Theorem 1 from the h that the theory flow integrated (class 0)."""
    vocab_size = int(trajectory.dataset["multiplicity"].sum())
    h = trajectory.dataset["h"].isel(bag=0)
    return (vocab_size - 1) ** 2 * h / (vocab_size - 1 + np.exp(vocab_size * h))


@dataclass(frozen=True)
class TransitionTimes:
    """One row of the table of the main job: transition times at one eta_Y, in SGD steps."""

    eta_y: float
    scanning: float  # t0' = K ln M / eta_Y
    snapping: float  # t0 = 2 K ln M / eta_Y
    exact: float  # t*, the closed-form peak of gamma
    gamma: float  # the peak of gamma in the theory flow
    speed: Mapping[str, float]  # the peak of the dominant distinct token's speed, by decoder


def transition_times(flows: Mapping[str, Trajectory], *, eta_y: float) -> TransitionTimes:
    """The row for the flows of `fidelity_flows` on classes of `SequenceClasses.single_common_token`."""
    first = next(iter(flows.values()))
    own = decoder.Decoder(**recorded_sizes(first), eta_y=eta_y)
    return TransitionTimes(
        eta_y,
        own.scanning_time,
        own.snapping_time,
        own.transition_time,
        peak_time(simulated_gamma(flows["theory"])),
        {name: peak_time(flow.dataset["z_velocity"].isel(query=0).sel(token=1)) for name, flow in flows.items()},
    )


def transition_cells(rows: Sequence[TransitionTimes]) -> tuple[list[str], list[list[float]]]:
    """Column names and values of the table."""
    names = ["eta_Y", "t0'", "t0", "t* exact", "gamma peak", *(f"speed: {name}" for name in rows[0].speed)]
    return names, [[r.eta_y, r.scanning, r.snapping, r.exact, r.gamma, *r.speed.values()] for r in rows]


def transition_table(rows: Sequence[TransitionTimes]) -> str:
    """The table as aligned text."""
    names, cells = transition_cells(rows)
    lines = ["".join(f"{name:>16}" for name in names)]
    lines += ["".join(f"{value:16.5g}" for value in row) for row in cells]
    return "\n".join(lines)


def transition_csv(rows: Sequence[TransitionTimes]) -> str:
    """The table as comma-separated values."""
    names, cells = transition_cells(rows)
    return "\n".join([",".join(names), *(",".join(f"{value:.10g}" for value in row) for row in cells)]) + "\n"


def _factor(margin: float) -> str:
    """Ratio of a condition's two sides as text; the ratio of a failed condition is never rounded to one."""
    return f"{margin:.3g}" if margin >= 1 else faithful(1 / margin, lambda factor: factor <= 1)


def regime(classes: SequenceClasses) -> str:
    """Where these classes stand: Assumption 2 with its margins, and the slow-down s of the full flow, as text.

    Raises
    ------
    ValueError
        If classes are not drawn equally often, or their overlaps are not equal: s is of such classes.
    """
    overlap = classes.overlap()
    pairs = overlap[np.triu_indices(classes.n_classes, 1)]
    for name, numbers in (("equal weights", classes.class_weights), ("equal overlaps", pairs)):
        if tokens.alike(np.asarray(numbers)[:, None]) < 1:
            raise checks.reject("classes", f"have {name}", checks.brief(np.asarray(numbers).tolist()))
    weak = tokens.weak_correlation(overlap, vocab_size=classes.vocab_size)
    slowdown = attention.full_flow_slowdown(
        vocab_size=classes.vocab_size, n_classes=classes.n_classes, overlap=float(overlap[0, 1])
    )
    upper, lower = (
        f"{'holds' if margin >= 1 else 'fails'} (by a factor of {_factor(margin)})"
        for margin in (weak.upper_margin, weak.lower_margin)
    )
    return (
        f"Overlap f_n . f_n' = {overlap[0, 1]:.4g}. Assumption 2: |lambda_1(E)| < 1/K {upper}; "
        f"|lambda_i(E)| >= 6/sqrt(M) {lower}.\n"
        f"Early in training the full flow moves attention s = {slowdown:.3g} times as fast as the theory says."
    )
