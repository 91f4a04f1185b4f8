"""`dynamics.backend.intrinsics` as instructions."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

from dynamics.backend.modes import X86


@intrinsic
def as_read_only(_, array):
    def codegen(context, builder, signature, arguments):
        return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

    return array.copy(readonly=True)(array), codegen


@intrinsic
def borrowed(_, array):
    def codegen(context, builder, signature, arguments):
        view = context.make_array(signature.return_type)(context, builder, arguments[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), codegen


@intrinsic
def matrix(_, buffer, rows, columns):
    if buffer.layout != "C":
        raise TypingError("a matrix must be the start of a contiguous buffer")
    kind = types.Array(buffer.dtype, 2, "C", readonly=not buffer.mutable)

    def codegen(context, builder, signature, arguments):
        # Imported here, since loading a compiled kernel does not need numba's implementations.
        from numba.np.arrayobj import populate_array

        source = context.make_array(signature.args[0])(context, builder, arguments[0])
        view = context.make_array(kind)(context, builder)
        shape = arguments[1:]
        strides = [builder.mul(shape[1], source.itemsize), source.itemsize]
        populate_array(view, source.data, shape, strides, source.itemsize, None)
        return view._getvalue()

    return kind(buffer, types.intp, types.intp), codegen


def _in_order(builder, bits):
    """Map the bits of a floating-point number to an integer with the same order, and back."""
    width = bits.type.width
    sign = builder.ashr(bits, ir.Constant(bits.type, width - 1))
    return builder.xor(bits, builder.and_(sign, ir.Constant(bits.type, 2 ** (width - 1) - 1)))


@intrinsic
def rank_of(_, number):
    kind = types.int32 if number.bitwidth == 32 else types.int64

    def codegen(context, builder, signature, arguments):
        return _in_order(builder, builder.bitcast(arguments[0], context.get_value_type(kind)))

    return kind(number), codegen


@intrinsic
def number_of(_, rank):
    kind = types.float32 if rank.bitwidth == 32 else types.float64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(_in_order(builder, arguments[0]), context.get_value_type(kind))

    return kind(rank), codegen


def _of_bits(integer, kind):
    """The float of type ``kind`` with the bits of an integer."""

    @intrinsic
    def of_bits(_, bits):
        def codegen(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(kind))

        return kind(integer), codegen

    return of_bits


float32_of_bits, float64_of_bits = _of_bits(types.int32, types.float32), _of_bits(types.int64, types.float64)


@intrinsic
def underflow(_, to_zero):
    def codegen(context, builder, signature, arguments):
        if not X86:
            return arguments[0]
        word, mask = ir.IntType(32), ir.Constant(ir.IntType(32), 0x8040)  # results, and operands
        slot = cgutils.alloca_once(builder, word)
        pointer = builder.bitcast(slot, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type])
        store, load = (
            cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            for name in ("stmxcsr", "ldmxcsr")
        )
        builder.call(store, [pointer])
        before = builder.load(slot)
        others = builder.and_(before, builder.not_(mask))
        builder.store(builder.select(arguments[0], builder.or_(before, mask), others), slot)
        builder.call(load, [pointer])
        return builder.icmp_unsigned("!=", builder.and_(before, mask), ir.Constant(word, 0))

    return types.boolean(types.boolean), codegen
