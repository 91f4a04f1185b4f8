"""Task for sweeps: accuracy of Theorem 1 for softmax."""

from __future__ import annotations

import numpy as np

import yzflow as yz
from yzflow.sweeps.runs import Task
from yzflow_joma import measures
from yzflow_joma.settings import random_contexts

_KEYS = {"contexts": 40, "tokens": 6, "units": 4, "activation": "softplus", "scale": 0.1, "t_end": 20.0}


def _complete(given: dict) -> dict:
    if unknown := set(given) - set(_KEYS):
        raise ValueError(f"`grid` must have keys of {', '.join(_KEYS)}, but got {', '.join(sorted(unknown))}")
    return _KEYS | given


def drift(configuration: dict, seed: int) -> dict:
    """Drifts with and without the term of bbar, and `measures.factorisation`."""
    c = _complete(configuration)
    sizes = int(c["contexts"]), int(c["tokens"]), int(c["units"])
    how = {"activation": c["activation"], "scale": float(c["scale"])}
    setting = random_contexts("drawn", *sizes, seed=seed, **how)
    flow = setting.flow("softmax")
    data = yz.integrate(flow, t_end=float(c["t_end"]), n_times=40, rtol=1e-7, atol=1e-9).dataset
    start = measures.mean_attention(flow, data["z"].values[0])
    return {
        "with_term": np.array(measures.with_mean(data, start)),
        "without": np.array(measures.with_mean(data, 0 * start)),
        "factorisation": np.array(measures.factorisation(flow)),
    }


TASKS = (Task("joma_drift", drift, keys=tuple(_KEYS), complete=_complete),)
