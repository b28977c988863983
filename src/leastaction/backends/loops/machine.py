"""What native loops need beyond Python: pointers, calls to machine code by its address, vectors of W doubles."""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel, StructModel
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, register_model

from leastaction.backends.records import Record
from leastaction.kernel import native_lanes

W = native_lanes()  # numbers in a vector

# The loops work on pointers, which need no bounds checks and no reference counts: that saves time to run and to
# compile. a·b + c may be fused; nothing else is rearranged.
native = njit(error_model="numpy", fastmath={"contract"}, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@intrinsic
def at(typing_context, pointer, offset):
    """The pointer `offset` elements further on."""

    def codegen(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, offset), codegen


@native
def copy(X, Y, count):
    """Y ← X, so many numbers."""
    for j in range(count):
        Y[j] = X[j]


@intrinsic
def call_kernel(typing_context, address, inputs, outputs, work):
    """Call the kernel at an integer address: `void kernel(const double *in, double *out, double *work)`."""

    def codegen(context, builder, signature, arguments):
        function = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments[1:]])
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.intp, inputs, outputs, work), codegen


@intrinsic
def call_strip(typing_context, address, t, q, v, f, m, table, count, lacking, given, pitch, common):
    """Call the loop over rows at an integer address, whose table is at another one; see `kernel.strips`."""

    def codegen(context, builder, signature, arguments):
        address, *given = arguments
        given[5] = builder.inttoptr(given[5], ir.IntType(64).as_pointer())
        function = ir.FunctionType(ir.VoidType(), [argument.type for argument in given])
        builder.call(builder.inttoptr(address, function.as_pointer()), given)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(integer, types.float64, q, v, f, m, integer, integer, integer, given, integer, common), codegen


@intrinsic
def call_run(typing_context, address, I, D, place, states, Y, counts, stored, scratch, tangent, looks):
    """Call the loop `run.run` at an integer address, its arrays given by their addresses."""

    def codegen(context, builder, signature, arguments):
        function = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments[1:]])
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 11), codegen


def _pointer(kind):
    @intrinsic
    def pointer(typing_context, address):
        def codegen(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(types.int64), codegen

    return pointer


@intrinsic
def address_of(typing_context, pointer):
    """The integer address of an array."""

    def codegen(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], ir.IntType(64))

    return types.int64(pointer), codegen


# ---------------------------------------------------------------------------------------------- threads


@intrinsic
def read_shared(typing_context, pointer):
    """An integer that other threads write, and with it all that they wrote before it."""

    def codegen(context, builder, signature, arguments):
        return builder.load_atomic(arguments[0], "acquire", 8)

    return types.int64(pointer), codegen


@intrinsic
def write_shared(typing_context, pointer, value):
    """Write an integer that other threads read, after all that was written before."""

    def codegen(context, builder, signature, arguments):
        builder.store_atomic(arguments[1], arguments[0], "release", 8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64), codegen


@intrinsic
def add_shared(typing_context, pointer, value):
    """Add to an integer that other threads add to."""

    def codegen(context, builder, signature, arguments):
        return builder.atomic_rmw("add", arguments[0], arguments[1], "acq_rel")

    return types.int64(pointer, types.int64), codegen


@intrinsic
def exchange_shared(typing_context, pointer, old, new):
    """Replace an integer by a new one where it is the old one; whether it was."""

    def codegen(context, builder, signature, arguments):
        found = builder.cmpxchg(*arguments, "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(pointer, types.int64, types.int64), codegen


@intrinsic
def pause(typing_context):
    """A moment in which a thread waits for another."""

    def codegen(context, builder, signature, arguments):
        if platform.machine().lower() in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def sleep(typing_context, address, time):
    """Call what lets a thread sleep, at an integer address."""

    def codegen(context, builder, signature, arguments):
        function = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        time = builder.trunc(arguments[1], ir.IntType(32))
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [time])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


# ---------------------------------------------------------------------------------------------- records

_INTEGERS, _DOUBLES = types.CPointer(types.int64), types.CPointer(types.float64)
integers, doubles = _pointer(_INTEGERS), _pointer(_DOUBLES)  # the array at an integer address
_KINDS = {"number": types.int64, "tally": _INTEGERS, "integers": _INTEGERS, "reals": _DOUBLES}


class _RecordType(types.Type):
    """A record in memory: the integers, the doubles, and where it begins."""

    def __init__(self, record: Record):
        self.record = record
        super().__init__(name=f"Record{record.name}")


@register_model(_RecordType)
class _RecordModel(StructModel):
    def __init__(self, manager, frontend):
        members = [("I", _INTEGERS), ("D", _DOUBLES), ("a", types.int64)]
        super().__init__(manager, frontend, members)


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = _RecordType

    def generic_resolve(self, kind, name):
        for field in kind.record.fields:
            if field.name == name:
                return _KINDS[field.kind]
        return None


