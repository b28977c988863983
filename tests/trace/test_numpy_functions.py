"""Every NumPy function the tracer knows, against NumPy: stacked, broadcast, with odd axes, of all kinds of numbers.

A case is a function of one or two arrays, random shapes and random options. NumPy computes it on floats; the tracer
writes it as a Program, which is evaluated at the same numbers. Both must give the same shape, truth values where the
other has truth values, and the same values, at NaN, ±∞ and ties, too. A clear refusal (TraceError) is no wrong
answer; one where NumPy answers is allowed only for the functions in `REFUSED`, or for logical operands.
"""

import functools
import warnings

import numpy as np
import pytest
import scipy.linalg

import leastaction as la
from leastaction.errors import TraceError
from leastaction.flint.evaluate import function as flint_function
from leastaction.numbers.conversion import balls, mpf
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits
from leastaction.trace import derivatives, trace
from leastaction.trace.function import ANY, Role
from leastaction.trace.numpy_functions import ADJUGATE_LIMIT, BITWISE, ELEMENTWISE, OWN_CODE
from leastaction.trace.numpy_functions import FUNCTIONS as OWN_RULES
from leastaction.trace.scalar import Scalar, is_logical
from native import evaluate
from seeds import generator

CASES = 8  # of each function; `slow` tries so many times more
MORE = 15
RESULT = Role("g", "the function", ANY, ("q",))
F32 = np.array([0.1, 0.2, 0.3], dtype=np.float32)
SPECIAL = np.array([0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, np.nan, np.inf, -np.inf, 0.3, -1.7])


def shape_of(rng, ndim=None, largest=3):
    ndim = int(rng.integers(0, 4)) if ndim is None else ndim
    return tuple(int(k) for k in rng.integers(1, largest + 1, ndim))


def broadcastable(rng, shape):
    """A shape that broadcasts with the given one."""
    cut = shape[int(rng.integers(0, len(shape) + 1)) :]
    return tuple(1 if rng.random() < 0.3 else k for k in cut)


def axis_of(rng, ndim, several=True):
    """None, one axis counted from either end, or several of them."""
    choice = rng.random()
    if ndim == 0 or choice < 0.25:
        return None
    if choice < 0.7 or not several:
        return int(rng.integers(-ndim, ndim))
    count = int(rng.integers(1, ndim + 1))
    return tuple(int(k) - (ndim if rng.random() < 0.5 else 0) for k in rng.permutation(ndim)[:count])


def one_axis(rng, ndim):
    return int(rng.integers(-ndim, ndim))


# How each function is called: given a generator, (shapes of its arrays, function of these arrays).


def elementwise(name):
    ufunc = getattr(np, name, None)
    if ufunc is None:
        import scipy.special

        ufunc = getattr(scipy.special, name)

    def make(rng):
        shape = shape_of(rng)
        shapes = [shape, *(broadcastable(rng, shape) for _ in range(ufunc.nin - 1))]
        if name == "invert" or name.startswith("bitwise"):
            return shapes, lambda *arrays: ufunc(*(x > 0.3 for x in arrays))
        return shapes, ufunc

    return make


def reduction(function, several=True, **options):
    def make(rng):
        shape = shape_of(rng)
        keywords = {"axis": axis_of(rng, len(shape), several), **options}
        if rng.random() < 0.4 and "keepdims" not in options:
            keywords["keepdims"] = True
        return [shape], lambda x: function(x, **keywords)

    return make


def masked(function):
    def make(rng):
        shape = shape_of(rng)
        mask = rng.random(broadcastable(rng, shape)) < 0.7
        axis = axis_of(rng, len(shape))
        return [shape], lambda x: function(x, axis=axis, where=mask)

    return make


def along(function, ndim=None, **options):
    def make(rng):
        shape = shape_of(rng, ndim or int(rng.integers(1, 4)))
        axis = one_axis(rng, len(shape))
        return [shape], lambda x: function(x, axis=axis, **options)

    return make


def matrices(function, extra=lambda rng, n: []):
    def make(rng):
        n = int(rng.integers(1, 4))
        stack = shape_of(rng, int(rng.integers(0, 3)), 2)
        return [(*stack, n, n), *extra(rng, n)], lambda a, *rest: function(4 * np.eye(n) + a, *rest)

    return make


def solving(rng):
    """solve(a, b) with b a vector, a matrix, or stacks that broadcast with that of a."""
    n, columns = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    stack = shape_of(rng, int(rng.integers(0, 3)), 2)
    right = (n,) if rng.random() < 0.3 else (*broadcastable(rng, stack), n, columns)
    if rng.random() < 0.3:
        stack = broadcastable(rng, stack)
    return [(*stack, n, n), right], lambda a, b: np.linalg.solve(4 * np.eye(n) + a, b)


def norms(rng):
    shape = shape_of(rng, int(rng.integers(1, 4)))
    axis = axis_of(rng, len(shape))
    order = [None, 1, 2, 3, -1, 0.5, np.inf, -np.inf, "fro", 0][rng.integers(10)]
    keep = bool(rng.random() < 0.4)
    return [shape], lambda x: np.linalg.norm(x, order, axis, keep)


