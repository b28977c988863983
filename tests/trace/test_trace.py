"""Tracing: what a NumPy or SymPy function means as a Program, its derivatives, and every way it can be wrong."""

import asyncio
import importlib
import inspect
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from types import ModuleType

import cloudpickle
import mpmath
import numpy as np
import pytest
import scipy.special
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import leastaction as la
from leastaction.errors import TraceError
from leastaction.program import OPERATIONS
from leastaction.trace import const, derivatives, trace
from processes import PATIENCE
from reference import check_derivatives, constants, evaluate

Q, V = np.array([0.3, 0.7, 0.45]), np.array([0.2, -0.4, 1.1])
A = np.array([[2.0, 0.5, 0.1], [0.3, 1.5, -0.2], [0.0, 0.4, 1.0]])
P = {"m": 1.3, "k": np.array([0.6, 0.8, 1.2])}


def flat(params):
    return [x for value in params.values() for x in np.ravel(value)]


def program_of(fn, n=3, time=False, **params):
    return trace(fn, n, {name: np.shape(value) for name, value in params.items()}, time)


SCALAR_FUNCTIONS = [
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arctanh,
    np.exp, np.log, np.sqrt, np.expm1, np.log1p, np.exp2, np.log2, np.log10, np.cbrt, np.square, np.reciprocal,
    np.abs, np.fabs, np.sign, np.floor, np.ceil, np.trunc, np.negative, np.positive, np.deg2rad, np.rad2deg,
    np.degrees, np.radians, np.conjugate, np.real, scipy.special.erf, scipy.special.expit, np.signbit,
    lambda x: np.arccosh(x + 1), lambda x: -x, lambda x: +x, lambda x: abs(-x), np.logical_not,
]  # fmt: skip


@pytest.mark.parametrize("f", SCALAR_FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_of_one_number(f):
    def fn(q, v):
        # the same on a Scalar, on an array and on an array made from Scalars
        return f(q[0]) * v[0] + np.sum(f(q * v**2)) + np.sum(f(np.array([q[1] / 2, 0.25])))

    check_against_floats(fn)


PAIR_FUNCTIONS = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.float_power, np.arctan2, np.hypot, np.minimum,
    np.maximum, np.fmin, np.fmax, np.fmod, np.remainder, np.floor_divide, np.copysign, np.heaviside, np.logaddexp,
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.logical_and, np.logical_or,
    np.logical_xor, lambda x, y: x % y, lambda x, y: x // y, lambda x, y: x**y, lambda x, y: 2.5**y,
]  # fmt: skip


@pytest.mark.parametrize("f", PAIR_FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_of_two_numbers(f):
    def fn(q, v):
        x, y = np.array([q[0], 0.4]), np.array([0.35, q[1]])
        return np.sum(1.0 * f(x, y)) + f(q[0], q[1]) * v[0] + np.sum(f(q, 0.6) * f(0.2, q) * f(q, q[2] + 0.05))

    check_against_floats(fn)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 40, -1, -2, -5, 0.5, -0.5, 1.5, -1.5, 2.5, 0.3, Fraction(1, 3)])
def test_powers(exponent):
    check_against_floats(lambda q, v: q[0] ** exponent + v @ v * np.sum(np.power(q, exponent)))
    code = derivatives(program_of(lambda q, v: q[0] ** exponent), second=True).code
    assert ("pow" in {op for op, *_ in code}) == (exponent in (40, 0.3, Fraction(1, 3)))


def test_half_integer_power_is_smooth_at_rest():
    d = derivatives(program_of(lambda q, v: (v @ v) ** 1.5), second=False)
    assert d([0], Q, [0, 0, 0], [])["Lv"] == [0, 0, 0]


