"""A row of numbers, one of each of `LANES` flows side by side, that kernels calculate with as with one number.

Compiled, a row is a vector of LLVM's, which become as many vector instructions as the processor needs; as Python, it is
a row of a NumPy array. Loops over the lanes would not do: the compiler cannot know that the arrays within do not
overlap, and what it does to find out takes longer than the arithmetic (2.5 times, measured). No instruction mixes
lanes, so that no bit of a flow depends on which lane it is in or on what the others hold.

Kernels that use this name it in ``kernel(uses=..)``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from dynamics.support.compiled import IN_PYTHON

LANES = 16

_DOUBLES, _LONGS = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(64), LANES)
# A product and a sum may become one instruction.
_FLAGS = ("contract",)


class _Row(types.Type):
    """The type of a row in kernels."""

    def __init__(self) -> None:
        super().__init__(name="Row")


_ROW = _Row()


@register_model(_Row)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _DOUBLES)


def _spread(builder: Any, value: Any) -> Any:
    """A number as a row of it."""
    if value.type == _DOUBLES:
        return value
    one = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _arithmetic(function: Callable, instruction: str) -> None:
    """Teach numba ``function`` of two rows, or of a row and a number."""
    pairs = ((_ROW, _ROW), (_ROW, types.float64), (types.float64, _ROW))
    infer_global(function)(type("_", (ConcreteTemplate,), {"cases": [signature(_ROW, *pair) for pair in pairs]}))

    def lower(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        left, right = (_spread(builder, value) for value in arguments)
        return getattr(builder, instruction)(left, right, flags=_FLAGS)

    for pair in pairs:
        lower_builtin(function, *pair)(lower)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_function, _instruction)


def _address(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    """Where row ``row`` of the last axis of a contiguous array starts."""
    data = context.make_array(kind)(context, builder, array).data
    start = builder.mul(row, ir.Constant(row.type, LANES))
    return builder.bitcast(builder.gep(data, [start]), _DOUBLES.as_pointer())


@intrinsic
def _load_compiled(_, array, i):
    def codegen(context, builder, kind, arguments):
        return builder.load(_address(context, builder, kind.args[0], *arguments), align=8)

    return _ROW(array, types.intp), codegen


@intrinsic
def _store_compiled(_, array, i, row):
    def codegen(context, builder, kind, arguments):
        value = _spread(builder, arguments[2])
        builder.store(value, _address(context, builder, kind.args[0], *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, row), codegen


@intrinsic
def _filled_compiled(_, number):
    def codegen(context, builder, kind, arguments):
        return _spread(builder, arguments[0])

    return _ROW(types.float64), codegen


@intrinsic
def _larger_compiled(_, a, b):
    def codegen(context, builder, kind, arguments):
        left, right = (_spread(builder, value) for value in arguments)
        return builder.select(builder.fcmp_ordered(">", left, right), left, right)

    return _ROW(a, b), codegen


@intrinsic
def _where_compiled(_, mask, a, b):
    def codegen(context, builder, kind, arguments):
        condition, yes, no = (_spread(builder, value) for value in arguments)
        return builder.select(builder.fcmp_ordered(">", condition, ir.Constant(_DOUBLES, [0.0] * LANES)), yes, no)

    return _ROW(mask, a, b), codegen


def _by_llvm(name: str) -> Any:
    """A function of LLVM's of a row."""

    @intrinsic
    def compiled(_, a):
        def codegen(context, builder, kind, arguments):
            function = ir.FunctionType(_DOUBLES, [_DOUBLES])
            full = f"llvm.{name}.v{LANES}f64"
            return builder.call(builder.module.declare_intrinsic(full, fnty=function), arguments)

        return _ROW(a), codegen

    return compiled


@intrinsic
def _power_of_two_compiled(_, k):
    def codegen(context, builder, kind, arguments):
        whole = builder.sext(builder.fptosi(arguments[0], ir.VectorType(ir.IntType(32), LANES)), _LONGS)
        bits = builder.shl(builder.add(whole, _LONGS([1023] * LANES)), _LONGS([52] * LANES))
        return builder.bitcast(bits, _DOUBLES)

    return _ROW(k), codegen


def _plain_store(array: np.ndarray, i: int, row: Any) -> None:
    array.reshape(-1, LANES)[i] = row


# Row ``i`` of an array whose last axis are the lanes; what is stored may be a number.
load: Any = (lambda array, i: array.reshape(-1, LANES)[i].copy()) if IN_PYTHON else _load_compiled
store: Any = _plain_store if IN_PYTHON else _store_compiled
# A row of one number.
filled: Any = (lambda number: np.full(LANES, number)) if IN_PYTHON else _filled_compiled
# The larger one of two; the second where one of them is nan.
larger: Any = (lambda a, b: np.where(a > b, a, b)) if IN_PYTHON else _larger_compiled
# The second where the first is positive, the third elsewhere.
where: Any = (lambda mask, a, b: np.where(mask > 0, a, b)) if IN_PYTHON else _where_compiled
sqrt, floor, absolute = (
    (np.sqrt, np.floor, np.abs) if IN_PYTHON else (_by_llvm("sqrt"), _by_llvm("floor"), _by_llvm("fabs"))
)
# 2^k, for whole k from -1022 to 1023.
power_of_two: Any = (lambda k: np.ldexp(1.0, np.nan_to_num(k).astype(int))) if IN_PYTHON else _power_of_two_compiled
