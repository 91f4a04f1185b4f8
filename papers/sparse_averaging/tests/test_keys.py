"""Sparse averaging by random keys and the moment curve: within the bounds, and out of them below the stated sizes."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import attend, attention_weights


def generator(seed=0):
    return np.random.default_rng(seed)


def rows(keys, subsets, *, error):
    """Attention of one query for each subset."""
    queries = np.array([averaging.certificate(keys, subset).query for subset in subsets])
    tau = averaging.temperature(n_tokens=len(keys), q=subsets.shape[1], error=error)
    return attention_weights(queries, keys, scale=tau)


def test_keys_are_random_signs_of_norm_one():
    keys = averaging.random_keys(3000, 16, rng=generator())
    np.testing.assert_array_equal(np.abs(keys), 0.25)
    # 48,000 fair signs: |mean| <= 5 standard errors fails once in 1.7 million seeds.
    assert abs(np.sign(keys).mean()) <= 5 / math.sqrt(keys.size)
    np.testing.assert_array_equal(keys, averaging.random_keys(3000, 16, rng=generator()))


@given(n=st.integers(1, 40), q=st.integers(1, 6), seed=st.integers(0, 2**32), method=st.sampled_from([0, 1]))
def test_a_certificate_is_one_on_the_subset_and_small_off_it(n, q, seed, method):
    q, rng = min(q, n), generator(seed)
    keys = averaging.random_keys(n, 60 * q + 40, rng=rng)
    subset = rng.choice(n, q, replace=False)
    found = averaging.certificate(keys, subset, method=["exclusion", "minimum norm"][method], throw=False)
    if not found.feasible:  # rare at this m; minimum norm needs more for some sets
        assert found.query is None and found.rho > 0.5
        return
    scores = keys @ found.query
    np.testing.assert_allclose(scores[subset], 1, atol=1e-8)
    off = np.abs(np.delete(scores, subset)).max(initial=0.0)
    assert off <= 0.5
    assert found.rho == pytest.approx(off, abs=1e-12)


def test_exclusion_pins_the_keys_that_it_names():
    keys = averaging.random_keys(256, 90, rng=generator(3))
    subset = tasks.adversarial_subsets(keys, 4)[7]
    found = averaging.certificate(keys, subset)
    assert found.pinned
    np.testing.assert_allclose(np.abs(keys[list(found.pinned)] @ found.query), 0.35, atol=1e-8)


def test_orthonormal_keys_have_the_attention_of_the_closed_form():
    # rho = 0 exactly, so that a weight on y is e^tau / (q e^tau + N - q).
    n, q, tau = 9, 3, 4.0
    found = averaging.certificate(np.eye(n), [1, 4, 8], method="minimum norm")
    assert found.rho == 0.0
    attention = attention_weights(found.query[None], np.eye(n), scale=tau)
    inside = math.exp(tau) / (q * math.exp(tau) + n - q)
    np.testing.assert_allclose(attention[0, [1, 4, 8]], inside, rtol=1e-13)
    error = tasks.attention_error(attention, [[1, 4, 8]])[0]
    assert error == pytest.approx(2 * (n - q) / (q * math.exp(tau) + n - q), rel=1e-12)
    assert error <= averaging.error_bound(tau, n_tokens=n, q=q, rho=0.0) <= error * (1 + n / (q * math.exp(tau)))


@pytest.mark.parametrize(("n", "q", "rho"), [(10, 3, 0.5), (4096, 16, 0.2), (5, 4, 0.0)])
def test_temperature_is_the_inverse_of_the_error_bound(n, q, rho):
    tau = averaging.temperature(n_tokens=n, q=q, error=1e-3, rho=rho)
    assert averaging.error_bound(tau, n_tokens=n, q=q, rho=rho) == pytest.approx(1e-3, rel=1e-12)
    assert averaging.temperature(n_tokens=n, q=n, error=1e-3) == 0


@pytest.mark.parametrize("error", [0.3, 1e-4])
@pytest.mark.parametrize(("n", "q"), [(7, 1), (7, 3), (6, 6), (1, 1)])
def test_the_unit_averages_every_subset_of_a_small_input(n, q, error):
    rng = generator(n + q)
    unit = averaging.random_keys_unit(averaging.random_keys(n, 60, rng=rng), q, error=error, value_dimension=2)
    subsets = tasks.all_subsets(n, q)
    for start in range(0, len(subsets), n):
        y = subsets[(start + np.arange(n)) % len(subsets)]
        z = rng.normal(size=(n, 2))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        tokens = tasks.qsa_tokens(z, y)
        assert tasks.attention_error(unit.attention(tokens), y).max() <= error
        assert np.linalg.norm(unit(tokens) - tasks.sparse_average(z, y), axis=1).max() <= error


@pytest.mark.parametrize(("n", "q", "m"), [(512, 16, 600), (512, 1, 120)])
def test_large_inputs_random_and_adversarial(n, q, m):
    rng = generator(n + q)
    keys = averaging.random_keys(n, m, rng=rng)
    others = rng.choice(n, 8, replace=False)
    correlations = keys[others] @ keys.T
    correlations[np.arange(8), others] = -np.inf
    hard = np.argsort(-correlations, axis=1)[:, :q]
    subsets = np.concatenate([tasks.random_subsets(n, q, size=8, rng=rng), hard])
    error = 0.01
    attention = rows(keys, subsets, error=error)
    errors = tasks.attention_error(attention, subsets)
    assert errors.max() <= error
    # The error is what the worst values make of it.
    z = tasks.worst_values(attention, subsets)
    outputs = (attention * z).sum(axis=1) - np.take_along_axis(z, subsets, axis=1).mean(axis=1)
    np.testing.assert_allclose(outputs, errors, rtol=1e-6, atol=1e-15)


def test_below_the_dimension_there_is_no_certificate_and_no_unit():
    n, q = 128, 4
    keys = averaging.random_keys(n, 20, rng=generator(5))
    subset = tasks.adversarial_subsets(keys, q)[0]
    best = averaging.certificate(keys, subset, method="linear program", throw=False)
    assert not best.feasible and 0.5 < best.rho < 1
    for method in ("exclusion", "minimum norm"):
        found = averaging.certificate(keys, subset, method=method, throw=False)
        assert found.query is None
        assert found.rho >= best.rho - 1e-7  # the linear program is the best of all
    with pytest.raises(averaging.Infeasible, match=r"with m = 20 the best of method 'exclusion' is") as caught:
        averaging.certificate(keys, subset)
    assert caught.value.certificate.rho == averaging.certificate(keys, subset, throw=False).rho
    y = np.tile(subset, (n, 1))
    unit = averaging.random_keys_unit(keys, q, error=0.1)
    with pytest.raises(averaging.Infeasible):
        unit(tasks.qsa_tokens(np.zeros((n, 1)), y))


def test_a_query_with_too_large_rho_misses_the_bound():
    keys = averaging.random_keys(128, 8, rng=generator(5))
    subset = tasks.adversarial_subsets(keys, 4)[0]
    assert averaging.certificate(keys, subset, method="linear program", throw=False).rho > 0.5
    # The shortest w with score 1 on the subset, taken as if it were a certificate, at the temperature of rho = 1/2.
    query = np.linalg.pinv(keys[subset]) @ np.ones(4)
    tau = averaging.temperature(n_tokens=128, q=4, error=0.1)
    attention = attention_weights(query[None], keys, scale=tau)
    assert tasks.attention_error(attention, subset[None])[0] > 0.5


@pytest.mark.parametrize("m", [16, 20, 64])
def test_numbers_of_the_unit_cover_keys_and_queries(m):
    """Entries of keys are 1/sqrt(m), a power of two at 16 and 64: the largest that are promised are still in range."""
    keys = averaging.random_keys(6, m, rng=generator())
    unit = averaging.random_keys_unit(keys, 1, error=0.1, bits=12)
    tau = averaging.temperature(n_tokens=6, q=1, error=0.1)
    assert np.abs(keys) == pytest.approx(m**-0.5, rel=1e-12)
    for numbers, largest in ((unit.precision.key, 2 * m**-0.5), (unit.precision.query, 2 * tau * m**-0.5)):
        np.testing.assert_allclose(
            numbers.round([-largest, largest]), [-largest, largest], rtol=0, atol=numbers.step / 2
        )
        # And at most four times as wide as that, so that no bits are lost on more.
        assert numbers.step * 2 ** (12 - 1) <= 4 * largest


def test_dependent_keys_are_infeasible_with_infinite_rho():
    keys = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    for method in ("exclusion", "minimum norm", "linear program"):
        found = averaging.certificate(keys, [0, 1], method=method, throw=False)
        assert not found.feasible and found.rho == math.inf


def test_linear_program_finds_the_smallest_rho_of_a_case_by_hand():
    # w = (1, t) on u_0 = (1, 0): |<w, (0.6, 0.8)>| and |<w, (0.6, -0.6)>| are equal at t = 0, where both are 0.6, and
    # moving t raises one of them.
    keys = np.array([[1.0, 0.0], [0.6, 0.8], [0.6, -0.6]])
    found = averaging.certificate(keys, [0], method="linear program", rho=0.7)
    assert found.rho == pytest.approx(0.6, abs=1e-9)
    np.testing.assert_allclose(found.query, [1, 0], atol=1e-8)


def test_the_smallest_dimension_for_single_tokens_is_that_of_their_coherence():
    # For q = 1 the minimum-norm certificate is the key itself, and rho the largest inner product with another key.
    n, maximum = 128, 300
    m = averaging.smallest_dimension(n, 1, rng=generator(1), method="minimum norm", maximum=maximum)
    signs = 2 * generator(1).integers(0, 2, size=(n, maximum), dtype=np.int8).astype(int) - 1

    def coherence(m):
        return np.abs(signs[:, :m] @ signs[:, :m].T - m * np.eye(n, dtype=int)).max() / m

    assert coherence(m) <= 0.5 < coherence(m - 1)


@pytest.mark.slow
def test_adversarial_sets_separate_the_methods_and_random_ones_hardly():
    n, q = 256, 8
    sizes = {
        (sets, method): averaging.smallest_dimension(n, q, rng=generator(2), method=method, sets=sets, n_sets=24)
        for sets in ("adversarial", "random")
        for method in ("exclusion", "minimum norm")
    }
    # 8 q^2 ln(N/q) = 1774 and 11 q ln N = 488: the specification's orders, within 30%.
    assert sizes["adversarial", "minimum norm"] == pytest.approx(8 * q**2 * math.log(n / q), rel=0.3)
    assert sizes["random", "minimum norm"] == pytest.approx(12 * q * math.log(n), rel=0.3)
    assert sizes["adversarial", "exclusion"] < 5 * q * math.log(n) < sizes["random", "minimum norm"]


def test_exclusion_at_1024_tokens():
    # 47 by the specification's prototype with other draws, over all 1024 sets.
    assert averaging.smallest_dimension(1024, 1, rng=generator(0), n_sets=200) == pytest.approx(47, rel=0.12)


def test_a_maximum_below_the_smallest_dimension_is_refused():
    with pytest.raises(averaging.Infeasible, match="`maximum` must be enough") as caught:
        averaging.smallest_dimension(64, 4, rng=generator(), maximum=10)
    assert caught.value.certificate.rho > 0.5


def test_the_bits_of_a_query_of_one_number():
    """Steps of about 2^-p over [-1/2, 1/2] must be ln(1.1)/2 = 0.048 at most: 1/32, while 1/16 is too much."""
    assert averaging.sufficient_bits([0.5], tau=1.0, error=0.1) == 5


@pytest.mark.parametrize(("n", "q"), [(64, 4), (512, 16)])
def test_the_bits_of_a_query(n, q):
    rng = generator(q)
    keys = averaging.random_keys(n, int(12 * q * math.log(n)), rng=rng)
    for subset in (rng.choice(n, q, replace=False), tasks.adversarial_subsets(keys, q)[3]):
        query = averaging.certificate(keys, subset).query
        for error in (0.1, 1e-4):
            tau = averaging.temperature(n_tokens=n, q=q, error=error / 2)
            needed = averaging.smallest_bits(keys, query, subset, tau=tau, error=error)
            enough = averaging.sufficient_bits(query, tau=tau, error=error / 2)

            def rounded(bits, query=query, tau=tau):
                return attention_weights(
                    query[None], keys, scale=tau, precision=averaging.rounded_query(query, tau=tau, bits=bits)
                )

            assert tasks.attention_error(rounded(enough), [np.sort(subset)])[0] <= error
            assert tasks.attention_error(rounded(needed), [np.sort(subset)])[0] <= error
            # One bit less fails, and what fails is that attention on y is no longer even.
            assert tasks.attention_error(rounded(needed - 1), [np.sort(subset)])[0] > error
            uneven, off = averaging.error_parts(rounded(needed - 1)[0], subset)
            assert uneven > off
            assert needed <= enough
            # The rule of the specification, p = log2(q ln N/eps), within 7 bits.
            assert abs(needed - math.log2(q * math.log(n) / error)) <= 7


def test_error_parts_of_a_case_by_hand():
    uneven, off = averaging.error_parts([0.5, 0.3, 0.1, 0.1], [0, 1])
    assert (uneven, off) == pytest.approx((0.2, 0.4))


def is_exposed(points, subset):
    """Whether some linear functional is equal on the subset and less elsewhere, by a linear program."""
    inside, outside = points[subset], np.delete(points, subset, axis=0)
    result = linprog(
        np.zeros(points.shape[1]),
        A_ub=outside - inside[0],
        b_ub=-np.ones(len(outside)),
        A_eq=inside[1:] - inside[0] if len(subset) > 1 else None,
        b_eq=np.zeros(len(subset) - 1) if len(subset) > 1 else None,
        bounds=(None, None),
    )
    assert result.status in (0, 2)
    return result.status == 0


@pytest.mark.parametrize(("n", "q"), [(6, 2), (8, 2), (7, 3), (9, 3)])
def test_dimension_2q_exposes_every_subset_and_2q_minus_1_does_not(n, q):
    t = np.linspace(-1, 1, n)[:, None]  # the same faces as at 1..N, and better conditioned
    missed = []
    for subset in map(list, itertools.combinations(range(n), q)):
        assert averaging.is_face(subset, n_tokens=n, dimension=2 * q)
        exposed = is_exposed(t ** np.arange(1, 2 * q), subset)
        assert averaging.is_face(subset, n_tokens=n, dimension=2 * q - 1) is exposed
        missed += [] if exposed else [subset]
        witness = averaging.no_face_witness(subset, n_tokens=n)
        assert (witness is None) is exposed
    # Sets of q isolated inner points: binomial(N - 2 - (q - 1), q).
    assert len(missed) == math.comb(n - q - 1, q) > 0


@pytest.mark.parametrize(("n", "subset"), [(9, [1, 3, 7]), (7, [1, 3, 5]), (4096, [17, 40, 1000, 4094])])
def test_the_witness_is_one_point_of_both_hulls(n, subset):
    inside, outside = averaging.no_face_witness(subset, n_tokens=n)
    assert sorted(inside) == subset and not set(outside) & set(subset)
    assert sum(inside.values()) == sum(outside.values()) == Fraction(1)
    assert min([*inside.values(), *outside.values()]) > 0

    def moment(weights, k):
        return sum(weight * (i + 1) ** k for i, weight in weights.items())

    q = len(subset)
    assert all(moment(inside, k) == moment(outside, k) for k in range(2 * q))
    assert moment(inside, 2 * q) != moment(outside, 2 * q)  # the next coordinate tells them apart


@pytest.mark.parametrize(("n", "q"), [(1, 1), (8, 1), (7, 3), (9, 2), (5, 5)])
def test_moment_curve_on_every_subset(n, q):
    curve = averaging.moment_curve(n, q)
    unit = averaging.moment_curve_unit(curve, error=0.05)
    for subset in tasks.all_subsets(n, q):
        others = [i for i in range(n) if i not in subset]
        gaps = [math.prod((i - int(j)) ** 2 for j in subset) for i in others]
        assert curve.gap(subset) == (min(gaps) if gaps else None)
        attention = curve.attention(subset, error=0.05)
        assert tasks.attention_error(attention[None], subset[None])[0] <= 0.05
    y = tasks.random_subsets(n, q, size=n, rng=generator())
    z = generator().uniform(-1, 1, (n, 1))
    tokens = tasks.qsa_tokens(z, y)
    assert np.abs(unit(tokens) - tasks.sparse_average(z, y)).max() <= 0.05
    np.testing.assert_allclose(unit.attention(tokens)[0], curve.attention(y[0], error=0.05), rtol=1e-12)


@pytest.mark.parametrize(("n", "q"), [(2048, 16), (1000, 8)])
def test_moment_curve_on_large_inputs_in_exact_integers(n, q):
    curve = averaging.moment_curve(n, q)
    subsets = [
        np.arange(n - q, n),
        np.arange(n - 2 * q, n, 2),
        np.linspace(0, n - 1, q).astype(int),
        generator(q).choice(n, q, replace=False),
    ]
    for subset in subsets:
        scores = curve.scores(subset)
        assert len(set(scores[subset])) == 1
        assert curve.gap(subset) >= 1
        attention = curve.attention(subset, error=0.01)
        assert tasks.attention_error(attention[None], np.sort(subset)[None])[0] <= 0.01
    query = np.array([curve.query(subsets[1])], dtype=object)
    out = attend(query, curve.keys(), np.eye(n), scale=curve.temperature(0.01))
    assert tasks.attention_error(out, subsets[1][None])[0] <= 0.01


@pytest.mark.parametrize(("n", "q", "works"), [(64, 4, True), (64, 6, False), (256, 6, False), (4096, 3, False)])
def test_float64_is_not_enough_for_the_moment_curve(n, q, works):
    curve = averaging.moment_curve(n, q)
    subset = np.arange(n - 2 * q, n, 2)
    query, keys = curve.query(subset).astype(float), curve.keys().astype(float)
    attention = attention_weights(query[None], keys, scale=curve.temperature(0.1))
    assert bool(tasks.attention_error(attention, subset[None])[0] <= 0.1) is works


@pytest.mark.parametrize(("n", "q"), [(64, 2), (64, 8), (1024, 4), (4096, 16)])
def test_bits_of_the_moment_curve_grow_like_q_squared(n, q):
    curve = averaging.moment_curve(n, q)
    rule = 4 * q**2 * math.log2(n)
    assert 0.8 * rule <= curve.dimension * curve.number_bits() <= rule + curve.dimension * (q + 2)
    last = curve.query_bits(np.arange(n - q, n))
    assert 0.4 * rule <= last <= 0.65 * rule
    assert curve.query_bits(np.arange(q)) < last
    # The longest coefficient belongs to t: 2 e_{2q-1}, about the square of the product of the last q positions.
    longest = 2 * math.prod(range(n - q + 1, n + 1)) ** 2 * sum(Fraction(1, j) for j in range(n - q + 1, n + 1))
    assert curve.number_bits() == int(longest).bit_length() + 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: averaging.random_keys(0, 3, rng=generator()), "`n_tokens` must be at least 1, but got 0"),
        (lambda: averaging.random_keys(2, 3, rng=1), "`rng` must be a numpy.random.Generator, but got 1"),
        (lambda: averaging.certificate(np.eye(3), [0, 0]), "`subset` must hold each index once, but got 0 twice"),
        (lambda: averaging.certificate(np.eye(3), []), "`subset` must not be empty"),
        (lambda: averaging.certificate(np.eye(3), [3]), r"`subset` must hold indices in \[0, 3\), but got 3"),
        (lambda: averaging.certificate(np.eye(3), [0], rho=1.0), "`rho` must be below 1, but got 1.0"),
        (lambda: averaging.certificate(np.eye(3), [0], level=0.6), "`level` must be at most `rho` = 0.5, but got 0.6"),
        (lambda: averaging.certificate(np.eye(3), [0], method="lp"), "`method` must be one of 'exclusion'"),
        (lambda: averaging.temperature(n_tokens=3, q=4, error=0.1), "`q` must be at most `n_tokens` = 3, but got 4"),
        (lambda: averaging.temperature(n_tokens=3, q=2, error=0.0), "`error` must be positive, but got 0.0"),
        (lambda: averaging.smallest_dimension(4, 4, rng=generator()), "`q` must be below `n_tokens`, but got 4"),
        (
            lambda: averaging.smallest_dimension(4, 2, rng=generator(), method="linear program"),
            "`method` must be one of 'exclusion', 'minimum norm', but got 'linear program'",
        ),
        (lambda: averaging.moment_curve(3, 4), "`q` must be at most `n_tokens` = 3, but got 4"),
        (lambda: averaging.moment_curve(5, 2).query([0]), "`subset` must hold q = 2 indices, but got 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_infeasible_subset_travels_between_processes():
    error = averaging.Infeasible("no certificate", averaging.Certificate(None, 0.5, "lp", ()))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is averaging.Infeasible and str(again) == "no certificate" and again.certificate.rho == 0.5


def isometry(keys, order):
    """The constant of restricted isometry, over all supports."""
    gram = keys @ keys.T
    supports = itertools.combinations(range(len(keys)), order)
    return max(np.abs(np.linalg.eigvalsh(gram[np.ix_(own, own)]) - 1).max() for own in supports)


@pytest.mark.parametrize(("n", "q"), [(5, 1), (6, 2), (8, 2), (7, 3)])
@pytest.mark.parametrize("width", [2, 9, 40, 200])
def test_isometry_gives_every_set_a_query(n, q, width):
    keys = averaging.random_keys(n, width * q * n, rng=generator(width))
    delta = isometry(keys, 2 * q)
    room = 1 - (1 + math.sqrt(2)) * delta
    worst = max(
        averaging.certificate(keys, y, method="linear program", throw=False).rho for y in tasks.all_subsets(n, q)
    )
    if room > 0:
        assert worst <= delta / room + 1e-7
    if delta <= 9 / 40:
        assert worst <= 0.5
    assert width < 200 or delta <= 9 / 40  # the hypothesis is met somewhere


def test_the_guaranteed_dimension_is_enough_by_the_union_bound_in_other_words():
    # Exact binomials and Chernoff's exponents by search, without the closed constants.
    for n, q, failure in [(2, 1, 1.0), (100, 3, 0.01), (1000, 10, 0.01), (10**6, 10, 1e-9), (40, 20, 0.5)]:
        m = averaging.guaranteed_dimension(n, q, failure=failure)
        t, h = 9 / 40 * (1 - 2 / 32), np.linspace(1e-4, 0.49, 5000)
        above = (h * (1 + t) + np.log(1 - 2 * h) / 2).max()
        below = (-h * (1 - t) - np.log(1 - h + 1.5 * h**2)).max()
        points = math.log(math.comb(n, 2 * q)) + 2 * q * math.log(65)
        assert points + np.logaddexp(-m * above, -m * below) <= math.log(failure)


def test_all_sets_need_far_fewer_numbers_than_is_guaranteed():
    n, q, least = 12, 2, []
    for seed in range(3):
        signs = np.sign(averaging.random_keys(n, 24, rng=generator(seed)))

        def fails(m, signs=signs):
            sets = tasks.all_subsets(n, q)
            return any(
                not averaging.certificate(signs[:, :m] / math.sqrt(m), y, method="linear program", throw=False).feasible
                for y in sets
            )

        least.append(next(m for m in range(q, 25) if not fails(m)))
    assert averaging.guaranteed_dimension(n, q) > 100 * max(least)
    assert all(q < m <= 24 for m in least)
