"""Fifty false statements inside the assumptions of true ones, and how many examples the fuzzer needs to break each.

Each is a statement of the register with one thing wrong: a factor, a sign, a formula as printed, or a hypothesis that
is broken in every example. ``python tests/false_statements.py`` prints how many settings were drawn
until one violates it.
"""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from theory.scan_and_snap import attention, bounds, coverage, decoder, overlaps, visits
from theory.statements import REGISTER, Statement
from yzflow.fuzzing.blocks import BLOCK, Question, assumption, draw_block

MOST = 500


@dataclass(frozen=True)
class False_:
    """A false statement: which check of which statement at which level, and what is wrong.

    Attributes
    ----------
    number : str
    check : str
        How its name begins.
    level : str
    patch : tuple, optional
        Module, name of a function there, and what makes a wrong one of the right one.
    printed : bool
        Whether the printed form, which the register has as false, is asked in place of the corrected one.
    opposite : bool
        Whether the share of wrong signs is turned into that of right ones.
    outside : str, optional
        How the text of the hypothesis begins that is dropped.
    """

    number: str
    check: str
    level: str = "closed form"
    patch: tuple[ModuleType, str, Callable] | None = None
    printed: bool = False
    opposite: bool = False
    outside: str | None = None

    @property
    def statement(self) -> Statement:
        """With the one check."""
        true = REGISTER[f"Scan and Snap: {self.number}"]
        check = next(one for one in true.checks if one.name.startswith(self.check))
        right = check.printed if self.printed or check.corrected is None else check.corrected
        wrong = (lambda runs, level: 1 - right(runs, level)) if self.opposite else right
        alone = replace(
            check, printed=wrong, corrected=None, expected=(self.level,), claim=None, assumptions=(), suffices=None
        )
        assumed = true.assumed(check)
        return replace(
            true, number=f"{self.number}, false", assumptions=assumed, checks=(alone,), clauses=(), prove=None
        )

    @contextmanager
    def wrong(self):
        """While the formula is wrong."""
        if self.patch is None:
            yield
            return
        module, name, wrap = self.patch
        right = getattr(module, name)
        setattr(module, name, wrap(right))
        try:
            yield
        finally:
            setattr(module, name, right)

    def examples(self, seed: int, most: int = MOST) -> int | None:
        """Settings that are drawn until one violates it; None if none of so many does."""
        statement = self.statement
        left_out = None if self.outside is None else assumption(statement, self.level, self.outside)
        asked = Question(statement, self.level, left_out)
        done = 0
        with self.wrong():
            for number in range(-(-most // BLOCK)):
                block = draw_block(asked, seed=seed, number=number, simpler=False)
                done += len(block.examples)
                if block.simplest is not None:
                    return done
        if not done:
            raise ValueError(
                f"no setting was drawn: {block.rejected} were outside, {block.stopped} stopped: {block.why}"
            )
        return None


def times(factor):
    return lambda right: lambda *arguments, **options: factor * right(*arguments, **options)


def scaled(factor):
    """A method whose first argument is multiplied."""
    return lambda right: lambda self, first, **options: right(self, factor * np.asarray(first), **options)


THEORY, MODIFIED, FULL, DRAWN = "theory flow", "modified flow", "full flow", "modified SGD"
H, GAMMA, INTEGRAL = ((decoder.Decoder, name) for name in ("h", "gamma", "gamma_integral"))
TAIL = (
    visits,
    "_visit_tail",
    lambda right: lambda n, k, out: right(n, k, lambda v: out(n / k + 1.5 * (v - n / k))),
)
SIGNS = {
    "Theorem 2(a)": ("share of distinct tokens that", "share of (time"),
    "Theorem 2(b)": ("share of times without loss", "share of times with z'"),
    "Corollary 2": ("share of (time, common token) without", "share of (time, common token) with z'"),
}


def bounds_of_theorem_3(wrap):
    return False_("Theorem 3", "bounds (12)", THEORY, (attention, "growth_bounds", wrap))


FALSE = {
    # Growth of the decoder
    "Lemma 6: h at 1.001 t": False_("Lemma 6", "(45)", patch=(*H, scaled(1.001))),
    "Lemma 6: h at 0.9 t, theory flow": False_("Lemma 6", "closed form against", THEORY, (*H, scaled(0.9))),
    "Lemma 7: the steps one ahead": False_(
        "Lemma 7",
        "second clause",
        patch=(decoder, "h_steps", lambda right: lambda n, **o: right(n + 1, **o)[1:]),
    ),
    "Lemma 7: h above h*": False_("Lemma 7", "bound over", patch=(bounds, "_step_gap", times(-1))),
    "Lemma 7: a fifth of the half bound": False_("Lemma 7", "half the", patch=(bounds, "_step_gap", times(5))),
    "Lemma 7: c = 1/5": False_("Lemma 7", "second clause", patch=(bounds, "_lag", times(2.5))),
    "Remark 2 as printed": False_("Remark 2", "growth", printed=True),
    "Remark 2: ln(eta_Y s)": False_("Remark 2", "growth", patch=(bounds, "_lag", times(0.5))),
    "Lemma 8: one crossing": False_(
        "Lemma 8", "share of margins", patch=(bounds, "crossings", lambda right: lambda m: (1e-9, right(m)[1]))
    ),
    "Lemma 8: the other crossing": False_(
        "Lemma 8", "omega_0", patch=(bounds, "crossings", lambda right: lambda m: right(m)[::-1])
    ),
    "Lemma 8: omega_0 with the constant 5/3": False_(
        "Lemma 8", "omega_0", patch=(bounds, "_lower_excess", times(1.2)), printed=True
    ),
    "Lemma 9: half the constants": False_("Lemma 9", "both stages", patch=(decoder, "gamma", times(2))),
    "Lemma 9: gamma 1.01 times as large": False_("Lemma 9", "both stages", patch=(decoder, "gamma", times(1.01))),
    "Theorem 1(b) as printed": False_("Theorem 1(b)", "second stage", printed=True),
    "Corollary 1: half the steps": False_(
        "Corollary 1", "residual", patch=(decoder, "h", lambda right: lambda t, **o: right(t / 2, **o))
    ),
    "Corollary 1: the loss of 0.94 t, theory flow": False_("Corollary 1", "loss over", THEORY, (*H, scaled(0.94))),
    "Corollary 1: the loss of 0.9 t, modified flow": False_("Corollary 1", "loss over", MODIFIED, (*H, scaled(0.9))),
    "(131): at fixed t": False_(
        "Equations 131 to 133",
        "(131)",
        patch=(
            bounds,
            "_exponents",
            lambda right: lambda runs, t, faster, ratio: right(runs, t * faster, faster, ratio),
        ),
    ),
    "Theorem 4: the branches as printed": False_("Theorem 4, branches", "4 Gamma", printed=True),
    # Visits
    "Lemma 10: two thirds of the radius": False_("Lemma 10", "probability", patch=TAIL),
    "Lemma 10: the second < as printed": False_("Lemma 10", "second", printed=True),
    "Remark 4: two thirds of Delta": False_("Remark 4", "probability", patch=TAIL),
    "Lemma 11: (61) halved": False_(
        "Lemma 11",
        "(61)",
        patch=(visits, "_growths", lambda right: lambda *given: (right(*given)[0] * 2, *right(*given)[1:])),
    ),
    "Lemma 11: (62) as printed": False_("Lemma 11", "(62)", printed=True),
    "Lemma 12: half the bound": False_(
        "Lemma 12",
        "exact probability, constant 1",
        patch=(
            visits,
            "_visit_excess",
            lambda right: lambda runs, bound: right(runs, lambda n, k: bound(n, k) / 2),
        ),
    ),
    "Lemma 10: no run may be outside, modified SGD": False_(
        "Lemma 10", "visits outside", DRAWN, (coverage, "allowed", lambda right: lambda *a, **o: -1)
    ),
    "Lemma 5: h* at 1.2 N_n, modified SGD": False_(
        "Lemma 5", "w_n against", DRAWN, (decoder, "h_steps", lambda right: lambda n, **o: 1.2 * right(n, **o))
    ),
    # Gradients
    "(88) as printed": False_("Equations 86 to 93", "(88)", printed=True),
    "Theorem 1(a): 1.01 times the bound": False_(
        "Theorem 1(a)", "stars", patch=(overlaps, "_sharp_bound", times(1.01))
    ),
    "Lemma 17: the sharp bound by 1.05": False_(
        "Lemma 17",
        "the sharper",
        patch=(overlaps, "_worst_overlap", lambda right: lambda runs, ratio: right(runs, lambda *a: 1.05 * ratio(*a))),
    ),
    "Theorem 1: gamma 1.1 times as large": False_("Theorem 1", "g_n = Y r_n", THEORY, (*GAMMA, times(1.1))),
    "Theorem 1: the opposite gradient, modified flow": False_(
        "Theorem 1", "g_n = Y r_n", MODIFIED, (*GAMMA, times(-1))
    ),
    "Theorem 5: h 1.1 times as large": False_("Theorem 5", "Y against F", THEORY, (*H, times(1.1))),
    "Theorem 5: h of 0.5 t, modified flow": False_("Theorem 5", "Y against F", MODIFIED, (*H, scaled(0.5))),
    "Lemma 4 as printed": False_("Lemma 4", "velocity", THEORY, printed=True),
    "Lemma 4 as printed, modified flow": False_("Lemma 4", "velocity", MODIFIED, printed=True),
    "Theorem 2(a): the rate as printed": False_("Theorem 2(a)", "z' against", THEORY, printed=True),
    # Signs
    **{
        f"{number}: the opposite of {name} ..": False_(number, name, THEORY, opposite=True)
        for number, names in SIGNS.items()
        for name in names
    },
    "Theorem 3: leads shrink": False_("Theorem 3", "share of (time, pair)", THEORY, opposite=True),
    "Theorem 3: the dominant token falls": False_("Theorem 3", "share of (time, class)", THEORY, opposite=True),
    # Bounds of growth
    "Theorem 3: B_n without the class probability": False_("Theorem 3", "bounds (12)", THEORY, printed=True),
    "Theorem 3: twice B_n": bounds_of_theorem_3(lambda right: lambda b, f0: right(2 * b, f0)),
    "Theorem 3: 1.003 B_n": bounds_of_theorem_3(lambda right: lambda b, f0: right(1.003 * b, f0)),
    "Theorem 3: f0 for f0^2": bounds_of_theorem_3(lambda right: lambda b, f0: right(b, np.sqrt(f0))),
    "Theorem 3: bounds exchanged": bounds_of_theorem_3(lambda right: lambda b, f0: right(b, f0)[::-1]),
    # Phase transition
    "Theorem 4: 1.1 B": False_("Theorem 4", "fall of", THEORY, (attention, "growth_exponent", times(1.1))),
    "Theorem 4: C_0 for M -> infinity, full flow": False_(
        "Theorem 4",
        "first fall",
        FULL,
        (attention, "speed_constant", lambda right: lambda **o: right(**{**o, "vocab_size": None})),
    ),
    "Theorem 4: the full flow as fast as the modified": False_(
        "Theorem 4", "first fall", FULL, (attention, "full_flow_slowdown", lambda right: lambda **o: 1.0)
    ),
    "Remark 1 as printed": False_("Remark 1", "early ratio", FULL, printed=True),
    # Hypotheses that are dropped
    "Theorem 2(b) for several common tokens": False_(
        "Theorem 2(b)", SIGNS["Theorem 2(b)"][1], THEORY, outside="one common token"
    ),
    "Theorem 3, growth, where a common token gains": False_(
        "Theorem 3", "share of (time, class)", THEORY, outside="all common tokens fall"
    ),
    "Theorem 4 in the full flow": False_("Theorem 4", "fall of", FULL),
    "Theorem 4 for any overlaps": False_("Theorem 4", "fall of", THEORY, outside="(13), common components"),
}


def main() -> None:
    """Print the examples that each needed, and how they are spread; exit status 1 if one survived."""
    needed = {}
    for name, one in FALSE.items():
        needed[name] = one.examples(seed=0)
        print(f"{needed[name] or f'more than {MOST}':>8}  {name}", flush=True)
    found = [MOST + 1 if count is None else count for count in needed.values()]
    quarters = np.quantile(found, [0.5, 0.9, 1], method="inverted_cdf")
    print(f"{len(found)} false statements: median {quarters[0]}, 90% within {quarters[1]}, all within {quarters[2]}")
    sys.exit(None in needed.values())


if __name__ == "__main__":
    main()
