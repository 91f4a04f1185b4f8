r"""A question on some statements of bounded Dyck for students, with its answer; dollar signs enclose formulas.

Numbers are those at what the pages' sliders start from: a layer for two types and depth 3, pairs [] at level 1.
"""

from yzflow.values.marks import bare

_QUESTIONS = {
    "Equation 13": (
        r"Read off the mark at which $n\,\|\delta\| = \|u_0\|$. How far have the features moved there, and where "
        r"do they go?",
        r"By <!--v questions_dyck.turn.moved .2f-->0.77<!--/-->: $u_0$ and $\delta$ are orthogonal here, so that they "
        r"have turned by <!--v questions_dyck.turn.degrees .0f-->45<!--/--> degrees of 90. In the "
        r"end they "
        r"are $\delta/\|\delta\|$, whatever the text said.",
    ),
    "Theorem 1, necessity": (
        "After how many pairs are the two texts half as far apart as without any? And if (11) is ten times as "
        "far off, by <!--v questions_dyck.halved.offs {1:.1f} in place of {0:.2f}-->0.1 in place of 0.01<!--/-->?",
        r"After <!--v questions_dyck.halved.pairs {0} pairs, and after {1}-->587 pairs, and after 57<!--/-->. A pair "
        r"adds $\|\delta\|$, which is proportional to $e^{\epsilon} - 1$: "
        r"ten times "
        "the violation, a tenth of the length.",
    ),
    "Theorem 1, sufficiency": (
        "The layer is a hundredth off balance. Up to how many inserted pairs is every probability right to "
        "<!--v questions_dyck.right.error .2f-->0.01<!--/-->, and would a test on texts of "
        "<!--v questions_dyck.right.brackets-->100<!--/--> "
        "brackets notice?",
        "Up to "
        "<!--v questions_dyck.right.pairs-->1670<!--/--> pairs, which is "
        "<!--v questions_dyck.right.brackets_until-->3340<!--/--> brackets: "
        "<!--v questions_dyck.right.rounding ?no:yes-->no<!--/-->, errors there are those of rounding. A network that "
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
