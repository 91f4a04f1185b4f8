"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp

from theory.bounded_dyck.proofs import stack, theorem1, theorem2, uniform

MISTAKES = {
    # The difference of (11) is called c here: with c = -a the value is -exp(-a) V_open, not -exp(a) V_open.
    "theorem1: exp(a) for c = -a": (
        theorem1,
        {"partner_value": lambda value, c: -sp.exp(-c) * value},
        "(11) gives (14)",
    ),
    "theorem1: sign of V_close": (
        theorem1,
        {"partner_value": lambda value, c: sp.exp(c) * value},
        "(14) forces V_close",
    ),
    "theorem1: half a pair": (
        theorem1,
        {"insertion": lambda opened, closed, x, y: opened * sp.exp(x)},
        "u_n = u_0 + n delta",
    ),
    "theorem2: without the factor 2": (
        theorem2,
        {"bound": lambda p, lipschitz, separation, n: p * (1 + lipschitz / separation) / n},
        "the bound is where",
    ),
    "stack: sign of b": (stack, {"close_value": lambda b: -sp.exp(b)}, "coordinate"),
    "stack: V_open without a": (stack, {"open_value": lambda a: sp.Integer(1)}, "coordinate"),
    "stack: a step that starts late": (
        stack,
        {"step": lambda f, s: sp.Max(0, f / s - 1) - sp.Max(0, f / s - 2)},
        "step from",
    ),
    "stack: every unmatched bracket is the top": (stack, {"top": lambda own, deeper: own}, "head"),
    "uniform: without START's share": (uniform, {"depth_of": lambda start, height: height}, "depth"),
    "uniform: unequal values": (uniform, {"shared_value": lambda values: values}, "attention moves"),
}