ARRAY_FUNCTIONS = {
    "operators": lambda q, v: v @ A @ v + (q @ v) * (A @ q)[1] + q.dot(v) + np.dot(A, q)[0] + np.dot(q[0], 2.0),
    "products": lambda q, v: np.vdot(q, v) + np.inner(q, v) + np.outer(q, v)[0, 2] + np.cross(q, v) @ A[0],
    "tensors": lambda q, v: np.kron(q, v)[4] + np.tensordot(A, q, 1)[0] + np.einsum("i,ij,j", v, A, q),
    "einsum": lambda q, v: np.einsum("ij,j->i", A, q)[1] + np.einsum("i,i->", q, v, optimize=True),
    "sums": lambda q, v: np.sum(q) + q.prod() + np.mean(v) + np.cumsum(q)[1] + np.cumprod(v)[2] + sum(v) + q.mean(),
    "axes": lambda q, v: np.outer(q, v).sum(axis=0)[1] + np.sum(np.outer(q, v), axis=(0, 1)) + np.prod(np.outer(q, q)),
    "statistics": lambda q, v: np.std(q) + np.var(v) + np.average(q, weights=[1, 2, 3]) + np.trapezoid(q, v),
    "extrema": lambda q, v: np.max(q) * np.min(v) + np.max(np.outer(q, v)) + np.ptp(q) + np.amax(A * q, axis=1)[0],
    "diff": lambda q, v: np.diff(q)[0] * np.diff(v)[1] + np.trace(np.outer(q, v)) + np.diag(q)[1, 1],
    "shapes": lambda q, v: (q.reshape(3, 1) @ v.reshape(1, 3)).T[0, 1] + np.roll(q, 1)[0] + q[::-1][0] + q[1:][1],
    "transpose": lambda q, v: np.transpose(np.outer(q, v))[0, 1] + np.ravel(np.outer(q, v))[5] + q[None, :][0, 1],
    "stacks": lambda q, v: np.stack([q, v])[1, 0] + np.concatenate([q, v, [1.0]])[4] + np.hstack([q[0], v])[1],
    "more stacks": lambda q, v: np.vstack([q, v])[1, 2] + np.append(q, 2.0)[3] + np.tile(q, 2)[4] + np.block([q, v])[5],
    "masks": lambda q, v: q[np.array([True, False, True])].sum() + q[[0, 2]] @ v[[1, 1]] + q[A[0] > 0.3].sum() + q[-1],
    "lists": lambda q, v: np.array([q[0], [1.0, v[1]][1], 2.0]) @ np.asarray([q[1], 1, v[2]], dtype=float),
    "matrices": lambda q, v: (np.array([[np.cos(q[0]), -np.sin(q[0])], [np.sin(q[0]), np.cos(q[0])]]) @ v[:2])[0],
    "astype": lambda q, v: q.astype(float) @ np.array(v, dtype=float) + q.copy()[0] + np.asarray(q)[1] + q[0].real,
    "norms": lambda q, v: np.linalg.norm(q) + np.linalg.norm(v, 1) + np.linalg.norm(q, np.inf) + np.linalg.norm(v, 3),
    "axis norms": lambda q, v: np.linalg.norm(np.outer(q, v), axis=1)[0] + np.linalg.norm(np.outer(q, v)),
    "det": lambda q, v: np.linalg.det(A + np.outer(q, v)) + np.linalg.slogdet(A + np.outer(q, v))[1],
    "inv": lambda q, v: q @ np.linalg.inv(A + np.diag(q)) @ v + np.linalg.matrix_power(np.diag(q), 3)[1, 1],
    "solve": lambda q, v: q @ np.linalg.solve(A + np.outer(q, q), v) + np.linalg.solve(A * q[0], A)[1, 1],
    "where": lambda q, v: np.where(q > 0.4, q**2, v).sum() + np.where(A > 1, q, 0)[0, 0] + np.where(q[0] < 0, 1, q[1]),
    "select": lambda q, v: np.select([q < 0.4, q < 0.6], [q, v]).sum() + np.clip(q, 0.4, v[2]).sum() + v.clip(0)[0],
    "logic": lambda q, v: np.where((q > 0.4) & ~(v > 0) | (q[0] == 1) ^ (v < q), q, 2.0).sum() + 1.0 * np.any(q > 0.5),
    "likes": lambda q, v: filled(np.zeros_like(q), q) + filled(np.zeros(3, dtype=object), v) + np.ones_like(q) @ v,
    "in place": lambda q, v: in_place(q.copy(), v),
    "plain object arrays": lambda q, v: np.sum(np.sin(filled_array(q)) * np.arctan2(filled_array(v), filled_array(q))),
    "polynomials": lambda q, v: np.polyval([1.0, 2.0, q[1]], v[0]) + np.interp(0.5, [0.0, 1.0], [2.0, 3.0]) * q[0],
    "mixed": lambda q, v: np.float64(2.0) * q[0] + np.int32(3) * v[0] + np.array(2.0) * q[1] + (np.ones(3) * q[2])[0],
    "vectorize": lambda q, v: np.sum(np.vectorize(lambda x: x**2 + 1)(q)) + np.sum(v, where=A[0] > 0.3),
    "outer": lambda q, v: np.subtract.outer(q, v)[0, 1] + np.add.reduce(q) + np.maximum.accumulate(q)[2],
    "python": lambda q, v: sum(x * y for x, y in zip(q, v, strict=True)) + len(q) * q.size * q.shape[0] * v[0],
}  # fmt: skip


