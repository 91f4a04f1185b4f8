"""The lemmas behind Theorem 3 of Wen et al. 2023 (arXiv 2312.01429), our own: how errors pass through a Transformer.

Our text of the paper lacks the formulas of its Lemmas 3, 4 and 8 to 14. `yzflow_bounded_dyck.bounds` computes
with these.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.model import positive

NORMS = (
    "the norm of a product of matrices is at most the product of the norms, and bounds of entries carry over",
    "the mean value theorem along a segment, ReLU by ReLU",
)
SHARES = (
    "a set of keys gains most if exactly its own logits rise by all of the spread",
    "differences of two probability vectors move a mixture by their total variation times the diameter",
)


def split_map(plus: sp.Expr, minus: sp.Expr, x: sp.Expr) -> sp.Expr:
    """Output of a pruned pair of matrices for x, from the sums of its units that see relu(x) and relu(-x)."""
    return plus * sp.Max(0, x) + minus * sp.Max(0, -x)


def slope(above: sp.Expr, below: sp.Expr) -> sp.Expr:
    """d in relu(a) - relu(b) = d (a - b), for a = above > 0 and b = -below < 0."""
    return above / (above + below)


def attention_change(y: sp.Expr) -> sp.Expr:
    """Bound of the change of a share of attention, with y = exp(w / 2), w the spread of the changes of logits."""
    return (y - 1) / (y + 1)


def logit_spread(
    error: sp.Expr, keys: sp.Expr, query: sp.Expr, product: sp.Expr, pruned: sp.Expr, size: sp.Expr
) -> sp.Expr:
    """Bound of the distance of the changes of two logits of one query."""
    return keys * error + 2 * query * error + 2 * product * error**2 + 2 * pruned * (size + error) ** 2


def lipschitz(floor: sp.Expr) -> sp.Expr:
    """Lipschitz constant of LN with a floor."""
    return 1 / floor


def stray(share: sp.Expr) -> sp.Expr:
    """Largest share of an error of norm one that a wider LN moves to the coordinates of the token."""
    return share


def read_change(normed: sp.Expr, link: sp.Expr, error: sp.Expr) -> sp.Expr:
    """Change of LN(..) + b x."""
    return normed + link * error


def network_change(w: sp.Expr, v: sp.Expr, e: sp.Expr, f: sp.Expr, size: sp.Expr) -> sp.Expr:
    """Change of v relu(w z) at |z| = size, if w and v are replaced by w + e and v + f."""
    return (v * e + f * w) * size + f * e * size


def composed(constant: sp.Expr, error: sp.Expr, own: sp.Expr) -> sp.Expr:
    """Error after a map, from the error before it and the map's own error (Lemma 5)."""
    return constant * error + own


