"""Published numbers of the phase transition: inside the assumptions, in a contrast, and in the paper's own setting."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics import SequenceClasses, gradient_flow
from theory.values import Study
from yzflow.papers.scan_and_snap import flagship, lengths
from yzflow.papers.scan_and_snap import phase_transition as pt
from yzflow.papers.scan_and_snap.views import VIEWS, common_of


def seen(**setting: Any) -> dict[str, Any]:
    """Numbers around t* in the theory, the modified and the full flow, and the sentences that say them."""
    one = flagship.made("", **setting)
    runs = flagship.flows(one)
    found = pt.around_transition(runs)
    numbers = ("done", "change", "time_of_90_percent", "fastest_attention", "late_speed", "fastest_common")
    return {
        "overlap": one.overlap,
        "ratio": one.eta_y / one.eta_z,
        "transition_time": float(found["transition_time"]),
        **{name: {level: float(found[name].sel(flow=level)) for level in runs} for name in numbers},
        "theory_over_full": flagship.theory_over_full(found),
        "told": flagship.told(one, runs),
    }


def by_length(steps: int, seeds: int, ts: list[int], **setting: Any) -> dict[str, Any]:
    """SGD at lengths T of its sequences and at T = infinity beside the flows: logits, and the sentences that say them.

    ``common`` is the common token's logit, and ``distinct`` the most frequent distinct token's, averaged over classes.
    ``printed`` comes from the theory flow with K times the rate of attention, as printed in Theorem 2.
    """
    classes = SequenceClasses.single_common_token(setting["n_classes"], setting["vocab_size"], common=setting["common"])
    k, rates = classes.n_classes, {name: setting[name] for name in ("eta_y", "eta_z")}

    def of(z: np.ndarray) -> dict[str, float]:
        return {"common": float(z[0]), "distinct": float(z[1])}

    def theory(times: int) -> dict[str, float]:
        more = rates | {"eta_z": times * rates["eta_z"]}
        run = gradient_flow(classes, **more, t_end=steps, decoder="theory")
        return of(lengths.by_token(run.dataset["z"].to_numpy()[-1, 0], k))

    full = lengths.full_flow(classes, **rates, steps=steps)
    rows, told = [], []
    for length in (*ts, None):
        runs = lengths.trained(classes, **rates, steps=steps, seeds=seeds, length=length)
        z = np.array([lengths.by_token(run.dataset["z"].to_numpy()[-1, 0], k) for run in runs])
        numbers = lengths.compared(list(z), full, steps=steps)
        told.append(lengths.said(length, numbers))
        rows.append(
            {
                "t": lengths.named(length),
                "seeds": len(z),
                **{name: float(z[:, at].mean()) for at, name in enumerate(("common", "distinct"))},
                "low": float(z[:, 1].min()),
                "high": float(z[:, 1].max()),
                "fallen": numbers["sgd_fallen"],
            }
        )
    found = {"full": of(full), "theory": theory(1), "printed": theory(k)}
    return {**found, "rows": rows, "told": told, "times": rows[0]["common"] / found["full"]["common"]}


_PAPER = flagship.CONTRAST | {"common": 0.15}  # `phase_transition.weak_classes`
_SETTINGS = {
    "inside": flagship.INSIDE,
    "contrast": flagship.CONTRAST,
    "paper": _PAPER,
    "paper_slow": _PAPER | {"eta_z": pt.SLOW_RATIO},
}
_FIRST = VIEWS.starts[None][0].setting  # the first setting on the pages of statements
_LENGTHS = {
    "inside": {key: value for key, value in flagship.INSIDE.items() if key != "t_end"},
    "page": {
        "n_classes": _FIRST["K"],
        "vocab_size": _FIRST["M"],
        "common": common_of(_FIRST["rho"]),
        "eta_y": _FIRST["etaY"],
        "eta_z": _FIRST["etaZ"],
    },
}
STUDIES = tuple(
    Study(name, seen, setting, (flagship.standing(flagship.made(name, **setting)),), tolerance=1e-5)
    for name, setting in _SETTINGS.items()
) + tuple(
    Study(
        f"lengths_{name}",
        by_length,
        {"steps": 2000, "seeds": 8, "ts": [128, 1024, 8192], **setting},
        ("SGD from zero without momentum, batches of 128, with T = infinity all classes", "at most 8 seeds a length"),
        quick=False,
        tolerance=1e-3,
    )
    for name, setting in _LENGTHS.items()
)
