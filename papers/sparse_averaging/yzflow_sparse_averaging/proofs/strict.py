"""The strict model, d = m and linear queries, keys and values: the constructions' sizes, one layer by its bits, copies.

Against the conjecture on the slides of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896), and beside their
theorem on one layer. The constructions are `yzflow_sparse_averaging.strict`, `.power_sums` and `.circuits`.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from yzflow_sparse_averaging import circuits, groups, sorted_groups, transform
from yzflow_sparse_averaging.proofs import groups as of_groups
from yzflow_sparse_averaging.proofs import sorted_groups as of_sorted
from yzflow_sparse_averaging.proofs import transform as of_transform
from yzflow_sparse_averaging.proofs._sizes import largest
from yzflow_sparse_averaging.strict import strict_width

FURTHER, ABOVE, MORE = sp.symbols("n s h", nonnegative=True)
TOKENS, WIDTH = 1 + FURTHER, 1 + MORE
PRIME = 2 * TOKENS + 1 + ABOVE


def transform_width(n_tokens: sp.Expr) -> sp.Expr:
    """m = d of the transform, for N a power of two and M <= N."""
    return 4 * sp.log(n_tokens, 2) + 16


def transform_size(n_tokens: sp.Expr) -> sp.Expr:
    """Upper bound of the strict transform's m H D."""
    return 16 * (sp.log(n_tokens, 2) + 1) * (sp.log(n_tokens, 2) + 4)


def groups_width(n_tokens: sp.Expr) -> sp.Expr:
    """m = d of the two layers of groups, N a cube."""
    return 6 * n_tokens ** sp.Rational(2, 3) + 6 * n_tokens ** sp.Rational(1, 3) + 2


def groups_size(n_tokens: sp.Expr) -> sp.Expr:
    """m H D of them."""
    return 36 * n_tokens ** sp.Rational(2, 3) + 36 * n_tokens ** sp.Rational(1, 3) + 12


