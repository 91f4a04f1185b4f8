"""From the start of Python to the first result of a small flow, with what is compiled on disk, beside diffrax."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks import Row, compare, optional_peer

SETTING = "eta_y=1.0, eta_z=0.5, t_end=10.0, rtol=1e-8, atol=1e-10"
OURS = f"""
from dynamics import SequenceClasses, gradient_flow
flow = gradient_flow(SequenceClasses.single_common_token(10, 1000), times=[10.0], {SETTING})
print(*flow.final.Z[0])
"""
DIFFRAX = f"""
from benchmarks.peers.diffrax_flow import flow
from dynamics import SequenceClasses
print(*flow(SequenceClasses.single_common_token(10, 1000), {SETTING})())
"""
_LAYER = """
import numpy as np
from dynamics import Layer, SequenceClasses
classes = SequenceClasses.single_common_token(10, 1000)
Z, Y = np.zeros((1, classes.n_tokens)), np.sin(np.arange(1000.0 * classes.n_tokens)).reshape(-1, 1000)
"""
KERNELS = f"""{_LAYER}
print(*Layer(Z, Y).gradient(classes.population()).Z[0])
"""
AUTOGRAD = f"""{_LAYER}
import torch
p, Y, z = torch.tensor(classes.probabilities.toarray()), torch.tensor(Y), torch.tensor(Z, requires_grad=True)
f = torch.nn.functional.normalize(p * z.exp(), dim=1)
(-torch.nn.functional.cross_entropy(f @ Y, torch.arange(10))).backward()
print(*z.grad.numpy()[0])
"""


def _fresh(program: str) -> np.ndarray:
    """Output of a program, run in a new process."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), dtype=float)


def run() -> Iterator[Row]:
    task, options = "new process to the first small flow", {"tolerance": 1e-6, "result": "Z at the end", "runs": 3}
    if optional_peer("diffrax_flow") is not None:
        yield compare(task, lambda: _fresh(OURS), "diffrax Dopri8, jax", lambda: _fresh(DIFFRAX), **options)
    if optional_peer("torch_sgd") is not None:
        sides = (lambda: _fresh(KERNELS), "PyTorch autograd", lambda: _fresh(AUTOGRAD))
        exact = {"tolerance": 1e-9, "result": "gradient of Z", "runs": 3}
        yield compare("new process to the first loss and gradient", *sides, **exact)
    numpy_flow = DIFFRAX.replace("diffrax_flow", "numpy_flow").replace("())", ")")
    yield compare(task, lambda: _fresh(OURS), "scipy DOP853, NumPy", lambda: _fresh(numpy_flow), **options)
