"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp

from theory.sparse_averaging.proofs import disjointness, groups, linear_query, match2, match3, moments

MISTAKES = {
    "disjointness: determinant": (disjointness, {"determinant": lambda q: 1}, "determinant, q = 1"),
    "disjointness: Bob's values exchanged": (
        disjointness,
        {"values": lambda b: disjointness.values(b)[::-1]},
        "average: what one element adds",
    ),
    "disjointness: twice the error": (
        disjointness,
        {"allowed_error": lambda q: 2 / q},
        "average: the threshold",
    ),
    "groups: neither N nor S in the temperature": (
        groups,
        {"leak": lambda n, slots, modulus: 1 / (4 * modulus)},
        "gathered numbers too small",
    ),
    "groups: no M in the temperature": (
        groups,
        {"leak": lambda n, slots, modulus: 1 / (4 * n * slots)},
        "gathered numbers too",
    ),
    "groups: even attention": (groups, {"leak": lambda n, slots, modulus: 1}, "gathered numbers too large"),
    "groups: a threshold of one bit in S": (groups, {"threshold": lambda slots: 1 / slots}, "one bit"),
    "groups: a threshold that falls with S^3": (
        groups,
        {"threshold": lambda slots: 1 / (64 * slots**3)},
        "all bits of other groups",
    ),
    "groups: one layer": (groups, {"size": lambda n: 3 * n ** sp.Rational(2, 3)}, "m H D"),
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
    "match3: N^2 for N^2 + 2N": (
        match3,
        {"near_weight": lambda n, odds: 1 / (n**2 * odds**2)},
        "one match",
    ),
    "match3: L for 2 L": (
        match3,
        {"near_weight": lambda n, odds: 1 / (n * (n + 2) * odds)},
        "no match",
    ),
    "match3: the blank of Match2": (
        match3,
        {"blank_weight": lambda n, odds: 1 / odds},
        "one match",
    ),
    "match3: half a blank": (
        match3,
        {"blank_weight": lambda n, odds: match3.blank_weight(n, odds) / 2},
        "no match",
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
