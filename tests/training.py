"""Training with options by another route: a layer in PyTorch, its gradient by autograd, its steps by torch.optim.

`COMMAND` writes the numbers of its runs to ``dynamics/peers/training.json``, for tests without it.
"""

import itertools
import json
import math
from pathlib import Path

import numpy as np

from dynamics import Bags, Layer, Objective, Optimizer, Schedule

# Not as a script: beside it, tests/dynamics would be found for the package.
COMMAND = "python -c 'import sys; sys.path.append(\"tests\"); import training; training.main()'"
NUMBERS = Path(__file__).parent / "dynamics" / "peers" / "training.json"
STEPS = 50
RATES = {"eta_z": 0.02, "eta_y": 0.05}
START = np.random.default_rng(3)
# Two queries, four next tokens of which three occur; all tokens occur, so that no gradient is zero but for round-off.
BAGS = Bags.from_dense(
    [0, 0, 1, 1],
    [0, 1, 2, 0],
    [[3, 1, 2, 0, 1], [1, 4, 0, 2, 1], [2, 1, 1, 5, 3], [0, 2, 3, 1, 1]],
    [0.1, 0.4, 0.3, 0.2],
    n_queries=2,
    vocab_size=6,
)
LAYER = Layer(START.normal(size=(2, 5)), START.normal(size=(5, 4)), None, [1, 1, 1, 3])

# Option -> arguments of Optimizer and of Objective. Of two with the same argument no pair is made.
OPTIONS: dict[str, tuple[dict, dict]] = {
    "momentum": ({"name": "sgd", "momentum": 0.9}, {}),
    "adam": ({"name": "adam"}, {}),
    "adamw": ({"name": "adamw", "weight_decay": 0.3, "decoupled": True}, {}),
    "sign": ({"name": "sign"}, {}),
    "betas": ({"betas": (0.7, 0.95), "epsilon": 1e-3}, {}),
    "coupled decay": ({"weight_decay": 0.2}, {}),
    "decoupled decay": ({"weight_decay": 0.2, "decoupled": True}, {}),
    "warm-up": ({"schedule": Schedule(warm_up=20)}, {}),
    "cosine": ({"schedule": Schedule(warm_up=5, decay="cosine", floor=0.1)}, {}),
    "function": ({"schedule": lambda step: 1 / (1 + 0.1 * step)}, {}),
    "clip": ({"clip": 0.1}, {}),
    "smoothing": ({}, {"label_smoothing": 0.2}),
    "temperature": ({}, {"temperature": 1.7}),
    "layer": ({}, {"normalisation": "layer"}),
    "none": ({}, {"normalisation": None}),
    "squared": ({}, {"criterion": "squared"}),
}


def values(names):
    """The optimizer and the objective of some options, plain steps without momentum beside; None if they clash."""
    optimizer, objective = {}, {}
    for name in names:
        for own, more in zip((optimizer, objective), OPTIONS[name], strict=True):
            if own.keys() & more.keys():
                return None
            own |= more
    kind = optimizer.get("name", "adam" if "betas" in optimizer else "sgd")
    if ("betas" in optimizer and kind not in ("adam", "adamw")) or (kind == "adam" and optimizer.get("decoupled")):
        return None
    return Optimizer(**{"momentum": 0.0, "name": kind} | optimizer), Objective(**objective)


SINGLE = [(name,) for name in OPTIONS]
# Of two options of the optimizer, or of two of the objective: these meet the others in the gradient alone.
PAIRS = [
    pair
    for pair in itertools.combinations(OPTIONS, 2)
    if values(pair) and bool(OPTIONS[pair[0]][0]) == bool(OPTIONS[pair[1]][0])
]


def dense(bags):
    """Counts (bags, tokens) and targets (bags, M)."""
    counts, targets = np.zeros((len(bags), bags.n_tokens)), np.zeros((len(bags), bags.vocab_size))
    counts[bags.owner, bags.token] = bags.count
    targets[np.arange(len(bags)), bags.target] = 1
    return counts, targets


