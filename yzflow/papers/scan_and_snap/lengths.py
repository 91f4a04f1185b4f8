"""SGD on sequences of T tokens beside the full flow: runs at several T, and a sentence wherever both are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynamics import SequenceClasses, Solver, Trajectory, gradient_flow, sgd
from yzflow.values.marks import as_text

LENGTHS = (128, 1024, 8192, None)  # the first is the paper's; None is the limit
BATCH_SIZE = 128
_INFINITE = "infinity"
_SEEDS = {1024: 2, 8192: 1, None: 1}  # at most: long sequences take long, and in the limit nothing is drawn


def named(length: int | None) -> str:
    """T in data and on pages: its digits, or "infinity"."""
    return _INFINITE if length is None else str(length)


def said(length: int | None, numbers: Mapping[str, Any] | None = None) -> str:
    """The sentence on T for every drawing of SGD beside a flow.

    Parameters
    ----------
    length : int or None
        T of SGD's sequences; None is the limit T -> infinity.
    numbers : mapping, optional
        From `compared`. Without numbers the sentence names the difference only.
    """
    if length is None:
        text = "SGD with T = infinity sees each class as infinitely long sequences show it, as the full flow does"
    else:
        text = (
            f"SGD with sequences of T = {length:,} tokens is not the full flow, which stands for infinitely long ones"
        )
    if numbers is None:
        return f"{text}."
    digits = ".3g" if length is None else ".2g"
    sgd_at, flow_at = (as_text(numbers[who], digits) for who in ("sgd", "flow"))
    fallen = [as_text(many, "words") if (many := numbers[f"{who}_fallen"]) else "none" for who in ("sgd", "flow")]
    return (
        f"{text}: after {numbers['steps']:,} steps the common token's logit is at {sgd_at} in SGD and at {flow_at} in "
        f"the full flow, and of {as_text(numbers['distinct'], 'words')} distinct logits {fallen[0]} have fallen in SGD "
        f"and {fallen[1]} in the full flow."
    )


def trained(
    classes: SequenceClasses, *, eta_y: float, eta_z: float, steps: int, seeds: int, length: int | None
) -> list[Trajectory]:
    """Runs of SGD from zero without momentum, with seeds from 0 on: ``seeds`` runs, or fewer for long sequences.

    Each step takes batches of `BATCH_SIZE` sequences, or in the limit of long sequences all classes.
    """
    batch = None if length is None else BATCH_SIZE
    options: dict[str, Any] = {"steps": steps, "batch_size": batch, "length": length, "momentum": 0.0}
    many = min(seeds, _SEEDS.get(length, seeds))
    return [sgd(classes, eta_y=eta_y, eta_z=eta_z, **options, seed=seed) for seed in range(many)]


def by_token(z: np.ndarray, n_classes: int) -> np.ndarray:
    """(.., logits) -> (.., 1 + distinct): the common token's logit, then each distinct token's mean over classes."""
    distinct = z[..., 1:].reshape(*z.shape[:-1], n_classes, -1).mean(axis=-2)
    return np.concatenate([z[..., :1], distinct], axis=-1)


def full_flow(classes: SequenceClasses, *, eta_y: float, eta_z: float, steps: int) -> np.ndarray:
    """Logits of the full flow after ``steps``, by token, for comparison with SGD."""
    flow = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=steps, solver=Solver(time_scale="log"))
    return by_token(flow.dataset["z"].to_numpy()[-1, 0], classes.n_classes)


def compared(ends: Sequence[np.ndarray], flow: np.ndarray, *, steps: int) -> dict[str, Any]:
    """Numbers for `said`, from SGD's mean final logits and the logits of `full_flow`, both by token."""
    numbers: dict[str, Any] = {"steps": steps, "distinct": len(flow) - 1}
    for who, z in {"sgd": np.mean(ends, axis=0), "flow": flow}.items():
        numbers |= {who: float(z[0]), f"{who}_fallen": int((z[1:] < 0).sum())}
    return numbers
