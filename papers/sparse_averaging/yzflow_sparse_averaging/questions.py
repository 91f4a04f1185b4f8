r"""A question on some statements of sparse averaging for students, with its answer; dollar signs enclose formulas.

Numbers are those at what the pages' sliders start from.
"""

from yzflow.values.marks import bare

_QUESTIONS = {
    "Theorem 2, exact": (
        "Numbers have <!--v questions_sparse.crossing.p-->16<!--/--> bits. From which $q$ on does the moment curve, "
        "with its few but long numbers, need more "
        "bits than "
        "random keys, and does that depend on $N$?",
        r"From $q = 3p\ln 2$ = <!--v questions_sparse.crossing.q .1f-->33.3<!--/--> on, for every $N$: $4q^2\log_2N$ "
        r"is $12q\ln N\,p$ there.",
    ),
    "Fully connected": (
        "An attention unit averages "
        "<!--v questions_sparse.connected {q} of {n}-->100 of 1000<!--/--> tokens with "
        "<!--v questions_sparse.connected.numbers-->200<!--/--> exact numbers. How many must the first layer of "
        "a fully "
        "connected network have, if errors of one are not allowed?",
        "At least <!--v questions_sparse.connected {below_one}, {below_half} for errors below one half, and "
        "{exact}-->802, 901 for errors below one half, and "
        "1000<!--/--> for exact "
        "averages: it cannot know which tokens will be asked for, and so must "
        "keep all.",
    ),
    "Recurrent": (
        "Allow an error of "
        "<!--v questions_sparse.recurrent.error .1f-->0.5<!--/--> in an average of "
        "<!--v questions_sparse.recurrent.few words-->ten<!--/--> values. How many of the "
        "<!--v questions_sparse.recurrent.all-->999<!--/--> bits are still needed?",
        "At least <!--v questions_sparse.recurrent.bits.few .0f-->921<!--/-->. Only where $q$ times the error is of "
        "the order of $N$ do a few bits get by: with $q$ = "
        "<!--v questions_sparse.recurrent {many} the bound is {bits.many:.0f}-->300 the bound is 123<!--/-->.",
    ),
    "Match2": (
        "The unit is built for "
        "<!--v questions_sparse.near_misses.n-->100<!--/--> tokens and an error of "
        "<!--v questions_sparse.near_misses.error .2f-->0.01<!--/-->. How many near misses are taken for a match, by "
        "an answer "
        "above one half?",
        r"<!--v questions_sparse.near_misses.misses .0f-->9900<!--/--> and more: $Ne^L$ of them weigh as much as the "
        r"blank token, and $e^L = 99$.",
    ),
    "Conjecture": (
        r"From which $N$ on is the size of the two layers, $6N^{2/3}$, below $N/\log_2N$? Does a smaller "
        r"constant save the "
        "conjecture?",
        "From about <!--v questions_sparse.conjecture.millions .1f-->2.0<!--/--> million tokens on. With a tenth of "
        "the bound it takes "
        "<!--v questions_sparse.conjecture.billions .1f-->7.6<!--/--> billion: a constant only moves "
        "the place. So does an m that is no less than the numbers of a token, as on the slides: "
        "<!--v questions_sparse.conjecture.strict .0f-->111<!--/--> million.",
    ),
}
QUESTIONS = {number: (bare(asked), bare(answer)) for number, (asked, answer) in _QUESTIONS.items()}