def products(function, *, inner=True):
    def make(rng):
        k = int(rng.integers(1, 4))
        stack = shape_of(rng, int(rng.integers(0, 3)), 2)
        left = [(k,), (*stack, int(rng.integers(1, 4)), k)][rng.integers(2)]
        right = [(k,), (*broadcastable(rng, stack), k, int(rng.integers(1, 4)))][rng.integers(2)]
        return [left, right], function

    return make


def einsums(rng):
    sizes = dict(zip("ijklm", rng.integers(1, 4, 5), strict=True))
    left = "".join(rng.choice(list("ijkl"), int(rng.integers(1, 4))))
    right = "".join(rng.choice(list("jklm"), int(rng.integers(1, 4))))
    found = sorted(set(left + right))
    out = "".join(rng.permutation(found)[: int(rng.integers(0, len(found) + 1))])
    shapes = [tuple(int(sizes[letter]) for letter in word) for word in (left, right)]
    return shapes, lambda a, b: np.einsum(f"{left},{right}->{out}", a, b)


def tensordots(rng):
    shape = shape_of(rng, 3)
    if rng.random() < 0.5:
        return [shape, (*shape[1:], 2)], lambda a, b: np.tensordot(a, b, axes=2)
    return [shape, (shape[2], 2, shape[0])], lambda a, b: np.tensordot(a, b, axes=([0, -1], [-1, 0]))


def crossing(rng):
    stack = shape_of(rng, int(rng.integers(0, 3)), 2)
    axis = int(rng.integers(-len(stack) - 1, len(stack) + 1)) if rng.random() < 0.5 else -1
    place = axis % (len(stack) + 1)
    shape = (*stack[:place], 3, *stack[place:])
    return [shape, shape], lambda a, b: np.cross(a, b, axis=axis)


def choosing(rng):
    shape = shape_of(rng)
    return [shape, broadcastable(rng, shape), broadcastable(rng, shape)], lambda c, a, b: np.where(c > 0.1, a, b)


def selecting(rng):
    shape = shape_of(rng)
    default = float(rng.normal())
    shapes = [shape, broadcastable(rng, shape), broadcastable(rng, shape)]
    return shapes, lambda c, a, b: np.select([c > 0.5, c < -0.2], [a, b], default)


def clipping(rng):
    shape = shape_of(rng)
    low, high = sorted(rng.normal(size=2))
    ways = [
        lambda x, y: np.clip(x, low, high),
        lambda x, y: np.clip(x, None, y),
        lambda x, y: np.clip(x, y, None),
        lambda x, y: np.clip(x, min=y, max=y + 0.3),
        lambda x, y: np.clip(x, high, low),
    ]
    return [shape, broadcastable(rng, shape)], ways[rng.integers(len(ways))]


def like(function):
    def make(rng):
        shape, other = shape_of(rng), shape_of(rng)
        ways = [lambda x: function(x) + x, lambda x: function(x, dtype=float), lambda x: function(x, shape=other)]
        return [shape], ways[rng.integers(len(ways))]

    return make


def filled(rng):
    shape = shape_of(rng)
    return [shape, broadcastable(rng, shape)], lambda x, y: np.full_like(x, y)


def ufunc_method(name, method):
    ufunc = getattr(np, name)

    def make(rng):
        shape = shape_of(rng, int(rng.integers(1, 4)))
        axis = one_axis(rng, len(shape))
        if method == "outer":
            return [shape_of(rng, None, 2), shape_of(rng, None, 2)], ufunc.outer
        if method == "reduceat":
            places = [0, shape[axis] - 1]
            return [shape], lambda x: ufunc.reduceat(x, places, axis=axis)
        if name in ONE_BY_ONE:
            return [shape], lambda x: one_by_one(ufunc, x, axis)
        return [shape], lambda x: getattr(ufunc, method)(x, axis=axis)

    return make


# With AVX-512 NumPy 2.4 itself forgets all but the first and the last entry along the last axis, and no others.
ONE_BY_ONE = ("power", "arctan2")


def one_by_one(ufunc, x, axis):
    """ufunc.reduce(x, axis), of floats as NumPy defines it: op(op(x₀, x₁), x₂) …"""
    return functools.reduce(ufunc, np.moveaxis(x, axis, 0)) if x.dtype == float else ufunc.reduce(x, axis=axis)


def moving(function):
    """Functions of one array alone that only move or add elements."""

    def make(rng):
        return [shape_of(rng, int(rng.integers(2, 4)))], function

    return make


def with_two(function, ndim=1):
    def make(rng):
        return [shape_of(rng, ndim), shape_of(rng, ndim)], function

    return make


def filled_diagonal(a, x):
    np.fill_diagonal(a, x)
    return a


def copied(a, x):
    np.copyto(a, 2 * x)
    return a


