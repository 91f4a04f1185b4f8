"""`dynamics.backend.lanes` as LLVM vectors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from dynamics.backend.modes import LANES

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
    """A row with the number in every lane."""
    if value.type == _DOUBLES:
        return value
    first = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _arithmetic(function: Callable, instruction: str) -> None:
    """Define ``function`` in numba for two rows, or for a row and a number."""
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


def _memory(stride: int) -> tuple[Any, Any]:
    """Functions that load and store a row that starts at ``stride`` times its index in a contiguous array."""

    def address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
        data = context.make_array(kind)(context, builder, array).data
        start = builder.mul(index, ir.Constant(index.type, stride))
        return builder.bitcast(builder.gep(data, [start]), _DOUBLES.as_pointer())

    @intrinsic
    def load(_, array, i):
        def codegen(context, builder, kind, arguments):
            return builder.load(address(context, builder, kind.args[0], *arguments), align=8)

        return _ROW(array, types.intp), codegen

    @intrinsic
    def store(_, array, i, row):
        def codegen(context, builder, kind, arguments):
            value = _spread(builder, arguments[2])
            builder.store(value, address(context, builder, kind.args[0], *arguments[:2]), align=8)
            return context.get_dummy_value()

        return types.void(array, types.intp, row), codegen

    return load, store


(load, store), (load_at, store_at) = _memory(LANES), _memory(1)


@intrinsic
def filled(_, number):
    def codegen(context, builder, kind, arguments):
        return _spread(builder, arguments[0])

    return _ROW(types.float64), codegen


@intrinsic
def larger(_, a, b):
    def codegen(context, builder, kind, arguments):
        left, right = (_spread(builder, value) for value in arguments)
        return builder.select(builder.fcmp_ordered(">", left, right), left, right)

    return _ROW(a, b), codegen


@intrinsic
def where(_, mask, a, b):
    def codegen(context, builder, kind, arguments):
        condition, yes, no = (_spread(builder, value) for value in arguments)
        return builder.select(builder.fcmp_ordered(">", condition, ir.Constant(_DOUBLES, [0.0] * LANES)), yes, no)

    return _ROW(mask, a, b), codegen


def _by_llvm(name: str) -> Any:
    """A function of LLVM that acts on a row."""

    @intrinsic
    def compiled(_, a):
        def codegen(context, builder, kind, arguments):
            function = ir.FunctionType(_DOUBLES, [_DOUBLES])
            full = f"llvm.{name}.v{LANES}f64"
            return builder.call(builder.module.declare_intrinsic(full, fnty=function), arguments)

        return _ROW(a), codegen

    return compiled


@intrinsic
def power_of_two(_, k):
    def codegen(context, builder, kind, arguments):
        whole = builder.sext(builder.fptosi(arguments[0], ir.VectorType(ir.IntType(32), LANES)), _LONGS)
        bits = builder.shl(builder.add(whole, _LONGS([1023] * LANES)), _LONGS([52] * LANES))
        return builder.bitcast(bits, _DOUBLES)

    return _ROW(k), codegen


def _folded(join: Callable) -> Any:
    """A function from a row to a number: it joins halves of the row until one number is left."""

    @intrinsic
    def fold(_, a):
        def codegen(context, builder, kind, arguments):
            row, half = arguments[0], LANES // 2
            while half:
                numbers = ir.VectorType(ir.IntType(32), half)
                low, high = (
                    builder.shuffle_vector(row, row, ir.Constant(numbers, list(range(at, at + half))))
                    for at in (0, half)
                )
                row, half = join(builder, low, high), half // 2
            return builder.extract_element(row, ir.Constant(ir.IntType(32), 0))

        return types.float64(a), codegen

    return fold


total = _folded(lambda builder, a, b: builder.fadd(a, b))
highest = _folded(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
sqrt, floor, absolute = _by_llvm("sqrt"), _by_llvm("floor"), _by_llvm("fabs")
