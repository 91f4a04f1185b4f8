"""Flows in balls, for `yzflow_enclose.verifier`: Lemma 1, Lemma 3 and (10) written down again, and bounds of the steps.

For a bag with the counts N_l, w_l = N_l exp(z_l), f = w/|w|, u = Y^T f, r = e - softmax(u) and g = Y r::

    full:      dY/dt = eta_Y sum_n p_n f_n r_n^T,  dz/dt = eta_Z sum_n p_n f_n * (g_n - f_n (f_n . g_n))
    modified:  dY/dt = eta_Y F (F^T F)^{-1} [p_n r_n^T]_n,  dz/dt as above
    theory:    g_n = F (F^T F)^{-1} [x_n' (e_n' - 1/M) . r_n]_n',  dx_n/dt = p_n eta_Y M/(M - 1 + exp(x_n)), x_n = M h_n

It imports nothing of the rest but ``verify_file.py``, only python-flint.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

import flint
from flint import acb_mat, arb, arb_poly, arb_series

if __package__:
    from yzflow_enclose.verifier.verify_file import need
else:
    from verify_file import need  # type: ignore[no-redef]


def total(terms: list) -> Any:
    return sum(terms[1:], terms[0])


def dot(*rows: Sequence) -> Any:
    return total([math.prod(entries[1:], start=entries[0]) for entries in zip(*rows, strict=True)])


def solve(A: list, B: list) -> list:
    """A^{-1} B by elimination; A is positive definite."""
    A, B = [list(row) for row in A], [list(row) for row in B]
    for k, pivot in enumerate(A):
        inverse = 1 / pivot[k]
        A[k], B[k] = [v * inverse for v in A[k]], [v * inverse for v in B[k]]
        for i in {*range(len(A))} - {k}:
            factor = A[i][k]
            for M in (A, B):
                M[i] = [v - factor * own for v, own in zip(M[i], M[k], strict=True)]
    return B


def features(counts: list, copies: list, z: list) -> list:
    w = [c * v.exp() for c, v in zip(counts, z, strict=True)]
    norm = dot(w, w, copies).rsqrt()
    return [v * norm for v in w]


def copies_of_a_class(bags: list) -> tuple[list, list] | None:
    """Groups of common and of distinct tokens of classes that are copies of each other; None if they are not.

    A group has a count, and the tokens of each class that have it.
    """
    K, seen = len(bags), Counter(t for bag in bags for t in bag[3])
    queries, targets, shares = ({bag[i] for bag in bags} for i in range(3))
    if K < 2 or len(targets) < K or len(queries) not in (1, K) or len(shares) > 1 or {*seen.values()} - {1, K}:
        return None
    found = []
    for common in (True, False):
        rows = [[(t, x) for t, x in zip(bag[3], bag[4], strict=True) if (seen[t] == K) is common] for bag in bags]
        if not common:
            rows = [sorted(row, key=lambda pair: -pair[1]) for row in rows]
        if any([x for _, x in row] != [x for _, x in rows[0]] for row in rows):
            return None
        counts = sorted({x for _, x in rows[0]}, reverse=True)
        found.append([(x, [[t for t, own in row if own == x] for row in rows]) for x in counts])
    return found[0], found[1]


def equal_classes(
    decoder: str, K: int, M: int, C: int, count: list, k: list, rate_y: Any, rate_z: Any, movers: list
) -> Callable:
    """f(x) for K classes that are copies of each other, seen from one; the first C groups of tokens are common.

    Columns of Y: its own next token, K - 1 others, M - K unseen.
    """
    G, rest = len(count), M - K
    m = [1, K - 1] + [rest] * (rest > 0)
    L = len(m)

    def field(x):
        zero, y, f = x[0] * 0, x[G:], features(count, k, x[:G])
        rho = sum([n * v * v for n, v in zip(k[:C], f[:C], strict=True)], zero)

        def invert(own, other):
            """(F^T F)^{-1} of a vector with one entry ``own`` and K - 1 ``other``, by its mean and the difference."""
            mean, gap = (own + other * (K - 1)) / K / (rho * (K - 1) + 1), (own - other) / (1 - rho) / K
            return mean + gap * (K - 1), mean - gap

        if decoder == "theory":
            clock = 1 / (y[0].exp() + (M - 1))
            own, other = invert(y[0] * clock * (M - 1), -y[0] * clock)
            g, tail = [v * (own + other * (K - 1) if i < C else own) for i, v in enumerate(f)], [rate_y * M * clock]
        else:
            Y = [[y[2 * i], y[2 * i], y[2 * i + 1]] if rest else [zero, zero] for i in range(C)]
            first = 2 * C if rest else 0
            Y += [y[i : i + L] for i in range(first, first + L * (G - C), L)]
            u = [dot(k, f, column) for column in zip(*Y, strict=True)]
            odds = [(other - u[0]).exp() for other in u[1:]]
            against = dot(m[1:], odds)
            r = [against / (against + 1), *(-odd / (against + 1) for odd in odds)]
            g = [dot(row, r, m) for row in Y]
            if decoder == "modified":
                r = [*invert(r[0], r[1]), *(never / (rho * (K - 1) + 1) for never in r[2:])]
            shared = [r[0] + r[1] * (K - 1), r[2] * K] if rest else []
            tail = [rate_y * v * move for i, v in enumerate(f) for move in (shared if i < C else r)]
        along = dot(k, f, g)
        return [rate_z * n * v * (b - v * along) for n, v, b in zip(movers, f, g, strict=True)] + tail

    return field


def symmetric(c: dict, bags: list, common: list, distinct: list) -> tuple[Callable, list[str]]:
    """f(x) for the classes of a population, and the name of each variable."""
    K, M, C, groups = len(bags), c["population"]["vocab_size"], len(common), common + distinct
    rest, own_queries = M - K, len({bag[0] for bag in bags}) > 1
    rate_y, rate_z = (arb(c[name]) * arb(bags[0][2]) for name in ("eta_y", "eta_z"))
    count, k = [arb(x) for x, _ in groups], [len(tokens[0]) for _, tokens in groups]
    movers = [1 if i >= C or own_queries else K for i in range(len(groups))]
    field = equal_classes(c["decoder"], K, M, C, count, k, rate_y, rate_z, movers)
    places = [min((bag[0], t) for bag, own in zip(bags, tokens, strict=True) for t in own) for _, tokens in groups]
    names = [f"z({c['population']['query_tokens'][q]}, {t})" for q, t in places]
    if c["decoder"] == "theory":
        return field, [*names, f"M h({bags[0][1]})"]
    known = sorted(bag[1] for bag in bags)
    unseen = min({*range(K + 1)} - {*known})
    for i, (_, tokens) in enumerate(groups):
        t, n = min((t, bag[1]) for bag, own in zip(bags, tokens, strict=True) for t in own)
        columns = [known[0]] if i < C else [n, min({*known} - {n})]
        names += [f"Y({t}, {column})" for column in columns + [unseen] * (rest > 0) if i >= C or rest]
    return field, names


def general(c: dict, bags: list) -> tuple[Callable, list[str]]:
    """f(x) for a population as it is: bags with a query, a next token, a weight, tokens and counts."""
    M, seen, B = c["population"]["vocab_size"], sorted({bag[1] for bag in bags}), range(len(bags))
    tokens, target = sorted({t for bag in bags for t in bag[3]}), [seen.index(bag[1]) for bag in bags]
    m = [1] * len(seen) + [M - len(seen)] * (len(seen) < M)
    pairs = sorted({(bag[0], t) for bag in bags for t in bag[3]})
    zi = [[pairs.index((bag[0], t)) for t in bag[3]] for bag in bags]
    yi = [[tokens.index(t) for t in bag[3]] for bag in bags]
    p, count, L, nz = [arb(bag[2]) for bag in bags], [[arb(x) for x in bag[4]] for bag in bags], len(m), len(pairs)
    eta_y, eta_z = arb(c["eta_y"]), arb(c["eta_z"])

    def field(x):
        z, tail = [x[0] * 0] * nz, x[nz:]
        F = [features(count[b], [1] * len(zi[b]), [x[i] for i in zi[b]]) for b in B]
        at = [dict(zip(yi[b], F[b], strict=True)) for b in B]

        def inverse(R):  # features have norm one
            terms = [[[at[a][t] * at[b][t] for t in {*at[a]} & {*at[b]}] if a != b else [1] for b in B] for a in B]
            return solve([[sum(own, z[0]) for own in row] for row in terms], R)

        if c["decoder"] == "theory":
            clock = [1 / (v.exp() + (M - 1)) for v in tail]
            beta = inverse([[tail[a] * (M - 1 if target[a] == target[b] else -1) * clock[b] for b in B] for a in B])
            back = [[total([at[a][t] * beta[a][b] for a in B if t in at[a]]) for t in yi[b]] for b in B]
            tail = [eta_y * M * own * tick for own, tick in zip(p, clock, strict=True)]
        else:
            Y, back, R = [tail[i : i + L] for i in range(0, len(tail), L)], [], []
            for b, n in enumerate(target):
                u = [dot(F[b], [Y[t][j] for t in yi[b]]) for j in range(L)]
                odds = [(u[j] - u[n]).exp() for j in range(L)]
                against = total([odds[j] * m[j] for j in range(L) if j != n])
                R.append([(against if j == n else -odds[j]) / (against + 1) for j in range(L)])
                back.append([dot(Y[t], R[b], m) for t in yi[b]])
            R = [[own * v for v in row] for own, row in zip(p, R, strict=True)]
            R, tail = inverse(R) if c["decoder"] == "modified" else R, [x[0] * 0] * len(tail)
            for b, j in product(B, range(L)):
                for t, v in at[b].items():
                    tail[t * L + j] += eta_y * v * R[b][j]
        for b in B:
            along = dot(F[b], back[b])
            for i, f, g in zip(zi[b], F[b], back[b], strict=True):
                z[i] += eta_z * p[b] * f * (g - f * along)
        return z + tail

    names = [f"z({c['population']['query_tokens'][q]}, {t})" for q, t in pairs]
    if c["decoder"] == "theory":
        return field, names + [f"M h({bag[1]}) of bag {b}" for b, bag in enumerate(bags)]
    unseen = [min({*range(len(seen) + 1)} - {*seen})] * (len(seen) < M)
    return field, names + [f"Y({t}, {n})" for t in tokens for n in seen + unseen]


def field_of(c: dict) -> tuple[Callable, list[str]]:
    """The field of a claim's flow, and the names of its variables."""
    bags = c["population"]["bags"]
    groups = copies_of_a_class(bags)
    return symmetric(c, bags, *groups) if groups else general(c, bags)