FUNCTIONS = {
    **{name: elementwise(name) for name in {**ELEMENTWISE, **BITWISE}},
    **{
        f"{name}.reduce": ufunc_method(name, "reduce")
        for name in (
            "add",
            "multiply",
            "subtract",
            "divide",
            "maximum",
            "minimum",
            "hypot",
            "logaddexp",
            "logical_and",
            "logical_or",
            "logical_xor",
            "power",
            "arctan2",
            "fmax",
            "fmin",
        )
    },
    **{
        f"{name}.accumulate": ufunc_method(name, "accumulate")
        for name in ("add", "multiply", "subtract", "maximum", "minimum", "hypot", "logical_and", "logical_or")
    },
    **{f"{name}.outer": ufunc_method(name, "outer") for name in ("add", "multiply", "arctan2", "maximum")},
    **{f"{name}.reduceat": ufunc_method(name, "reduceat") for name in ("add", "multiply", "maximum", "logical_or")},
    **{
        f.__name__: reduction(f)
        for f in (np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.ptp, np.any, np.all, np.nansum)
    },
    "var ddof": reduction(np.var, ddof=1),
    "std ddof": reduction(np.std, ddof=1),
    "sum initial": reduction(np.sum, initial=0.5),
    "prod initial": reduction(np.prod, initial=0.5),
    "max initial": reduction(np.max, initial=0.1),
    "min initial": reduction(np.min, initial=0.1),
    "sum where": masked(np.sum),
    "mean where": masked(np.mean),
    "any where": masked(np.any),
    "all where": masked(np.all),
    "var where": masked(np.var),
    "prod where": masked(np.prod),
    "average": along(np.average),
    "cumsum": along(np.cumsum),
    "cumprod": along(np.cumprod),
    "flip": along(np.flip),
    "roll": along(np.roll, shift=2),
    "repeat": along(np.repeat, repeats=2),
    "take": along(np.take, indices=[0, -1, 0]),
    "delete": along(np.delete, obj=0),
    "insert": along(np.insert, obj=0, values=2.5),
    "expand_dims": along(np.expand_dims),
    "gradient": along(np.gradient),
    "diff": along(np.diff),
    "diff twice": along(np.diff, n=2),
    "diff prepend": along(np.diff, prepend=0.5),
    "trapezoid": along(np.trapezoid),
    "append": along(lambda x, axis: np.append(x, 2 * x, axis=axis)),
    "moveaxis": along(lambda x, axis: np.moveaxis(x, axis, 0)),
    "swapaxes": along(lambda x, axis: np.swapaxes(x, axis, 0)),
    "stack": along(lambda x, axis: np.stack([x, x**2], axis=axis)),
    "concatenate": along(lambda x, axis: np.concatenate([x, np.sin(x)], axis=axis)),
    "array_split": along(lambda x, axis: np.array_split(x, 2, axis=axis)[0]),
    "apply_along_axis": along(lambda x, axis: np.apply_along_axis(np.sum, axis, x)),
    "det": matrices(np.linalg.det),
    "inv": matrices(np.linalg.inv),
    "slogdet": matrices(lambda a: np.linalg.slogdet(a)[1]),
    "slogdet sign": matrices(lambda a: np.linalg.slogdet(a)[0]),
    "solve": solving,
    "norm": norms,
    "matrix_power": matrices(lambda a: np.linalg.matrix_power(a, 3)),
    "matrix_power −2": matrices(lambda a: np.linalg.matrix_power(a, -2)),
    "trace": moving(np.trace),
    "trace offset": moving(lambda x: np.trace(x, offset=1, axis1=-1, axis2=0)),
    "diagonal": moving(np.diagonal),
    "tril": moving(np.tril),
    "triu": moving(lambda x: np.triu(x, 1)),
    "rot90": moving(np.rot90),
    "transpose": moving(np.transpose),
    "ravel": moving(np.ravel),
    "squeeze": moving(np.squeeze),
    "tile": moving(lambda x: np.tile(x, (2, 1))),
    "pad": moving(lambda x: np.pad(x, 1)),
    "pad edge": moving(lambda x: np.pad(x, 1, mode="edge")),
    "reshape": moving(lambda x: np.reshape(x, -1)),
    "broadcast_to": moving(lambda x: np.broadcast_to(x, (2, *x.shape))),
    "atleast_3d": moving(np.atleast_3d),
    "vstack": moving(lambda x: np.vstack([x, x])),
    "hstack": moving(lambda x: np.hstack([x, 2 * x])),
    "dstack": moving(lambda x: np.dstack([x, x])),
    "block": moving(lambda x: np.block([[x, x], [x, x]])),
    "fliplr": moving(np.fliplr),
    "flipud": moving(np.flipud),
    "copy": moving(np.copy),
    "ediff1d": moving(np.ediff1d),
    "nan_to_num": moving(np.nan_to_num),
    "real": moving(np.real),
    "imag": moving(np.imag),
    "count_nonzero": moving(np.count_nonzero),
    "isnan": moving(np.isnan),
    "isfinite": moving(np.isfinite),
    "round": moving(np.round),
    "sort": moving(np.sort),
    "argmax": moving(np.argmax),
    "median": moving(np.median),
    "unwrap": moving(np.unwrap),
    "fix": moving(np.fix),
    "angle": moving(np.angle),
    "i0": moving(np.i0),
    "modf": moving(lambda x: np.modf(x)[0]),
    "divmod": moving(lambda x: np.divmod(x, 0.7)[1]),
    "matmul": products(np.matmul),
    "dot": products(np.dot),
    "@": products(lambda a, b: a @ b),
    "einsum": einsums,
    "tensordot": tensordots,
    "inner": with_two(lambda a, b: np.inner(a, np.resize(b, a.shape))),
    "outer": with_two(np.outer),
    "kron": with_two(np.kron, 2),
    "vdot": with_two(lambda a, b: np.vdot(a, np.resize(b, a.shape))),
    "convolve": with_two(np.convolve),
    "correlate": with_two(np.correlate),
    "polyval": with_two(np.polyval),
    "meshgrid": with_two(lambda a, b: np.stack(np.meshgrid(a, b))),
    "resize": with_two(lambda a, b: np.resize(a, (2, 5))),
    "vecdot": with_two(lambda a, b: np.vecdot(a, np.resize(b, a.shape))),
    "cov": with_two(lambda a, b: np.cov(a, np.resize(b, a.shape))),
    "corrcoef": with_two(lambda a, b: np.corrcoef(np.resize(a, 4), np.resize(b, 4))),
    "interp": with_two(lambda a, b: np.interp(a, [0.0, 1.0], [2.0, 5.0])),
    "cross": crossing,
    "where": choosing,
    "select": selecting,
    "clip": clipping,
    "full_like": filled,
    "zeros_like": like(np.zeros_like),
    "ones_like": like(np.ones_like),
    "empty_like": like(lambda x, **options: np.ones(np.shape(np.empty_like(x, **options)))),
    "amax": reduction(np.amax),
    "amin": reduction(np.amin),
    "apply_over_axes": moving(lambda x: np.apply_over_axes(np.sum, x, [0, -1])),
    "astype": moving(lambda x: np.astype(x, float)),
    "atleast_1d": with_two(lambda a, b: np.atleast_1d(a[0], b)[0]),
    "atleast_2d": with_two(lambda a, b: np.atleast_2d(a)),
    "broadcast_arrays": with_two(lambda a, b: np.broadcast_arrays(a, b[:1])[1]),
    "column_stack": with_two(lambda a, b: np.column_stack([a, 2 * a])),
    "compress": with_two(lambda a, b: np.compress([True], a)),
    "cumulative_sum": along(np.cumulative_sum, 1),
    "cumulative_prod": along(np.cumulative_prod, 1, include_initial=True),
    "diag": with_two(lambda a, b: np.diag(a, 1)),
    "diagflat": with_two(lambda a, b: np.diagflat(a)),
    "diag_indices_from": matrices(lambda a: np.sum(a[np.diag_indices_from(a)]) if a.ndim == 2 else a),
    "tril_indices_from": matrices(lambda a: a[np.tril_indices_from(a)] if a.ndim == 2 else a),
    "triu_indices_from": matrices(lambda a: a[np.triu_indices_from(a)] if a.ndim == 2 else a),
    "ix_": matrices(lambda a: a[np.ix_([0], [0])] if a.ndim == 2 else a),
    "hsplit": moving(lambda x: np.hsplit(x, 1)[0]),
    "vsplit": moving(lambda x: np.vsplit(x, 1)[0]),
    "dsplit": moving(lambda x: np.dsplit(np.atleast_3d(x), 1)[0]),
    "split": along(lambda x, axis: np.split(x, [1], axis=axis)[0]),
    "unstack": along(lambda x, axis: np.unstack(x, axis=axis)[0]),
    "iscomplexobj": moving(lambda x: x + np.iscomplexobj(x)),
    "isrealobj": moving(lambda x: x * np.isrealobj(x)),
    "real_if_close": moving(np.real_if_close),
    "result_type": moving(lambda x: x * (np.result_type(x, 1.0).kind == "f")),
    "ndim": moving(lambda x: x * np.ndim(x)),
    "size": moving(lambda x: x * np.size(x)),
    "shape": moving(lambda x: x * np.shape(x)[0]),
    "rollaxis": moving(lambda x: np.rollaxis(x, 1)),
    "matrix_transpose": moving(np.matrix_transpose),
    "take_along_axis": moving(lambda x: np.take_along_axis(x, np.zeros([1] * x.ndim, dtype=int), axis=-1)),
    "linspace": with_two(lambda a, b: np.linspace(a, 2.0, 3)),
    "polymul": with_two(np.polymul),
    "polyder": with_two(lambda a, b: np.polyder(a)),
    "polyint": with_two(lambda a, b: np.polyint(a)),
    "vander": with_two(lambda a, b: np.vander(a, 3)),
    "extract": moving(lambda x: np.extract(np.arange(x.size).reshape(x.shape) % 2 == 0, x)),
    "fftshift": along(lambda x, axis: np.fft.fftshift(x, axes=axis)),
    "ifftshift": along(lambda x, axis: np.fft.ifftshift(x, axes=axis)),
    "sliding_window_view": along(lambda x, axis: np.lib.stride_tricks.sliding_window_view(x, 1, axis=axis)),
    "fill_diagonal": matrices(lambda a: filled_diagonal(a.copy(), a[0, 0]) if a.ndim == 2 else a),
    "copyto": moving(lambda x: copied(x.copy(), x)),
    "linalg.cross": lambda rng: ([(2, 3), (2, 3)], np.linalg.cross),
    "linalg.diagonal": moving(np.linalg.diagonal),
    "linalg.trace": moving(np.linalg.trace),
    "linalg.matmul": products(np.linalg.matmul),
    "linalg.outer": with_two(np.linalg.outer),
    "linalg.tensordot": with_two(lambda a, b: np.linalg.tensordot(a, np.resize(b, a.shape), axes=1)),
    "linalg.vecdot": with_two(lambda a, b: np.linalg.vecdot(a, np.resize(b, a.shape))),
    "linalg.matrix_transpose": moving(np.linalg.matrix_transpose),
    "linalg.multi_dot": matrices(lambda a: np.linalg.multi_dot([a, a, a]) if a.ndim == 2 else a),
    "linalg.vector_norm": along(np.linalg.vector_norm),
    "linalg.matrix_norm": moving(np.linalg.matrix_norm),
}

