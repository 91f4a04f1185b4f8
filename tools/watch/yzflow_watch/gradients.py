"""Gradients between the end of a backward pass and the step of an optimizer: were they changed in between?"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

__all__ = ["CHANGED", "LEFT", "TOLD", "UNKNOWN", "Gradients", "no_gradient"]

LEFT, CHANGED = "as backward left them", "changed before the step"
UNKNOWN, TOLD = "unknown", "as told"  # told: an optimizer's rule was given, and its steps are not seen
_SAMPLE = 1024  # entries of a gradient that are compared one by one
_SAME = 1e-5  # relative difference below which entries have one factor


class Gradients:
    """Gradients of a model's parameters at the end of backward passes, beside those that an optimizer is given.

    At each step norms are compared; where ``closely`` is asked for, a sample of the entries, too. A gradient that
    nothing wrote to in between is not looked at elsewhere.

    Attributes
    ----------
    state : str
        `LEFT` if no step had another gradient than its backward pass left, `CHANGED` if one had, else `UNKNOWN`.
    factors : dict
        Of the last step that was compared closely: ``id`` of a parameter -> the factor by which its gradient was
        scaled, NaN where that is no factor.
    """

    def __init__(self) -> None:
        self.state = ""
        self.factors: dict[int, float] = {}
        self._left: dict[int, tuple[tuple[int, int], float, Any]] = {}
        self._written = False

    @property
    def ready(self) -> bool:
        """Whether a backward pass has ended whose gradients no step was compared with."""
        return bool(self._left)

    @property
    def scaled(self) -> bool:
        """Whether the gradients that were compared closely last had a factor each."""
        return bool(self.factors) and not any(map(math.isnan, self.factors.values()))

    def keep(self, parameters: Sequence[Any], closely: bool) -> None:
        """Keep what a backward pass leaves."""
        known = [one for one in parameters if one.grad is not None and not one.grad.is_sparse]
        norms = _norms(known) if closely or self._written else [math.nan] * len(known)
        self._left = {
            id(one): (_mark(one.grad), norm, _sample(one.grad) if closely else None)
            for one, norm in zip(known, norms, strict=True)
        }

    def forget(self) -> None:
        """Forget what a backward pass left, as its step has been made."""
        self._left = {}

    def compare(self, parameters: Sequence[Any], optimizer: Any, dropped: bool) -> None:
        """Compare gradients of an optimizer's parameters, which it is about to use, with those that are kept.

        With ``dropped``, gradients of another backward pass were thrown away before: without a scaler that skips
        steps, something is done that is not seen here.
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
    """Whether parameters hold no gradient but zeros."""
    for one in parameters:
        grad = one.grad
        if grad is not None and (grad._nnz() if grad.is_sparse else bool(grad.any())):
            return False
    return True


def _mark(grad: Any) -> tuple[int, int]:
    """Another for a gradient that was written to, or put in the place of another."""
    return id(grad), grad._version


def _norms(parameters: Sequence[Any]) -> list[float]:
    import torch

    if not parameters:
        return []
    with torch.no_grad():
        found = torch._foreach_norm([one.grad for one in parameters])
        return torch.stack([one.to(found[0].device, torch.float32) for one in found]).tolist()


def _sample(grad: Any) -> Any:
    """A copy of entries that lie evenly in a gradient, in double precision."""
    flat = grad.detach().reshape(-1)
    return flat[:: -(-flat.numel() // _SAMPLE) or 1].cpu().double()


def _factor(before: Any, after: Any, norm: float, norm_after: float) -> float:
    """The number by which a gradient was multiplied; NaN if there is none."""
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
    """Scale of the scaler of mixed precision in whose step this is called, which has divided by it; None without."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "step" and frame.f_code.co_filename.endswith("grad_scaler.py"):
            return float(frame.f_locals["self"].get_scale())
        frame = frame.f_back
    return None