def derive(
    *,
    split_map: Claim = split_map,
    slope: Claim = slope,
    attention_change: Claim = attention_change,
    logit_spread: Claim = logit_spread,
    lipschitz: Claim = lipschitz,
    stray: Claim = stray,
    read_change: Claim = read_change,
    network_change: Claim = network_change,
    composed: Claim = composed,
) -> Derivation:
    """Linear maps, ReLU, softmax, logits, LN with a floor, LN of more dimensions, residual link, composition."""
    x, a, b, c, e, f, w, v, beta, size = positive("x a b C e f w v beta R")
    s, t, angle = sp.symbols("s t v_1", nonnegative=True)  # angle: one less the cosine
    plus, minus, link = sp.symbols("p_1 p_2 b_1", real=True)
    y, p = 1 + sp.Symbol("g", nonnegative=True), 1 / (1 + positive("o"))
    vanishing: dict[str, sp.Expr] = {}
    signed: dict[str, tuple[sp.Expr, str]] = {}
    for sign in (1, -1):
        # Sums W + E_+ and -W + E_-: the excess over W x is E_+ relu(x) + E_- relu(-x), of a vector as long as x.
        found = split_map(w + plus, -w + minus, sign * x) - w * sign * x
        vanishing[f"linear map, sign {sign}"] = found - (plus if sign > 0 else minus) * x
        vanishing[f"identity, sign {sign}"] = split_map(1 / link, -1 / link, sign * x) * link - sign * x
        vanishing[f"norm of both halves, sign {sign}"] = sum(sp.Max(0, k * x) ** 2 for k in (sign, -sign)) - x**2
    vanishing["ReLU"] = sp.Max(0, a) - sp.Max(0, -b) - slope(a, b) * (a + b)
    signed["ReLU, at most one"] = (1 - slope(a, b), ">= 0")
    signed["ReLU, not negative"] = (slope(a, b), ">= 0")
    # A set with the share p, whose logits rise by w more than all others.
    change = p * y**2 / (1 - p + p * y**2) - p
    slack = (y - 1) * (1 - p - p * y) ** 2 / ((y + 1) * (1 - p + p * y**2))
    vanishing["softmax"] = attention_change(y) - change - slack
    # Width one: keys at R and -R, all errors as bad as they can be.
    moved = 2 * (size + e) ** 2 * (beta + f) - 2 * size**2 * beta
    vanishing["logits, attained at width one"] = logit_spread(e, 2 * beta * size, beta * size, beta, f, size) - moved
    vanishing |= _normalisation(lipschitz, c, s, t, angle)
    # A mean over r d coordinates of an error e on d of them: d = 3 written out.
    d, entries = 3, sp.symbols("e_0:3", real=True)
    ratio = positive("r")
    gaps = sum((one - other) ** 2 for i, one in enumerate(entries) for other in entries[:i])
    strayed = d * (sum(entries) / (ratio * d)) ** 2
    vanishing["larger LN, d = 3"] = stray(1 / ratio) ** 2 * sum(k**2 for k in entries) - strayed - gaps / (ratio**2 * d)
    vanishing["residual link"] = ((a + e) / c + x * (b + f)) - (a / c + x * b) - read_change(e * lipschitz(c), x, f)
    vanishing["network"] = (v + f) * (w + e) * size - v * w * size - network_change(w, v, e, f, size)
    vanishing["composition"] = (a * (x + e) + f) - a * x - composed(a, e, f)
    return Derivation(
        statement="Lemmas of Theorem 3 (bounded Dyck), our own",
        vanishing=vanishing,
        signed=signed,
        steps=(
            r"Linear maps. If subsets sum to $W + E_+$ on the units that see $relu(x)$ and to $-W + E_-$ on those that"
            r" see $relu(-x)$, the map is off by $[E_+\ E_-](relu(x), relu(-x))$, a vector as long as $x$: by at most"
            r" $\|[E_+\ E_-]\|\,\|x\|$. Where $x \ge 0$, $E_+$ alone.",
            r"ReLU. $relu(a) - relu(b) = d(a-b)$ with $d \in [0,1]$: outputs of a network differ by $W_k D .. D W_1$"
            r" times the change of its input, which is convex in each D, so that zeros and ones decide.",
            r"Network. With $W_t + E_t$ in place of $W_t$, layer by layer: $\|\tilde g(z)-g(z)\| \le \sum_t \max_D"
            r" \|W_k D .. D E_t \tilde h_{t-1}\|$.",
            r"Softmax. If changes of logits are at most $\omega$ apart, the attention on any set of keys changes most"
            r" if they all rise by $\omega$: by $p(1-p)(y^2-1)/(1-p+py^2)$, $y = e^{\omega/2}$, and $\tanh(\omega/4)$"
            r" less that is $\frac{(y-1)(1-p-py)^2}{(y+1)(1-p+py^2)} \ge 0$. A mixture of values moves by at most this"
            r" times the largest distance of two.",
            r"Logits. $(x_j+\delta_j)^T(B+E)(x_i+\delta_i) - x_j^TBx_i = x_j^TB\delta_i + \delta_j^TBx_i +"
            r" \delta_j^TB\delta_i + \tilde x_j^T E\tilde x_i$; for two keys they are at most $\omega = \max\|B^T(x_j -"
            r" x_k)\|e + 2\|Bx_i\|e + 2\|B\|e^2 + 2\|E\|(R+e)^2$ apart.",
            r"LN. $\|LN_C(u) - LN_C(u')\| \le \|Pu-Pu'\|/C$: LN is the nearest point of the unit ball to $Pu/C$, in the"
            r" three cases (both outside of the ball, one, none). If both norms are at least $r$, $r$ stands for C.",
            r"LN of more dimensions. Padded with zeros, a vector of mean zero is normalised as before. Errors have a"
            r" mean, which a larger LN takes off all coordinates: on the token's, of norm $\frac{d}{d'}\|\epsilon\|$ at"
            r" most, by Cauchy and Schwarz.",
            r"Residual link. $LN(u) + bx$ moves by at most what LN moves and $|b|$ times what x moves.",
            r"Identity. With $W_V = 0$ LN has nothing but zero to normalise, and returns it as $C > 0$; the network"
            r" $\frac1b(relu(bx) - relu(-bx)) = x$ undoes the weight b.",
            r"Composition. $\|\tilde f(\tilde x) - f(x)\| \le \|\tilde f(\tilde x) - f(\tilde x)\| + L\|\tilde x -"
            r" x\|$, layer after layer.",
        ),
        scope=(
            "norms in any dimension: only lengths, an angle, and scalars enter; the mean of an error is written out for"
            " three coordinates"
        ),
        sizes={"d": (3,)},
        prose=(*NORMS, *SHARES),
        proves=("Lemma 5", "Lemma 10", "Lemma 12"),
    )


def _normalisation(lipschitz: Claim, c: sp.Expr, s: sp.Expr, t: sp.Expr, angle: sp.Expr) -> dict[str, sp.Expr]:
    """(L |x - y|)^2 minus the squared distance of the images, as a sum of non-negative terms."""
    scale = lipschitz(c) ** 2

    def apart(one: sp.Expr, other: sp.Expr) -> sp.Expr:
        return one**2 + other**2 - 2 * one * other * (1 - angle)

    inner = positive("b_2")
    floor = inner + t
    outside = (s - t) ** 2 + 2 * angle * (c * (s + t) + s * t)
    return {
        "LN, both outside": scale * apart(c + s, c + t) - 2 * angle - outside / c**2,
        "LN, one outside": (lipschitz(floor) ** 2 * apart(floor + s, inner) - apart(floor, inner) / floor**2)
        - s * (s + 2 * t + 2 * inner * angle) / floor**2,
        "LN, both inside": scale * apart(s, t) - apart(s / c, t / c),
    }
