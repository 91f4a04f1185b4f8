"""The table of models that can be looked at; a model of no kind in it is refused."""

from __future__ import annotations

from typing import Any

from dynamics.support import checks
from yzflow_watch.adapters import KINDS, Adapter
from yzflow_watch.families import FAMILIES

__all__ = ["ADAPTERS", "adapter_of"]

ADAPTERS: tuple[Adapter, ...] = (*KINDS, *FAMILIES)


def adapter_of(model: Any) -> Adapter:
    """The first entry of `ADAPTERS` that fits the model.

    Raises
    ------
    ValueError
        If none does.
    """
    for one in ADAPTERS:
        if one.fits(model):
            return one
    known = ", ".join(one.kind for one in ADAPTERS)
    rule = f"be {known}, or come with `attention` and `logits`"
    raise checks.reject("model", rule, type(model).__name__)