def torch_run(optimizer, objective, bags=BAGS, layer=LAYER, steps=STEPS):
    """Z, Y with a column for each next token, and the loss before each step."""
    import torch
    from torch.nn import functional

    counts, targets = map(torch.tensor, dense(bags))
    query, weight = torch.tensor(np.array(bags.query)), torch.tensor(np.array(bags.weight))
    Z, Y = (torch.tensor(np.array(array), requires_grad=True) for array in (layer.Z, layer.expand().Y))
    smooth = (1 - objective.label_smoothing) * targets + objective.label_smoothing / targets.shape[1]

    def loss():
        # Before the softmax, since exp(z) N is exp(z + ln N).
        shares = functional.softmax(Z[query] / objective.temperature + torch.log(counts), dim=1)
        if objective.normalisation == "unit":
            shares = functional.normalize(shares, dim=1)
        elif objective.normalisation == "layer":
            width = shares.shape[1]
            shares = functional.layer_norm(shares, (width,), eps=0) / math.sqrt(width)
        logits = shares @ Y
        if objective.criterion == "squared":
            return (weight * ((logits - smooth) ** 2).sum(1)).sum()
        each = functional.cross_entropy(
            logits, targets.argmax(1), label_smoothing=objective.label_smoothing, reduction="none"
        )
        return (weight * each).sum()

    groups = [{"params": [Z], "lr": RATES["eta_z"]}, {"params": [Y], "lr": RATES["eta_y"]}]
    decay = optimizer.weight_decay
    own = 0.0 if optimizer.decoupled and optimizer.name != "adamw" else decay
    if optimizer.rule.moments:
        kind = torch.optim.AdamW if optimizer.name == "adamw" else torch.optim.Adam
        steps_of = kind(groups, betas=optimizer.betas, eps=optimizer.epsilon, weight_decay=own)
    else:
        steps_of = torch.optim.SGD(groups, lr=1.0, momentum=optimizer.momentum, weight_decay=own)
    factor = optimizer.over(steps).factor
    rates = torch.optim.lr_scheduler.LambdaLR(steps_of, factor)
    losses = []
    for _ in range(steps):
        steps_of.zero_grad()
        value = loss()
        losses.append(value.item())
        value.backward()
        if optimizer.clip is not None:
            torch.nn.utils.clip_grad_norm_([Z, Y], optimizer.clip)
        if optimizer.decoupled and optimizer.name != "adamw":
            with torch.no_grad():
                for group in steps_of.param_groups:
                    group["params"][0].mul_(1 - group["lr"] * decay)
        if optimizer.name == "sign":
            _sign_step(steps_of, own, optimizer)
        else:
            steps_of.step()
        rates.step()
    return Z.detach().numpy(), Y.detach().numpy(), np.array(losses)


def _sign_step(steps_of, decay, optimizer):
    """Along the sign of SGD's momentum buffer (Bernstein et al. 2018), which torch.optim has not: by its own parts."""
    import torch

    with torch.no_grad():
        for group in steps_of.param_groups:
            [x] = group["params"]
            state = steps_of.state[x]
            # Decay at the weights before the decoupled factor is coupled decay's alone: the two never meet.
            gradient = x.grad + decay * x
            state["v"] = optimizer.momentum * state.get("v", 0) + gradient
            x.add_(torch.sign(state["v"]), alpha=-group["lr"])
    steps_of._opt_called = True  # what the schedule looks for


def main():
    import torch

    torch.set_num_threads(1)
    found = {
        "source": f"PyTorch {torch.__version__}, float64, {STEPS} full-batch steps: {COMMAND}",
        "runs": {},
    }
    for names in SINGLE:
        Z, Y, losses = torch_run(*values(names))
        found["runs"][names[0]] = {"Z": Z.tolist(), "Y": Y.tolist(), "loss": losses[[0, -1]].tolist()}
    NUMBERS.parent.mkdir(exist_ok=True)
    NUMBERS.write_text(json.dumps(found, indent=1) + "\n")
