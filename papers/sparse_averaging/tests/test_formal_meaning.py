"""The theorems on sparse averaging that the kernel checked, in Python by hand, against the functions of `theory`.

As `test_formal_meaning.py` of the core.
"""

import itertools
import math

import numpy as np
import pytest
from meaning import SEEDS, evaluates
from yzflow_sparse_averaging import faces, matching, protocols
from yzflow_sparse_averaging.instances import match2, match3


@evaluates("match2_errors", "match3_errors")
@pytest.mark.parametrize("seed", SEEDS)
def test_errors_of_the_units(seed):
    rng = np.random.default_rng(seed)
    n, m, eta = int(rng.integers(2, 9)), int(rng.integers(2, 30)), float(rng.uniform(0.01, 0.4))
    x, o = rng.integers(0, m, n), (1 - eta) / eta
    turn = np.cos(2 * np.pi * np.arange(3 * m) / m)  # of Match.v
    c = (math.log(n) + 2 * math.log(o)) / (1 - math.cos(2 * math.pi / m))
    pair = np.exp(c * (turn[x[:, None] + x] - 1)).sum(axis=1)
    out = pair / (pair + math.exp(c * (1 - math.log(o) / c) - c))
    unit = matching.match2(n_tokens=n, modulus=m, error=eta)
    np.testing.assert_allclose(out, unit(x), atol=1e-9)
    assert (np.abs(out - match2(x, m)) <= eta + 1e-12).all()
    g = min(1, 1 - math.cos(2 * math.pi / m))
    c = (math.log(n**2 + 2 * n) + 2 * math.log(o)) / g
    # `unit3` of Match.v: tokens have three cosines, the blank one coordinate of its own.
    angles = 2 * np.pi * x[:, None] / m - 2 * np.pi * np.arange(3) / 3
    code, blank = np.column_stack([np.cos(angles), np.zeros(n)]), np.eye(4)[3]
    b = 1 + math.log((1 - 2 / ((n + 2) * o)) / o) / c
    asked = np.column_stack([4 / 3 * np.cos(angles), np.full(n, b)])
    tokens = np.vstack([code, blank])
    scores = np.einsum("ie,je,ke->ijk", asked, tokens, tokens)
    triple = np.exp(c * (turn[x[:, None, None] + x[:, None] + x] - 1)).sum(axis=(1, 2))
    np.testing.assert_allclose(np.exp(c * (scores[:, :n, :n] - 1)).sum(axis=(1, 2)), triple, rtol=1e-6)
    np.testing.assert_allclose(scores[:, :n, n], 0, atol=1e-12)
    np.testing.assert_allclose(scores[:, n, n], b)
    zeros = 2 * n * math.exp(-c) + (1 - 2 / ((n + 2) * o)) / o
    out, unit = triple / (triple + zeros), matching.match3_tensor(n_tokens=n, modulus=m, error=eta)
    np.testing.assert_allclose(out, unit(x), atol=1e-9)
    assert (np.abs(out - match3(x, m)) <= eta + 1e-12).all()


@evaluates("ranks", "rank_of_disjointness", "intersection_lacks_rank")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_ranks_of_disjointness_and_intersection(n):
    matrix = protocols.disjointness_matrix(n)
    assert matrix.shape == (2**n, 2**n) and protocols.exact_rank(matrix) == 2**n
    assert protocols.exact_rank(1 - matrix) == 2**n - 1
    empty = (protocols.bit_strings(n) == 0).all(axis=1)
    assert empty.sum() == 1 and not (1 - matrix)[:, empty].any()


@evaluates("average_tells_disjoint_sets", "parity_of_the_slides_is_false")
@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_averages_of_two_sets(q):
    wrong = 0
    for a, b in itertools.product(protocols.bit_strings(q), repeat=2):
        z = np.full(2 * q + 1, -1)  # z_1 to z_2q, from 1 on
        z[2 * np.arange(1, q + 1)] = 2 * b - 1
        average = z[2 * np.arange(1, q + 1) + a - 1].mean()
        disjoint = not (a & b).any()
        assert average == pytest.approx(-1) if disjoint else average >= -1 + 2 / q - 1e-12
        slides = z[2 * np.arange(1, q + 1) - a].mean()  # z_(2i-1) where a_i = 1
        wrong += disjoint and slides != -1
    assert wrong


@evaluates("linear_query")
@pytest.mark.parametrize("seed", SEEDS)
def test_linear_queries(seed):
    rng = np.random.default_rng(seed)
    n, q, kappa = 6, 3, rng.normal()
    sets = [list(y) for y in itertools.combinations(range(n), q)]

    def exact_scores(A):
        scores = np.array([A[y].sum(axis=0) for y in sets])
        on = np.array([[i in y for i in range(n)] for y in sets])
        equal = np.array([np.ptp(row[own]) for row, own in zip(scores, on, strict=True)])
        return bool(
            (equal < 1e-9).all()
            and (
                scores.max(axis=1, where=~on, initial=-np.inf) < scores.min(axis=1, where=on, initial=np.inf) - 1e-9
            ).all()
        )

    delta, shifts = rng.uniform(0.1, 2, n), rng.normal(size=n)
    A = np.diag(delta) + shifts[:, None] + (kappa - delta) / q  # `form`, row j and column i
    assert exact_scores(A) and np.linalg.matrix_rank(A) >= n - 1
    least = np.eye(n) - 1 / n
    assert exact_scores(least) and np.linalg.matrix_rank(least) == n - 1
    w, u = np.vstack([np.eye(n - 1), -np.ones(n - 1)]), (np.eye(n) - 1 / n)[:, : n - 1]
    np.testing.assert_allclose(w @ u.T, least, atol=1e-12)
    # The form is forced: one entry more, and some set has scores that are not equal.
    for j, i in itertools.product(range(n), repeat=2):
        changed = A.copy()
        changed[j, i] += 0.01
        assert not exact_scores(changed)
    assert not exact_scores(least - 0.9 * np.outer(np.eye(n)[0], np.eye(n)[0]))


