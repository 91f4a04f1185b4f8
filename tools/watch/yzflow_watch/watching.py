"""The call that begins a recording: its arguments are checked, and the model is looked at once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynamics import Optimizer
from dynamics.support import checks
from yzflow_watch import measures
from yzflow_watch.adapters import of_functions, with_parts
from yzflow_watch.experiments import checked_inputs, tried
from yzflow_watch.kinds_of_models import adapter_of
from yzflow_watch.recorder import Recorder
from yzflow_watch.training import is_torch_optimizer
from yzflow_watch.untouched import unwrapped

__all__ = ["watch"]


def watch(
    model: Any,
    tokens: Any,
    *,
    attention: Callable[..., Any] | None = None,
    logits: Callable[..., Any] | None = None,
    parts: Sequence[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    every: str | int = "log",
    predict_at: str | Sequence[int] | None = None,
    optimizer: Any = None,
    rates: Sequence[float] | None = None,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    n_classes: int = 16,
    n_tokens: int = 64,
    path: str | os.PathLike | None = None,
    resume_at: int | None = None,
) -> Recorder:
    """Record a training that runs elsewhere, to ask which theorems apply to it.

    Parameters
    ----------
    model : object
        A `torch.nn.Module` with `torch.nn.MultiheadAttention`, GPT-2 or GPT-NeoX of Hugging Face, or a
        `yzflow_deep.Transformer`; anything else with ``attention`` and ``logits``.
    tokens : (n, T + 1) array of ints
        Sequences on which the model is looked at, the same at every step: the last column is the next token, the one
        before it the query. They need not be training data.
    attention, logits : callable, optional
        (model, sequences (n, T)) -> attention, an array ([layers,] n, heads, T, T), or (n, heads, T) of the last query;
        and logits of the next token, an array (n, [T,] next tokens). Both or none. For attention (n, T, T), one head or
        T of them, an experiment with shorter sequences decides.
    parts : sequence of str, optional
        The model's parts, in words ("a residual link"), besides one layer of attention, a linear decoder and the known
        parts of its kind; ``()`` if there are none. Default: unknown, unless the kind of model determines them;
        statements that allow no other part then stay open.
    inputs : mapping, optional
        Further arguments of the model's forward, by name, as the training gives them: arrays with a row for each
        sequence, such as ``attention_mask`` and ``position_ids``, (n, T), for sequences that are padded on the left.
        Positions that a mask (n, T) leaves out are no context. With ``attention`` and ``logits`` the model's forward
        gets them, too.
    every : "log" or int
        Record at steps that grow by a quarter, or at every ``every``-th step.
    predict_at : "log" or sequence of int, optional
        Steps at which rivals' predictions are written into the recording, before the future is seen; "log": the first
        record after each doubling. Default: none, and reports compute predictions afterwards from the past of a step.
    optimizer : torch.optim.Optimizer or yzflow.Optimizer, optional
        The optimizer, if ``step`` is called by hand. A ``with`` block finds it by its steps.
    rates : (float, float), optional
        eta_Y and eta_Z per step, for a model that trains Y and Z. Default: derived from the learning rate and the
        embedding, query, key, value and output matrices if the kind of model is known; else unknown.
    learning_rate : float, optional
        Per step, of all weights, if no optimizer of PyTorch's with a rate is seen.
    batch_size : int, optional
        Sequences of a step, if ``step`` is called by hand. A ``with`` block counts them.
    n_classes, n_tokens : int
        How many next tokens and tokens have their own records: the most frequent ones of ``tokens``.
    path : path-like, optional
        A file that is written at each recorded step. If it exists, the recording goes on from its last step, and the
        model has to be the one that was recorded there.
    resume_at : int, optional
        The step of the model as given. Later rows of the file are dropped, and a row at this step has to match the
        model; without a file the recording begins there. Default: the last step of the file, or 0.

    Returns
    -------
    Recorder
        It has looked at the model once, as it is before training. A context manager that follows the steps of the
        model's optimizers; or call its ``step`` after each.

    Raises
    ------
    ValueError
        If an argument is invalid, the kind of model is not known, or the file is of another recording.
    """
    if (attention is None) != (logits is None):
        missing = "logits" if logits is None else "attention"
        raise checks.reject(missing, "be given where the other of `attention` and `logits` is", None)
    given = None if parts is None else checks.listed("parts", parts, "be words")
    if not all(isinstance(one, str) for one in given or ()):
        raise checks.reject("parts", "be words", checks.brief(parts))
    model = unwrapped(model)
    if attention is None or logits is None:
        adapter = with_parts(adapter_of(model), given)
    else:
        adapter = of_functions(checks.function("attention", attention), checks.function("logits", logits), given)
    found = checks.integer_array("tokens", tokens)
    if found.ndim != 2 or found.shape[0] < 2 or found.shape[1] < 4:
        raise checks.reject("tokens", "have two rows and four columns at least", f"shape {found.shape}")
    if found.min() < 0:
        raise checks.reject("tokens", "not be negative", f"{found.min()}{checks.left_out(found.min())}")
    if isinstance(every, str):
        if every != "log":
            raise checks.reject("every", "be 'log' or a number of steps", repr(every))
    else:
        checks.integer("every", every, minimum=1)
    if not (optimizer is None or isinstance(optimizer, Optimizer) or is_torch_optimizer(optimizer)):
        raise checks.reject("optimizer", "be one of PyTorch's or a yzflow.Optimizer", checks.brief(optimizer))
    if rates is not None:
        values = checks.finite_array("rates", rates, ndim=1)
        if values.size != 2 or values.min() <= 0:
            raise checks.reject("rates", "be two positive numbers, eta_Y and eta_Z", checks.brief(rates))
        rates = (float(values[0]), float(values[1]))
    inputs_of, real = checked_inputs(model, found[:, :-1], inputs)
    probe = measures.Probe.of(
        found,
        real=real,
        n_classes=checks.integer("n_classes", n_classes, minimum=1),
        n_tokens=checks.integer("n_tokens", n_tokens, minimum=1),
    )
    rate = math.nan if learning_rate is None else checks.positive("learning_rate", learning_rate)
    batch = 0 if batch_size is None else checks.integer("batch_size", batch_size, minimum=1)
    if isinstance(predict_at, str):
        checks.one_of("predict_at", predict_at, ("log",))
    elif predict_at is not None:
        predict_at = tuple(int(one) for one in checks.index_array("predict_at", predict_at))
    options = {
        "every": every,
        "predict_at": predict_at,
        "optimizer": optimizer,
        "rates": rates,
        "learning_rate": rate,
        "batch_size": batch,
        "path": path,
        "resume_at": None if resume_at is None else checks.integer("resume_at", resume_at, minimum=0),
        "inputs": inputs_of,
    }
    return Recorder(model, probe, tried(adapter, model, probe.tokens, inputs_of), **options)
