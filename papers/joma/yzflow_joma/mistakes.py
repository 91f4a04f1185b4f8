"""Wrong claims, which the proofs must refute: a sign, a factor, a missing hypothesis."""

from yzflow_joma.proofs import counting, joint, linear_activation, nonlinear_activation, turning

MISTAKES = {
    "joint: sign": (joint.derive, {"linear": lambda z, squares: z**2 + squares}, "linear"),
    "joint: factor": (joint.derive, {"exponential": lambda z, squares: z - squares}, "exp"),
    "joint: no factorisation": (joint.derive, {"factors": lambda moment, first, mean: moment}, "softmax"),
    "joint: no second term": (
        joint.derive,
        {"softmax": lambda z, squares, lengths, mean: z - squares / 2},
        "softmax",
    ),
    "linear: factor": (
        linear_activation.derive,
        {"left": lambda v: 2 * linear_activation.left(v)},
        "rate",
    ),
    "linear: time": (linear_activation.derive, {"blow_up": lambda delta: 1 / delta}, "blow-up"),
    "nonlinear: sign": (nonlinear_activation.derive, {"rate": lambda v: nonlinear_activation.rate(v) ** -1}, "rate"),
    "nonlinear: ratio": (
        nonlinear_activation.derive,
        {"ratio": lambda first, second: nonlinear_activation.ratio(first, second) ** 2},
        "ratio",
    ),
    "turning: sign": (turning.derive, {"slope": lambda p, u, mean: p * (u - mean)}, "slope"),
    "turning: factor": (turning.derive, {"early": lambda fourth, second, t: -(t**3) * (fourth - second**2)}, "start"),
    "turning: zeros weigh nothing": (turning.derive, {"excess": lambda ratio, weight: ratio * weight}, "threshold"),
    "turning: all entries end at one rate": (
        turning.derive,
        {"late_rate": lambda mu: -(turning.late_rate(mu) ** 0)},
        "late: larger",
    ),
    "turning: the speed's rate without the factor": (
        turning.derive,
        {"late_rate": lambda mu: 2 * turning.late_rate(mu)},
        "late: rate",
    ),
    "turning: entries keep their ratio": (turning.derive, {"most_ratio": lambda rate: 1}, "bound: grows"),
    "counting: speeds without the level's pull": (
        counting.derive,
        {"acceleration": lambda speed, v, weight: speed * (1 + 1 / v**2)},
        "pair: rate",
    ),
    "counting: the larger gains": (
        counting.derive,
        {"acceleration": lambda speed, v, weight: weight - speed * (1 + 1 / v**2)},
        "pair: the larger falls behind",
    ),
    "counting: pairs counted twice": (
        counting.derive,
        {"covariance": lambda p, q, apart, faster: 2 * p * q * apart * faster},
        "pair: covariance",
    ),
    "counting: zeros that weigh nothing": (
        counting.derive,
        {"rising_zeros": lambda weights, levels, speeds, both: levels * speeds / both},
        "zeros: rises",
    ),
    "counting: a new entry that does not lift the mean": (
        counting.derive,
        {"lifted": lambda rate, share, lift, mean, drive: (1 - share) * rate},
        "added",
    ),
    "counting: a new entry that takes no share": (
        counting.derive,
        {"lifted": lambda rate, share, lift, mean, drive: rate + lift * drive},
        "added",
    ),
    "joint: the drift's sign": (joint.derive, {"drift": lambda *a: -joint.drift(*a)}, "drift"),
    "joint: no mean in the drift": (joint.derive, {"drift": lambda b, mean, pull: -b * pull}, "drift"),
}
