"""Theorem 2(a) under the true decoder gradient with frozen features: its sum over random overlaps."""

from theory.values import Study
from yzflow_studies.true_gradient import study as gradient


def survey(draws: int, seed: int, ln_t: float) -> dict:
    """xi_n in frozen flows of random Gram matrices, as a share of the sum of the moduli of its terms."""
    found = gradient.survey(draws=draws, seed=seed, last=ln_t)
    return {
        "least": float(found["least"].min()),
        "below": int((found["least"] < 0).sum()),
        "none_below": bool((found["least"] > 0).all()),
        "negative_term": float(found["negative"].mean()),
        "k_low": int(found["n_classes"].min()),
        "k_high": int(found["n_classes"].max()),
        "m_high": int(found["vocab_size"].max()),
    }


def crossing(h_fast: float, back: float, mu: float) -> dict:
    """The weighted sum of H that turns back, after and before the turn: the first would be a counter-example."""
    after, before = gradient.crossing(h_fast=h_fast, back=back, mu=mu)
    return {"after": after, "before": before, "left": h_fast - back, "negative": bool(after < 0 < before)}


STUDIES = (
    Study("survey", survey, {"draws": 1000, "seed": 1, "ln_t": 9.0}, ("features stand still",), quick=False),
    Study("crossing", crossing, {"h_fast": 3.0, "back": 1.5, "mu": 30.0}),
)