def filled(x, values):
    for i, value in enumerate(values):
        x[i] = value * i
    return np.sum(x)


def filled_array(values):
    x = np.zeros(3, dtype=object) if values.dtype == object else np.zeros(3)
    x[:] = values
    return x


def in_place(x, y):
    x += y
    x[1:] *= 2
    return x[0] * x[1]


@pytest.mark.parametrize("name", ARRAY_FUNCTIONS)
def test_array_functions(name):
    check_against_floats(ARRAY_FUNCTIONS[name])


def check_against_floats(fn):
    program = program_of(fn)
    assert program([0], Q, V, [])["L"][0] == pytest.approx(float(fn(Q, V)), rel=1e-13)
    check_derivatives(program, 0.0, Q, V, [])


def test_parameters_and_time():
    def fn(t, q, v, m, k):
        return m * np.sum(k * v**2) / 2 - np.cos(t) * (k @ q) * v[0] ** 2

    program = program_of(fn, time=True, **P)
    assert program.inputs == (("t", 1), ("q", 3), ("v", 3), ("params", 4))
    assert program.outputs == (("L", 1),)
    assert program([0.2], Q, V, flat(P))["L"][0] == pytest.approx(fn(0.2, Q, V, **P))
    check_derivatives(program, 0.2, Q, V, flat(P))
    matrix = {"M": A}
    assert program_of(lambda q, v, M: v @ M @ v, **matrix)([0], Q, V, flat(matrix))["L"][0] == pytest.approx(V @ A @ V)


def test_symmetric_entries_are_one_value_and_zeros_are_constant():
    d = derivatives(program_of(lambda q, v: v[0] * v[1] * np.cos(q[0] - q[1]) + v[2] ** 2), second=True)
    for block in ("Lqq", "Lvv"):
        H = np.reshape(d.output(block), (3, 3))
        assert (H == H.T).all()
    zeros = [d.output("Lqq")[8], d.output("Lqv")[2], *d.output("Lvt")]
    assert {d.code[k] for k in zeros} == {("const", 0.0)}
    assert d.code[d.output("Lvv")[8]] == ("const", 2.0)


def chain(q, v):
    n = len(q)
    T = sum(0.5 * (n - max(i, j)) * v[i] * v[j] * np.cos(q[i] - q[j]) for i in range(n) for j in range(n))
    return T + sum(9.81 * (n - i) * np.cos(q[i]) for i in range(n))


def cumulative_chain(q, v):
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * np.sum(x**2 + y**2) + 9.81 * np.sum(np.cumsum(np.cos(q)))


def test_two_forms_of_a_chain_of_pendulums_agree():
    q, v = np.linspace(-1, 2, 8), np.linspace(0.5, -0.7, 8)
    one, other = (derivatives(program_of(fn, 8), True)([0], q, v, []) for fn in (chain, cumulative_chain))
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("fn, most", [(chain, 5500), (cumulative_chain, 4500)])
def test_hessian_of_twenty_links_stays_short(fn, most):
    assert len(derivatives(program_of(fn, 20), second=True).code) < most


def test_factors_of_roots_and_squares_cancel():
    """∂(k/|q|)/∂q = −k q/|q|³ has no −½ and no 2."""
    d = derivatives(program_of(lambda q, v, k: k / np.sqrt(q @ q), k=3.0), second=False)
    assert not constants(d) - {0.0, 1.0}


def test_constants_are_exact():
    program = program_of(lambda q, v: 0.1 * (0.3 * q[0]) * v[0] + const("1/3") * q[1] + Fraction(2, 7) * q[2])
    assert constants(program) == {Fraction(0.1) * Fraction(0.3), Fraction(1, 3), Fraction(2, 7)}
    program = program_of(lambda q, v: const("9.81") * v[0] ** 3 + 2**70 * q[0] + const(sp.Rational(1, 7)) * q[1])
    assert Fraction(981, 100) * 6 in constants(derivatives(program, second=True))
    assert {Fraction(1, 7), float(2**70)} <= constants(program)
    with mpmath.workdps(50):
        pi = evaluate(program_of(lambda q, v: const("pi") + np.deg2rad(q[0]), 1), [0, 0, 0], [])[0]
        assert abs(pi - mpmath.pi) < 1e-49
    assert (const("pi"), const("1/3"), const(Fraction(1, 4))) == (np.pi, 1 / 3, 0.25)
    with pytest.raises(ValueError, match="got 'tau'"):
        const("tau")


