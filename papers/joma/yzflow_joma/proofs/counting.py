r"""Number of turns of the entropy: exactly one for two sizes, unbounded in general; and the effect of zeros."""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from theory.symbolic.indexed import entries, index, size, total

MOVERS = size("n")  # entries whose mu is not zero

AHEAD = (
    "of two entries the one of the larger mu is ahead at all times, since its rate is larger wherever they are level"
)
ONCE = (
    "a function of time that falls wherever it is zero is zero once at most; before it is positive, after it negative"
)
LATER = "a new entry arrives in a time that goes to zero as its mu grows, and its speed at any later time does so, too"


def acceleration(speed: sp.Expr, v: sp.Expr, weight: sp.Expr) -> sp.Expr:
    """d ln w/dt for w = u', u = v^2/2, from w, v and e^u."""
    return speed * (1 + 1 / v**2) - weight


def covariance(p: sp.Expr, q: sp.Expr, apart: sp.Expr, faster: sp.Expr) -> sp.Expr:
    """Term of one pair in Cov_p(u, w), from both shares, u_k - u_j and w_k - w_j; each pair counts once."""
    return p * q * apart * faster


def rising_zeros(weights: sp.Expr, levels: sp.Expr, speeds: sp.Expr, both: sp.Expr) -> sp.Expr:
    """Number of zeros below which the entropy rises, from sums over nonzero entries of e^u times 1, u, w and u w."""
    return levels * speeds / both - weights


def lifted(rate: sp.Expr, share: sp.Expr, lift: sp.Expr, mean: sp.Expr, drive: sp.Expr) -> sp.Expr:
    """dH/dt after adding an entry at rest, from the old rate, the new share p0, p0 u0, the old mean and sum p w."""
    return (1 - share) * (rate + (lift - share * mean) * drive)


def derive(
    *,
    acceleration: Claim = acceleration,
    covariance: Claim = covariance,
    rising_zeros: Claim = rising_zeros,
    lifted: Claim = lifted,
) -> Derivation:
    """Each pair of entries has equal speeds once; dH/dt with zeros, and with an added entry at rest."""
    i, j, k = (index(name, MOVERS) for name in "ijk")
    u, w = entries("u"), entries("w")
    v, mu = sp.symbols("v mu", positive=True)
    speed = v * (mu - v) * sp.exp(v**2 / 2)
    speed_rate = sp.diff(speed, v) / v * speed / v / speed * v  # dw/dt = dw/dv u'/v
    # Two entries at v1 < v2 = v1 + h with equal speeds w; e^u2 = (1 + g) e^u1.
    v1, more, common, weight, gain = sp.symbols("v1 h w E g", positive=True)
    level = acceleration(common, v1 + more, weight * (1 + gain)) - acceleration(common, v1, weight)

    def mean(what):
        return total(sp.exp(u[j]) * what(j), j)

    weights, levels = mean(lambda _: 1), mean(lambda at: u[at])
    speeds, both = mean(lambda at: w[at]), mean(lambda at: u[at] * w[at])
    zeros, share, lift = sp.symbols("Z p0 delta", nonnegative=True)
    whole = zeros + weights
    # dH/dt = -sum_j p_j (u_j - mean) w_j, with zeros and with an added entry.
    beside = -total(sp.exp(u[j]) / whole * (u[j] - levels / whole) * w[j], j)
    pairs = total(total(covariance(sp.exp(u[j]), sp.exp(u[k]), u[k] - u[j], w[k] - w[j]), j), k) / 2
    p, average = entries("p"), sp.Symbol("ubar", real=True)
    now = -total(p[i] * (u[i] - average) * w[i], i)
    then = -total((1 - share) * p[i] * (u[i] - (1 - share) * average - lift) * w[i], i)
    first, second, apart, faster = sp.symbols("P Q a b", positive=True)  # total shares of two sizes
    return Derivation(
        "How often it turns",
        {
            "pair: rate of the speed": sp.simplify(speed_rate - acceleration(speed, v, sp.exp(v**2 / 2))),
            "pair: covariance": pairs - (weights * both - levels * speeds),
            "zeros: rises where they are fewer": sp.expand(
                beside * whole**2 / both - (rising_zeros(weights, levels, speeds, both) - zeros)
            ),
            "added: an entry that stands": then - lifted(now, share, lift, average, total(p[i] * w[i], i)),
        },
        {
            "pair: the larger falls behind where speeds are level": (sp.factor(sp.expand(level)), "< 0"),
            "pair: two sizes": (-covariance(first, second, apart, faster), "< 0"),
        },
        steps=(
            r"Let $w = \dot u = v(\mu - v)e^{v^2/2}$, of $|\mu|$ and $|v|$. Then $\frac{d}{dt}\ln w = w(1 +"
            r" v^{-2}) - e^{v^2/2}$. Of two entries with $\mu_j < \mu_k$ the second is ahead. Where both have one"
            r" speed w, $\frac{d}{dt}\ln\frac{w_k}{w_j} = w(v_k^{-2} - v_j^{-2}) - (e^{u_k} - e^{u_j}) < 0$. At"
            r" first $w_k > w_j$, in the end $w_k < w_j$: they have one speed at one time $t_{jk}$ only.",
            r"$\dot H = -\mathrm{Cov}_p(u, w) = -\sum_{j<k}p_jp_k(u_k - u_j)(w_k - w_j)$. Without zeros the"
            r" entropy so falls before the first of the times $t_{jk}$ of entries that differ, and rises after the"
            r" last. For two sizes, of any numbers of entries, there is one such time: it turns exactly once.",
            r"Beside Z zeros, with sums over the others: $\dot H\cdot\frac{(Z + \sum e^u)^2}{\sum e^uuw} = R(t) -"
            r" Z$, $R = \frac{\sum e^uu\,\sum e^uw}{\sum e^uuw} - \sum e^u$. So the entropy rises where $Z < R(t)$"
            r" and falls where $Z > R(t)$: it turns as often as R crosses Z, and never rises for $Z \ge \sup R$. In"
            r" the end R is the number below which it rises in the end.",
            r"No number of turns is the largest. Let $\dot H$ have the signs $-, +, -, \ldots$ at times $t_0 <"
            r" \cdots < t_k$. Take N copies of every entry, which changes $\dot H$ nowhere, and add one entry"
            r" $\mu_0$, with $u_0 = \mu_0^2/2$ and N next to $u_0e^{u_0}/\epsilon$. As $\mu_0 \to \infty$ it stands"
            r" at $u_0$ from any time on; its share $p_0$ goes to 0, and $\delta = p_0u_0$ to"
            r" $\epsilon/\sum_je^{u_j}$. Then $\dot H$ goes to what it was and $\delta\sum_jp_jw_j$: the signs at"
            r" all $t_i$ stay if $\epsilon$ is small. At $t_* < t_0$ with every $u_j < \delta$ it is at least"
            r" $\sum_jp_j(\delta - u_j)w_j > 0$, and negative at the very first: two turns more. So from $(2, 1)$,"
            r" with one, come as many as one likes without a zero, and from $2$ beside a zero with one.",
        ),
        scope="any number of entries; two sizes for the one turn",
        sizes={},
        prose=(AHEAD, ONCE, LATER),
        proves=("First sparse, then dense",),
    )
