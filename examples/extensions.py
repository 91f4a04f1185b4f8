"""Extensions of Section 7 of Scan and Snap, run: residual connection, several heads, linear position bias.

    python examples/extensions.py [--help]

Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

import numpy as np

from dynamics import Layer, SequenceClasses, gradient_flow, sgd
from dynamics.extensions import residual_connection
from yzflow import scripts


def residual() -> None:
    """A token common to classes of different queries, but distinct within each query's own next tokens."""
    probabilities = [[0.4, 0.3, 0, 0, 0, 0.3], [0.4, 0, 0.6, 0, 0, 0], [0.4, 0, 0, 0.3, 0, 0.3], [0.4, 0, 0, 0, 0.6, 0]]
    classes = SequenceClasses(probabilities, [6, 6, 7, 7], vocab_size=50)
    rates = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 2000.0}
    plain = gradient_flow(classes, **rates).final.Z[0, 5]
    bags, layer = residual_connection(classes)
    added = gradient_flow(bags, init=layer, **rates).final.Z[0, 5]
    print("Residual connection: the logit of a globally common, locally distinct token after 2000 steps")
    print(f"  without {plain:+.3f} (loses attention), with {added:+.3f} (gains it)\n")


def heads() -> None:
    """Four starts of Z: which of a class's ten distinct tokens each head attends to most."""
    classes = SequenceClasses.syn_medium(1)
    rng = np.random.default_rng(0)
    print("Heads as starts of Z: most attended distinct tokens of next token 0, before and after 100 SGD steps")
    for head in range(4):
        start = Layer(rng.normal(scale=1.0, size=(1, 30)), np.zeros((30, 3)), None, [1, 1, classes.vocab_size - 2])
        run = sgd(classes, init=start, eta_y=1.0, eta_z=1.0, steps=100, record_every=100, seed=head)
        shares = run.dataset["attention"].sel(next_token=0, token=slice(10, 19))
        first, last = ([int(t) for t in shares["token"][np.argsort(-row)][:3]] for row in shares.values)
        print(f"  head {head}: {first} -> {last}")
    print()


def position_bias() -> None:
    """A linear bias weighs the last tokens more: a prior on attention, which makes sequences shorter in effect."""
    classes = SequenceClasses.syn_small()
    print("Linear position bias b: loss of the last mini-batch, and entropy of attention on distinct tokens")
    for slope in (0.0, 0.05, 0.5):
        run = sgd(classes, eta_y=1.0, eta_z=1.0, steps=100, record_every=100, position_bias=slope)
        loss = float(run.dataset["batch_loss"][-1])
        print(f"  b = {slope:<4g}: {loss:.3g} nats, {float(run.attention_entropy().isel(time=-1).mean()):.3f} nats")


def main(arguments: list[str] | None = None) -> int:
    scripts.Script(__doc__).options(arguments)
    residual()
    heads()
    position_bias()
    return 0


if __name__ == "__main__":
    scripts.run(main, interrupted="nothing is written, and the same command starts over")