def test_branch_not_taken_leaves_no_nan():
    def three(x):
        return np.where(x > 1, np.sqrt(x), np.where(x > 0, 5 * np.sqrt(x) * np.log(x), 0))

    for f in (
        lambda x: np.where(x > 0, np.sqrt(x), 0), lambda x: np.where(x > 0, 3 * np.sqrt(x) / x, x**2), three,
        lambda x: (x > 0) * np.log(x), lambda x: 7 * np.where(x <= 0, 0, x**1.5 / np.sin(x)) * np.cos(x),
    ):  # fmt: skip
        d = derivatives(program_of(lambda q, v, f=f: f(q[0]) * v[0] + v[0] ** 2, 1), second=True)
        for name, values in d([0], [0.0], [2.0], []).items():
            assert np.isfinite(values).all(), name


@pytest.mark.parametrize(
    "kinetic",
    [
        lambda v: np.linalg.norm(v) ** 2, lambda v: np.abs(v[0]) ** 2 + v[1] ** 2, lambda v: np.hypot(v[0], v[1]) ** 2,
        lambda v: np.sqrt(v @ v) * np.sqrt(v @ v), lambda v: np.sum(np.linalg.norm(v.reshape(2, 1), axis=1) ** 2),
    ],
)  # fmt: skip
def test_kinetic_energy_is_regular_at_rest(kinetic):
    d = derivatives(program_of(lambda q, v: kinetic(v), 2), second=True)([0], [1, 2], [0, 0], [])
    assert d["Lvv"] == [2, 0, 0, 2]
    assert d["Lv"] == [0, 0]


def test_every_operation_has_a_derivative():
    from leastaction.trace.differentiate import FLAT
    from leastaction.trace.rules import BINARY, UNARY

    # A select has three arguments, and a rule of its own.
    assert FLAT | UNARY.keys() | BINARY.keys() == OPERATIONS - {"select"}


LEAVES = st.sampled_from(["q[0]", "q[1]", "v[0]", "v[1]", "t", "m", "0.3", "2"])
BRANCHES = [
    "({} + {})", "({} - {})", "({} * {})", "({} / (2 + {}**2))", "np.sin({0} + {1})", "(np.cos({0}) * {1})",
    "(np.exp(-{0}**2) * {1})", "np.sqrt(1 + {0}**2 + {1}**2)", "np.arctan2({}, 3 + {}**2)", "np.tanh({0} - {1})",
    "(1 + {0}**2)**np.sin({1})", "np.where({0} > {1} + 0.123, {0}, {1}**2)", "np.hypot({0}, 1.5 + {1}**2)",
    "({0}**3 * {1})",
]  # fmt: skip
EXPRESSIONS = st.recursive(
    LEAVES, lambda inner: st.builds(str.format, st.sampled_from(BRANCHES), inner, inner), max_leaves=12
)


@settings(max_examples=25)
@given(EXPRESSIONS)
def test_random_lagrangians(expression):
    fn = eval(f"lambda t, q, v, m: {expression}", {"np": np})
    point = 0.37, [0.52, -0.81], [0.29, 1.13], [1.7]
    program = program_of(fn, 2, time=True, m=1.7)
    t, q, v, m = point
    assert program([t], q, v, m)["L"][0] == pytest.approx(
        float(fn(t, np.array(q), np.array(v), *m)), rel=1e-11, abs=1e-11
    )
    check_derivatives(program, *point, tol=1e-14)


def returns(value):
    return lambda q, v: value


def assigns(q, v):
    x = np.zeros(3)
    x[0] = q[0]


def adds_in_place(q, v):
    x = np.zeros(3)
    x += q


def branches(q, v):
    if q[0] > 0:
        return v[0]


leaked = []

