"""A recording that goes on: the model is compared with the last record, and later rows are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["difference", "sums"]

_TOLERANCES = {2: 3e-2, 4: 1e-5, 8: 1e-9}  # bytes of a number -> tolerance of answers


def difference(model: Any, here: dict[str, Any], there: dict[str, Any]) -> str:
    """Differences of attention and loss between two records, in words; empty within rounding."""
    parameters = list(model.parameters()) if hasattr(model, "parameters") else []
    size = parameters[0].element_size() if parameters and hasattr(parameters[0], "element_size") else 4
    tolerance, found = _TOLERANCES.get(size, max(_TOLERANCES.values())), []
    for name in ("attention", "loss"):
        one, other = np.asarray(here[name]), np.asarray(there[name])
        if not np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
            found.append(f"{name} differs by {np.nanmax(np.abs(one - other), initial=0):.2g}")
    return " and ".join(found)


def sums(model: Any) -> np.ndarray | None:
    """Two sums of each parameter, to notice a change of the weights; None if the model is none of PyTorch's."""
    if not hasattr(model, "state_dict"):
        return None
    values = [one.detach().float() for one in model.parameters() if one.is_floating_point()]
    return np.array([[float(one.sum()), float(one.norm())] for one in values])
