"""Gradients after a backward pass, and before the optimizer's step: were they changed in between?"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

__all__ = ["CHANGED", "LEFT", "TOLD", "UNKNOWN", "Gradients", "no_gradient"]

LEFT, CHANGED = "as backward left them", "changed before the step"
UNKNOWN, TOLD = "unknown", "as told"  # TOLD: the rule was given, and steps are not seen
_SAMPLE = 1024  # the most entries of a gradient that are compared one by one
_SAME = 1e-5  # entries have one factor up to this relative difference


class Gradients:
    """Gradients of a model's parameters after backward passes, and before the optimizer's steps.

    At each step norms are compared; with ``closely``, a sample of the entries, too. A gradient is not compared if
    nothing wrote to it in between.

    Attributes
    ----------
    state : str
        `LEFT` if every step had the gradient of its backward pass, `CHANGED` if a step had another, else `UNKNOWN`.
    factors : dict
        For the last close comparison: ``id`` of a parameter -> the factor by which its gradient was scaled, or NaN if
        it was changed otherwise.
    """

    def __init__(self) -> None:
        self.state = ""
        self.factors: dict[int, float] = {}
        self._left: dict[int, tuple[tuple[int, int], float, Any]] = {}
        self._written = False

    @property
    def ready(self) -> bool:
        """True if a backward pass has ended and its gradients were not compared yet."""
        return bool(self._left)

    @property
    def scaled(self) -> bool:
        """True if the last close comparison found one factor for each gradient."""
        return bool(self.factors) and not any(map(math.isnan, self.factors.values()))

    def keep(self, parameters: Sequence[Any], closely: bool) -> None:
        """Keep the gradients after a backward pass."""
        known = [one for one in parameters if one.grad is not None and not one.grad.is_sparse]
        norms = _norms(known) if closely or self._written else [math.nan] * len(known)
        self._left = {
            id(one): (_mark(one.grad), norm, _sample(one.grad) if closely else None)
            for one, norm in zip(known, norms, strict=True)
        }

    def forget(self) -> None:
        """Forget the gradients of a backward pass after its step."""
        self._left = {}

    def compare(self, parameters: Sequence[Any], optimizer: Any, dropped: bool) -> None:
        """Compare the gradients that an optimizer is about to use with the kept ones.

        With ``dropped``, gradients of another backward pass were thrown away before. Unless a scaler skips steps, the
        result is then unknown.
        """
        here = [one for one in parameters if one.grad is not None]
        scale, in_step = _scaler(), getattr(optimizer, "grad_scale", None)
        if not here:
            return
        if (dropped and scale is None) or any(id(one) not in self._left for one in here):
            self._see(UNKNOWN)
            return
        written = any(_mark(one.grad) != self._left[id(one)][0] for one in here)
        factor = (1.0 if scale is None else scale) / (1.0 if in_step is None else float(in_step))
        norms = _norms(here) if written or self._left[id(here[0])][2] is not None else None
        for index, one in enumerate(here):
            mark, norm, sample = self._left[id(one)]
            if sample is not None and norms is not None:
                found = _factor(sample, _sample(one.grad), norm, norms[index]) * factor
                self.factors[id(one)] = 1.0 if abs(found - 1) < _SAME else found
                self._see(LEFT if self.factors[id(one)] == 1 else CHANGED)
            elif _mark(one.grad) == mark:
                self._see(LEFT)
            elif math.isnan(norm) or norms is None:
                self._see(UNKNOWN)
            else:
                self._see(LEFT if abs(norms[index] * factor - norm) <= _SAME * norm else CHANGED)
        self._written = self._written or written

    def _see(self, state: str) -> None:
        order = ("", LEFT, UNKNOWN, CHANGED)
        self.state = max(self.state, state, key=order.index)


def no_gradient(parameters: Sequence[Any]) -> bool:
    """True if parameters have no gradient, or zeros only."""
    for one in parameters:
        grad = one.grad
        if grad is not None and (grad._nnz() if grad.is_sparse else bool(grad.any())):
            return False
    return True


def _mark(grad: Any) -> tuple[int, int]:
    """A mark that changes when a gradient is written to or replaced."""
    return id(grad), grad._version


def _norms(parameters: Sequence[Any]) -> list[float]:
    import torch

    if not parameters:
        return []
    with torch.no_grad():
        found = torch._foreach_norm([one.grad for one in parameters])
        return torch.stack([one.to(found[0].device, torch.float32) for one in found]).tolist()


def _sample(grad: Any) -> Any:
    """A copy of evenly spaced entries of a gradient, in double precision."""
    flat = grad.detach().reshape(-1)
    return flat[:: -(-flat.numel() // _SAMPLE) or 1].cpu().double()


def _factor(before: Any, after: Any, norm: float, norm_after: float) -> float:
    """The factor by which a gradient was multiplied; NaN if it was changed otherwise."""
    if (before == after).all() and norm == norm_after:
        return 1.0
    size = float(before @ before)
    if not size:
        return 1.0 if norm == norm_after else math.nan
    factor = float(before @ after) / size
    off = float((after - factor * before).abs().max())
    pure = off <= _SAME * float(after.abs().max()) and abs(norm_after - abs(factor) * norm) <= 1e-3 * norm_after
    return factor if pure else math.nan


def _scaler() -> float | None:
    """Scale of the mixed-precision scaler that is making the step, and has divided by it; None without a scaler."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "step" and frame.f_code.co_filename.endswith("grad_scaler.py"):
            return float(frame.f_locals["self"].get_scale())
        frame = frame.f_back
    return None
