"""Prose: formulas are the claims that the proofs decide, and what limits a claim is said, and is in the register."""

import re

import pytest
from driving import ROOT
from figure_rules import of_papers_and_studies
from latex import value
from yzflow_sparse_averaging.proofs import groups, transform

from theory import decoder
from theory.scan_and_snap.proofs import slowdown, theorem4
from theory.statements import REGISTER
from yzflow.values.marks import bare

DOCS = ROOT / "docs"
M, K, RHO, ETA = 1000, 10, 0.03, 0.7
SIZES = {"M": M, "K": K, r"\rho": RHO, r"\eta_Y": ETA}


def late_gamma():
    """gamma t/x for t to infinity, where x = M h is ln t up to a constant."""
    t = 1e300
    x = M * float(decoder.h(t / K, vocab_size=M, eta_y=ETA))
    return float(decoder.gamma(t, vocab_size=M, n_classes=K, eta_y=ETA)) * t / x


def page(name):
    """The findings, a page of theory or of a finding, or the caption of a figure, in one line."""
    if name in of_papers_and_studies():
        return " ".join(bare(of_papers_and_studies()[name].draw.__doc__).split())
    if name.startswith("studies/"):
        path = ROOT / "studies" / "yzflow_studies" / name.removeprefix("studies/") / "page.md"
    else:
        path = DOCS / "findings.md" if name == "findings" else DOCS / "theory" / f"{name}.md"
    return " ".join(bare(path.read_text(encoding="utf-8")).split())


