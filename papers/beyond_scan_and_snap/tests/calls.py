"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

# ruff: noqa: C408
import re

import hostile
from yzflow_beyond_scan_and_snap import late, late_attention

# Modules whose names are no calls for users: proofs and checks, and what the engines ask of a paper.
INNER = re.compile(r"\._|\.(proofs|statements|formulas|values|views|questions|lengths)\b")
EXEMPT = {
    hostile.OURS: {
        # Settings of a check, a flow that integrators call, and steps of closed forms at logarithms of times.
        *(f"late_attention.{name}" for name in ("random_settings", "rising", "unbroken_fall")),
        *(f"late_attention.LateAttention.{name}" for name in ("conditions", "derivative", "exponent", "ln_t")),
        *(f"late.{name}" for name in ("log_growth", "solve")),
    },
}


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    sizes = dict(n_classes=2, vocab_size=3)
    population = dict(**sizes, common=0.4, n_distinct=1, eta_y=1.0, eta_z=0.5)
    return {
        "late_attention.LateAttention": (late_attention.LateAttention, dict(**sizes, ratio=0.5, speed=0.5)),
        "late_attention.LateAttention.of": (late_attention.LateAttention.of, population),
        "late.late_flow": (late.late_flow, dict(ln_t=[1.0, 2.0], **population, rtol=1e-6)),
        "late.theory_logit": (late.theory_logit, dict(ln_t=[1.0], **population)),
        "late.final_exponent": (late.final_exponent, sizes),
    }