def sorted_width(n_tokens: sp.Expr, modulus: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Widths for scores of groups and of codes; m = d of sorted groups is at most the larger."""
    root = sp.sqrt(n_tokens)
    return 14 * root + 34, 8 * root + 28 + 6 * sp.ceiling(sp.log(modulus * n_tokens, 2))


def circuit_width(slots: sp.Expr, code: sp.Expr, bits: sp.Expr) -> sp.Expr:
    """m = d for g gates and b digits of a residue a token, and positions of c digits."""
    return 1 + bits + slots + 4 * slots * (bits + slots + code)


def base(n_tokens: sp.Expr, prime: sp.Expr) -> sp.Expr:
    """Base of the digits that hold power sums."""
    return 2 * n_tokens * prime


def step(n_tokens: sp.Expr) -> sp.Expr:
    """Largest step of the fixed-point numbers for means."""
    return 1 / (2 * n_tokens)


def copies(n_tokens: sp.Expr) -> sp.Expr:
    """Number of further copies of a token's own residue in the sums, beside the token itself."""
    return n_tokens


def bits(n_tokens: sp.Expr, prime: sp.Expr, dimension: sp.Expr) -> sp.Expr:
    """Upper bound of the averaging layer's p."""
    return 2 * n_tokens / dimension * sp.log(2 * n_tokens * prime, 2) + 5


def message(dimension: sp.Expr) -> sp.Expr:
    """Numbers that Alice sends for a head of a strict layer: her mean of d' = m numbers, and her sum's logarithm."""
    return dimension + 1


def least_product(n_tokens: sp.Expr) -> sp.Expr:
    """Least m H p of one strict layer, N odd and M >= N + 2."""
    return (n_tokens - 1) / 4


def wrong_weight(wires: sp.Expr) -> sp.Expr:
    """Largest total weight of all wrong tokens, relative to the right token, without maps between layers."""
    return 1 / (64 * wires)


def fine_step(wires: sp.Expr) -> sp.Expr:
    """Largest step of the fixed-point numbers for outputs, without maps between layers."""
    return 1 / (64 * wires)


def wire_error(wires: sp.Expr) -> sp.Expr:
    """How far a wire is from its bit, at most, if a token holds so many."""
    return 3 / (128 * wires)


def input_error() -> sp.Expr:
    """How far a fetched input of a gate is from its bit, at most."""
    return sp.Rational(1, 8)


def newton(sums: list[sp.Expr], elementary: list[sp.Expr], k: int) -> sp.Expr:
    """The k-th elementary symmetric polynomial from power sums, and those before it."""
    return sum((-1) ** (i - 1) * elementary[k - i] * sums[i - 1] for i in range(1, k + 1)) / sp.Integer(k)


def average(weights: list[sp.Expr], values: list[sp.Expr], multiplicity: sp.Expr) -> sp.Expr:
    """Attention's average if each token stands there so many times."""
    return sum(multiplicity * w * v for w, v in zip(weights, values, strict=True)) / sum(
        multiplicity * w for w in weights
    )


def derive(
    *,
    transform_width: Claim = transform_width,
    transform_size: Claim = transform_size,
    groups_width: Claim = groups_width,
    groups_size: Claim = groups_size,
    sorted_width: Claim = sorted_width,
    circuit_width: Claim = circuit_width,
    base: Claim = base,
    step: Claim = step,
    copies: Claim = copies,
    bits: Claim = bits,
    message: Claim = message,
    least_product: Claim = least_product,
    wrong_weight: Claim = wrong_weight,
    fine_step: Claim = fine_step,
    wire_error: Claim = wire_error,
    input_error: Claim = input_error,
    newton: Claim = newton,
    average: Claim = average,
) -> Derivation:
    """Widths as sums over the built layers and tokens; digits, rounding and own residue of one layer."""
    r, code, place, gates, digits = sp.symbols("r c D g b", positive=True)
    G, lower = 1 + sp.Symbol("g", nonnegative=True), sp.Symbol("y", nonnegative=True)

    def of(claim, value):
        return sp.powdenest(sp.expand_log(claim(value), force=True), force=True)

    m_transform = strict_width(transform.layers(r, r + 1, 2), transform.layout(2).width, largest=largest)
    most = of_transform.heads() * of(of_transform.depth, 2**r)
    m_groups = strict_width(groups.layers(G), groups.layout(G).width, largest=largest)
    size = G + 1 + sp.Symbol("x", nonnegative=True)  # S, at least G + 1
    m_sorted = strict_width(
        sorted_groups.layers(size, G, code, place), sorted_groups.layout(size, G).width, largest=largest
    )
    token = sorted_groups.layout(size, G).width
    by_codes, by_groups = sp.expand(3 * size + 6 * code), sp.expand(3 * size + 6 * (G + 1))
    root = G + lower  # of N
    at_most = of_sorted.token_width(root**2) + 3 * of_sorted.group_size(G)
    claimed = sorted_width(root**2, 2 ** (code) / root**2)
    m_circuit = strict_width(
        circuits.layers(place, gates, code, digits), circuits.layout(gates, digits).width, largest=largest
    )
    values, weights = sp.symbols("v_:3", real=True), sp.symbols("w_:3", positive=True)
    copied = sp.Symbol("c", positive=True)
    wires = 1 + sp.Symbol("w", nonnegative=True)
    leak, rounding, off = wrong_weight(wires), fine_step(wires) / 2, 2 * input_error()
    vanishing = {
        "transform: m": sp.simplify(m_transform - of(transform_width, 2**r)),
        "transform: m H D": sp.expand(m_transform * most - of(transform_size, 2**r)),
        "transform: m H D against N / log N, in the limit": sp.limit(of(transform_size, 2**r) * r / 2**r, r, sp.oo),
        "groups: m": sp.expand(m_groups - of(groups_width, G**3)),
        "groups: m H D": sp.expand(m_groups * of_groups.heads() * of_groups.depth() - of(groups_size, G**3)),
        "groups: m H D against N / log N, in the limit": sp.limit(
            sp.powdenest(groups_size(r**3), force=True) * 3 * sp.log(r) / r**3, r, sp.oo
        ),
        "sorted: m is that of codes or of groups": sp.expand(m_sorted - token - sp.Max(by_codes, by_groups)),
        "circuits: m": sp.expand(m_circuit - circuit_width(gates, code, digits)),
        # The largest number is below 4 base^(2N/m) steps: two bits more, one for the last, one rounded up, a sign.
        "one layer: p": sp.expand_log(
            2 * TOKENS / WIDTH * sp.log(base(TOKENS, PRIME), 2) + 5 - bits(TOKENS, PRIME, WIDTH), force=True
        ),
        "copies: an average stays": sp.together(
            average(weights, values, copied) - sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        ),
    }
    for count in SIZES["2N"]:
        roots = sp.symbols(f"x_:{count}")
        sums = [sum(x**k for x in roots) for k in range(1, count + 1)]
        elementary = [sp.Integer(1)]
        polynomial = sp.Poly(sp.prod(sp.Symbol("t") - x for x in roots), sp.Symbol("t")).all_coeffs()
        for k in range(1, count + 1):
            elementary.append((-1) ** k * polynomial[k])
            vanishing[f"Newton, 2N = {count}, k = {k}"] = sp.expand(newton(sums, elementary, k) - elementary[k])
    return Derivation(
        statement="Match3 in the strict model",
        vanishing=vanishing,
        signed={
            "sorted: m, by groups": (sp.expand(claimed[0] - at_most - 6 * (G + 1)), ">= 0"),
            "sorted: m, by codes": (
                sp.expand(sorted_width(root**2, 1)[1] - 6 * sp.ceiling(sp.log(root**2, 2)) - at_most),
                ">= 0",
            ),
            # A wrong token's wire and the right one's differ by at most 1 and both errors.
            "without maps: a fetched input": (
                input_error() - wires * (wire_error(wires) + leak * (1 + 2 * wire_error(wires)) + rounding),
                ">= 0",
            ),
            # Signs of the right pair, and of one with a wrong bit; a token without a pair scores 0.
            "without maps: the right pair is ahead of others by 1": (2 * (1 - off) - (1 + off) + (1 - off) - 1, ">= 0"),
            "without maps: and of tokens without a pair": (2 * (1 - off) - 1, ">= 0"),
            "without maps: what is looked up": (wire_error(wires) - leak - rounding, ">= 0"),
            "one layer: digits do not carry": (
                base(TOKENS, PRIME) - 1 - (TOKENS + copies(TOKENS)) * (PRIME - 1),
                ">= 0",
            ),
            "one layer: N times a rounded mean is within 1/2": (
                sp.Rational(1, 2) - TOKENS * step(TOKENS) / 2,
                "> 0",
            ),
            "one layer: its own residue occurs more often than all others": (
                copies(TOKENS) + 1 - (TOKENS - 1),
                "> 0",
            ),
            "one layer: the bound on m H p": (
                2 * WIDTH * (2 * FURTHER / 2) - 4 * message(WIDTH) * least_product(TOKENS),
                ">= 0",
            ),
        },
        steps=STEPS,
        scope="widths: every size that the constructions are proved for; one layer: every N, M and m that divides 2N,"
        " Newton's identities by computation for $2N = 2, 4, 6$; copies: three tokens",
        sizes=SIZES,
        prose=(LIFT, NEWTON, COPIES),
        proves=("Match3, strict",),
    )


SIZES = {"2N": (2, 4, 6)}
LIFT = (
    "a map before a layer may write what each head reads, so that Q, K and V select it; scores, averages and what the"
    " next map reads stay as they are; that the answers are right is proved of the transformer with maps"
)
NEWTON = (
    "Newton's identities for every number of roots; each k <= 2N < P has an inverse mod P, and a polynomial over a"
    " field has its roots once"
)
COPIES = "copies: by induction over layers, for any number of tokens: equal tokens stay equal"
GATES = "circuits: after l layers all gates on paths of at most l gates are right, by induction over l"
TABLES = "that gates of one kind, u and not v, make all others, and an induction over the gates' depth"
NUMBERS = (
    "that the transform, of numbers of O(log N) bits, is a circuit of N gates and of a depth that are polynomials in"
    " log N times N and 1"
)
BARRIER = (
    "that a bound of N^Omega(1) for D, m, H or p would give one of N^(1 + Omega(1)) gates or depth N^Omega(1) for"
    " circuits, by the layers that run a circuit"
)
STEPS = (
    r"A token of w numbers gets columns for what the heads of a layer read: H queries and keys of k numbers and H times"
    r" v values. The map before the layer writes them, and Q, K and V are matrices of 0 and 1 that select them:"
    r" $m = d = w + \max H(2k + v)$, with D, H, p and all scores as before.",
    r"Transform, $M \le N = 2^r$: $w = 8$, and the two reads of $k = r + 1$, $v = 2$ are the widest: $m = 4r + 16$, and"
    r" $mHD \le (4r + 16)\cdot 2 \cdot (2r + 2)$. Groups: $w = 3S + 2$, three heads of $k = G$ and $v = S$: $m = 6S +"
    r" 6G + 2$. Sorted groups: $w \le 5\sqrt N + 19$, $S \le \sqrt N + 3$ and $k$ the longer of $G + 1$ and a code.",
    r"One layer. Token i holds $x_i^k \bmod P$, $k \le 2N$, as digits in the base $2NP$. N times $X + \mathrm{mean}(X)$"
    r" has the digits $N x_i^k + \sum_j x_j^k \le 2N(P - 1)$: no carry. A mean rounded to a step of $1/(2N)$, times N,"
    r" is within 1/4 of its integer.",
    r"These are the power sums of 2N residues, all tokens and N copies of $x_i$. By Newton's identities, in which only"
    r" $k \le 2N < P$ is divided by, they give the polynomial mod P with these roots; the root that occurs N + 1 times"
    r" or more is $x_i$. So the map after the layer knows all residues.",
    r"A number holds $2N/m$ digits, and twice as many bits after the point as there are in 2N at most: $p \le"
    r" \frac{2N}m \log_2(2NP) + 5$. In the other direction Alice sends $H(m + 1) \le 2mH$ numbers of p bits and decides"
    r" disjointness of $(N - 1)/2$ bits: $mHp \ge (N - 1)/4$.",
    r"Without maps between layers a gate is looked up in a table of the pairs 00, 01, 10, 11, by signs: with inputs"
    r" within 1/8 the right pair is ahead by the scale, and what is read is within $3/(128W)$ of a bit again. An input"
    r" is the sum of W heads, of which all but one read zeros of the blank token: within 1/8.",
    r"Without positions equal tokens stay equal. If each token stands there c times, all weights of an average get the"
    r" factor c, above and below: a transformer for N tokens does $N/c$ tokens with the same weights.",
)
