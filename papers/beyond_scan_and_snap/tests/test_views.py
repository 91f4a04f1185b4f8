"""Formulas on the pages of our statements are the claims that their proofs decide."""

from explorer_pages import assert_formulas_agree, mathematics
from yzflow_beyond_scan_and_snap.views import late_formulas


def test_each_formula_on_the_page_is_the_claim(shared_browser, tmp_path_factory):
    run = mathematics(shared_browser, tmp_path_factory, (late_formulas.__name__.rpartition(".")[0], "late_formulas.py"))
    assert_formulas_agree(run, "late", late_formulas.claims(), {"M": (20, 60), "K": (2, 20)})
