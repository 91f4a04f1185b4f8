"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp

from theory.sparse_averaging.proofs import disjointness, linear_query, match2, match3, moments

MISTAKES = {
    "disjointness: determinant": (disjointness, {"determinant": lambda q: 1}, "determinant, q = 1"),
    "disjointness: full rank of intersection": (
        disjointness,
        {"intersection_rank": lambda q: 2**q},
        "rank of intersection",
    ),
    "linear_query: margin over q + 1": (
        linear_query,
        {"scores": lambda d, r, k, q: linear_query.scores(d, r, k, q + 1), "sizes": ((4, 3),)},
        "equal scores",
    ),
    "linear_query: q = 2 allows more": (linear_query, {"sizes": ((4, 2),)}, "no other A"),
    "linear_query: half the margin": (
        linear_query,
        {
            "scores": lambda d, r, k, q: linear_query.scores([x / 2 for x in d], r, k, q),
            "sizes": ((4, 3),),
        },
        "gap",
    ),
    "match2: L for 2 L": (
        match2,
        {"temperature": lambda n, odds, gap: (sp.log(n) + sp.log(odds)) / gap},
        "no match",
    ),
    "match2: N left out": (
        match2,
        {"temperature": lambda n, odds, gap: 2 * sp.log(odds) / gap},
        "no match",
    ),
    "match2: sign of the blank": (
        match2,
        {"blank_score": lambda odds, c: 1 + sp.log(odds) / c},
        "one match",
    ),
    "match3: 1 for 4/3": (
        match3,
        {"products": lambda a, b, c: sp.Rational(3, 4) * match3.products(a, b, c)},
        "three angles",
    ),
    "match3: a sign": (
        match3,
        {"products": lambda a, b, c: match3.products(a, b, -c)},
        "three angles",
    ),
    "moments: single zeros": (
        moments,
        {"functional": lambda t, members: -sp.prod([t - j for j in members])},
        "gap",
    ),
    "moments: one member left out": (
        moments,
        {"functional": lambda t, members: moments.functional(t, members[:-1] or members)},
        "equal scores",
    ),
    "moments: weights without signs": (
        moments,
        {"radon_weight": lambda q, k: sp.binomial(2 * q, k)},
        "dependency",
    ),
}