WRONG = [
    (lambda q, v: math.sin(q[0]), "use np.sin"), (branches, "np.where"), (assigns, "dtype=object"),
    (adds_in_place, "x = x \\+ q"), (lambda q, v: max(q[0], 0), "np.maximum"), (lambda q, v: int(q[0]), "integer"),
    (lambda q, v: complex(q[0]), "complex"), (lambda q, v: len(q[0]), "len"), (lambda q, v: q[q[0]], "index"),
    (lambda q, v: range(q[0]), "index"), (lambda q, v: np.sum(q[q > 0]), "mask .* np.where"),
    (lambda q, v: np.fft.fft(q), "np.fft.fft cannot be traced"), (lambda q, v: np.sort(q), "np.sort cannot"),
    (lambda q, v: np.linalg.eigh(np.outer(q, q)), "np.linalg.eigh cannot"), (lambda q, v: np.sinc(q[0]), "np.sinc"),
    (lambda q, v: scipy.special.jv(0, q[0]), "jv cannot be traced"), (lambda q, v: np.isnan(q), "np.isnan cannot"),
    (lambda q, v: np.interp(q[0], [0, 1], [1, 2]), "np.interp cannot"), (lambda q, v: np.where(q > 0), "both branches"),
    (lambda q, v: np.linalg.inv(np.outer(np.tile(q, 3), np.tile(q, 3))), "9 × 9 matrix"),
    (lambda q, v: np.linalg.norm(np.outer(q, q), 2), "ord=2"), (lambda q, v: q[0] & q[1], "brackets"),
    (returns(None), "return.* is missing"), (lambda q, v: q * v, r"shape \(3,\)"), (lambda q, v: [q[0]], "shape"),
    (returns(math.nan), "NaN"), (returns(math.inf), "inf"),
    (returns("L"), "returned 'L' of type str"), (returns(1j), "returned 1j"),
    (lambda q, v: q[0] * 1j, "complex"), (lambda q, v: q[0] * math.nan, "NaN"), (lambda q, v: q[0] + "x", "str"),
    (lambda q, v: q[3], "IndexError.*\n.*n = 3"), (lambda q, v: undefined, "NameError"),  # noqa: F821
    (lambda q, v: q @ np.ones(2), "ValueError.*(\n.*)*n = 3"), (lambda q, v: 1 / 0 * q[0], "ZeroDivisionError"),
    (lambda q, v: leaked.append(q[0]) or leaked[0], "another call"),
]  # fmt: skip


@pytest.mark.parametrize("fn, message", WRONG, ids=lambda x: x if isinstance(x, str) else "")
def test_mistakes_are_explained(fn, message):
    with pytest.raises(TraceError, match=message) as raised:
        program_of(fn)
    assert raised.value.__cause__ is not None
    assert isinstance(np.array([1.0]), np.ndarray) and np.array.__module__ == "numpy"


def test_place_of_a_mistake_is_named():
    with pytest.raises(TraceError, match=r"assigns, line \d+: `x\[0\] = q\[0\]`"):
        program_of(assigns)


@pytest.mark.parametrize("fn", [lambda q, v: 0, lambda q, v, m, g: 0, lambda v: 0])
def test_signature(fn):
    with pytest.raises(TraceError, match=r"called as fn\(q, v, m=…\), but is <lambda>\("):
        program_of(fn, m=1.0)


def test_size_one_results_are_numbers():
    for fn in (lambda q, v: np.array([[v[0] ** 2]]), lambda q, v: v[:1] ** 2):
        assert program_of(fn)([0], Q, V, [])["L"][0] == pytest.approx(V[0] ** 2)


# ------------------------------------------------------------------------------------------ other threads


@contextmanager
def tracing_elsewhere():
    """Another thread stands in the middle of a trace."""
    traced, checked = threading.Event(), threading.Event()
    found = []

    def slow(q, v):
        traced.set()
        assert checked.wait(60)
        return 0.5 * (np.array([v[0], 2 * v[1]]) @ np.asarray(v)) - q[0]

    tracer = threading.Thread(target=lambda: found.append(la.Lagrangian(slow, n=2)))
    tracer.start()
    try:
        assert traced.wait(60)
        yield
    finally:
        checked.set()
        tracer.join()
    assert found[0].value([1.0, 0.0], [1.0, 1.0]) == pytest.approx(0.5 * 3 - 1)


def test_other_threads_have_numpy_as_it_is_while_a_function_is_traced():
    """np.array and np.asarray are replaced only for the thread that traces: every other thread has the original
    objects, to call, to compare, to pickle, and in a module that it imports just then.
    """
    originals = np.array, np.asarray
    with tracing_elsewhere():
        assert (np.array, np.asarray) == originals
        from numpy import array, asarray

        assert (array, asarray) == originals
        for named in (*originals, partial(np.array, dtype=float)):
            assert pickle.loads(pickle.dumps(named))([1]) == [1]
        assert cloudpickle.loads(cloudpickle.dumps(np)) is np
        assert cloudpickle.loads(cloudpickle.dumps(lambda x: np.array([x])))(1) == [1]
        assert isinstance(np, ModuleType) and inspect.ismodule(np) and vars(np)["array"] is originals[0]
    assert (np.array, np.asarray) == originals and type(np) is ModuleType


