"""A training of PyTorch's that is followed by hooks: its steps, their sequences, its optimizers and rates.

A step of the model is what its optimizers do after the same forwards. An optimizer with every trained parameter ends
the step. If several share the parameters, the step ends when one of them is about to step again, or to step after new
forwards, or when the recording ends. It is recorded then: the weights are those after the step until then.

A forward belongs to a step if a backward pass went through it since gradients were empty. So these do not count:
evaluation, evaluations before the last of a closure, the first pass of a step that needs two, and passes whose step a
scaler skipped.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dynamics import Optimizer
from yzflow_watch.gradients import TOLD, UNKNOWN, Gradients, no_gradient
from yzflow_watch.untouched import Forwards, Hook

__all__ = ["Training", "is_torch_optimizer", "trainer_callback"]

_KNOWN = ("lr", "momentum", "weight_decay", "nesterov", "dampening", "maximize", "betas", "amsgrad")


class Training:
    """Steps, sequences, gradients and optimizers of a training, as hooks see them.

    Attributes
    ----------
    optimizer : object or None
        The optimizer that was given.
    sequences : int
        Sequences of all steps.
    steps : int
        Number of steps whose sequences were counted.
    length : int
        Length of the longest sequences that train the model; 0 if none are seen.
    gradients : Gradients
    strangers : list of str
        Names of optimizers that stepped and hold no parameter of the model.
    """

    def __init__(self, optimizer: Any, *, positions_first: bool = False) -> None:
        self.optimizer, self._positions_first = optimizer, positions_first
        self.sequences = self.steps = self.length = 0
        self.gradients = Gradients()
        self.strangers: list[str] = []
        self._handles: list[Any] = []
        self._weights: list[Any] = []
        self._mine: set[int] = set()
        self._taken: dict[int, tuple[Any, list[tuple[list[Any], dict[str, Any]]]]] = {}
        self._said: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        """Forget the records of a step that has not ended."""
        self._used: dict[int, int] = {}  # number of a forward with a backward pass -> its sequences
        self._ended: set[int] = set()  # numbers of forwards whose backward pass has ended
        self._forwards = self._within = 0
        self._task = -1
        self._dropped = self._visible = False
        self._inside: list[Any] = []  # optimizers within their step
        self._open: list[Any] = []  # optimizers of the current step of the model
        self._last: list[Any] = []  # optimizers of the step before

    @property
    def followed(self) -> bool:
        """Whether hooks are set."""
        return bool(self._handles)

    def follow(self, model: Any, count: Callable[[bool], None], due: Callable[[], bool]) -> None:
        """Call ``count`` after each step of the model by optimizers of PyTorch's that hold parameters of it.

        Its argument is True if the model is now as it was at the end of the step. ``due`` says whether the next step is
        to be recorded.

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
        self._forget()
        self._count, self._due = count, due
        self._weights = list(model.parameters()) if hasattr(model, "parameters") else []
        self._mine = {id(one) for one in self._weights}
        self._handles = [
            optimizer.register_optimizer_step_pre_hook(Hook(self._before)),
            optimizer.register_optimizer_step_post_hook(Hook(self._after)),
        ]
        if hasattr(model, "register_forward_hook"):
            self._handles.append(Forwards(model, self._forward))
            self._handles += [one.register_hook(self._arrives) for one in self._trained()]

    def leave(self, *, whole: bool = True) -> None:
        """Follow no steps any more; the current step ends, and is recorded if ``whole``."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.end(whole=whole)
        self._forget()

    def end(self, *, whole: bool = True) -> None:
        """End the current step, if there is one; with ``whole``, the model is as that step left it."""
        if not self._open:
            return
        if self._last and not self._covered() and not any(one is other for one in self._open for other in self._last):
            names = _joined(self._last + self._open)
            self._say(f"{names} step in turn, each after forwards of its own: each time is counted as a step")
        self.steps, self._last, self._open = self.steps + 1, self._open, []
        self.sequences, self._within = self.sequences + self._within, 0
        self.gradients.forget()
        self._count(whole)

    def _trained(self) -> list[Any]:
        return [one for one in self._weights if one.requires_grad]

    def _say(self, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            warnings.warn(f"{words}; without a `with` block, `step()` counts as you do", UserWarning, stacklevel=3)

    # Forwards and backward passes

    def _forward(self, model: Any, args: tuple, given: Mapping[str, Any], out: Any) -> None:
        """Keep number and length of the sequences of a forward that may train the model."""
        import torch

        if not (self._handles and model.training and torch.is_grad_enabled()):
            return
        first = next((one for one in (*args, *given.values()) if hasattr(one, "shape") and len(one.shape)), None)
        if first is None:
            return
        sizes = [int(size) for size in first.shape[:2]]
        sizes = sizes[::-1] if self._positions_first else sizes
        n = sizes[0]
        self.length = max(self.length, sizes[1] if len(sizes) > 1 else 0)
        self._forwards += 1
        number = self._forwards

        def arrives(grad: Any) -> None:
            self._arrives(grad)
            if self._handles:
                self._used[number] = n

        for tensor in _tensors(out):
            if tensor.grad_fn is not None:
                try:
                    tensor.register_hook(arrives)
                except RuntimeError:  # in a transform of functions there are no hooks
                    self._used[number] = n

    def _arrives(self, grad: Any) -> None:
        """Notice the beginning of a backward pass, at its first gradient."""
        import torch

        task = torch._C._current_graph_task_id()
        if task == self._task or not self._handles:
            return
        self._task, self._visible = task, True
        if no_gradient(self._trained()):
            dropped = [self._used.pop(number) for number in self._ended if number in self._used]
            self._dropped = self._dropped or bool(dropped)
        queue = torch.autograd.Variable._execution_engine.queue_callback
        queue(lambda: queue(self._leaves))  # after other callbacks, such as a mean over processes

    def _leaves(self) -> None:
        """Notice the end of a backward pass."""
        if self._handles:
            self._ended = set(self._used)
            self.gradients.keep(self._trained(), not self._last or self._due())

    # Optimizers

    def _of_model(self, optimizer: Any) -> list[Any]:
        """Parameters of the model that an optimizer holds."""
        return [one for group in optimizer.param_groups for one in group["params"] if id(one) in self._mine]

    def _covered(self) -> bool:
        held = {id(one) for optimizer in self._open for one in self._of_model(optimizer)}
        return all(id(one) in held for one in self._trained())

    def _before(self, optimizer: Any, args: tuple, given: dict[str, Any]) -> None:
        parameters = self._of_model(optimizer)
        if not parameters:
            name = type(optimizer).__name__
            self.strangers += [name] * (name not in self.strangers)
            return
        if any(one is optimizer for one in self._inside):  # its last step ended in an error
            self._inside.clear()
        self._inside.append(optimizer)
        if len(self._inside) > 1:  # an optimizer around another, whose step it is
            return
        if self._used or any(one is optimizer for one in self._open):
            self.end()
        if self.gradients.ready:
            self.gradients.compare(parameters, optimizer, self._dropped)
            self._compared = True
        else:
            self._compared = False

    def _after(self, optimizer: Any, args: tuple, given: dict[str, Any]) -> None:
        parameters = self._of_model(optimizer)
        if not parameters:
            return
        self._inside = [one for one in self._inside if one is not optimizer]
        if self._inside:
            return
        if getattr(optimizer, "found_inf", None):  # a fused optimizer is called for a step that it then skips
            self._used.clear()
            return
        if not self._compared:  # the backward pass was within the step
            self.gradients.compare(parameters, optimizer, self._dropped)
        if self._open and self._used:  # forwards within the step, after another optimizer's
            self.end(whole=False)
        self._taken.pop(id(optimizer), None)
        self._taken[id(optimizer)] = optimizer, _options(optimizer)
        if not self._open and not self._used and self._visible and self._last:
            again = any(one is optimizer for one in self._last)
            name = type(optimizer).__name__
            if not again:
                self._last.append(optimizer)
                self._say(f"{name} steps when a step has ended, after no forward of its own: it is not counted")
                return
            if self._forwards:  # without any, the recorder itself warns
                self._say(f"{name} steps again after no forward of its own: each time is counted as a step")
        self._open.append(optimizer)
        self._within += sum(self._used.values())
        self._used.clear()
        self._dropped = False
        if self._covered():
            self.end()

    # Rates

    def _groups(self) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
        """Name, parameters and options of every group that was seen, the latest last."""
        taken = list(self._taken.values())
        if not taken and self.optimizer is not None and not isinstance(self.optimizer, Optimizer):
            taken = [(self.optimizer, _options(self.optimizer))]
        for optimizer, groups in taken:
            for parameters, options in groups:
                yield type(optimizer).__name__, parameters, options

    def options(self, model: Any) -> dict[int, dict[str, Any]]:
        """``id`` of each parameter of the model that an optimizer holds -> the optimizer's name and options."""
        mine = {id(one) for one in model.parameters()} if hasattr(model, "parameters") else None
        return {
            id(one): {"name": name, **options}
            for name, parameters, options in self._groups()
            for one in parameters
            if mine is None or id(one) in mine
        }

    def rate(self, model: Any) -> float:
        """The largest learning rate of the parameters of the model; NaN without an optimizer."""
        return max((one["lr"] for one in self.options(model).values()), default=math.nan)

    def rates(self, weights: Mapping[str, Any], model: Any) -> dict[str, float] | float:
        """Learning rate of each matrix, times the factor of its gradient if that was scaled.

        If the parameters of matrices are not known: the rate of all, and NaN if there are several.
        """
        of = self.options(model)
        if not weights:
            known = {one["lr"] for one in of.values()}
            return known.pop() if len(known) == 1 else math.nan
        factors = {name: self.gradients.factors.get(id(one), 1.0) for name, one in weights.items()}
        return {
            name: of.get(id(one), {"lr": 0.0})["lr"] * (1.0 if math.isnan(factors[name]) else factors[name])
            for name, one in weights.items()
        }

    def of_matrices(self, weights: Mapping[str, Any], model: Any) -> dict[str, dict[str, Any]]:
        """Options of the optimizer for each matrix, and the factor of its gradient, NaN if it was changed otherwise.

        A matrix that no optimizer holds is left out.
        """
        of = self.options(model)
        return {
            name: {**of[id(one)], "gradient_factor": self.gradients.factors.get(id(one), 1.0)}
            for name, one in weights.items()
            if id(one) in of
        }

    def facts(self, model: Any) -> dict[str, Any]:
        """Optimizers with their options, and the state of gradients: facts for a recording."""
        if isinstance(self.optimizer, Optimizer) and not self._taken:
            named = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
            told = self.optimizer
            told_facts = {**told.parameters, "name": named.get(told.name, told.name), "lr": math.nan}
            return {"optimizer": told_facts, "optimizers": [told_facts], "gradients": TOLD}
        found = []
        for one in self.options(model).values():
            if one not in found:
                found.append(one)
        gradients = self.gradients.state or UNKNOWN
        if not found:
            return {"optimizer": None, "optimizers": [], "gradients": gradients}
        names = sorted({name for one in found for name in one if name != "name"})
        most = {name: max(one[name] for one in found if name in one) for name in names}
        together = {"name": " and ".join(dict.fromkeys(one["name"] for one in found)), **most}
        return {"optimizer": together, "optimizers": found, "gradients": gradients}