def copies_in_classes(K: int, M: int, k: list, C: int, own_queries: bool) -> tuple[list, list]:
    """The number of logits of each variable of `equal_classes`: of Z, and of Y."""
    z = [n * (K if i >= C or own_queries else 1) for i, n in enumerate(k)]
    y = [n * columns for n in k[:C] for columns in (K, M - K) if M > K]
    return z, y + [n * K * columns for n in k[C:] for columns in (1, K - 1, M - K) if columns]


def norm_of(c: dict) -> list[float]:
    """Weight of each variable of a claim's flow in the norm of its errors."""
    bags, M = c["population"]["bags"], c["population"]["vocab_size"]
    if groups := copies_of_a_class(bags):
        k = [len(tokens[0]) for _, tokens in groups[0] + groups[1]]
        copies = copies_in_classes(len(bags), M, k, len(groups[0]), len({bag[0] for bag in bags}) > 1)
        return weights(c["decoder"], c["eta_y"], c["eta_z"], *copies, 1)
    pairs, seen = {(bag[0], t) for bag in bags for t in bag[3]}, len({bag[1] for bag in bags})
    columns = ([1] * seen + [M - seen] * (seen < M)) * len({t for _, t in pairs})
    return weights(c["decoder"], c["eta_y"], c["eta_z"], [1] * len(pairs), columns, len(bags))


