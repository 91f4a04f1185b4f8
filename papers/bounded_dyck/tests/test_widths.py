"""Widths with probabilities, against brute force: all subsets, all sets of cells, and drawn matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yzflow_bounded_dyck import interpolating, measures_of_widths, pruning, widths
from yzflow_bounded_dyck.proofs import subset_sums


@pytest.fixture(autouse=True)
def afresh():
    yield
    for name in ("potential_attained", "enough_units", "enough_rows", "too_few", "entries_of_values", "interpolated"):
        getattr(measures_of_widths, name).__wrapped__.cache_clear()


def share_reached(products, length, accuracy):
    """Share of [-length/2, length/2] within ``accuracy`` of a sum of some subset, by all subsets."""
    bits = (np.arange(2 ** len(products))[:, None] >> np.arange(len(products))) % 2
    grid = (np.arange(400) + 0.5) / 400 * length - length / 2
    sums = np.sort(bits @ products)
    at = np.searchsorted(sums, grid)
    below, above = sums[np.maximum(at - 1, 0)], sums[np.minimum(at, sums.size - 1)]
    return (np.minimum(np.abs(grid - below), np.abs(grid - above)) <= accuracy).mean()


def test_the_mean_potential_of_all_subsets_stays_below_its_bound():
    """Sizes one: kappa = L/2; the potential starts at L/eta and falls by 1 - kappa/2 per product, or faster."""
    length, half = 0.5, 0.02
    rng = np.random.default_rng(0)
    for n in (0, 2, 4, 6, 8, 10):
        shares = [share_reached(rng.uniform(-1, 1, n), length, half) for _ in range(200)]
        mean = np.mean([1 / share - 1 for share in shares])
        start = length / (2 * half) - 1
        assert mean <= start * float(subset_sums.rate(length / 2)) ** n * (1.05 if n == 0 else 1.0)
        assert n == 0 or mean < start


@given(st.integers(1, 60), st.floats(0.05, 0.5), st.floats(1e-3, 0.05))
def test_known_sizes_have_the_bound_of_their_product(n, length, accuracy):
    by_hand = float(subset_sums.missed((1 - length / 4) ** n, length, accuracy))
    found = widths.missed_targets(np.ones(n), length, accuracy)
    assert found == pytest.approx(min(by_hand, 1), rel=1e-9)
    # Products that are too small to count change nothing.
    assert widths.missed_targets([1.0] * n + [length / 2], length, accuracy) == found


def test_promised_widths_hold_and_smaller_ones_do_not():
    for check in ("potential_attained", "enough_units", "enough_rows", "too_few"):
        assert getattr(measures_of_widths, check)() <= 1e-12
    # A promise of a hundredth of the units is broken: nearly all networks miss.
    units = widths.units_of_linear((1, 1), 0.1, 0.1)
    assert measures_of_widths._failures(units // 200, (1, 1), 0.1, 60) > 30


def test_widths_are_of_the_order_of_the_print():
    """O(d log(d / min(eps, delta))): for the largest entry 1/(2e), the whole width against d ln(d / min) is bounded."""
    ratios = []
    for size in (1, 4, 16, 64):
        for accuracy in (0.1, 1e-3, 1e-6):
            units = widths.units_of_linear((size, size), accuracy, accuracy, largest=1 / (2 * np.e))
            ratios.append(units / np.log(size / accuracy))
    assert max(ratios) < 4 / -np.log1p(-1 / (8 * np.e)) and min(ratios) > 2 / -np.log1p(-1 / (8 * np.e))


def test_a_width_is_the_least_with_its_probability():
    for accuracy, failure in ((0.1, 0.1), (1e-3, 0.01)):
        n = widths.rows_of_product(1, accuracy, failure, largest=1 / (2 * np.e))
        kappa = float(subset_sums.gain(1 / np.e))
        chance = [float(subset_sums.missed((1 - kappa / 2) ** m, 1 / np.e, accuracy)) for m in (n - 1, n)]
        assert chance[0] > failure >= chance[1]
        few = widths.too_few_products(accuracy, failure)
        assert float(subset_sums.few(few, accuracy)) < 1 - failure <= float(subset_sums.few(few + 1, accuracy))
        width = widths.width_of_entries(5, failure, 0.5)
        assert widths.entries_found(5, width, 0.5) >= 1 - failure
        assert width == 1 or widths.entries_found(5, width - 1, 0.5) < 1 - failure


def test_entries_of_blocks_by_drawing():
    assert measures_of_widths.entries_of_values() < 1
    # One number, one block: (1 - h)/2.
    assert widths.entries_found(1, 1, 0.5) == pytest.approx(0.25)


def two_alone(right):
    """Subsets of the first two numbers only."""
    return lambda values, target: np.append(right(values[:2], target), np.zeros(max(len(values) - 2, 0), dtype=bool))


WRONG = {
    "half of kappa too much": (subset_sums, "rate", lambda right: lambda kappa: 1 - kappa, "potential_attained"),
    "a network that loses a unit of each entry": (
        pruning,
        "subset_sum",
        two_alone,
        "enough_units",
    ),
    "a product that loses most of its rows": (
        pruning,
        "subset_sum",
        two_alone,
        "enough_rows",
    ),
    "an accuracy a hundred times finer": (
        widths,
        "too_few_products",
        lambda right: lambda accuracy, failure: right(accuracy / 100, failure),
        "too_few",
    ),
    "an index of larger entries only": (
        interpolating,
        "index_network",
        lambda right: lambda size, least: right(size, 2 * least),
        "interpolated",
    ),
    "blocks in a row": (
        widths,
        "entries_found",
        lambda right: lambda blocks, width, least: right(1, width, least) ** (blocks - 1),
        "entries_of_values",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_false_statement_fails_its_check(name, monkeypatch):
    module, attribute, wrap, check = WRONG[name]
    assert getattr(measures_of_widths, check)() < (1 if check == "entries_of_values" else 1e-9)
    getattr(measures_of_widths, check).__wrapped__.cache_clear()
    monkeypatch.setattr(module, attribute, wrap(getattr(module, attribute)))
    assert getattr(measures_of_widths, check)() > (1 if check == "entries_of_values" else 0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: widths.units_of_linear((0, 1), 0.1, 0.1), "`shape` must be at least 1, but got 0"),
        (lambda: widths.units_of_linear((1, 1), 1.0, 0.1), "`accuracy` must be below 1"),
        (lambda: widths.rows_of_product(2, 0.1, 0.0), "`failure` must be positive"),
        (lambda: widths.entries_found(2, 2, 1.0), "`least` must be below 1"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