@pytest.mark.parametrize(
    ("name", "words", "formula", "found", "at"),
    [
        (
            "scan_and_snap",
            "by $s = {}$.",
            r"\frac{(1-\rho)(1 + (K-1)\rho)}{1 + (M-1)\rho}",
            slowdown.slowdown(M, K, RHO),
            SIZES,
        ),
        (
            "scan_and_snap",
            r"tends to $s_\infty = {}$",
            r"\frac{1}{1-\rho} + \frac{(M-K)\rho}{(1+(M-1)\rho)(1+(K-1)\rho)}",
            slowdown.late_ratio(M, K, RHO),
            SIZES,
        ),
        (
            "findings",
            "The factor is $s = {}$, of which",
            r"\frac{(1 - \rho)(1 + (K - 1)\rho)}{1 + (M - 1)\rho}",
            slowdown.slowdown(M, K, RHO),
            SIZES,
        ),
        (
            "findings",
            "the ratio of speeds tends to ${}$, which is",
            r"\frac{1}{1 - \rho} + \frac{(M - K)\rho}{(1 + (M - 1)\rho)(1 + (K - 1)\rho)}",
            slowdown.late_ratio(M, K, RHO),
            SIZES,
        ),
        ("scan_and_snap", r"$\gamma t/\ln t$ tends to ${}$", r"(\frac{M-1}{M})^2 K/\eta_Y", late_gamma(), SIZES),
        (
            "scan_and_snap",
            "falls by $B(t) = {}$",
            r"\frac14\ln(1 + 4\Gamma/C_0)",
            theorem4.exponent(3.0, 2.0),
            {r"\Gamma": 3.0, "C_0": 2.0},
        ),
        ("sparse_averaging", "enough for ${}$ and every $M$", "6N^{2/3}", groups.size(64), {"N": 64}),
        ("sparse_averaging", "or for ${}$ if $m$", "18N^{2/3} + 12", groups.strict_size(64), {"N": 64}),
    ],
)
def test_a_formula_in_prose_is_the_claim(name, words, formula, found, at):
    assert words.replace("{}", formula) in page(name), "the page has another formula"
    assert value(re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", formula), at) == pytest.approx(float(found), rel=1e-6)


def test_the_layers_of_the_transform_grow_as_the_page_says():
    assert r"a number of layers that grows like $2\log_2 N$" in page("sparse_averaging")
    assert float(transform.depth(2**60) - transform.depth(2**40)) == 2 * 20


# Limits of a claim: the page and its words, the statement, and where the register has it: a hypothesis, or its text.
LIMITS = [
    ("findings", "That is true only early on", "Scan and Snap: Remark 1", "early"),
    (
        "scan_and_snap",
        "a common token loses if it is the only one, or one of several in the symmetric case",
        "Scan and Snap: Theorem 2(b)",
        "one common token",
    ),
    (
        "scan_and_snap",
        "With equal overlaps $\\rho$, attention in the full flow begins slower",
        "Scan and Snap: Remark 1",
        "equal overlaps",
    ),
    (
        "true_gradient",
        "Theorem 2(a) is proved early, late, and for equal overlaps at all times, with frozen features",
        "Scan and Snap: Theorem 2(a), true gradient",
        "equal overlaps",
    ),
    (
        "findings",
        "Theorem 2 (a) for the true gradient with frozen features: proved early, late and for equal overlaps",
        "Scan and Snap: Theorem 2(a), true gradient",
        "With frozen features",
    ),
    (
        "findings",
        "The full flow overtakes the theory for equal classes: proved with frozen features, and with moving ones where"
        " K = M and distinct tokens are equal",
        "Scan and Snap: Late attention",
        "K equal classes with one common token and equal distinct ones",
    ),
    (
        "studies/transition_time",
        "Where next tokens are drawn equally often, the speed coefficient of attention has one peak",
        "Scan and Snap: Theorem 1",
        "classes drawn uniformly",
    ),
    (
        "findings",
        "true only early on: with frozen features, the ratio of speeds tends to",
        "Scan and Snap: Remark 1",
        "late, with frozen features",
    ),
    (
        "scan_and_snap",
        "| overlap | T, modified gradient | the same by the terms",
        "Scan and Snap: Theorem 2, finite sequences",
        "with the decoder that long sequences have taught",
    ),
    (
        "bounded_dyck",
        "This takes two types of brackets: with one, the depth says all",
        "Bounded Dyck: Theorem 1, necessity",
        "k >= 2, several types",
    ),
    (
        "bounded_dyck",
        "(11) is needed at closing queries of depth 1 to $D - 1$ only",
        "Bounded Dyck: Theorem 1, sufficiency",
        "(11) at closing queries of depth 1 to D - 1",
    ),
    (
        "bounded_dyck",
        "START must be among them",
        "Bounded Dyck: Theorem 1, sufficiency",
        "encodings of all states and START independent, rank 2 k D + 1",
    ),
    (
        "sparse_averaging",
        "the first is refuted for $M = O(N)$ and open for $M = N^a$, $a > 1$",
        "Sparse averaging: Conjecture",
        "for M = N^a, a > 1, it is open",
    ),
    (
        "sparse_averaging",
        "for every $q \\le N/2$ and every error below one",
        "Sparse averaging: Fully connected",
        "q <= N/2",
    ),
]


@pytest.mark.parametrize(("name", "words", "statement", "limit"), LIMITS)
def test_what_limits_a_claim_is_said_and_is_in_the_register(name, words, statement, limit):
    assert words in page(name), "the page leaves the limit out"
    one = REGISTER[statement]
    clauses = [text for clause in one.clauses for text in (clause.name, *(two.text for two in clause.assumptions))]
    said = [one.text, *clauses, *(two.text for two in one.assumptions)]
    assert any(limit in text for text in said), "the register does not have it"


def test_measurements_decide_against_the_simpler_form_of_the_slowdown():
    rows = [
        [float(cell) for cell in line.strip("| ").split("|")]
        for line in (ROOT / "studies/yzflow_studies/slowdown/page.md").read_text(encoding="utf-8").splitlines()
        if re.fullmatch(r"(\| [\d.]+ ){6}\|", line)
    ]
    at_k = [(measured, s, simpler) for k, m, _, measured, s, simpler in rows if k == m]
    assert at_k and all(simpler == 1 and abs(measured - s) < 0.01 < simpler - measured for measured, s, simpler in at_k)
