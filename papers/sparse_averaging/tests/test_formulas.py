"""The register's formulas are the claims that the proofs decide: another claim shows on the page."""

import importlib
import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from latex import value
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging.proofs import moments, recurrent

from theory import statements

PAPER = "Sparse averaging"
RNG = np.random.default_rng(0)
MISTAKES = runpy.run_path(str(Path(__file__).parent / "mistakes.py"))["MISTAKES"]
# Claims that no formula of the register shows, for they are of the proof alone.
INNER = {
    "assisted": {"copy_leak", "copy_temperature", "last_score", "window_leak", "window_temperature"},
    "fully_connected": {"half_weights", "tied", "weights"},
    "recurrent": {"separated", "decoded"},
    "disjointness": {"determinant", "allowed_error"},
    "groups": {"leak", "threshold", "step", "weight_error", "largest_output"},
    "transform": {
        *("forward", "backward", "length", "histogram_leak", "histogram_threshold", "histogram_step"),
        *("copy_leak", "copy_step", "weight_error", "bit_weight_error"),
    },
    "sorted_groups": {
        *("least", "triples", "digit_leak", "digit_step", "gather_leak", "gather_step", "report_leak"),
        *("report_threshold", "report_step", "weight_error", "group_size"),
    },
    "all_sets": {"tail", "deviation", "net_points", "largest_score"},
    "linear_query": {"scores"},
    "strict": {
        *("base", "step", "copies", "message", "newton", "average"),
        *("wrong_weight", "fine_step", "wire_error", "input_error"),
    },
    "match3": {"products", "near_weight", "blank_weight"},
    "moments": {"functional", "radon_weight"},
    "faces": {"dimension", "far_error", "fewer", "forced_error", "share_off"},
    "triples": {"joined", "pairs", "partner"},
    "unit_ball": {"all_but_one", "narrowest", "shrunk", "smallest"},
}


def shown():
    """All that the register shows of this paper, made anew."""
    room = importlib.import_module("yzflow_sparse_averaging._register")
    modules = [
        importlib.import_module(f"{room.__name__}.{name}") for name in ("common", "averaging", "matching", "strict")
    ]
    for module in modules:
        importlib.reload(module)
    found = [one for module in modules[1:] for one in module.STATEMENTS]
    return [
        [one.text, one.printed, one.corrected, *one.errata, *(clause.formula for clause in one.clauses)]
        for one in found
    ]


# A mistake of each set of claims: which of several is put in its place makes no difference to where it shows.
OUTER = {
    (module.__name__, *claims): name
    for name, (module, claims, _) in MISTAKES.items()
    if not {*claims} - {"sizes"} <= INNER.get(module.__name__.rpartition(".")[2], set())
}


@pytest.fixture(scope="module")
def right():
    yield shown()
    shown()  # the register as it was


@pytest.mark.slow
@pytest.mark.parametrize("mistake", OUTER.values())
def test_a_wrong_claim_changes_the_page(mistake, right, monkeypatch):
    module, claims, _ = MISTAKES[mistake]
    for name, wrong in claims.items():
        if callable(wrong):
            monkeypatch.setattr(module, name, wrong)
    assert shown() != right


def test_most_claims_that_are_formulas_are_put_to_the_test():
    assert len(OUTER) >= 20


def corrected(number):
    return statements.REGISTER[f"{PAPER}: {number}"].corrected


@pytest.mark.parametrize("q", [1, 2, 3])
def test_the_polynomial_shown_is_the_one_that_is_proved(q):
    product = re.search(r"P\(t\) = (-\\prod_\{j \\in y\}\(t-j\)\^2)", corrected("Theorem 2, exact")).group(1)
    members = RNG.integers(1, 20, size=q)
    (factor,) = re.findall(r"\\prod_\{j \\in y\}(.*)", product)
    read = "-" + "".join(factor.replace("j", f"({j})") for j in members)
    t = 2.5
    assert value(read, {"t": t}) == pytest.approx(float(moments.functional(sp.Rational(5, 2), members.tolist())))


