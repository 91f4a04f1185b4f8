"""Symmetry in the flow: how few variables it integrates, and that the result is the same."""

import re
from typing import Any

import numpy as np
import scipy.sparse

from dynamics import SequenceClasses, Solver, gradient_flow
from theory.values import Study


def _reduction(classes: SequenceClasses, **options: Any) -> dict[str, int]:
    """Variables and logits of a flow, as it says itself."""
    options = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 1.0, "times": [1.0]} | options
    text = gradient_flow(classes, **options).dataset.attrs["reduction"]
    found = re.fullmatch(r"(\d+) copies of \d+ bags: (\d+) variables in place of (\d+) logits", text)
    assert found is not None, text
    return dict(zip(("copies", "variables", "logits"), map(int, found.groups()), strict=True))


def theorem_4(classes: list[int], m: int) -> dict[str, Any]:
    """One common token and five own ones a class, at several numbers of classes."""
    full = [_reduction(SequenceClasses.single_common_token(k, m)) for k in classes]
    many = [k for k in classes if k >= 48]  # with fewer the theory's flow goes whole
    theory = [_reduction(SequenceClasses.single_common_token(k, m), decoder="theory") for k in many]
    (variables,) = {one["variables"] for one in full}
    (fewer,) = {one["variables"] for one in theory}
    return {"variables": variables, "theory": fewer, "logits": [one["logits"] for one in full]}


def syn_medium(queries: list[int]) -> dict[str, int]:
    """The paper's Syn-Medium at several numbers of queries, all with as many variables."""
    (variables,) = {_reduction(SequenceClasses.syn_medium(n))["variables"] for n in queries}
    return {"variables": variables}


def copies(k: int, common: list[int], own: int) -> dict[str, Any]:
    """Many copies of a class with some common and some own tokens, all of another probability."""
    found = []
    for shared in common:
        row = np.arange(1.0, shared + own + 1)
        tokens = np.hstack([np.tile(np.arange(shared), (k, 1)), shared + np.arange(k * own).reshape(k, own)])
        table = scipy.sparse.csr_array(
            (np.tile(row / row.sum(), k), tokens.ravel(), np.arange(0, tokens.size + 1, shared + own)),
            (k, shared + k * own),
        )
        found.append(_reduction(SequenceClasses(table, np.zeros(k, dtype=int))))
    return {"variables": [one["variables"] for one in found], "logits": [one["logits"] for one in found]}


def same(classes: list[int], m: int, eta_y: float, eta_z: float, t: float, rtol: float) -> dict[str, list[float]]:
    """The largest difference of Z between the reduced flow and the whole one."""
    found = []
    for k in classes:
        ends = [
            gradient_flow(
                SequenceClasses.single_common_token(k, m),
                eta_y=eta_y, eta_z=eta_z, t_end=t, times=[t], rtol=rtol, solver=Solver(reduce=reduce),
            ).final.Z
            for reduce in ("auto", "none")
        ]  # fmt: skip
        found.append(float(np.abs(ends[0] - ends[1]).max()))
    return {"difference": found}


STUDIES = (
    Study("theorem_4", theorem_4, {"classes": [10, 40, 160], "m": 20_000}),
    Study("syn_medium", syn_medium, {"queries": [2, 3, 10]}),
    Study("copies", copies, {"k": 10_000, "common": [16, 40], "own": 4}),
    Study(
        "same",
        same,
        {"classes": [10, 40, 160], "m": 20_000, "eta_y": 1.0, "eta_z": 0.5, "t": 1e4, "rtol": 1e-8},
        quick=False,
        noise=1e-8,
    ),
)
