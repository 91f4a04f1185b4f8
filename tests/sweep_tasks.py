"""Tasks of the sweep tests, in a module of their own that worker processes import quickly."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from dynamics.support.limits import current


def plain(configuration, seed):
    return {"value": 10.0 * configuration["a"] + seed}


def arrays(configuration, seed):
    """Numbers that depend on everything, of several types and shapes."""
    rng = np.random.default_rng([seed, configuration["a"]])
    time.sleep(configuration.get("sleep", 0.0))
    noise = rng.normal(size=4)
    return {"noise": noise, "norm": np.linalg.norm(noise), "count": rng.integers(100), "small": np.float32(noise[:2])}


def fails(configuration, seed):
    """Fails while the world outside, which no store sees, is as it is."""
    if os.environ.get("SWEEP_TASKS_FAIL", "1") == "1" and configuration["a"] == 2 and seed == 1:
        raise ArithmeticError("two\n  lines")
    return plain(configuration, seed)


def dies(configuration, seed):
    """Kills its own process as often as ``deaths`` says for a = 3, seed = 0, counted by files in ``folder``."""
    folder = Path(configuration["folder"])
    if configuration["a"] == 3 and seed == 0:
        count = len(list(folder.iterdir()))
        if count < configuration["deaths"]:
            (folder / str(count)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return plain(configuration, seed)


def leaves_its_pid(configuration, seed):
    (Path(configuration["folder"]) / str(os.getpid())).touch()
    time.sleep(60)
    return {}


def limited(configuration, seed):
    return {"tables": current().tables}


def counted(configuration, seed):
    """Leaves a file for each time that it runs."""
    name = f"{configuration['a']}-{seed}-{os.urandom(4).hex()}"
    (Path(configuration["folder"]) / name).touch()
    return plain(configuration, seed)


def returns(configuration, seed):
    return RESULTS[configuration["what"]]


RESULTS = {
    "complex": {"value": 1j},
    "word": {"value": "high"},
    "object": {"value": [1, "a"]},
    "half": {"value": np.float16(1)},
    "ragged": {"value": [[1], [1, 2]]},
    "list": [1, 2],
    "none": None,
    "key": {"what": 1.0},
    "seed": {"seed": 1.0},
    "failed": {"failed": True},
    "slash": {"a/b": 1.0},
    "empty name": {"": 1.0},
    "number": {1: 1.0},
}


class Holder:
    @staticmethod
    def method(configuration, seed):
        return {}


def make_local():
    def local(configuration, seed):
        return {}

    return local


anonymous = lambda configuration, seed: {}  # noqa: E731
