"""A training of PyTorch's that is followed by hooks: its steps, their sequences, its optimizer and rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dynamics import Optimizer
from yzflow.watching.untouched import Forwards, Hook

__all__ = ["Training", "is_torch_optimizer", "learning_rate", "optimizer_facts", "trainer_callback"]


class Training:
    """What hooks see of a training.

    Attributes
    ----------
    optimizer : object or None
        The last one that moved the model, or the one that was given.
    seen : int
        Sequences since the last step.
    sequences : int
        Sequences of all steps.
    length : int
        Of the longest sequences that train the model; 0 where none are seen.
    followed : bool
        Whether hooks are set.
    """

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.seen = self.sequences = self.length = 0
        self._handles: list[Any] = []

    @property
    def followed(self) -> bool:
        return bool(self._handles)

    def follow(self, model: Any, count: Callable[[], None]) -> None:
        """Call ``count`` after each step of every optimizer of PyTorch's that holds a parameter of the model.

        Raises
        ------
        RuntimeError
            If a training is followed already; or without PyTorch.
        """
        if self._handles:
            raise RuntimeError("this recorder records already")
        try:
            from torch.optim import optimizer
        except ImportError:
            raise RuntimeError("following an optimizer needs PyTorch: call `step` after each step instead") from None

        def after(optimizer: Any, args: tuple, given: dict[str, Any]) -> None:
            held = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
            if any(id(weight) in held for weight in model.parameters()):
                if getattr(optimizer, "found_inf", None):  # a fused optimizer is called for a step that it then skips
                    self.seen = 0
                    return
                self.optimizer = optimizer
                count()

        self._handles = [optimizer.register_optimizer_step_post_hook(Hook(after))]
        if hasattr(model, "register_forward_pre_hook"):
            self._handles.append(Forwards(model, self._forward))

    def leave(self) -> None:
        """Follow no steps any more."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _forward(self, model: Any, args: tuple, given: dict[str, Any]) -> None:
        """Count the sequences that train the model, and see how long they are."""
        if model.training:
            first = next((one for one in (*args, *given.values()) if hasattr(one, "shape") and len(one.shape)), None)
            if first is not None:
                self.seen += int(first.shape[0])
                self.length = max(self.length, int(first.shape[1]) if len(first.shape) > 1 else 0)


def trainer_callback(recorder: Any, leave: Callable[[], None]) -> Any:
    """A callback of Hugging Face's Trainer that opens and closes a recorder with the training."""
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise RuntimeError("a callback of the Trainer needs transformers") from None

    class Watching(TrainerCallback):
        """Opens and closes a recorder with the training."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            leave()  # a training that ended in an error, and said nothing
            recorder.__enter__()

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            recorder.__exit__(None)

    return Watching()


def is_torch_optimizer(value: Any) -> bool:
    groups = getattr(value, "param_groups", None)
    return isinstance(groups, list) and all(isinstance(one, dict) and {"params", "lr"} <= set(one) for one in groups)


def learning_rate(optimizer: Any, model: Any) -> float:
    """The largest learning rate of the parameters of the model; NaN without an optimizer."""
    if optimizer is None or isinstance(optimizer, Optimizer):
        return math.nan
    groups = optimizer.param_groups
    if hasattr(model, "parameters"):
        mine = {id(one) for one in model.parameters()}
        groups = [one for one in groups if any(id(part) in mine for part in one["params"])]
    return max((float(one["lr"]) for one in groups), default=math.nan)


def optimizer_facts(optimizer: Any) -> dict[str, Any] | None:
    """Name and plain options of an optimizer."""
    if optimizer is None:
        return None
    if isinstance(optimizer, Optimizer):
        named = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
        return {**optimizer.parameters, "name": named.get(optimizer.name, optimizer.name), "lr": math.nan}
    known = ("lr", "momentum", "weight_decay", "nesterov", "dampening", "maximize", "betas", "amsgrad")
    options = {name: value for name, value in optimizer.param_groups[0].items() if name in known}
    plain: dict[str, Any] = {
        name: [float(one) for one in value] if isinstance(value, tuple) else float(value) if name == "lr" else value
        for name, value in options.items()
    }
    return {"name": type(optimizer).__name__, **plain}