def weights(decoder: str, eta_y: float, eta_z: float, z: list, y: list, clocks: int) -> list[float]:
    """Square roots of copies over rates; those of the theory flow's clocks are 16 times the largest."""
    found = [math.sqrt(n / eta_z) for n in z]
    return found + ([16.0 * max(found)] * clocks if decoder == "theory" else [math.sqrt(n / eta_y) for n in y])


def evaluate(field: Callable, rows: list, length: int) -> list:
    """Coefficients of the field on the power series with the given ones."""
    flint.ctx.cap = length
    return [[series[k] for k in range(length)] for series in field([arb_series(row[:length], length) for row in rows])]


def taylor(field: Callable, box: list, length: int) -> list:
    """Power series of every solution through a point of a box."""
    rows = [[value] for value in box]
    for k in range(length - 1):
        for row, slope in zip(rows, evaluate(field, rows, k + 1), strict=True):
            row.append(slope[k] / (k + 1))
    return [arb_series(row, length) for row in rows]


def norm(values: list, W: list) -> arb:
    return sum(((v.abs_upper() * w) ** 2 for v, w in zip(values, W, strict=True)), arb(0)).upper().sqrt().upper()


def defect(field: Callable, p: list, centre: arb, half: arb, W: list) -> arb:
    """A bound of |W (p' - f(p))| where |t - centre| <= half: all terms at the centre, and the remainder anywhere."""
    order = max(1, *(q.degree() + 1 for q in p))
    p = [q(arb_poly([centre, 1])) for q in p]
    thin = evaluate(field, [q.coeffs() for q in p], order)
    wide = evaluate(field, [q(arb_poly([arb(0, half), 1])).coeffs() for q in p], order + 1)
    bounds = []
    for q, a, b in zip(p, thin, wide, strict=True):
        slope = q.derivative().coeffs() + [arb(0)] * order
        terms = [(a[j] - slope[j]).abs_upper() for j in range(order)] + [b[order].abs_upper()]
        bounds.append(sum(term * half**j for j, term in enumerate(terms)))
    return norm(bounds, W)