@evaluates("without_a_blank_match2_fails")
def test_match2_without_a_blank():
    x = np.array([1, 2, 3, 4])
    assert not match2(x, 11).any()
    ones = np.exp(3 * np.cos(2 * np.pi * (x[:, None] + x) / 11))
    np.testing.assert_allclose((ones * 1).sum(axis=1) / ones.sum(axis=1), 1)


@evaluates("size_of_two_layers_is_below_the_conjectured_one")
@pytest.mark.parametrize("c", [0.5, 1, 3])
def test_two_layers_are_smaller_than_conjectured(c):
    G = np.geomspace(2, 1e6, 100)
    below = c * G**3 / np.log(G**3) > 6 * G**2
    last = np.flatnonzero(~below).max(initial=-1)
    assert last < len(G) - 1  # from some G on it holds


@evaluates("copies_are_exact_after_rounding")
@pytest.mark.parametrize("seed", SEEDS)
def test_copies_behind_rounding(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        P, N = int(rng.integers(1, 50)), int(rng.integers(1, 20))
        v, others = int(rng.integers(0, P)), rng.integers(0, P, N)
        w = rng.dirichlet(np.ones(N)) / (8 * P)
        e, other = rng.uniform(-1, 1, 2) / (32 * P)
        out = (v + w @ others) * (1 + e) / ((1 + w.sum()) * (1 + other)) + rng.uniform(-0.25, 0.25)
        assert abs(out - v) < 0.5


@evaluates("isometry_gives_certificates")
@pytest.mark.parametrize("seed", SEEDS)
def test_isometry_gives_a_query_by_the_iteration_of_the_proof(seed):
    rng = np.random.default_rng(seed)
    n, q = 7, 2
    u = rng.choice([-1, 1], (n, 3000)) / math.sqrt(3000)
    gram = u @ u.T
    supports = [np.array(own) for own in itertools.combinations(range(n), 2 * q)]
    assert max(np.abs(np.linalg.eigvalsh(gram[np.ix_(own, own)]) - 1).max() for own in supports) <= 9 / 40  # delta
    for y in map(list, itertools.combinations(range(n), q)):
        scores, wanted, w = np.eye(n)[y].sum(axis=0), y, np.zeros(n)  # combinations of keys
        for sign in (1, -1) * 10:  # each one corrects what the last one left
            a = np.zeros(n)
            a[wanted] = np.linalg.solve(gram[np.ix_(wanted, wanted)], scores[wanted])
            w, scores = w + sign * a, gram @ a
            off = np.setdiff1d(np.arange(n), wanted)
            large = off[np.argsort(-np.abs(scores[off]))[:q]]
            scores[y] = 0
            wanted = [*y, *large]
        found = gram @ w
        np.testing.assert_allclose(found[y], 1, atol=1e-9)
        assert np.abs(np.delete(found, y)).max() <= 1 / 2


@evaluates("messages_have_q_bits")
@pytest.mark.parametrize("q", [1, 2, 3])
def test_two_sets_with_one_message_are_an_error_of_1_q(q):
    strings = protocols.bit_strings(q)
    z = np.full((len(strings), 2 * q + 1), -1)
    z[:, 2 * np.arange(1, q + 1)] = 2 * strings - 1
    averages = np.array([z[:, 2 * np.arange(1, q + 1) + a - 1].mean(axis=1) for a in strings])
    for one, other in itertools.combinations(averages, 2):
        assert np.abs(one - other).max() / 2 >= 1 / q - 1e-12  # the best that one output can do for both


@evaluates("protocols_send_n_bits")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_two_pairs_of_a_set_and_its_complement_share_a_rectangle(n):
    disjoint = protocols.disjointness_matrix(n)
    order = np.arange(2**n)
    pairs = order[::-1]  # the complement of each
    assert disjoint[order, pairs].all()
    both = disjoint[np.ix_(order, pairs)] * disjoint[np.ix_(order, pairs)].T
    np.testing.assert_array_equal(both, np.eye(2**n))


@evaluates("dimension_for_all_sets")
@pytest.mark.parametrize("seed", SEEDS)
def test_dimension_for_all_sets(seed):
    rng = np.random.default_rng(seed)
    for n in range(2, 7):
        for q in range(1, n):
            least = min(2 * q, n - 1)
            keys = faces.every_set_keys(n, q)
            assert keys.shape == (n, least) and least == faces.least_dimension(n, q)
            for subset in itertools.combinations(range(n), q):
                scores = [int(score) for score in keys @ faces.every_set_query(n, q, list(subset))]
                top = scores[subset[0]]
                assert all(scores[i] == top if i in subset else scores[i] < top for i in range(n))
            if least > 1:
                lost = faces.lost_set(rng.integers(-5, 6, (n, least - 1)), q)
                assert len(lost.subset) == q and set(lost.inside) <= set(lost.subset) and lost.share > 0


@evaluates("messages_that_decide")
@pytest.mark.parametrize("n", [1, 2])
def test_messages_that_decide(n):
    strings = protocols.bit_strings(n)
    meets = (strings @ strings.T > 0).astype(int)
    fits = [
        all(len({tuple(meets[a]) for a in range(2**n) if message[a] == sent}) <= 1 for sent in set(message))
        for message in itertools.product(range(2**n - 1), repeat=2**n)
    ]
    assert not any(fits) and len({tuple(row) for row in meets}) == 2**n