def _tensors(value: Any) -> Iterator[Any]:
    """Tensors in a model's output: the output itself, or in tuples, lists and mappings."""
    if hasattr(value, "grad_fn"):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)


def _joined(optimizers: list[Any]) -> str:
    return " and ".join(dict.fromkeys(type(one).__name__ for one in optimizers))


def _options(optimizer: Any) -> list[tuple[list[Any], dict[str, Any]]]:
    """Parameters and plain options of each group, as they are now."""
    return [
        (
            group["params"],
            {
                name: [float(one) for one in value] if isinstance(value, (tuple, list)) else _plain(name, value)
                for name, value in group.items()
                if name in _KNOWN and value is not None
            },
        )
        for group in optimizer.param_groups
    ]


def _plain(name: str, value: Any) -> Any:
    return value if isinstance(value, (bool, int)) and name != "lr" else float(value)


def trainer_callback(recorder: Any, leave: Callable[[], None], begin: Callable[[int], None]) -> Any:
    """A callback of Hugging Face's Trainer that opens and closes a recorder with the training."""
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise RuntimeError("a callback of the Trainer needs transformers") from None

    class Watching(TrainerCallback):
        """Opens and closes a recorder with the training, and takes its step from the Trainer."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            leave()  # close a training that ended in an error unnoticed
            begin(state.global_step)
            recorder.__enter__()

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            recorder.__exit__(None)

    return Watching()


def is_torch_optimizer(value: Any) -> bool:
    groups = getattr(value, "param_groups", None)
    return isinstance(groups, list) and all(isinstance(one, dict) and {"params", "lr"} <= set(one) for one in groups)
