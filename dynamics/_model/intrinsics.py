"""What numba's language lacks: views that are not counted, bits of numbers, and what becomes of what underflows.

Kernels that use this name it in ``kernel(uses=..)``.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

from dynamics.support.compiled import IN_PYTHON


@intrinsic
def _read_only_compiled(_, array):
    """The same array, not to be written to, so that a kernel compiles once whether its caller may write or not."""

    def codegen(context, builder, signature, arguments):
        return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

    return array.copy(readonly=True)(array), codegen


as_read_only: Any = (lambda array: array) if IN_PYTHON else _read_only_compiled


@intrinsic
def _borrowed_compiled(_, array):
    """The same array without a share in its memory, of whose parts no references are counted.

    Counting them took a tenth of a run of SGD with ten queries. Somebody else must hold the array meanwhile, as a
    caller does.
    """

    def codegen(context, builder, signature, arguments):
        view = context.make_array(signature.return_type)(context, builder, arguments[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), codegen


borrowed: Any = (lambda array: array) if IN_PYTHON else _borrowed_compiled


@intrinsic
def _matrix_compiled(_, buffer, rows, columns):
    """The start of a buffer as a matrix, `borrowed`: of a local buffer, for use where that is used again later."""
    if buffer.layout != "C":
        raise TypingError("a matrix must be the start of a contiguous buffer")
    kind = types.Array(buffer.dtype, 2, "C", readonly=not buffer.mutable)

    def codegen(context, builder, signature, arguments):
        # Imported with numba's implementations, which loading a compiled kernel goes without.
        from numba.np.arrayobj import populate_array

        source = context.make_array(signature.args[0])(context, builder, arguments[0])
        view = context.make_array(kind)(context, builder)
        shape = arguments[1:]
        strides = [builder.mul(shape[1], source.itemsize), source.itemsize]
        populate_array(view, source.data, shape, strides, source.itemsize, None)
        return view._getvalue()

    return kind(buffer, types.intp, types.intp), codegen


def _matrix_in_python(buffer, rows, columns):
    return buffer.ravel()[: rows * columns].reshape(rows, columns)


matrix: Any = _matrix_in_python if IN_PYTHON else _matrix_compiled


def _in_order(builder, bits):
    """Bits of a floating-point number as an integer that is larger where the number is, and back."""
    width = bits.type.width
    sign = builder.ashr(bits, ir.Constant(bits.type, width - 1))
    return builder.xor(bits, builder.and_(sign, ir.Constant(bits.type, 2 ** (width - 1) - 1)))


@intrinsic
def _rank_compiled(_, number):
    """An integer that is larger where the number is."""
    kind = types.int32 if number.bitwidth == 32 else types.int64

    def codegen(context, builder, signature, arguments):
        return _in_order(builder, builder.bitcast(arguments[0], context.get_value_type(kind)))

    return kind(number), codegen


@intrinsic
def _number_compiled(_, rank):
    """The number of a rank."""
    kind = types.float32 if rank.bitwidth == 32 else types.float64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(_in_order(builder, arguments[0]), context.get_value_type(kind))

    return kind(rank), codegen


rank_of: Any = (lambda number: number) if IN_PYTHON else _rank_compiled
number_of: Any = (lambda rank: rank) if IN_PYTHON else _number_compiled


@intrinsic
def _of_bits_compiled(_, bits):
    """The float whose bits are those of an int32 or int64; a sum of int32 is an int64 for numba."""
    kind = types.float32 if bits.bitwidth == 32 else types.float64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(kind))

    return kind(bits), codegen


of_bits: Any = (lambda bits: bits.view(f"f{bits.itemsize}")) if IN_PYTHON else _of_bits_compiled


@intrinsic
def _underflow_compiled(_, to_zero):
    """Choose whether numbers below the normal ones are zero in this thread; returns what was chosen before.

    Where softmax saturates, all of a gradient may lie there in single precision, and processors take a hundred cycles
    for each operation on such a number. Those that are not x86 go on as they are.
    """

    def codegen(context, builder, signature, arguments):
        if not X86:
            return arguments[0]
        word, mask = ir.IntType(32), ir.Constant(ir.IntType(32), 0x8040)  # results, and operands
        place = cgutils.alloca_once(builder, word)
        pointer = builder.bitcast(place, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type])
        store, load = (
            cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            for name in ("stmxcsr", "ldmxcsr")
        )
        builder.call(store, [pointer])
        before = builder.load(place)
        others = builder.and_(before, builder.not_(mask))
        builder.store(builder.select(arguments[0], builder.or_(before, mask), others), place)
        builder.call(load, [pointer])
        return builder.icmp_unsigned("!=", builder.and_(before, mask), ir.Constant(word, 0))

    return types.boolean(types.boolean), codegen


X86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
underflow: Any = (lambda to_zero: to_zero) if IN_PYTHON else _underflow_compiled
