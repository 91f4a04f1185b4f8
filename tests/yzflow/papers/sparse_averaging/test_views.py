"""The plot with sliders on the pages of sparse averaging, against the register's formulas."""

import numpy as np
import pytest
from explorer_pages import enter, exact, opened, press, run_program, table
from statement_pages import bare

from theory import statements
from yzflow.papers.sparse_averaging.settings import PAPER
from yzflow.papers.sparse_averaging.views import VIEWS


@pytest.mark.parametrize("number", VIEWS.views)
def test_bits_are_those_of_the_formulas(shared_browser, tmp_path, number):
    page = opened(shared_browser, bare(statements.REGISTER[f"{PAPER}: {number}"], tmp_path))
    press(page, "set-N", "ArrowRight", "ArrowRight")
    press(page, "set-p", "ArrowDown")
    enter(page, "set-d", 2)
    n, p, d = (exact(page, f"set-{name}") for name in ("N", "p", "d"))
    assert n > 1000 and (p, d) == (15, 2)
    q, random, moments, printed, corrected = table(page, "curves").T
    np.testing.assert_allclose(random, 12 * q * np.log(n) * p, rtol=1e-12)  # m = 12 q ln N, as the check has it
    np.testing.assert_allclose(moments, 2 * q * 2 * q * np.log2(n), rtol=1e-12)  # m = 2q numbers of 2 q log2 N bits
    np.testing.assert_allclose(printed * np.log2(n) / p, q, rtol=1e-12)
    there = np.isfinite(corrected)
    np.testing.assert_allclose(2 * corrected[there] + d * p, q[there], rtol=1e-12)
    assert (there == (q > d * p)).all() and 0 < there.sum() < there.size
    left = run_program(page, "live")
    place = np.searchsorted(left["times"], q)
    for name, shown in zip(left["curves"], (random, moments, printed, corrected), strict=True):
        np.testing.assert_allclose(shown, left["curves"][name][place], rtol=1e-12, err_msg=name)
    _, off = table(page, "difference").T
    np.testing.assert_allclose(off[there], np.abs(printed / corrected - 1)[there], rtol=1e-9)