def module_of(folder, name):
    """A module that keeps what it finds in NumPy when it is imported, as Numba does."""
    (folder / f"{name}.py").write_text(
        "import numpy as np\nfrom numpy import array\nkept = {np.array, np.asarray, array}\n"
    )
    return name


def test_a_module_imported_during_a_trace_keeps_numpys_own_functions(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    originals = {np.array, np.asarray}
    within, beside = module_of(tmp_path, "imported_within"), module_of(tmp_path, "imported_beside")

    def importing(q, v):
        assert importlib.import_module(within).kept == originals
        assert originals.isdisjoint({np.array, np.asarray})  # the thread that traces has others
        return 0.5 * (np.array([v[0]]) @ v)

    la.Lagrangian(importing, n=1)
    with tracing_elsewhere():
        assert importlib.import_module(beside).kept == originals


def test_a_trace_does_not_wait_for_another():
    """One function makes a system in a thread of its own and waits for it."""

    def waiting(q, v):
        with ThreadPoolExecutor(1) as pool:
            inner = pool.submit(la.Lagrangian, lambda q, v: 0.5 * (np.array([v[0]]) @ v), n=1).result(timeout=PATIENCE)
        return inner.value([0.0], [2.0]) * (np.array([v[0]]) @ v)

    assert la.Lagrangian(waiting, n=1).value([0.0], [1.0]) == 2


def test_a_trace_within_a_trace():
    def outer(q, v):
        inner = la.Lagrangian(lambda q, v: np.array([v[0] ** 2]) @ np.ones(1), n=1)
        return inner.value([0.0], [3.0]) * np.linalg.norm(np.array([v[0], q[0]]))

    assert la.Lagrangian(outer, n=1).value([4.0], [3.0]) == 45


@pytest.mark.parametrize("raised", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_numpy_is_itself_again_however_a_trace_ends(raised):
    original = np.array

    def broken(q, v):
        assert np.array is not original
        raise raised

    with pytest.raises(TraceError if raised is ZeroDivisionError else raised):
        la.Lagrangian(broken, n=1)
    assert np.array is original and type(np) is ModuleType and la.const("1/4") == 0.25


def test_what_a_function_keeps_of_numpy_serves_after_its_trace():
    kept = []

    def keeping(q, v):
        kept.append(np.array)
        return 0.5 * v @ v

    la.Lagrangian(keeping, n=1)
    assert kept[0]([1.0, 2.0]).tolist() == [1.0, 2.0] and type(kept[0]([1.0])) is np.ndarray


def test_asyncio_traces_beside_other_tasks():
    """Tasks in threads inherit the context of the thread that starts them, with its traces."""

    def falling(g):
        return la.Lagrangian(lambda q, v: 0.5 * (np.array([v[0]]) @ v) - g * q[0], n=1).value([1.0], [0.0])

    async def all_at_once():
        traces = [asyncio.to_thread(falling, g) for g in range(4)]
        arrays = [asyncio.to_thread(np.array, [float(g)]) for g in range(4)]
        return await asyncio.gather(*traces, *arrays)

    assert asyncio.run(all_at_once()) == [0, -1, -2, -3, *([float(g)] for g in range(4))]


def test_many_threads_trace_and_compute_at_once():
    """Four trace, four compute with NumPy all the while, and every answer is that of a quiet process."""
    stop = threading.Event()
    wrong = []

    def compute(seed):
        rng = np.random.default_rng(seed)
        while not stop.is_set():
            data = rng.standard_normal((4, 4)).tolist()
            made = np.array(data)
            if type(made) is not np.ndarray or made.dtype != float or made.tolist() != data:
                wrong.append(made)

    def falling(g):
        return la.Lagrangian(lambda q, v: 0.5 * (np.array([v[0], v[1]]) @ v) - g * q[0], n=2)

    def make(k):
        for g in range(k, k + 10):
            if falling(g).value([1.0, 0.0], [1.0, 1.0]) != 1 - g:
                wrong.append(g)

    workers = [threading.Thread(target=compute, args=(seed,)) for seed in range(4)]
    tracers = [threading.Thread(target=make, args=(k,)) for k in range(4)]
    for thread in (*workers, *tracers):
        thread.start()
    for thread in tracers:
        thread.join()
    stop.set()
    for thread in workers:
        thread.join()
    assert wrong == []