def definite(P: list) -> bool:
    """True if every symmetric matrix with entries in P has positive pivots."""
    P = [list(row) for row in P]
    for k, pivot in enumerate(P):
        for i in range(k + 1, len(P)):
            factor = P[i][k] / pivot[k]
            P[i] = [a - factor * b for a, b in zip(P[i], pivot, strict=True)]
    return all(row[k] > 0 for k, row in enumerate(P))


def growth(field: Callable, box: list, W: list) -> arb:
    """A bound of the logarithmic norm over a box: mu I - S has positive pivots, S the symmetric part of W f' W^-1."""
    N = range(len(box))
    J = [evaluate(field, [[v, int(i == j)] for i, v in enumerate(box)], 2) for j in N]
    S = [[(J[j][i][1] * W[i] / W[j] + J[i][j][1] * W[j] / W[i]) / 2 for j in N] for i in N]
    spread = sum((a.rad() * a.rad() for row in S for a in row), arb(0)).upper().sqrt().upper()
    spread = spread.min(max(sum((a.rad() for a in row), arb(0)).upper() for row in S))
    S = [[S[min(i, j)][max(i, j)].mid() for j in N] for i in N]
    guess = max(float(e.real.mid()) for e in acb_mat(S).eig(algorithm="approx"))
    mu = arb(guess + 1e-9 * float(arb(sum(a * a for row in S for a in row)).sqrt().mid()) + 1e-30)
    return mu + spread if definite([[mu * int(i == j) - S[i][j] for j in N] for i in N]) else arb.nan()


class Tube:
    """The steps of a certificate, after the error of each was checked to stay within its radius."""

    def __init__(self, field: Callable, W: list, steps: list):
        self.field, self.W, self.steps = field, W, steps
        eps, state = arb(0), [arb(0)] * len(W)
        for (_, last, *_), (start, end, radius, pieces, p) in pairwise([(0.0, 0.0), *steps]):
            need(start == last, f"the step from t = {start} does not start where the last one ended")
            need(end > start and 1 <= pieces <= 1000, f"the step from t = {start} is none, or of more than 1000 parts")
            h = arb(end) - arb(start)
            eps = (eps + norm([q[0] - a for q, a in zip(p, state, strict=True)], W)).upper()
            delta = defect(field, p, h / 4, (h / 4).upper(), W).max(defect(field, p, h * 3 / 4, (h / 4).upper(), W))
            bounds = [eps]
            for j in range(pieces):
                box = self.box(p, radius, h * (2 * j + 1) / (2 * pieces), h / (2 * pieces))
                factor = (growth(field, box, W) * h / pieces).exp().upper()
                bounds.append((factor * bounds[-1] + delta * h / pieces * factor.max(arb(1))).upper())
            need(all(x < radius for x in bounds), f"the error is not within its radius in the step from t = {start}")
            eps, state = bounds[-1], [q(h) for q in p]

    def box(self, p: list, radius: float, middle: arb, half: arb) -> list:
        around = arb(0, half.upper())
        return [q(arb_poly([middle, 1]))(around) + arb(0, (radius / w).upper()) for q, w in zip(p, self.W, strict=True)]
