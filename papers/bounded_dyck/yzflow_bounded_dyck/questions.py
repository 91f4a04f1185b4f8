r"""A question on some statements of bounded Dyck for students, with its answer; dollar signs enclose formulas.

Numbers are those at what the pages' sliders start from: a layer for two types and depth 3, pairs [] at level 1.
"""

from yzflow.values.marks import bare

_QUESTIONS = {
    "Equation 13": (
        r"Read off the mark at which $n\,\|\delta\| = \|u_0\|$. How far have the features moved there, and where "
        r"do they go?",
        r"By 0.77<!--=moved-->: $u_0$ and $\delta$ are orthogonal here, so that they "
        r"have turned by 45<!--=degrees--> degrees of 90. In the "
        r"end they "
        r"are $\delta/\|\delta\|$, whatever the text said.",
    ),
    "Theorem 1, necessity": (
        "After how many pairs are the two texts half as far apart as without any? And if (11) is ten times as "
        "far off, by 0.1<!--=offs1--> in place of 0.01<!--=offs0-->?",
        r"After 587<!--=pairs0--> pairs, and after 57<!--=pairs1-->. A pair "
        r"adds $\|\delta\|$, which is proportional to $e^{\epsilon} - 1$: "
        r"ten times "
        "the violation, a tenth of the length.",
    ),
    "Theorem 1, sufficiency": (
        "The layer is a hundredth off balance. Up to how many inserted pairs is every probability right to "
        "0.01<!--=error-->, and would a test on texts of "
        "100<!--=brackets--> "
        "brackets notice?",
        "Up to "
        "1670<!--=pairs--> pairs, which is "
        "3340<!--=brackets_until--> brackets: "
        "no, errors there are those of rounding. A network that "
        "rounds "
        "hides a "
        "small violation until the texts are long.",
    ),
    "Appendix C.7": (
        "Turn the query's own vector to the all-ones vector, to an angle of zero. Why does the layer forget no more?",
        "LN takes the mean off, and with it all of this vector: what is left is what attention gathers, and of "
        "that LN "
        "takes the size off, which is all that shrinks.",
    ),
    "Theorem 2": (
        "The two stacks are opposite, and the bound is attained in the limit. By what factor is it too large if "
        "they are "
        "at a right angle?",
        r"By $\sqrt2$. The features of stacks at a right angle are $\sqrt2$ apart and not 2, so that a head "
        r"needs a larger "
        r"$\gamma/\tau$ to tell them apart, and the bound allows more.",
    ),
}
QUESTIONS = {number: (bare(asked), bare(answer)) for number, (asked, answer) in _QUESTIONS.items()}

# <!-- numbers
# moved: questions_dyck.turn.moved .2f
# degrees: questions_dyck.turn.degrees .0f
# offs1: questions_dyck.halved.offs.1 .1f
# offs0: questions_dyck.halved.offs.0 .2f
# pairs0: questions_dyck.halved.pairs.0
# pairs1: questions_dyck.halved.pairs.1
# error: questions_dyck.right.error .2f
# brackets: questions_dyck.right.brackets
# pairs: questions_dyck.right.pairs
# brackets_until: questions_dyck.right.brackets_until
# assert: questions_dyck.right.rounding: brackets: no
# typed: 90 (a right angle)
# typed: 2 (number of a statement, figure, section or finding)
# -->
