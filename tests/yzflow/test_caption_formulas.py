"""Formulas and sizes that captions of figures and texts of presets state are the claims, and what the layers do."""

import pytest
from figure_rules import of_papers_and_studies
from yzflow_beyond_scan_and_snap.proofs import late_full_flow

from theory.scan_and_snap import decoder
from theory.scan_and_snap.proofs import lemma7
from theory.symbolic.printing import plain
from yzflow.papers.scan_and_snap.panel.presets import PRESETS


@pytest.mark.parametrize(
    ("name", "words", "formula"),
    [
        ("no_freezing", "the limit {}, dotted", plain(late_full_flow.exponent, "M", "K")),
        ("figure8", "{} holds for every eta_Y", plain(lemma7.bound, "M", "eta_Y")),
    ],
)
def test_a_caption_has_the_claim(name, words, formula):
    caption = "".join(of_papers_and_studies()[name].draw.__doc__.split())
    assert "".join(words.replace("{}", formula).split()) in caption


def test_figure_9_s_preset_says_what_b_does():
    """At a fixed ratio of the rates B(t0) is the same; at a fixed rate of attention B grows late as the other falls."""
    text = {one.name: one for one in PRESETS}
    same = text["Scan and Snap, Fig. 9 left: both rates grow together"]
    assert same.answer.startswith("None: at a fixed ratio B(t₀) is the same for all sizes of the rates.")
    sizes = {"vocab_size": 100, "n_classes": 1}
    found = [
        decoder.gamma_integral(decoder.snapping_time(**sizes, eta_y=eta), **sizes, eta_y=eta, eta_z=eta / 10)
        for eta in (5.0, 10.0, 40.0)
    ]
    assert found == pytest.approx([found[0]] * 3, rel=1e-9)
    slow = text["Scan and Snap, Fig. 9 right: equal rates"]
    assert slow.answer.startswith("It grows: a slow decoder")
    sizes["vocab_size"] = 10_000
    late = [decoder.gamma_integral(1e4, **sizes, eta_y=eta, eta_z=1.0) for eta in (0.5, 1.0, 4.0)]
    assert late == sorted(late, reverse=True)
