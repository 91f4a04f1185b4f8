"""Match3 by a number-theoretic transform in attention: butterflies, leaks, rounding and size, for all N and M.

Against the conjecture on the slides of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896). The construction is
`yzflow_sparse_averaging.transform`: a string of M bits, its convolution with itself modulo a prime P with L | P - 1.
"""

from __future__ import annotations

import sympy as sp

from theory.symbolic import Claim, Derivation
from yzflow_sparse_averaging import transform as construction
from yzflow_sparse_averaging.parts import total
from yzflow_sparse_averaging.proofs._sizes import largest

FURTHER, RESIDUES, BELOW, LARGER = sp.symbols("n h e l", nonnegative=True)
TOKENS, MODULUS = 1 + FURTHER, 2 + RESIDUES


def forward(u: sp.Expr, v: sp.Expr, power: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The two outputs of a butterfly for u and v, with w^j."""
    return u + v, (u - v) * power


def backward(u: sp.Expr, v: sp.Expr, power: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The inverse of `forward`."""
    return (u + v / power) / 2, (u - v / power) / 2


def length(modulus: sp.Expr) -> sp.Expr:
    """L, at least; P is at least L + 1."""
    return 2 * modulus


def histogram_leak(n_tokens: sp.Expr) -> sp.Expr:
    """Largest weight of the blank token, relative to a wanted token; other tokens have its square."""
    return 1 / (8 * (n_tokens + 1) ** 2)


def histogram_threshold(n_tokens: sp.Expr) -> sp.Expr:
    """Threshold of the average of a bit."""
    return 1 / (2 * (n_tokens + 1))


def histogram_step(n_tokens: sp.Expr) -> sp.Expr:
    """Largest step of the fixed-point numbers for the histogram's averages."""
    return 1 / (4 * (n_tokens + 1))


def copy_leak(n_tokens: sp.Expr, prime: sp.Expr) -> sp.Expr:
    """Largest weight of a wrong token, relative to the copied token."""
    return 1 / (8 * n_tokens * prime)


def copy_step() -> sp.Expr:
    """Largest step of the fixed-point numbers for copies."""
    return sp.Rational(1, 2)


def weight_error(prime: sp.Expr) -> sp.Expr:
    """Allowed relative error of numerators and denominators of attention, for copies."""
    return 1 / (32 * prime)


def bit_weight_error() -> sp.Expr:
    """Relative error of numerators and denominators of attention where bits are averaged or read."""
    return sp.Rational(1, 32)


def depth(n_tokens: sp.Expr) -> sp.Expr:
    """D at most, for N a power of two and M <= N, as all sizes here."""
    return 2 * sp.log(n_tokens, 2) + 2


def heads() -> int:
    """H."""
    return 2


def dimension(n_tokens: sp.Expr) -> sp.Expr:
    """m."""
    return sp.log(n_tokens, 2) + 2


def token_width() -> int:
    """Numbers of a token."""
    return 8


def held(n_tokens: sp.Expr, modulus: sp.Expr) -> sp.Expr:
    """Largest number of numbers that a token holds, for every N and M, unless it is one."""
    return 8 * modulus / n_tokens


def bits(n_tokens: sp.Expr, prime: sp.Expr) -> tuple[sp.Expr, ...]:
    """Two numbers of bits, for copies and for averages; the larger is enough, for every N and M."""
    return sp.log(prime, 2) + 4, sp.log(n_tokens, 2) + 5


def size(n_tokens: sp.Expr) -> sp.Expr:
    """m H D at most."""
    return 4 * (sp.log(n_tokens, 2) + 1) * (sp.log(n_tokens, 2) + 2)


def derive(
    *,
    forward: Claim = forward,
    backward: Claim = backward,
    length: Claim = length,
    histogram_leak: Claim = histogram_leak,
    histogram_threshold: Claim = histogram_threshold,
    histogram_step: Claim = histogram_step,
    copy_leak: Claim = copy_leak,
    copy_step: Claim = copy_step,
    weight_error: Claim = weight_error,
    bit_weight_error: Claim = bit_weight_error,
    depth: Claim = depth,
    heads: Claim = heads,
    dimension: Claim = dimension,
    token_width: Claim = token_width,
    held: Claim = held,
    size: Claim = size,
) -> Derivation:
    """The transform's butterflies, its inverse without wrapping, exact copies, enough bits, and the sizes.

    The sizes are sums over the layers and the token that `yzflow_sparse_averaging.transform` builds for one N.
    """
    u, v, power = sp.symbols("u v W", nonzero=True)  # W = w^j, of the order 2h: w^h = -1
    k = sp.Symbol("k", integer=True, nonnegative=True)
    turn = sp.Integer(-1)
    plus, minus = forward(u, v, power)
    undone = backward(plus, minus, power)
    L = length(MODULUS) * (1 + LARGER)
    prime = L + 1 + sp.Symbol("s", nonnegative=True)
    blank = histogram_leak(TOKENS) / (1 + BELOW)
    threshold, off = histogram_threshold(TOKENS), histogram_step(TOKENS) / 2
    leak = TOKENS * copy_leak(TOKENS, prime) / (1 + BELOW)
    ratio, bit_ratio = ((1 + one) / (1 - one) for one in (weight_error(prime), bit_weight_error()))
    copied = copy_step() / 2
    half, eighth, r = sp.Rational(1, 2), sp.Rational(1, 8), sp.Symbol("r", positive=True)
    # N = 2^r, M <= N: at most 2^r tokens work, positions 0 to N have r + 1 digits, a token holds 2 numbers at most.
    D, H, m = total(construction.layers(r, r + 1, 2), largest=largest)
    width = construction.layout(2).width

    # L < 4M positions on T > N/2 tokens that work.
    shorter, workers = sp.symbols("u v", positive=True)
    shared = (4 * MODULUS - shorter) / (TOKENS / 2 + workers)

    def of_power(claim):
        return sp.expand_log(claim(2**r), force=True)

    # Terms of position j and j + h of the sum over positions of a_j w^(jk), for even and odd k.
    even = (u + v * turn ** (2 * k)) * power ** (2 * k) - plus * power ** (2 * k)
    odd = (u + v * turn ** (2 * k + 1)) * power ** (2 * k + 1) - minus * power ** (2 * k)
    return Derivation(
        statement="Match3 by a transform",
        vanishing={
            "half transform, even": sp.powsimp(sp.expand(even)),
            "half transform, odd": sp.powsimp(sp.expand(odd)),
            "undone, first": sp.simplify(undone[0] - u),
            "undone, second": sp.simplify(undone[1] - v),
            "sizes: D": sp.simplify(D - of_power(depth)),
            "sizes: H": sp.sympify(H - heads()),
            "sizes: m": sp.simplify(m - of_power(dimension)),
            "sizes: numbers of a token": sp.sympify(width - token_width()),
            "sizes: m H D": sp.simplify(m * H * D - of_power(size)),
            "sizes: m H D against N / log N, in the limit": sp.limit(sp.simplify(of_power(size)) * r / 2**r, r, sp.oo),
        },
        signed={
            "sizes: numbers that a token holds": (held(TOKENS, MODULUS) - shared, ">= 0"),
            "no wrap": (L - 1 - 2 * (MODULUS - 1), "> 0"),
            "both reads are of positions": (L - (2 * MODULUS - 1), "> 0"),
            "counts are below the prime": (prime - MODULUS, "> 0"),
            "histogram: one token is enough": (1 / ((TOKENS + blank) * bit_ratio) - off - threshold, "> 0"),
            "histogram: all others are not": (threshold - TOKENS * blank * bit_ratio - off, "> 0"),
            "copies too small, by less than 1/2": (
                half - (prime - 1) * (1 - 1 / (ratio * (1 + leak))) - copied,
                "> 0",
            ),
            "copies too large, by less than 1/2": (half - (prime - 1) * (ratio - 1) - copied, "> 0"),
            "a copied zero, too large by less than 1/2": (
                half - (prime - 1) * ratio * leak / (1 + leak) - copied,
                "> 0",
            ),
            "reads: a positive number": (1 / (bit_ratio * (1 + leak)) - eighth - half, "> 0"),
            "reads: a zero": (half - bit_ratio * leak / (1 + leak) - eighth, "> 0"),
        },
        steps=STEPS,
        scope="every N >= 1 and M >= 2; queries, keys, values and outputs in fixed-point numbers, numerators and"
        " denominators of attention with relative errors of at most 1/(32 P), and 1/32 in histogram and reads; the"
        " size for N = 2^r and M <= N",
        sizes={},
        prose=(HALVINGS, DIRICHLET, WITHIN, HELD, SPREAD),
        proves=("Conjecture", "Match3, transform"),
    )


HALVINGS = "induction over the log2 L halvings"
DIRICHLET = "there is a prime P = 1 mod L (Dirichlet), below a power of L (Linnik), so that it has O(log N) bits"
WITHIN = "a token with L/T positions does the butterflies between them by itself"
HELD = "2M <= 2^(r+1), so that L, the next power of two, is at most 2N and a token of T = min(N, L) holds L/T <= 2"
SPREAD = "the next power of two from 2M is below 4M, the last one up to N above N/2"
STEPS = (
    r"Keys are positions in binary with digits $\pm 1$: the product of two codes of $c$ digits is $c$ if they"
    r" are equal and at most $c - 2$ if not. Scaled queries, keys and values are integers.",
    r"Histogram. A token that is asked for weighs 1, the blank $o \le 1/(8(N+1)^2)$, others $o^2$. A residue"
    r" that occurs has an average of $1/(N + o)$ at least, one that does not of $N o^2/o$ at most; rounded to"
    r" multiples of $2^{-f} \le 1/(4(N+1))$ they stay on their sides of $1/(2(N+1))$.",
    r"Copies. All wrong tokens together weigh at most $1/(8P)$ beside the right one: a number below P is"
    r" copied to less than 1/4, even if numerators and denominators of attention have relative errors of"
    r" $1/(32P)$, and rounding to multiples of 1/2 adds at most 1/4. ($O(\log NP)$ significant bits of"
    r" exponentials are enough, for a sum of N terms loses $\log_2 N$ of them.)",
    r"Let $\hat a_k = \sum_j a_j w^{jk}$ with $w$ of order $2h$, so that $w^h = -1$. Even $k$ are the"
    r" transform of half the length of $a_j + a_{j+h}$, odd $k$ that of $(a_j - a_{j+h}) w^j$: $\log_2 L$"
    r" layers of butterflies evaluate the polynomial $a$ at all powers of a number of order $L$ modulo P.",
    r"Squares of these are the values of $a^2$, whose degree $2M - 2$ is below $L$. Each butterfly is undone"
    r" by one with $w^{-j}$ and halves: what comes out are the coefficients of $a^2$ modulo P. They count"
    r" pairs of residues, at most $M < P$: positive exactly where a sum occurs.",
    r"$x_i + r + s \equiv 0$ has a solution with residues that occur exactly when the coefficient at $-x_i"
    r" \bmod M$ or the one M further on is positive, and both are positions.",
    r"$N = 2^r$, $M \le N$: codes have $r + 1$ digits and a token holds at most two numbers, so that $m = r +"
    r" 2$, $H = 2$, $D \le 2r + 2$ and $mHD \le 4(r+1)(r+2)$; over $N/\log N$ it tends to 0. Tokens have 8"
    r" numbers, no more than m from $N = 64$ on. In general a token holds $8M/N$ numbers at most, or one.",
)
