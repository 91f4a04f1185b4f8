"""Sizes and rates of a training with the paper's closed forms, read from its recorded flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics import Objective, SequenceClasses, Trajectory
from dynamics.support import checks
from theory import attention, decoder
from yzflow.papers.scan_and_snap.phase_transition import recorded_sizes

# Numbers that only flows of other layers than the paper's record.
_BEYOND = ("v", "hidden", "embedding", "residual", "temperature", "normalisation")
# Allowed relative difference between a flow's recorded numbers and the expected numbers.
_CLOSE = 1e-3


@dataclass(frozen=True)
class Equal:
    """Plain training from zero of equally frequent classes that share one token, with equal overlaps.

    Attributes
    ----------
    n_classes, vocab_size : int
        K and M.
    overlap : float
        f_n . f_n' of different classes at the start.
    eta_y, eta_z : float
        Rates per step.
    t_end : float
        Last recorded time, SGD steps.
    common, distinct : int
        The common token, and the most probable distinct token of class 0.
    shares : tuple of float
        Probabilities of the distinct tokens of class 0, the largest first.
    """

    n_classes: int
    vocab_size: int
    overlap: float
    eta_y: float
    eta_z: float
    t_end: float
    common: int
    distinct: int
    shares: tuple[float, ...]

    @property
    def sizes(self) -> dict[str, Any]:
        """K and M, as the functions of `theory` take them."""
        return {"vocab_size": self.vocab_size, "n_classes": self.n_classes}

    @property
    def rates(self) -> dict[str, Any]:
        """Both rates, as the functions of `theory` take them."""
        return {"eta_y": self.eta_y, "eta_z": self.eta_z}

    @property
    def decoder(self) -> decoder.Decoder:
        """The decoder, for t*, t0 and its other closed forms."""
        return decoder.Decoder(**self.sizes, eta_y=self.eta_y)

    @property
    def speed_constant(self) -> float:
        """C_0 = 1 / ((K - 1) rho^2)."""
        return float(attention.speed_constant(n_classes=self.n_classes, overlap=self.overlap))

    @property
    def words(self) -> str:
        """K, M and the overlap in a line of plain text."""
        return f"K = {self.n_classes}, M = {self.vocab_size:,}, overlap {self.overlap:.3g}"


def check_plain(name: str, flow: Trajectory) -> None:
    """Refuse a flow of another training than plain steps from zero, for which t* is derived.

    Raises
    ------
    ValueError
        If the flow has another start, layer, optimizer or objective, or lacks attention on all tokens.
    """
    checks.instance(name, flow, Trajectory)
    dataset, parameters = flow.dataset, flow.parameters
    beyond = [key for key in _BEYOND if key in dataset or key in dataset.attrs]
    for word, value, wanted in (
        ("be gradient flows", dataset.attrs.get("simulator"), "gradient_flow"),
        ("record attention of all tokens, as flows of up to 1 GiB do", "token" in dataset["attention"].dims, True),
        ("start at time zero", float(dataset["time"][0]), 0.0),
        ("start at zero logits", bool((dataset["z"].isel(time=0) == 0).all()), True),
        ("start at a decoder of zeros", "y" not in dataset or bool((dataset["y"].isel(time=0) == 0).all()), True),
        ("be of the paper's layer: another layer has other closed forms", beyond, []),
        ("be of plain gradient descent: another optimizer has other closed forms", parameters.get("optimizer"), None),
        ("be of the plain cross-entropy: another objective has other closed forms", flow.objective, Objective()),
    ):
        if value != wanted:
            raise checks.reject(name, word, checks.brief(value))


def read(name: str, flow: Trajectory) -> Equal:
    """Sizes and rates of a flow's training, read from its records.

    The decoder of a theory flow shows the frequencies of classes. Other flows do not record them: see `check_classes`.

    Raises
    ------
    ValueError
        If the closed forms do not hold for the recorded training; the error says why.
    """
    check_plain(name, flow)
    own = recorded_sizes(flow)
    dataset, parameters = flow.dataset, flow.parameters
    start = dataset["attention"].isel(time=0).values  # P(l|n), at zero logits
    unit = start / np.linalg.norm(start, axis=1, keepdims=True)
    overlaps = (unit @ unit.T)[~np.eye(len(unit), dtype=bool)]
    (common,) = np.nonzero((start > 0).all(axis=0))
    shared = np.flatnonzero((start > 0).sum(axis=0) > 1)
    if dataset.sizes["query"] != 1 or len(common) != 1 or len(shared) != 1 or own["n_classes"] < 2:
        rule = "be of classes with one query that share one token and no other, as `single_common_token` makes them"
        raise checks.reject(name, rule, f"{dataset.sizes['query']} queries and {len(shared)} shared tokens")
    if np.ptp(overlaps) > _CLOSE * overlaps.max():
        rule = "be of classes with equal overlaps, for which the closed form is"
        raise checks.reject(name, rule, f"overlaps from {overlaps.min():.3g} to {overlaps.max():.3g}")
    if "h" in dataset:
        _as_frequent(name, flow, own)
    row = np.where(dataset["distinct"].values[0], start[0], 0.0)
    tokens = dataset["token"].values
    return Equal(
        **own,
        overlap=float(overlaps.mean()),
        eta_y=parameters["eta_y"],
        eta_z=parameters["eta_z"],
        t_end=float(dataset["time"][-1]),
        common=int(tokens[common[0]]),
        distinct=int(tokens[row.argmax()]),
        shares=tuple(np.sort(row[row > 0])[::-1].tolist()),
    )


def _as_frequent(name: str, flow: Trajectory, own: Mapping[str, int]) -> None:
    """Refuse a theory flow whose decoder does not fit equally frequent classes at the flow's rate."""
    recorded, last = flow.dataset["h"].isel(time=-1).values, float(flow.dataset["time"][-1])
    foreseen = decoder.h(last / own["n_classes"], vocab_size=own["vocab_size"], eta_y=flow.parameters["eta_y"])
    if np.abs(recorded / foreseen - 1).max() > _CLOSE:
        rule = f"be of equally frequent classes, whose h is {foreseen:.4g} at t = {last:g}"
        raise checks.reject(name, rule, f"h from {recorded.min():.4g} to {recorded.max():.4g}")