@lower_getattr_generic(_RecordType)
def _read_field(context, builder, kind, value, name):
    """A field: the number itself, or a pointer to its array."""
    here = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    field = kind.record.fields[kind.record.place(name)]
    place = builder.add(here.a, ir.Constant(ir.IntType(64), kind.record.place(name)))
    entry = builder.gep(here.I, [place])
    if field.kind == "tally":
        return entry
    number = builder.load(entry)
    if field.kind == "number":
        return number
    return builder.gep(here.D if field.kind == "reals" else here.I, [number])


def reader(record: Record):
    """The native function (integers, doubles, place) ↦ the record there, its fields by name."""
    kind = _RecordType(record)

    @intrinsic
    def read(typing_context, I, D, a):
        def codegen(context, builder, signature, arguments):
            here = cgutils.create_struct_proxy(kind)(context, builder)
            here.I, here.D, here.a = arguments
            return here._getvalue()

        return kind(I, D, types.int64), codegen

    return read


# ---------------------------------------------------------------------------------------------- vectors


class _VectorType(types.Type):
    """W doubles in a register."""

    def __init__(self):
        super().__init__(name=f"Vector{W}")


_vector = _VectorType()
_TYPE = ir.VectorType(ir.DoubleType(), W)


@register_model(_VectorType)
class _VectorModel(PrimitiveModel):
    def __init__(self, manager, frontend):
        super().__init__(manager, frontend, _TYPE)


@intrinsic
def load(typing_context, pointer):
    """The W numbers from here on."""

    def codegen(context, builder, signature, arguments):
        instruction = builder.load(builder.bitcast(arguments[0], _TYPE.as_pointer()), typ=_TYPE)
        instruction.align = 8
        return instruction

    return _vector(pointer), codegen


@intrinsic
def store(typing_context, pointer, x):
    """Write the W numbers from here on."""

    def codegen(context, builder, signature, arguments):
        builder.store(arguments[1], builder.bitcast(arguments[0], _TYPE.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(pointer, x), codegen


@intrinsic
def splat(typing_context, x):
    """The same number W times."""

    def codegen(context, builder, signature, arguments):
        none = ir.Constant(_TYPE, ir.Undefined)
        one = builder.insert_element(none, arguments[0], ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), W), [0] * W)
        return builder.shuffle_vector(one, none, mask)

    return _vector(types.float64), codegen


def _operation(count, make, result=_vector):
    """The native function of so many vectors that `make(builder, vectors)` writes."""

    def codegen(context, builder, signature, arguments):
        return make(builder, arguments)

    found = result(*[_vector] * count), codegen
    return intrinsic([lambda _, x: found, lambda _, x, y: found, lambda _, x, y, z: found][count - 1])


def _contracted(name):
    """An instruction that the compiler may fuse with others."""
    return lambda builder, vectors: getattr(builder, name)(*vectors, flags=("contract",))


def _called(name, count):
    def make(builder, arguments):
        function = builder.module.declare_intrinsic(f"llvm.{name}.v{W}f64", (), ir.FunctionType(_TYPE, [_TYPE] * count))
        return builder.call(function, arguments)

    return make


def _chosen(builder, x):
    """Of each number whether it is not zero."""
    return builder.fcmp_unordered("!=", x, ir.Constant(_TYPE, [0.0] * W))


def _any(builder, vectors):
    flags = builder.bitcast(_chosen(builder, vectors[0]), ir.IntType(W))
    return builder.icmp_unsigned("!=", flags, ir.Constant(ir.IntType(W), 0))


def _of_all(both):
    """Join the two halves of a vector by `both`, again and again, until every number is the result for all."""

    def make(builder, vectors):
        found, width, none = vectors[0], W, ir.Constant(_TYPE, ir.Undefined)
        while width > 1:
            width //= 2
            places = ir.Constant(ir.VectorType(ir.IntType(32), W), [i ^ width for i in range(W)])
            found = both(builder, [found, builder.shuffle_vector(found, none, places)])
        return found

    return make


_sum, _product, _larger = _contracted("fadd"), _contracted("fmul"), _called("maxnum", 2)
add, sub, mul, div = (_operation(2, _contracted(name)) for name in ("fadd", "fsub", "fmul", "fdiv"))
fma = _operation(3, lambda builder, v: _sum(builder, [_product(builder, v[:2]), v[2]]))  # x y + z
# x y + z, rounded once: the same bits everywhere, while the compiler may fuse other products and sums or not.
fused = _operation(3, _called("fma", 3))
size_of = _operation(1, _called("fabs", 1))  # |x|
larger = _operation(2, _larger)  # max(x, y)
where = _operation(3, lambda builder, v: builder.select(_chosen(builder, v[0]), *v[1:]))  # y where x is not zero, or z
any_of = _operation(1, _any, types.boolean)  # whether one of the W numbers is not zero
largest_of = _operation(1, _of_all(_larger))  # the largest of the W numbers, W times
sum_of = _operation(1, _of_all(lambda builder, pair: builder.fadd(*pair)))  # the sum of the W numbers, W times
first_of = _operation(
    1, lambda builder, v: builder.extract_element(v[0], ir.Constant(ir.IntType(32), 0)), types.float64
)
