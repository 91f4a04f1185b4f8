"""Wrong claims that the proofs must refute: module, claims, and how the name of an entry that must fail begins."""

import sympy as sp
from yzflow_bounded_dyck.proofs import (
    cross_entropy,
    encodings,
    from_tokens,
    heads,
    larger,
    link,
    lottery,
    outputs,
    pruning_lemmas,
    silence,
    smoothing,
    stack,
    subset_sums,
    theorem1,
    theorem2,
    uniform,
    weight_decay,
)

MISTAKES = {
    # The difference of (11) is called c here: with c = -a the value is -exp(-a) V_open, not -exp(a) V_open.
    "theorem1: exp(a) for c = -a": (
        theorem1,
        {"partner_value": lambda value, c: -sp.exp(-c) * value},
        "(11) gives (14)",
    ),
    "theorem1: sign of V_close": (
        theorem1,
        {"partner_value": lambda value, c: sp.exp(c) * value},
        "(14) forces V_close",
    ),
    "theorem1: half a pair": (
        theorem1,
        {"insertion": lambda opened, closed, x, y: opened * sp.exp(x)},
        "u_n = u_0 + n delta",
    ),
    "theorem2: without the factor 2": (
        theorem2,
        {"bound": lambda p, lipschitz, separation, n: p * (1 + lipschitz / separation) / n},
        "bound: where",
    ),
    "theorem1: a silent open bracket with a loud partner": (
        theorem1,
        {"silent_partner": lambda factor: 1 / factor},
        "(14) where V_open = 0",
    ),
    "silence: the query's weight squared": (
        silence,
        {"told_by": lambda ratio: ratio**2},
        "enough: the feature tells the query",
    ),
    "silence: all queries look alike": (
        silence,
        {"told_by": lambda ratio: sp.Integer(1)},
        "enough: other queries",
    ),
    "silence: a partner of the same value": (
        silence,
        {"partner": lambda value: value},
        "enough: a pair that is not silent",
    ),
    "theorem2: 1/n^2": (
        theorem2,
        {"bound": lambda p, lipschitz, separation, n: theorem2.bound(p, lipschitz, separation, n) / n},
        "bound: where",
    ),
    "theorem2: deeper levels for nothing": (theorem2, {"deeper": lambda reached, n, levels: reached}, "deeper"),
    "theorem2: a level more": (
        theorem2,
        {"deeper": lambda reached, n, levels: theorem2.deeper(reached, n, levels + 1)},
        "deeper: the first",
    ),
    "theorem2: errors without the square root": (
        theorem2,
        {"error_bound": lambda excess, probability: excess / probability},
        "loss: all the excess",
    ),
    "theorem2: twice the excess": (
        theorem2,
        {"small_excess": lambda probability, tau: 2 * theorem2.small_excess(probability, tau)},
        "loss: outputs",
    ),
    "cross-entropy: Pinsker with twice the constant": (
        cross_entropy,
        {"two_entries": lambda p, o: 4 * (p - o) ** 2},
        "divergence: its slope",
    ),
    "cross-entropy: half of Pinsker's constant": (
        cross_entropy,
        {"two_entries": lambda p, o: (p - o) ** 2},
        "divergence: two entries",
    ),
    "cross-entropy: a distance of the positive differences alone": (
        cross_entropy,
        {"squared_distance": lambda t: t**2},
        "divergence: all differences",
    ),
    "cross-entropy: the excess at one prefix": (
        cross_entropy,
        {"error": lambda excess, one, other: sp.sqrt(excess / one)},
        "two outputs: all",
    ),
    "cross-entropy: an error without the square root": (
        cross_entropy,
        {"error": lambda excess, one, other: excess * (1 / one + 1 / other)},
        "two outputs: all",
    ),
    "cross-entropy: outputs that the excess moves apart": (
        cross_entropy,
        {"separation": lambda tau, excess, one, other: tau + cross_entropy.error(excess, one, other)},
        "two outputs: what is left",
    ),
    "cross-entropy: twice the excess": (
        cross_entropy,
        {"small_excess": lambda tau, one, other: 2 * cross_entropy.small_excess(tau, one, other)},
        "two outputs: half",
    ),
    "weight decay: half of lambda R_0": (
        weight_decay,
        {"excess_bound": lambda decay, norm: decay * norm / 2},
        "excess",
    ),
    "weight decay: an excess that does not fall": (
        weight_decay,
        {"excess_bound": lambda decay, norm: (1 + decay) * norm},
        "limit",
    ),
    "weight decay: twice the decay": (
        weight_decay,
        {"small_decay": lambda norm, p, tau: 2 * weight_decay.small_decay(norm, p, tau)},
        "outputs",
    ),
    "weight decay: half of the mean for two layers": (
        weight_decay,
        {"product_bound": lambda norm, layers: weight_decay.product_bound(norm / 2, layers)},
        "head of two layers",
    ),
    "weight decay: without the square root for three layers": (
        weight_decay,
        {"product_bound": lambda norm, layers: norm / layers},
        "head of three layers",
    ),
    "larger: a network that keeps positive coordinates alone": (
        larger,
        {"handed_on": lambda x: sp.Max(0, x)},
        "handed on, sign -1",
    ),
    "larger: values of a layer that hands on": (larger, {"silent_value": lambda: sp.Integer(1)}, "GPT's layer"),
    "larger: zeros as further coordinates": (
        larger,
        {"widening": lambda width, wider: sp.Matrix(width, wider, lambda i, j: int(i == j))},
        "mean",
    ),
    "larger: an isometry of other length": (
        larger,
        {"widening": lambda width, wider: larger.widening(width, wider) * sp.Rational(1, 2)},
        "norm",
    ),
    "stack: sign of b": (stack, {"close_value": lambda b: -sp.exp(b)}, "coordinate"),
    "stack: V_open without a": (stack, {"open_value": lambda a: sp.Integer(1)}, "coordinate"),
    "stack: a step that starts late": (
        stack,
        {"step": lambda f, s: sp.Max(0, f / s - 1) - sp.Max(0, f / s - 2)},
        "step from",
    ),
    "stack: every unmatched bracket is the top": (stack, {"top": lambda own, deeper: own}, "head"),
    "stack: a link that asks for every level": (stack, {"top_at": lambda own, asked: own}, "linked head"),
    "stack: a link that asks for none": (stack, {"top_at": lambda own, asked: sp.Max(0, own - asked)}, "linked head"),
    "encodings: without the inverse": (encodings, {"value_map": lambda E, V: E.T * V}, "every V"),
    "encodings: logits of one side": (
        encodings,
        {"logit_map": lambda E, Z: E.T * (E * E.T).inverse() * Z * E},
        "every Z",
    ),
    "encodings: an open bracket with values of its own": (
        encodings,
        {"sum_after_open": lambda encoding, weight: weight * (encoding + sp.Matrix([1, 0, 0]))},
        "START like an open bracket",
    ),
    "theorem1: one type with equal logits": (
        theorem1,
        {"one_type_logit": lambda depth: sp.Integer(0)},
        "one type",
    ),
    "theorem1: one type with the logit of another depth": (
        theorem1,
        {"one_type_logit": lambda depth: -sp.log(2 + depth)},
        "one type: the features",
    ),
    "uniform: without START's share": (uniform, {"depth_of": lambda start, height: height}, "depth"),
    "uniform: unequal values": (uniform, {"shared_value": lambda values: values}, "attention moves"),
    "uniform: a step without its other unit": (
        uniform,
        {"reached": lambda x, below, at: sp.Max(0, 3 * (x - below) / (at - below) - 1)},
        "step: from",
    ),
    "uniform: states of all depths that are reached": (
        uniform,
        {"state_unit": lambda own, deep, deeper: sp.Max(0, own + deep - 1)},
        "state",
    ),
    "link: without the query's vector": (link, {"joined": lambda value, own: value}, "link"),
    "link: a pair without its mass": (link, {"left": lambda added, mass, own: added + own}, "necessity"),
    "link: shares the other way round": (
        link,
        {"share": lambda opened, closed: closed / (opened + closed)},
        "line: betw",
    ),
    "link: a rate without the projection": (
        link,
        {"slope": lambda own, apart, mass: apart / (sp.sqrt((own.T * own)[0]) * mass)},
        "forgets: the rate",
    ),
    "link: a margin without the square root": (
        link,
        {"most_margin": lambda lipschitz, distance: lipschitz * distance},
        "loss: the largest",
    ),
    "link: twice the margin": (link, {"least_loss": lambda m: sp.log(1 + sp.exp(-2 * m))}, "loss: equal margins"),
    "heads: what pairs add, without their mass": (heads, {"left": lambda value, mass: value}, "limit: of a head"),
    "heads: a rate without the normaliser": (heads, {"rest": lambda u, z, delta, zeta: u / zeta}, "limit: its rate"),
    "heads: constants with the other sign": (heads, {"recentred": lambda value, v: value + v}, "shift"),
    "heads: a second head of the same values": (heads, {"opposite": lambda value: value}, "opposite: no part"),
    "heads: one difference for all heads": (
        heads,
        {"partner": lambda value, difference: -value},
        "enough: coordinate",
    ),
    "heads: a least coordinate without the other brackets": (
        heads,
        {"least_share": lambda ratio, others: ratio**2},
        "enough: the least",
    ),
    "smoothing: on all other brackets": (
        smoothing,
        {"smoothed": lambda p, eps, m: (1 - eps) * p + eps / (m - 1)},
        "optimum: smoothed targets",
    ),
    "smoothing: a gap without the number of brackets": (
        smoothing,
        {"gap": lambda p, eps, m: sp.log(1 + (1 - eps) * p / eps)},
        "optimum: the gap",
    ),
    "smoothing: targets as far apart as before": (smoothing, {"apart": lambda tau, eps: tau}, "apart"),
    "smoothing: the excess of no smoothing": (
        smoothing,
        {"small_excess": lambda tau, eps, one, two: cross_entropy.small_excess(tau, one, two)},
        "apart: the outputs",
    ),
    "lottery: sign of the units that see relu(-x)": (
        lottery,
        {"split_map": lambda plus, minus, x: plus * sp.Max(0, x) - minus * sp.Max(0, -x)},
        "linear map",
    ),
    "lottery: an identity of one sign": (
        lottery,
        {"split_map": lambda plus, minus, x: plus * sp.Max(0, x)},
        "identity",
    ),
    "lottery: ReLU of slope two": (lottery, {"slope": lambda above, below: 2 * above / (above + below)}, "ReLU"),
    "lottery: half of softmax's bound": (lottery, {"attention_change": lambda y: (y - 1) / (2 * (y + 1))}, "softmax"),
    "lottery: attention moves as logits do, not by half of it": (
        lottery,
        {"attention_change": lambda y: (y**2 - 1) / (y**2 + 1)},
        "softmax",
    ),
    "lottery: the query's error once": (
        lottery,
        {
            "logit_spread": lambda error, keys, query, product, pruned, size: (
                keys * error + query * error + 2 * product * error**2 + 2 * pruned * (size + error) ** 2
            )
        },
        "logits",
    ),
    "lottery: the product's error at the old tokens": (
        lottery,
        {
            "logit_spread": lambda error, keys, query, product, pruned, size: (
                keys * error + 2 * query * error + 2 * product * error**2 + 2 * pruned * size**2
            )
        },
        "logits",
    ),
    "lottery: LN without 1/C": (lottery, {"lipschitz": lambda floor: sp.Integer(1)}, "LN, both inside"),
    "lottery: half of 1/C": (lottery, {"lipschitz": lambda floor: 1 / (2 * floor)}, "LN, one outside"),
    "lottery: a mean over twice as many coordinates": (lottery, {"stray": lambda share: share / 2}, "larger LN"),
    "lottery: without the residual link": (
        lottery,
        {"read_change": lambda normed, link, error: normed},
        "residual",
    ),
    "lottery: without the product of both errors": (
        lottery,
        {"network_change": lambda w, v, e, f, size: (v * e + f * w) * size},
        "network",
    ),
    "lottery: errors add up without the Lipschitz constant": (
        lottery,
        {"composed": lambda constant, error, own: error + own},
        "composition",
    ),
    "pruning lemmas: a half each": (pruning_lemmas, {"shares": lambda e: (e / 2, e / 2)}, "two pairs"),
    "pruning lemmas: half of softmax's bound": (
        pruning_lemmas,
        {"softmax_change": lambda e: sp.tanh(e / 2)},
        "softmax: from the spread",
    ),
    "pruning lemmas: e itself as softmax's bound": (
        pruning_lemmas,
        {"softmax_change": lambda e: e},
        "softmax: from the spread",
    ),
    "pruning lemmas: the radius for the diameter": (
        pruning_lemmas,
        {"mixture_change": lambda e, t, d: e + t * d / 4},
        "mixture",
    ),
    "pruning lemmas: one side of the logits moves": (
        pruning_lemmas,
        {"attention_lipschitz": lambda v, b, r, c, link: v * (1 + b * r**2) / c + link},
        "attention: rate",
    ),
    "pruning lemmas: a slope without the gap": (pruning_lemmas, {"slope": lambda rise, gap: rise}, "interpolation"),
    "pruning lemmas: a step of one sign": (
        pruning_lemmas,
        {"step": lambda x, least: (sp.Max(0, x) - sp.Max(0, x - least)) / least},
        "index: one, sign -1",
    ),
    "pruning lemmas: a gate of two units": (
        pruning_lemmas,
        {"gate": lambda u, large, t: sp.Max(0, sp.expand(u + large * t)) - sp.Max(0, large * t)},
        "switch: off, sign 1",
    ),
    "subset sums: twice the rate": (
        subset_sums,
        {"rate": lambda kappa: 1 - kappa},
        "mean, at most one half",
    ),
    "subset sums: the potential 1 - v": (
        subset_sums,
        {"potential": lambda v: 1 - v},
        "mean, at most one half",
    ),
    "subset sums: the density of one uniform number": (
        subset_sums,
        {"gain": lambda length: length / 2},
        "density",
    ),
    "subset sums: targets without their number": (
        subset_sums,
        {"missed": lambda factor, length, accuracy: 2 * length / accuracy * factor},
        "probability",
    ),
    "subset sums: an interval without its logarithm": (
        subset_sums,
        {"few": lambda n, accuracy: 2**n * accuracy},
        "few",
    ),
    "from tokens: the signed count as it is": (from_tokens, {"seen": lambda depth: depth}, "depth: the signed count"),
    "from tokens: a coordinate that is the same at all depths": (
        from_tokens,
        {"seen": lambda depth: sp.Integer(1)},
        "depth: deeper is more",
    ),
    "from tokens: a ramp that is half way at the depth": (
        from_tokens,
        {"step": lambda x, below, at: from_tokens.step(x, below, at + (at - below))},
        "step: from the depth on",
    ),
    "from tokens: a ramp that starts below": (
        from_tokens,
        {"step": lambda x, below, at: sp.Max(0, 3 * (x - below) / (at - below) + 1) - sp.Max(0, x - at)},
        "step: up to the depth before",
    ),
    "from tokens: a state at every depth that is reached": (
        from_tokens,
        {"state": lambda bracket, reached, deeper: sp.Max(0, bracket + reached - 1)},
        "state: its bracket, deeper",
    ),
    "from tokens: a state of every bracket": (
        from_tokens,
        {"state": lambda bracket, reached, deeper: sp.Max(0, reached - deeper)},
        "state: another bracket at its depth",
    ),
    "from tokens: a gap without the probability": (
        from_tokens,
        {"gap": lambda low, least: low},
        "logits: the least gap",
    ),
    "from tokens: softmax without its normaliser": (
        from_tokens,
        {"lost": lambda m, low: m * sp.exp(-low)},
        "softmax: what",
    ),
    "outputs: an error of the whole change": (
        outputs,
        {"least": lambda change: change},
        "the mean of two errors, for a",
    ),
    "outputs: a third of the change": (outputs, {"least": lambda change: change / 3}, "attained"),
    "outputs: stacks whose outputs are apart": (
        outputs,
        {"least_apart": lambda separation, apart: separation / 2},
        "the mean of two errors, for stacks",
    ),
    "outputs: exact ones q apart": (outputs, {"separation": lambda q: q}, "stacks apart"),
}
