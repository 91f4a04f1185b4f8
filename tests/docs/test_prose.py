"""Prose: formulas are the claims that the proofs decide."""

import re

import pytest
from driving import ROOT
from figure_rules import of_papers_and_studies
from latex import value
from yzflow_sparse_averaging.proofs import groups, transform

from theory import decoder
from theory.scan_and_snap.proofs import slowdown, theorem4
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


def test_measurements_decide_against_the_simpler_form_of_the_slowdown():
    rows = [
        [float(cell) for cell in line.strip("| ").split("|")]
        for line in (ROOT / "studies/yzflow_studies/slowdown/page.md").read_text(encoding="utf-8").splitlines()
        if re.fullmatch(r"(\| [\d.]+ ){6}\|", line)
    ]
    at_k = [(measured, s, simpler) for k, m, _, measured, s, simpler in rows if k == m]
    assert at_k and all(simpler == 1 and abs(measured - s) < 0.01 < simpler - measured for measured, s, simpler in at_k)
