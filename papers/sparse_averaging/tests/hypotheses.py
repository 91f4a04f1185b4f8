"""Hypotheses of each statement in the slides; the register must have them, and a dropped hypothesis fails a test.

``GIVEN``: statement, what the slides say, and where the register has it: an assumption of the statement or of a clause
(its text), or words of the statement's text, errata or formulas. ``NOT_GIVEN``: what the slides leave open and the
register must say, since the statement is false or undefined without it.
"""

ASSUMED, SAID = "assumption", "words"

GIVEN = [
    ("Theorem 2", "for all q", ASSUMED, "1 <= q <= N"),
    ("Theorem 2", "log(N)-bit precision arithmetic", SAID, "numbers of O(log N) bits"),
    ("Theorem 2", "at all X", SAID, "That some m of order q log(N/q) is enough for all sets at once is proved here"),
    ("Theorem 2, exact", "infinite-bit precision", ASSUMED, "numbers of infinitely many bits"),
    ("Theorem 2, exact", "for all q", ASSUMED, "1 <= q <= N"),
    ("Theorem 4", "log(N)-bit precision arithmetic", ASSUMED, "p = log N on the slides"),
    ("Theorem 4", "token 2q + 1 is asked, i in [q]", ASSUMED, "N >= 2q + 1"),
    ("Match2", "input MLPs", ASSUMED, "queries, keys and values are maps of a token of any size"),
    ("Match2", 'blank "<STOP>" token at the end', ASSUMED, "a blank token at the end"),
    ("Match3, one layer", "input and output MLPs", ASSUMED, "maps of any size before, between and after the layers"),
    ("Match3, one layer", "O(log N)-bit precision arithmetic", ASSUMED, "O(log N) on the slides"),
    ("Match3, one layer", "n = (N - 1)/2", ASSUMED, "N odd"),
    ("Match3, one layer", "H heads", SAID, "One layer of H heads"),
    ("Conjecture", "O(log N)-bit precision arithmetic", SAID, "numbers of O(log N) bits"),
    ("Conjecture", "D-depth, H-headed, dimension m", SAID, "mHD"),
    ("Conjecture", "Q, K, V linear in d = m numbers", SAID, "queries, keys and values are linear in it"),
]

NOT_GIVEN = [
    ("Dimension for all sets", "which q", ASSUMED, "q < N"),
    ("Dimension for all sets", "which q, for errors", ASSUMED, "q <= N/2"),
    ("Dimension for all sets", "which numbers", ASSUMED, "real numbers, of infinitely many bits"),
    ("Dimension for all sets", "which keys", ASSUMED, "do not depend on the set that is asked for"),
    ("Fully connected, unit ball", "which q", ASSUMED, "q < N"),
    ("Fully connected, unit ball", "which values and errors", ASSUMED, "values in the unit ball"),
    ("Theorem 2", "which keys", ASSUMED, "keys of independent fair signs over sqrt(m); it fails with probability p"),
    ("Theorem 2", "which q, for all sets", ASSUMED, "2q <= N"),
    ("Theorem 2", "units have maps before them", ASSUMED, "queries, keys and values are maps of a token of any size"),
    *(
        (number, "units have maps before them", ASSUMED, "queries, keys and values are maps of a token of any size")
        for number in ("Theorem 2, exact", "Theorem 4", "Match3, tensor unit")
    ),
    ("Match3, assisted", "blank token", ASSUMED, "a blank token at the end"),
    ("Fully connected", "which q", ASSUMED, "q <= N/2"),
    ("Fully connected", "which q, for small errors", ASSUMED, "q < N"),
    ("Fully connected", "which error", SAID, "neither for which q nor for which error"),
    ("Fully connected", "which values", ASSUMED, "z in [-1, 1] by coordinate"),
    ("Recurrent", "which q", ASSUMED, "q < N"),
    ("Recurrent", "which q, by far strings", ASSUMED, "q <= (N + 1)/2"),
    ("Recurrent", "which error", SAID, "neither for which q nor for which error"),
    ("Recurrent", "which values and outputs", ASSUMED, "the last output is asked for"),
    ("Match2", "mod M", SAID, "mod M"),
    ("Match3, one layer", "M", ASSUMED, "M >= N + 2"),
    ("Match3, tensor unit", "blank pair", ASSUMED, "a blank token at the end"),
    ("Match3, tensor unit", "arithmetic", SAID, "exact arithmetic"),
    ("Match3, assisted", "positions", ASSUMED, "tokens know their positions"),
    ("Match3, assisted", "maps within units", ASSUMED, "queries, keys and values are maps of a token of any size"),
    ("Match3, assisted", "arithmetic", SAID, "exact arithmetic"),
    ("Match3, assisted", "maps between layers", ASSUMED, "maps of any size before, between and after the layers"),
    ("Conjecture", "positions", ASSUMED, "tokens know their positions"),
    ("Conjecture", "maps within units", ASSUMED, "queries, keys and values are maps of a token of any size"),
    ("Conjecture", "maps between layers", ASSUMED, "maps of any size before, between and after the layers"),
    ("Conjecture", "numbers", ASSUMED, "of O(log NM) bits"),
    ("Match3, strict", "linear queries, keys and values", ASSUMED, "queries, keys and values are linear maps"),
    ("Match3, strict", "maps between layers", ASSUMED, "maps of any size before, between and after the layers"),
    ("Match3, strict", "positions", ASSUMED, "tokens know their positions"),
    ("Match3, strict", "none of them", ASSUMED, "no positions, and no blank token"),
    ("Match3, strict", "further tokens", ASSUMED, "one blank token"),
    ("Match3, strict", "M", ASSUMED, "M = O(N): M <= N"),
    ("Match3, strict", "M of the bound on one layer", ASSUMED, "M >= N + 2, N odd"),
    ("Match3, strict", "N of the two layers", ASSUMED, "N = G^3"),
    ("Match3, strict", "m of one layer", ASSUMED, "m divides 2N"),
    ("Match3, strict", "circuits", ASSUMED, "gates of two inputs"),
    ("Match3, strict", "circuits without maps", ASSUMED, "three tokens or more, and g gates"),
    ("Match3, strict", "N of sorted groups", ASSUMED, "N >= 3"),
    ("Conjecture", "M", ASSUMED, "M = O(N): M <= 4N"),
    ("Conjecture", "M beyond O(N)", SAID, "for M = N^a, a > 1, it is open"),
    ("Conjecture", "further tokens", ASSUMED, "one blank token"),
    ("Conjecture", "N of the two layers", ASSUMED, "N = G^3"),
    *(
        (number, what, ASSUMED, words)
        for number in ("Match3, transform", "Match3, sorted")
        for what, words in (
            ("positions", "tokens know their positions"),
            ("maps within units", "queries, keys and values are maps of a token of any size"),
            ("maps between layers", "maps of any size before, between and after the layers"),
            ("numbers", "of O(log NM) bits"),
        )
    ),
    ("Match3, transform", "M", ASSUMED, "M = O(N): M <= 4N"),
    ("Match3, transform", "further tokens", ASSUMED, "one blank token"),
    ("Match3, sorted", "N", ASSUMED, "N >= 3"),
    ("Linear query", "q", ASSUMED, "3 <= q < N"),
    ("Linear query", "exactly even attention", ASSUMED, "equal scores on every y, and smaller ones off it"),
]