# What needs the values, or has no derivative of its own: refused by name.
REFUSED = {
    "count_nonzero",
    "isnan",
    "isfinite",
    "round",
    "sort",
    "argmax",
    "median",
    "unwrap",
    "i0",
    "apply_over_axes",
    "linspace",
    "polymul",
    "modf",
    "interp",
    "angle",
    "nan_to_num",
    "nansum",
    "divmod",
    "fix",
    "cov",
    "corrcoef",
}


# Where NumPy has NaN from x − x, 0 · x or 0/x, the tracer has 0 (docs/promises.md): these compute such differences.
ZERO_TIMES_ALL = {"ptp", "var", "var ddof", "var where", "std", "std ddof", "polyval", "cov", "gradient", "nansum"}
# (−∞)**0.5 is NaN in NumPy where the exponent is one number, and ∞ where it is an array.
NUMPY_DIFFERS = {"power", "power.reduce", "float_power"}
# OpenBLAS leaves out some products with a factor 0, which are NaN if the other factor is NaN or ∞.
BY_BLAS = {
    "matmul", "dot", "@", "tensordot", "inner", "vdot", "vecdot", "linalg.matmul", "linalg.tensordot", "linalg.vecdot",
    "linalg.multi_dot", "convolve", "correlate",
}  # fmt: skip
# By another algorithm than NumPy's, which gives other numbers where entries are not finite.
FINITE_ONLY = {
    "det", "inv", "slogdet", "slogdet sign", "solve", "matrix_power", "matrix_power −2", "einsum", "logaddexp",
    "logaddexp.reduce",
}  # fmt: skip


