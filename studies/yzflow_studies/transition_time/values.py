"""When gamma peaks, where the paper's times are, and when attention is fastest."""

from collections.abc import Sequence

import numpy as np

from dynamics import SequenceClasses, gradient_flow
from theory import decoder
from theory.values import Study
from yzflow.papers.scan_and_snap.phase_transition import peak_time, weak_classes
from yzflow.papers.scan_and_snap.settings import single_common_token


def times(k: int, m: int, eta_y: float) -> dict:
    """t*, t0' and t0, and from which vocabulary on the paper's times are above t*."""
    own = decoder.Decoder(vocab_size=m, n_classes=k, eta_y=eta_y)
    vocabularies = range(2, 2001)
    # All three are proportional to K, so that two classes tell, which fit into any vocabulary.
    two = [decoder.Decoder(vocab_size=m, n_classes=2, eta_y=eta_y) for m in vocabularies]
    early = [one.vocab_size for one in two if one.scanning_time <= one.transition_time]
    late = [one.vocab_size for one in two if one.snapping_time <= one.transition_time]
    return {
        "exact": own.transition_time,
        "scanning": own.scanning_time,
        "snapping": own.snapping_time,
        "earlier": own.snapping_time / own.transition_time,
        "scanning_above_from": max(early) + 1,
        "snapping_above_from": max(late) + 1,
    }


def fastest(classes: SequenceClasses, eta_y: float, eta_z: float, t: float) -> dict:
    """When the logits of the most frequent distinct token and of the common one are fastest, at each level."""
    found = {}
    for level in ("theory", "modified", "full"):
        grid = np.linspace(0, t, 801)
        run = gradient_flow(
            classes, eta_y=eta_y, eta_z=eta_z, t_end=t, times=grid, decoder=level, rtol=1e-10, atol=1e-16
        )
        speed = abs(run.dataset["z_velocity"].isel(query=0))
        tokens = {"distinct": int(classes.distinct_tokens(0)[0]), "common": int(classes.common_tokens[0])}
        found[level] = {name: peak_time(speed.sel(token=token)) for name, token in tokens.items()}
    return found


def speeds(eta_y: float, eta_z: Sequence[float], t: float, k_m: int, rho: float, t_k_m: float) -> dict:
    """The table of times at which logits are fastest: K = 10 and M = 1000 at two eta_Z, and K = M."""
    weak = weak_classes()
    equal = single_common_token(k_m, k_m, rho)
    columns = [fastest(weak, eta_y, rate, t) for rate in eta_z] + [fastest(equal, eta_y, eta_z[-1], t_k_m)]
    peak = decoder.transition_time(vocab_size=k_m, n_classes=k_m, eta_y=eta_y)
    return {
        "k": weak.n_classes,
        "m": weak.vocab_size,
        "weak_rho": weak.overlap()[0, 1],
        "rows": [
            {
                "level": level,
                "fast": columns[0][level],
                "slow": columns[1][level],
                "equal": columns[2][level],
                "alike": bool(abs(columns[2][level]["distinct"] - columns[2][level]["common"]) < 0.05),
            }
            for level in ("theory", "modified", "full")
        ],
        "exact": peak,
        "stretched": peak / (1 - rho),
    }


STUDIES = (
    Study("times", times, {"k": 10, "m": 1000, "eta_y": 1.0}),
    Study(
        "speeds",
        speeds,
        {"eta_y": 1.0, "eta_z": [0.5, 1e-3], "t": 80.0, "k_m": 5, "rho": 0.3, "t_k_m": 25.0},
        ("overlap below 1/(K (K - 1)), the upper half of Assumption 2, in the first four columns",),
        tolerance=1e-4,
    ),
)