def test_bits_of_strings_are_those_that_are_proved():
    formula = re.search(r"; (\(N-1\).*) \\text\{ bits\}", corrected("Recurrent")).group(1).strip()
    n, q, error = 101, 5, 0.7
    share = 2 * q * error / (n - 1)
    entropy = float(recurrent.ball_bits(share))
    at = {"N": n, r"H(\tfrac{2q\varepsilon}{N-1})": entropy}
    assert (
        value(formula, at) <= averaging.state_bits(n, q, error=error) == pytest.approx((n - 1) * (1 - entropy), abs=9)
    )
    assert r"H(x) = " in next(
        c.formula for c in statements.REGISTER[f"{PAPER}: Recurrent"].clauses if "H(x)" in c.formula
    )


@pytest.mark.parametrize("q", [1, 3])
def test_what_is_sent_in_the_protocol_is_what_the_register_says(q):
    formula = corrected("Theorem 4").rpartition("; ")[2].removeprefix(r"\quad ").removesuffix(r" \ge q")
    keys = averaging.random_keys(2 * q + 1, 40, rng=np.random.default_rng(0))
    run = averaging.qsa_protocol(averaging.random_keys_unit(keys, q, error=0.5 / q, bits=8), q)
    assert value(formula, {"m": 40, "d'": 1, "p": 8}) == run.bits


def test_forced_errors_are_those_of_the_function():
    clauses = {one.name: one.formula for one in statements.REGISTER[f"{PAPER}: Fully connected"].clauses}
    many = re.search(r"\\min\\left\(1,\\ (.*?)\\right\)", clauses["constant errors"]).group(1)
    one = clauses["errors of order 1/q"].rpartition(r"\ge ")[2]
    odd = re.search(r"even \} r,\\ (.*?) \\text\{ for odd", clauses["the least error"]).group(1)
    first, second = re.search(r"m = \\min\((.*?), (.*?)\)", clauses["the least error"]).groups()
    assert odd in corrected("Fully connected")
    # The last but one: three numbers are lacking, d' = 2 and q > N/2. The last: as many as can matter.
    for n, k, d, q in (
        (40, 31, 2, 12),
        (40, 79, 2, 20),
        (9, 5, 1, 4),
        (9, 8, 1, 4),
        (9, 8, 1, 7),
        (9, 6, 1, 5),
        (9, 13, 2, 7),
        (9, 2, 1, 7),
    ):
        at = {"N": n, "k": k, "d'": d, "q": q, "r": -(-(n * d - k) // d)}
        bound = max(value(one, at), min(1, value(many, at)) if 2 * q <= n else 0)
        least = averaging.collision_error(n, q, width=k, value_dimension=d)
        assert least >= bound - 1e-12
        most = min(value(first, at), value(second, at))
        stated = value(odd, at) if at["r"] % 2 and at["r"] < 2 * most else min(most, at["r"] / 2) / q
        assert least == pytest.approx(stated)


def test_widths_of_an_error_of_one_are_those_of_the_text():
    text = statements.REGISTER[f"{PAPER}: Fully connected"].text
    below = re.search(r"one at widths below (.*?), and for no others", text).group(1)
    for n, q, d in ((9, 3, 1), (9, 4, 2), (8, 4, 3)):
        read = below.replace("d'", str(d)).replace("N", str(n)).replace("q", str(q))
        width = int(sp.sympify(re.sub(r"(\d) (?=[\d(])", r"\1*", read)))
        assert averaging.collision_error(n, q, width=width - 1, value_dimension=d) == 1
        assert averaging.collision_error(n, q, width=width, value_dimension=d) < 1


def test_sizes_shown_are_those_that_are_built():
    text = statements.REGISTER[f"{PAPER}: Conjecture"].text
    two, strict = re.search(r"two layers have (.*), and (.*) if m", text).groups()
    model = averaging.match3_groups(root=7, modulus=5)
    size = model.heads * model.depth
    assert value(two, {"N": 343}) == pytest.approx(size * model.embedding_dim)
    assert value(strict, {"N": 343}) == pytest.approx(size * model.width)
    depth, _, dimension, product = re.findall(r"(?:D|H|m|mHD) (?:\\le|=) ([^,]*?)(?:,| \\quad)", statements.REGISTER[
        f"{PAPER}: Match3, transform"].printed)  # fmt: skip
    model, at = averaging.match3_transform(n_tokens=64, modulus=64), {r"\log_2N": 6, r"\log_2 N": 6}
    assert [value(one, at) for one in (depth, dimension, product)] == [
        model.depth, model.embedding_dim, model.depth * model.heads * model.embedding_dim]  # fmt: skip
    assert math.log2(64) == 6
