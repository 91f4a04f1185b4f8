"""The numbers and words in the panel of sparse averaging, against Python."""

import json

import numpy as np
import pytest
from explorer_pages import check_preset, choose, downloaded, exact, opened, press, run_program, table, values, written
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging.panel import PANELS, data
from yzflow_sparse_averaging.panel.presets import PRESETS


@pytest.fixture(scope="module")
def window(shared_browser, tmp_path_factory):
    return opened(shared_browser, written(tmp_path_factory, [PANELS[0]]))


@pytest.fixture
def page(window, shared_browser):
    """The page as it starts."""
    choose(window, "averaging", 0)
    yield window
    assert not shared_browser.problems


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_every_preset_draws(page, place):
    check_preset(page, "averaging", place, PRESETS[place])


def _chosen(q, m, hard):
    from yzflow_sparse_averaging.instances import adversarial_subsets

    return adversarial_subsets(data.key_signs()[:, :m].astype(float), q)[0] if hard else np.arange(q)


def _certificate(m, subset):
    keys = data.key_signs()[:, :m] / np.sqrt(m)
    return averaging.certificate(keys, subset, method="minimum norm", rho=0.999, throw=False)


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_averaging(page, place):
    choose(page, "averaging", place)
    press(page, "m", *["ArrowLeft"] * 3)
    press(page, "error", "ArrowRight")
    q, m, error = int(exact(page, "q")), int(exact(page, "m")), exact(page, "error")
    chosen = json.loads(page.get_attribute("#averaging-summary", "data-chosen"))
    hard = PRESETS[place].setting["hard"]
    np.testing.assert_array_equal(chosen, _chosen(q, m, hard))
    found = _certificate(m, chosen)
    sizes, wrong = table(page, "coherence").T
    expected = [_certificate(size, _chosen(q, size, hard)).rho for size in sizes.astype(int)]
    np.testing.assert_allclose(wrong, expected, rtol=1e-9)
    shown = values(page, "averaging")
    np.testing.assert_allclose(shown["rho"], found.rho, rtol=1e-9)
    tau = averaging.temperature(n_tokens=data.N_TOKENS, q=q, error=error)
    np.testing.assert_allclose(shown["temperature"], tau, rtol=1e-12)
    assert shown["exact"] == averaging.moment_curve(data.N_TOKENS, q).dimension
    works = found.rho <= 0.5
    assert page.inner_text("#averaging-verdict").startswith("✓" if works else "✗")
    if works:
        assert shown["distance"] <= averaging.error_bound(tau, n_tokens=data.N_TOKENS, q=q) * (1 + 1e-12)
    if found.feasible:
        weights = np.exp(tau * data.key_signs()[:, :m] @ found.query / np.sqrt(m))
        uniform = np.isin(np.arange(data.N_TOKENS), chosen) / q
        np.testing.assert_allclose(shown["distance"], np.abs(weights / weights.sum() - uniform).sum(), rtol=1e-7)
    if place == 1:
        assert shown["distance"] > 1


@pytest.mark.parametrize("place", range(len(PRESETS)))
def test_the_program_and_the_data_give_what_the_page_shows(page, place):
    choose(page, "averaging", place)
    names = run_program(page, "averaging")
    shown = values(page, "averaging")
    assert shown["rho"] == pytest.approx(names["found"].rho, rel=1e-9)
    assert shown["temperature"] == pytest.approx(names["temperature"], rel=1e-12)
    rows = downloaded(page, "averaging")
    assert rows[0] == ["token", "chosen", "score", "attention"] and len(rows) == 65
    assert [int(row[0]) - 1 for row in rows[1:] if row[1] == "true"] == names["chosen"].tolist()
    if names["found"].query is not None:
        np.testing.assert_allclose([float(row[3]) for row in rows[1:]], names["weights"], rtol=1e-6)
    else:
        assert rows[1][3] != ""
