r"""A question on some statements of sparse averaging for students, with its answer; dollar signs enclose formulas.

Numbers are those at what the pages' sliders start from.
"""

from yzflow.values.marks import bare

_QUESTIONS = {
    "Theorem 2, exact": (
        "Numbers have 16<!--=p--> bits. From which $q$ on does the moment curve, "
        "with its few but long numbers, need more "
        "bits than "
        "random keys, and does that depend on $N$?",
        r"From $q = 3p\ln 2$ = 33.3<!--=crossing.q--> on, for every $N$: $4q^2\log_2N$ "
        r"is $12q\ln N\,p$ there.",
    ),
    "Fully connected": (
        "An attention unit averages "
        "100<!--=connected.q--> of 1000<!--=connected.n--> tokens with "
        "200<!--=numbers--> exact numbers. How many must the first layer of "
        "a fully "
        "connected network have, if errors of one are not allowed?",
        "At least "
        "802<!--=below_one-->, 901<!--=below_half--> for errors below one half, and "
        "1000<!--=exact--> for exact "
        "averages: it cannot know which tokens will be asked for, and so must "
        "keep all.",
    ),
    "Recurrent": (
        "Allow an error of "
        "0.5<!--=recurrent.error--> in an average of "
        "ten<!--=recurrent.few--> values. How many of the "
        "999<!--=all--> bits are still needed?",
        "At least 921<!--=bits.few-->. Only where $q$ times the error is of "
        "the order of $N$ do a few bits get by: with $q$ = "
        "300<!--=recurrent.many--> the bound is 123<!--=bits.many-->.",
    ),
    "Match2": (
        "The unit is built for "
        "100<!--=near_misses.n--> tokens and an error of "
        "0.01<!--=near_misses.error-->. How many near misses are taken for a match, by "
        "an answer "
        "above one half?",
        r"9900<!--=misses--> and more: $Ne^L$ of them weigh as much as the "
        r"blank token, and $e^L = 99$.",
    ),
    "Conjecture": (
        r"From which $N$ on is the size of the two layers, $6N^{2/3}$, below $N/\log_2N$? Does a smaller "
        r"constant save the "
        "conjecture?",
        "From about 2.0<!--=millions--> million tokens on. With a tenth of "
        "the bound it takes "
        "7.6<!--=billions--> billion: a constant only moves "
        "the place. So does an m that is no less than the numbers of a token, as on the slides: "
        "111<!--=strict--> million.",
    ),
}
QUESTIONS = {number: (bare(asked), bare(answer)) for number, (asked, answer) in _QUESTIONS.items()}

# <!-- numbers
# p: questions_sparse.crossing.p
# crossing.q: questions_sparse.crossing.q .1f
# connected.q: questions_sparse.connected.q
# connected.n: questions_sparse.connected.n
# numbers: questions_sparse.connected.numbers
# below_one: questions_sparse.connected.below_one
# below_half: questions_sparse.connected.below_half
# exact: questions_sparse.connected.exact
# recurrent.error: questions_sparse.recurrent.error .1f
# recurrent.few: questions_sparse.recurrent.few words
# all: questions_sparse.recurrent.all
# bits.few: questions_sparse.recurrent.bits.few .0f
# recurrent.many: questions_sparse.recurrent.many
# bits.many: questions_sparse.recurrent.bits.many .0f
# near_misses.n: questions_sparse.near_misses.n
# near_misses.error: questions_sparse.near_misses.error .2f
# misses: questions_sparse.near_misses.misses .0f
# millions: questions_sparse.conjecture.millions .1f
# billions: questions_sparse.conjecture.billions .1f
# strict: questions_sparse.conjecture.strict .0f
# -->
