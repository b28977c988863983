"""What native loops need beyond Python: pointers, and calls to machine code by its address."""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# The loops work on pointers, which cost neither bounds nor reference counts, in time to run or to compile.
# a·b + c may be fused; nothing else is rearranged.
native = njit(error_model="numpy", fastmath={"contract"})


@intrinsic
def at(typing_context, pointer, offset):
    """The pointer `offset` elements further on."""

    def codegen(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, offset), codegen


def _call(context, builder, signature, arguments):
    """Call `void f(pointer, …)` at an integer address."""
    function = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments[1:]])
    builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])
    return context.get_dummy_value()


@intrinsic
def call_kernel(typing_context, address, inputs, outputs, work):
    """Call a kernel: `void kernel(const double *in, double *out, double *work)`."""
    return types.void(types.intp, inputs, outputs, work), _call


@intrinsic
def call_run(typing_context, address, I, R, table, x, carry, stored, memory, pivots):
    """Call the loop galerkin.run."""
    return types.void(types.intp, I, R, table, x, carry, stored, memory, pivots), _call


@intrinsic
def call_dgetrf(typing_context, address, m, n, a, lda, pivots, info):
    """LAPACK: factor a (column-major) in place."""
    return types.void(types.intp, m, n, a, lda, pivots, info), _call


@intrinsic
def call_dgetrs(typing_context, address, trans, n, nrhs, a, lda, pivots, b, ldb, info):
    """LAPACK: solve with the factors of dgetrf."""
    return types.void(types.intp, trans, n, nrhs, a, lda, pivots, b, ldb, info), _call