def same(name: str, flows: Mapping[str, Trajectory], classes: SequenceClasses) -> Equal:
    """The common training of several flows; its classes must fit, too.

    Raises
    ------
    ValueError
        If the trainings differ.
    """
    told = {level: read(name, flow) for level, flow in flows.items()}
    first = next(iter(told.values()))
    for level, other in told.items():
        if not _alike(first, other):
            raise checks.reject(name, "be flows of one training", f"{first.words} and {other.words} ({level})")
    check_classes(name, next(iter(flows.values())), classes)
    return first


def _alike(first: Equal, other: Equal) -> bool:
    """Whether two flows have the same sizes, rates, tokens and probabilities."""
    mine, its = (
        [one.n_classes, one.vocab_size, one.common, one.distinct, one.overlap, one.eta_y, one.eta_z, one.t_end]
        for one in (first, other)
    )
    return bool(np.allclose(mine, its, rtol=1e-9, atol=0))


def begins_on(run: Trajectory, classes: SequenceClasses, close: float) -> bool:
    """Whether attention at the start is P(l|n) of these classes, up to ``close``, as at zero logits."""
    start, shares = run.dataset["attention"].isel(time=0).values, classes.probabilities.toarray()
    if recorded_sizes(run) != {"vocab_size": classes.vocab_size, "n_classes": classes.n_classes}:
        return False
    width = min(shares.shape[1], start.shape[1])
    if shares[:, width:].any() or start[:, width:].any():
        return False
    return bool(np.abs(shares[:, :width] - start[:, :width]).max() <= close)


def check_classes(name: str, flow: Trajectory, classes: SequenceClasses) -> None:
    """Refuse classes that a flow was not trained on, and classes that are not equally frequent.

    Raises
    ------
    ValueError
        If the flow has other classes, or their frequencies differ.
    """
    checks.instance("classes", classes, SequenceClasses)
    if not begins_on(flow, classes, _CLOSE):
        rule = f"be flows of the classes beside them, with K = {classes.n_classes} and M = {classes.vocab_size}"
        own = recorded_sizes(flow)
        raise checks.reject(name, rule, f"K = {own['n_classes']} and M = {own['vocab_size']}, or other tokens")
    if np.ptp(classes.class_weights) > 1e-9:
        raise checks.reject(
            name, "be of equally frequent classes, for which t* is", checks.brief(classes.class_weights)
        )