def floats(rng, shape):
    return rng.uniform(0.05, 0.95, shape) * rng.choice([-1, 1])


def special(rng, shape):
    return rng.choice(SPECIAL, size=shape) if rng.random() < 0.8 else rng.normal(size=shape)


def with_logical(function, rng, count):
    """The same function with some of its operands, or all, replaced by comparisons."""
    which = [rng.random() < 0.75 for _ in range(count)]
    which[int(rng.integers(count))] = True
    return lambda *arrays: function(*(x > 0.1 if yes else x for x, yes in zip(arrays, which, strict=True)))


def attempt(function, values, invalid="ignore"):
    """One case: what NumPy gives and what the tracer gives, each a result or an exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore", invalid=invalid):
        warnings.simplefilter("ignore")
        try:
            expected = np.asarray(function(*(np.asarray(x)[()] for x in values)))
        except Exception as error:
            expected = error
    shapes = [np.shape(x) for x in values]
    point = np.concatenate([*map(np.ravel, values), [1.0]])
    seen = {}

    def traced(q):
        parts, start = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            part = q[start : start + size].reshape(shape)
            parts.append(part[()] if shape == () else part)
            start += size
        result = np.asarray(function(*parts))
        entry = result[()] if result.ndim == 0 else None
        seen["shape"] = result.shape
        seen["logical"] = is_logical(entry if isinstance(entry, Scalar) else result)
        return [*result.ravel(), 0.0]

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            program = trace(traced, len(point), {}, False, RESULT)
    except TraceError as error:
        return expected, error, None
    found = np.array(program([0.0], point, [])["g"][:-1]).reshape(seen["shape"])
    return expected, (seen["logical"], found), (program, point)


def agree(found, expected):
    """Where numbers are equal up to rounding, or both NaN."""
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= 1e-12 * np.maximum(np.abs(expected), 1.0)
    return near | (found == expected) | (np.isnan(found) & np.isnan(expected))


def check(name, rng, cases, values=floats, logical=False):
    answered = 0
    for _ in range(cases):
        shapes, function = FUNCTIONS[name](rng)
        given = [values(rng, shape) for shape in shapes]
        if logical:
            function = with_logical(function, rng, len(shapes))
        expected, found, _ = attempt(function, given)
        about = f"{name} of arrays of shapes {shapes}: {given}"
        if isinstance(found, TraceError):
            alone = given[0].ndim == 0 and name[:3] in ("var", "std")  # the variance of one number
            said = any(words in str(found) for words in ("norm with ord", "not supported for stacks"))
            fair = isinstance(expected, Exception) or np.isnan(np.asarray(expected, dtype=float)).any() or logical
            assert name in REFUSED or alone or said or fair, f"{about}: {found}"
            continue
        assert not isinstance(expected, Exception), f"{about}: NumPy refuses it: {expected}"
        truths, numbers = found
        assert numbers.shape == expected.shape, f"{about}: shape {numbers.shape}, NumPy has {expected.shape}"
        assert truths == (expected.dtype == bool) or not expected.size, f"{about}: {truths}, NumPy has {expected.dtype}"
        expected = expected.astype(float)
        fine = agree(numbers, expected)
        if values is special:
            fine |= (name in ZERO_TIMES_ALL | NUMPY_DIFFERS) & np.isnan(expected)
            fine |= (name in BY_BLAS) & np.isnan(numbers)
        assert fine.all(), f"{about}: {numbers}, NumPy gives {expected}"
        answered += 1
    return answered


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tracing_agrees_with_numpy(name):
    """Of numbers, of truth values, and at NaN, ±∞, ±0, whole numbers and ties."""
    check(name, generator(), CASES)
    check(name, generator(), CASES, logical=True)
    if name not in FINITE_ONLY:
        check(name, generator(), CASES, special)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tracing_agrees_with_numpy_at_length(name):
    rng = generator()
    check(name, rng, CASES * MORE)
    check(name, rng, CASES * MORE, logical=True)
    if name not in FINITE_ONLY:
        check(name, rng, CASES * MORE, special)


def test_the_functions_are_answered_and_not_refused():
    """The comparison is no comparison if everything is refused: all but the functions in REFUSED answer."""
    rng = generator()
    silent = [name for name in FUNCTIONS if name not in REFUSED and not any(check(name, rng, 8) for _ in range(50))]
    assert not silent, f"no case of {silent} was answered"


def test_every_function_that_runs_numpys_own_code_is_compared():
    compared = {name.split()[0] for name in FUNCTIONS}
    names = {name.split(".")[-1] for name in OWN_CODE}
    names |= {function.__name__ for function in OWN_RULES} - {"sinc"}  # refused
    assert names - compared - {name.removeprefix("linalg.") for name in compared} == set()


# ----------------------------------------------------------------- numbers and truth values: random expressions

ARRAYS = [
    "x", "y", "x[0]", "y[1]", "(x > 0)", "(y > 0.2)", "(x[0] > y[0])", "(y[1] < 0)", "2.0", "3.0", "0.5", "True",
    "-1.0", "0.0", "np.array([True, False, True])", "np.array([1, 2, 3])", "1.0 * np.sum(x > 0)",
    "np.where(x > 0, 1.0, 2.0)", "np.array([x[0] > 0, True, y[1] > 0])", "np.array([x[0] > 0, 2.0, 0.0])",
    "np.ones_like(x)", "np.zeros_like(x > 0)", "np.full(3, x[0] > 0)",
]  # fmt: skip
OF_ONE = [
    "(-{})", "(~{})", "abs({})", "(+{})", "np.sum({})", "np.mean({})", "np.max({})", "np.cumsum({})", "np.prod({})",
    "np.any({})", "np.all({})", "np.sqrt({})", "np.floor({})", "np.sign({})", "({})**2", "(1.0 * {})**0.5",
    "np.square({})", "np.logical_not({})", "np.asarray({}).astype(float)", "np.asarray({}).astype(int)",
    "np.asarray({}).astype(bool)", "np.array({}, dtype=float)", "np.array({}, dtype=int)", "np.array({}, dtype=bool)",
    "np.sum({}, dtype=float)", "np.sum({}, dtype=int)", "np.sum({}, dtype=bool)", "np.flip({})", "np.diff({})",
    "np.count_nonzero({})", "np.cumprod({})", "np.var({})", "np.outer({0}, {0})", "np.dot({0}, {0})",
    "np.add.reduce({})", "np.maximum.accumulate({})", "sum({})", "np.concatenate([np.atleast_1d({}), x > 0])",
    "np.stack([{0}, {0}])", "np.trapezoid({})", "np.linalg.norm({})", "np.clip({}, 0, 1)", "np.add.accumulate({})",
    "np.logical_or.reduce({})", "np.tril(np.atleast_2d({}))", "{}/2", "np.convolve(np.atleast_1d({}), x > 0)",
    "np.kron(np.atleast_1d({}), y > 0)", "np.heaviside({}, 0.5)", "np.exp({})",
    "np.einsum('i,i', np.atleast_1d({0}), np.atleast_1d({0}))", "np.insert(np.atleast_1d({}), 0, 2)",
    "np.append({}, 1.5)", "np.average({})", "np.vdot({0}, {0})", "np.ptp({})", "np.median({})", "np.nan_to_num({})",
    "np.round({})", "np.isnan({})", "np.sum({}, where=np.array([True, False, True]))",
    "np.sum({}, initial=1)", "np.maximum.reduce({})", "np.cumsum({}, dtype=np.float32)",
]  # fmt: skip
OF_TWO = [
    "({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} & {})",
    "({} | {})", "({} ^ {})", "({} < {})", "({} == {})", "({} >= {})", "np.where({}, {}, x)", "np.where(x > 0, {}, {})",
    "np.maximum({}, {})", "np.minimum({}, {})", "np.fmax({}, {})", "np.logical_and({}, {})", "np.logical_xor({}, {})",
    "({} @ {})", "np.add({}, {}, dtype=float)", "np.add({}, {}, dtype=int)", "np.add({}, {}, dtype=np.float32)",
    "np.hypot({}, {})", "np.select([x > 0, y > 0], [{}, {}])", "np.select([x > 0], [{}], {})", "np.array([{}, {}])",
    "np.copysign({}, {})", "np.inner({}, {})", "np.subtract({}, {}, casting='unsafe')",
    "np.multiply({}, {}, where=x > 0)", "np.clip({}, {}, 2)", "np.add.outer({}, {})", "np.append({}, {})",
    "np.tensordot({}, {}, 1)", "np.multiply({}, {}, order='F', subok=False)", "np.add({}, {}, casting='no')",
]  # fmt: skip


def expression(rng, depth, leaves, of_one, of_two):
    """The text of a random expression."""
    if depth == 0 or rng.random() < 0.2:
        return str(rng.choice(leaves))
    parts = [expression(rng, depth - 1, leaves, of_one, of_two) for _ in range(2)]
    return str(rng.choice(of_one)).format(parts[0]) if rng.random() < 0.5 else str(rng.choice(of_two)).format(*parts)


def random_expressions(count):
    """Numbers and truth values in random expressions: the value of NumPy, or a refusal."""
    rng, answered = generator(), 0
    for _ in range(count):
        text = expression(rng, int(rng.integers(1, 4)), ARRAYS, OF_ONE, OF_TWO)
        function = eval(f"lambda x, y: {text}", {"np": np})
        values = [rng.choice([-1.5, 0.25, 0.0, -0.75, 2.0, 1.0], size=3) for _ in range(2)]
        expected, found, _ = attempt(function, values, invalid="raise")
        if isinstance(found, TraceError) or isinstance(expected, FloatingPointError):
            continue
        assert not isinstance(expected, Exception), f"{text} at {values}: NumPy refuses it: {expected}"
        truths, numbers = found
        assert (truths, numbers.shape) == (expected.dtype == bool, expected.shape), f"{text} at {values}: {expected!r}"
        fine = agree(numbers, expected.astype(float)) | np.isnan(expected)  # not every product 0·∞ of NumPy raises
        assert fine.all(), f"{text} at {values}: {numbers}, NumPy gives {expected}"
        answered += 1
    return answered


def test_random_expressions_of_all_kinds_of_numbers():
    assert random_expressions(400) > 120


@pytest.mark.slow
def test_random_expressions_of_all_kinds_of_numbers_at_length():
    assert random_expressions(8_000) > 2_400


@pytest.mark.parametrize(
    "function, value",
    [
        (lambda q: sum([q[0] > 0, q[1] > 0]), 2.0),
        (lambda q: sum(x > 0 for x in q), 2.0),
        (lambda q: np.sum([q[0] > 0, q[1] > 0]), 2.0),
        (lambda q: np.sum(q > 0) + np.count_nonzero(q) + np.mean(q > 0), 5.0),
        (lambda q: 1.0 // (0.1 * q[0]), 9.0),
        (lambda q: 1.0 % (0.1 * q[0]), 1.0 % 0.1),
        (lambda q: np.sqrt(-q[0]) ** 2, np.nan),
        (lambda q: np.sqrt(-q[0]) ** 4, np.nan),
        (lambda q: np.maximum(np.log(-q[0]), 1.0), np.nan),
        (lambda q: np.fmax(np.log(-q[0]), 1.0), 1.0),
        (lambda q: np.sign(np.log(-q[0])), np.nan),
        (lambda q: np.heaviside(np.log(-q[0]), 0.5), np.nan),
        (lambda q: np.clip(np.log(-q[0]), 0.0, 1.0), np.nan),
        (lambda q: np.max(np.array([1.0, np.log(-q[0])])), np.nan),
        (lambda q: assigned(np.zeros(2, dtype=q.dtype), q), 2.0),
        (lambda q: assigned(np.ones(2, q.dtype), q), 2.0),
        (lambda q: assigned(np.zeros(2, dtype=np.result_type(q, 1.0)), q), 2.0),
        (lambda q: scipy.linalg.block_diag(np.outer(q, q), [[2.0]]).sum(), 6.0),
        (lambda q: np.sum(q > 0) // 2 + np.sum(q > -1) % 2 + (np.sum(q > 0) - 3) // 2 + np.sum(q > 0) * 10**12, 2e12),
        (lambda q: np.sum(F32 * np.ones_like(q)[0]) * q[0], np.sum(F32 * np.float64(1.0))),
        (lambda q: np.sum(F32 * np.sum(np.ones_like(q))) * q[0], np.sum(F32 * np.float64(2.0))),
        (lambda q: np.sum(F32 * np.ones_like(q).dot([1.0, 1.0])) * q[0], np.sum(F32 * np.float64(2.0))),
        (lambda q: sum(np.sum(F32 * x) for x in np.ones_like(q)) * q[0], 2 * np.sum(F32 * np.float64(1.0))),
    ],
)
def test_cases_that_were_wrong_once(function, value):
    """In NumPy, in the Program, compiled, in lanes, in derivatives, and with 25 digits."""
    q = np.array([1.0, 1.0])
    with np.errstate(all="ignore"):
        assert agree(np.float64(function(q)), value)
    program = trace(lambda q, v: function(q) + 0.0 * v[0], 2, {}, False)
    zero = [0.0, 0.0]
    assert agree(program([0.0], q, zero, [])["L"][0], value)
    assert agree(derivatives(program, second=True)([0.0], q, zero, [])["L"][0], value)
    assert agree(evaluate(program, np.array([[0.0, *q, *zero]] * 11)), value).all()  # lanes, and what is left of them
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v + function(q), n=2)
    assert agree(np.float64(system.value(q, zero)), value)
    assert agree(with_digits(program, [0.0, *q, *zero], 25), value)


def with_digits(program, point, digits):
    """The result of a program at so many digits, rounded to a float."""
    reals = Digits(digits)
    with reals.working(), flint_bits(reals.bits):
        (result,) = flint_function(program, program.results, [])(*balls(reals.array(point)))
        return np.float64(mpf(result))


def assigned(x, q):
    """Comparisons become the floats 0 and 1 in an array of floats."""
    x[0], x[1] = q[0] > 0, q[1] > 0
    return x[0] + x[1]


@pytest.mark.parametrize(
    "function, said",
    [
        (lambda q: np.sum((q[0] > 0) - (q[1] > 0)), "of comparisons alone"),
        (lambda q: ((q[0] > 0) + (q[1] > 0)) * 1.0, "of comparisons alone"),
        (lambda q: (q > 0) @ (q > 0), "of comparisons alone"),
        (lambda q: -(q[0] > 0), "of comparisons alone"),
        (lambda q: np.sin(q[0] > 0), "of comparisons alone"),
        (lambda q: np.maximum.reduce(q > 0), "of comparisons alone"),
        (lambda q: np.sum(q, dtype=int), r"np.trunc\(x\)"),
        (lambda q: np.sum(q.astype(int)), "whole number"),
        (lambda q: np.sum(np.array(q, dtype=int)), "whole number"),
        (lambda q: np.sum(q, dtype=np.float32), "asks for float32"),
        (lambda q: np.sum(np.zeros_like(q, dtype=complex)), "asks for complex128"),
        (lambda q: np.add(q, 1.0, where=np.array([True, False]))[0], "where="),
        (lambda q: np.sum(np.nan_to_num(q)), "np.nan_to_num cannot be traced"),
        (lambda q: np.nansum(q), "np.nansum cannot be traced"),
        (lambda q: np.add.reduce([[q[0] > 0], [q[1] > 0]])[0], "of comparisons alone"),
        (lambda q: np.add(q, q, sig="dd->d")[0], "signature"),
        (lambda q: abs(q[0] + 1j * q[1]), "a Lagrangian is real"),
    ],
)
def test_what_cannot_be_honoured_is_refused(function, said):
    with pytest.raises(TraceError, match=said):
        trace(lambda q, v: 1.0 * function(q), 2, {}, False)


def test_zeros_cost_nothing():
    """0 + x, x·0 and 0 − x are simplified, also in a function that divides by another value."""
    M = np.diag([1.0, 2.0, 3.0])
    program = trace(lambda q, v: 0.5 * v @ M @ v + 1 / sum(x**2 for x in q), 3, {}, False)
    operations = [instruction for instruction in program.code if instruction[0] not in ("input", "const")]
    assert not [op for op, *args in operations if any(program.code[a] == ("const", 0.0) for a in args)]


def test_stacked_solve_as_in_the_report():
    A = np.stack([2 * np.eye(2), 4 * np.eye(2)])

    def f(q, v):
        return 0.5 * v @ v - np.linalg.solve(A, np.stack([np.outer(q, q), np.outer(q, v)])).sum()

    q, v = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    assert trace(f, 2, {}, False)([0.0], q, v, [])["L"][0] == f(q, v) == -3.5


def test_matrices_beyond_the_limit_are_refused():
    n = ADJUGATE_LIMIT + 1
    with pytest.raises(TraceError, match="limit"):
        trace(lambda q, v: np.linalg.det(np.outer(q, q)), n, {}, False)
