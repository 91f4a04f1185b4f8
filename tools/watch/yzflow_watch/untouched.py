"""Care for a training while its model is looked at: state, random numbers, compiled code, copies and processes."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynamics.support import checks

__all__ = ["Forwards", "Hook", "processes", "untouched", "unwrapped"]

_WRAPPERS = {"DistributedDataParallel", "DataParallel"}  # a forward of these calls other processes and devices
_SHARDED = {"FullyShardedDataParallel", "FSDPModule"}
_looked_at: list[Any] = []


@contextlib.contextmanager
def untouched(model: Any) -> Iterator[None]:
    """A context for a look at a model: afterwards its modules and the random numbers of the process are as before.

    Modes, buffers and other attributes are put back, and Python's, NumPy's and PyTorch's own generators. Instead of
    compiled code of PyTorch's, its Python source runs, so that nothing is compiled for a look.
    """
    if any(model is one for one in _looked_at):  # a look inside a look
        yield
        return
    legacy = np.random  # a model may draw from its global generator
    with contextlib.ExitStack() as after:
        after.callback(random.setstate, random.getstate())
        after.callback(legacy.set_state, legacy.get_state())
        torch = sys.modules.get("torch")
        if torch is not None:
            after.callback(torch.set_rng_state, torch.get_rng_state())
            if torch.cuda.is_initialized():
                after.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
            if isinstance(model, torch.nn.Module):
                for module in model.modules():
                    after.callback(_put_back, module, *_held(module, torch.Tensor))
                model.eval()
            if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):  # else nothing is compiled
                after.enter_context(torch.compiler.set_stance("force_eager"))
            after.enter_context(torch.no_grad())
        _looked_at.append(model)
        after.callback(_looked_at.pop)
        yield


def _held(module: Any, tensor: Any) -> tuple[dict[str, Any], list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """Attributes of a module, and copies of its mappings (buffers, hooks) and of its tensors that are no parameters."""
    attributes = dict(vars(module))
    mappings = [(one, dict(one)) for one in attributes.values() if isinstance(one, dict)]
    tensors = [one for one in (*attributes.values(), *dict(module._buffers).values()) if isinstance(one, tensor)]
    return attributes, mappings, [(one, one.detach().clone()) for one in tensors]


def _put_back(
    module: Any, attributes: dict[str, Any], mappings: list[tuple[Any, Any]], tensors: list[tuple[Any, Any]]
) -> None:
    now = vars(module)
    for name in now.keys() - attributes.keys():
        del now[name]
    now.update(attributes)
    for held, entries in mappings:
        held.clear()
        held.update(entries)
    for held, value in tensors:
        held.data.copy_(value)  # by `data`, unseen by autograd


class Hook:
    """A hook that compiled code leaves out; copies and pickles of its owner have a hook that does nothing."""

    def __init__(self, act: Callable[..., None]) -> None:
        self._act = act

    def __call__(self, *given: Any) -> None:
        import torch

        if torch.compiler.is_compiling():
            return
        torch.compiler.disable(self._act)(*given)

    def __reduce__(self) -> tuple[Any, tuple[Any, str]]:
        return getattr, (contextlib.nullcontext(), "__exit__")  # does nothing for any arguments


class Forwards:
    """Calls of a module of PyTorch's; ``seen`` is called after each.

    Hooks are parts of compiled code. So if a module was compiled in place, or is called by its compiled wrapper, the
    call itself is followed.
    """

    def __init__(self, module: Any, seen: Callable[[Any, tuple, dict[str, Any], Any], None]) -> None:
        self._module, self._seen, self._inside = module, seen, False
        self._handle = module.register_forward_hook(Hook(self._said), with_kwargs=True)
        self._swapped: list[tuple[Any, str, Any, Any]] = []
        from torch._dynamo.eval_frame import OptimizedModule  # every optimizer imports it
        from torch.nn import Module

        self._swap(OptimizedModule, "__call__", lambda wrapper, *args: getattr(wrapper, "_orig_mod", None))
        self._follow_compiled()
        before = Module.compile

        def in_place(other: Any, *args: Any, **given: Any) -> None:
            before(other, *args, **given)
            if other is module:
                self._follow_compiled()

        Module.compile = in_place
        self._swapped.append((Module, "compile", before, in_place))

    def _follow_compiled(self) -> None:
        """Follow the calls of a module that is compiled in place."""
        if getattr(self._module, "_compiled_call_impl", None) is not None:
            self._swap(self._module, "_compiled_call_impl", lambda *args: self._module)

    def remove(self) -> None:
        """Follow no calls any more."""
        self._handle.remove()
        for owner, name, before, ours in self._swapped:
            if getattr(owner, name) is ours:
                setattr(owner, name, before)
        self._seen, self._swapped = _nothing, []

    def _said(self, module: Any, args: tuple, given: dict[str, Any], out: Any) -> None:
        if not self._inside:
            self._seen(module, args, given, out)

    def _swap(self, owner: Any, name: str, of: Callable[..., Any]) -> None:
        """Replace a function that calls a module by one that also calls ``seen`` afterwards."""
        import torch

        before, bound = getattr(owner, name), isinstance(owner, type)

        def call(*args: Any, **given: Any) -> Any:
            if torch.compiler.is_compiling() or self._inside or of(*args) is not self._module:
                return before(*args, **given)
            self._inside = True
            try:
                out = before(*args, **given)
            finally:
                self._inside = False
            self._said(self._module, args[bound:], given, out)
            return out

        setattr(owner, name, call)
        self._swapped.append((owner, name, before, call))


def _nothing(module: Any, args: tuple, given: dict[str, Any], out: Any) -> None:
    pass


def processes() -> int:
    """Number of processes that train together with PyTorch."""
    distributed = sys.modules.get("torch.distributed")
    together = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_world_size()) if distributed is not None and together else 1


def unwrapped(model: Any) -> Any:
    """The model inside PyTorch's wrappers for compilation or data parallelism.

    Raises
    ------
    ValueError
        If its weights are sharded among processes: a forward in one process would wait for the others.
    """
    while True:
        kinds = {one.__name__ for one in type(model).__mro__}
        if kinds & _SHARDED:
            rule = "hold all of its weights in each process: call `step` with a whole copy, as of a checkpoint"
            raise checks.reject("model", rule, f"{type(model).__name__}, which shares them out")
        inside = getattr(model, "_orig_mod", None) if "OptimizedModule" in kinds else None
        inside = model.module if kinds & _WRAPPERS else inside
        if inside is None:
            return model
        model = inside
