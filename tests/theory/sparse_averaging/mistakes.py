"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp

from theory.sparse_averaging.proofs import (
    disjointness,
    fully_connected,
    groups,
    linear_query,
    match2,
    match3,
    moments,
    recurrent,
    sorted_groups,
    transform,
)

MISTAKES = {
    "fully connected: as wide as if q did not count twice": (
        fully_connected,
        {"narrow_width": lambda n, q, d: d * (n - q)},
        "tokens of one sign",
    ),
    "fully connected: each row of the layer frees two coordinates": (
        fully_connected,
        {"saturated": lambda n, k, d: n * d - 2 * k},
        "tokens of one sign",
    ),
    "fully connected: errors of 1/q": (fully_connected, {"forced_error": lambda q: 1 / q}, "weighted mean"),
    "fully connected: errors of 1/(2q)": (fully_connected, {"forced_error": lambda q: 1 / (2 * q)}, "attained"),
    "fully connected: both sets weigh the same": (
        fully_connected,
        {"weights": lambda q: (sp.Rational(1, 2), sp.Rational(1, 2))},
        "weighted mean",
    ),
    "recurrent: q = N too": (recurrent, {"largest_q": lambda n: n}, "sets that must take"),
    "recurrent: averages 1/q apart": (recurrent, {"separated": lambda q: 1 / q}, "one token that differs"),
    "recurrent: errors to 2/q": (recurrent, {"allowed_error": lambda q: 2 / q}, "no output serves"),
    "recurrent: the last token's value forgotten": (
        recurrent,
        {"decoded": lambda first, second: first - second},
        "what Bob decodes",
    ),
    "recurrent: entropy in nats": (
        recurrent,
        {"ball_bits": lambda x: -x * sp.log(x) - (1 - x) * sp.log(1 - x)},
        "a term of the binomial",
    ),
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
    "groups: even attention": (groups, {"leak": lambda n, slots, modulus: 1}, "a gathered zero, too large"),
    "groups: a threshold of one bit in S": (groups, {"threshold": lambda slots: 1 / slots}, "one bit"),
    "groups: a threshold that falls with S^3": (
        groups,
        {"threshold": lambda slots: 1 / (64 * slots**3)},
        "all bits of other groups",
    ),
    "groups: one layer": (groups, {"size": lambda n: 3 * n ** sp.Rational(2, 3)}, "m H D"),
    "groups: steps of outputs of 1/S": (groups, {"step": lambda slots: 1 / slots}, "gathered numbers too"),
    "groups: steps that do not fall with S": (groups, {"step": lambda slots: sp.Rational(1, 2)}, "one bit"),
    "groups: errors of attention that do not fall with M": (
        groups,
        {"weight_error": lambda modulus: sp.Rational(1, 32)},
        "gathered numbers too small",
    ),
    "groups: outputs below M steps": (groups, {"largest_output": lambda modulus: modulus}, "outputs are in range"),
    "transform: a butterfly without its power": (
        transform,
        {"forward": lambda u, v, power: (u + v, u - v)},
        "half transform, odd",
    ),
    "transform: a butterfly's sign": (
        transform,
        {"forward": lambda u, v, power: (u + v, (v - u) * power)},
        "half transform, odd",
    ),
    "transform: sums with the power": (
        transform,
        {"forward": lambda u, v, power: (u + v * power, u - v * power)},
        "half transform, even",
    ),
    "transform: not halved on the way back": (
        transform,
        {"backward": lambda u, v, power: (u + v / power, u - v / power)},
        "undone, first",
    ),
    "transform: back with the power, not its inverse": (
        transform,
        {"backward": lambda u, v, power: ((u + v * power) / 2, (u - v * power) / 2)},
        "undone, first",
    ),
    "transform: a length of M": (transform, {"length": lambda modulus: modulus}, "no wrap"),
    "transform: a blank as strong as 1/N": (
        transform,
        {"histogram_leak": lambda n: 1 / (8 * (n + 1))},
        "histogram: all others",
    ),
    "transform: a threshold of one in N": (
        transform,
        {"histogram_threshold": lambda n: 1 / (n + 1)},
        "histogram: one token",
    ),
    "transform: histogram to one bit in N": (
        transform,
        {"histogram_step": lambda n: 1 / (n + 1)},
        "histogram: all others",
    ),
    "transform: copies without P in the temperature": (
        transform,
        {"copy_leak": lambda n, prime: 1 / (8 * n)},
        "copies too small",
    ),
    "transform: copies to integers": (transform, {"copy_step": lambda: sp.Integer(1)}, "copies too"),
    "transform: errors of attention that do not fall with P": (
        transform,
        {"weight_error": lambda prime: sp.Rational(1, 32)},
        "copies too large",
    ),
    "transform: no layers back": (transform, {"size": lambda r: (r + 2) * 2 * (r + 2)}, "m H D"),
    "sorted_groups: ranges that touch": (sorted_groups, {"least": lambda before: before}, "of a diagonal"),
    "sorted_groups: one sum, not two": (
        sorted_groups,
        {"triples": lambda groups: groups * (groups + 1) / 2},
        "diagonals",
    ),
    "sorted_groups: two triples of the longest diagonals too": (
        sorted_groups,
        {"triples": lambda groups: groups * (groups + 1)},
        "diagonals",
    ),
    "sorted_groups: groups of G": (sorted_groups, {"dimension": lambda groups: groups}, "groups have at most"),
    "sorted_groups: a dimension of N": (
        sorted_groups,
        {"dimension": lambda groups: groups**2 + 6},
        "m H D against N / log N",
    ),
    "sorted_groups: shares to one in N": (sorted_groups, {"digit_step": lambda n: 1 / n}, "counts too"),
    "sorted_groups: digits without N in the temperature": (
        sorted_groups,
        {"digit_leak": lambda n: sp.Rational(1, 8)},
        "a count of zero",
    ),
    "sorted_groups: residues without M in the temperature": (
        sorted_groups,
        {"gather_leak": lambda n, modulus: 1 / (8 * n)},
        "a residue of zero",
    ),
    "sorted_groups: residues to one in S": (sorted_groups, {"gather_step": lambda size: 1 / size}, "residues too"),
    "sorted_groups: errors of attention that do not fall with N": (
        sorted_groups,
        {"weight_error": lambda n, modulus: 1 / (32 * modulus)},
        "counts too large",
    ),
    "sorted_groups: a sentinel as strong as 1/N": (
        sorted_groups,
        {"report_leak": lambda n: 1 / (8 * n)},
        "report: all others",
    ),
    "sorted_groups: a threshold of one in N": (
        sorted_groups,
        {"report_threshold": lambda n: 1 / n},
        "report: one bit",
    ),
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
