"""A Lagrangian written in SymPy, with its forces → their Program. Rational numbers, π and e stay exact."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from leastaction.errors import TraceError
from leastaction.numbers.conversion import fraction
from leastaction.program import Program
from leastaction.trace.algebra import Algebra
from leastaction.trace.numpy_functions import ELEMENTWISE, on, power, where
from leastaction.trace.scalar import Scalar, active, apply


def trace_sympy(
    L: Any,
    q: Sequence[Any],
    v: Sequence[Any] | None = None,
    t: Any = None,
    force: Any = None,
    dissipation: Any = None,
    constraints: Any = None,
) -> tuple[Program, tuple[str, ...]]:
    """The Program L(t, q, v, params) of a SymPy expression, and the names of its parameters in their order.

    q and v are symbols, or functions of t and their derivatives; v left out stands for dq/dt. Every other free symbol
    is a scalar parameter; parameters are ordered by name. A force, n expressions, is given as the block F, a Rayleigh
    function as D, constraints, which have no velocities, as g.

    >>> m, g, x, xdot = sp.symbols("m g x xdot")
    >>> program, names = trace_sympy(m * xdot**2 / 2 - m * g * x, [x], [xdot])
    >>> names, program([0], [2], [3], [10, 1])["L"]
    (('g', 'm'), [-15.5])
    """
    try:
        return _traced(L, q, v, t, force, dissipation, constraints)
    except RecursionError:
        raise TraceError(
            "the expression is nested too deeply for SymPy; write the Lagrangian as a NumPy function, for la.Lagrangian"
        ) from None


def _traced(
    L: Any, q: Any, v: Any, t: Any, force: Any, dissipation: Any, constraints: Any
) -> tuple[Program, tuple[str, ...]]:
    q = _each(q, "q")
    written = {"L": [_one(L, "the Lagrangian")]}
    if force is not None:
        written["F"] = _components(force, len(q))
    if dissipation is not None:
        written["D"] = [_one(dissipation, "the Rayleigh function")]
    if constraints is not None:
        written["g"] = [_one(e, "a constraint") for e in _listed(constraints)]
    t = _time(q) if t is None else _read(t, "t")
    if v is None and t is None:
        raise TraceError("velocities v are needed when the coordinates are plain symbols")
    v = [sp.diff(x, t) for x in q] if v is None else _each(v, "v")
    if len(q) != len(v):
        raise TraceError(f"{len(q)} coordinates {q} but {len(v)} velocities {v}")
    for x in (*q, *v):
        if not isinstance(x, (sp.Symbol, AppliedUndef, sp.Derivative)):
            raise TraceError(f"{x} is neither a symbol nor a function of time or its derivative")
    if len({*q, *v}) != 2 * len(q):
        raise TraceError(f"coordinates and velocities repeat: {q}, {v}")
    # First, numbered symbols stand in for q and v: a derivative of q(t) is one name, not an operation on another name.
    stand_in = {x: sp.Dummy(str(x)) for x in (*q, *v)}
    written = {block: [e.xreplace(stand_in) for e in expressions] for block, expressions in written.items()}
    for e in written.get("g", []):
        if moving := e.free_symbols & {stand_in[x] for x in v}:
            names_of = ", ".join(sorted(map(str, moving)))
            raise TraceError(f"constraints are of t and q alone; the velocities {names_of} stand in {e}")
    every = [e for expressions in written.values() for e in expressions]
    for node in (node for e in every for node in e.atoms(AppliedUndef, sp.Derivative, sp.Integral, sp.Sum, sp.Product)):
        hint = "" if isinstance(node, AppliedUndef) else ", nor evaluated; .doit() may do that"
        raise TraceError(f"{node} in the Lagrangian or its forces is neither in q nor in v{hint}")
    free = set().union(*(e.free_symbols for e in every))
    parameters = sorted(free - {*stand_in.values(), t}, key=lambda s: s.name)
    names = tuple(s.name for s in parameters)
    for name in names:
        if names.count(name) > 1:
            raise TraceError(f"two different symbols are called {name!r} (they differ in their assumptions)")
    builder = Algebra((("t", 1), ("q", len(q)), ("v", len(v)), ("params", len(names))))
    symbols = [t, *(stand_in[x] for x in (*q, *v)), *parameters]
    values = [k for name, _ in builder.inputs for k in builder.input(name)]
    known = {s: Scalar(builder, k) for s, k in zip(symbols, values, strict=True)}
    with active(builder):
        results = {
            block: [apply("add", _write(e, known), 0).index for e in expressions]
            for block, expressions in written.items()
        }
    return builder.build(**results), names


def _each(given: Any, name: str) -> list[Any]:
    """The symbols of a list, a matrix or an array; one symbol alone is a list of one."""
    if isinstance(given, sp.MatrixBase | sp.NDimArray):
        given = sp.flatten(given)
    elif isinstance(given, sp.Basic) and not isinstance(given, sp.Tuple):
        given = [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TraceError(f"{name} must be a list of symbols, as in sympy.symbols('x y'); got {given!r}")
    return [_read(x, name) for x in given]


def _read(given: Any, called: str) -> Any:
    """What was given, as a SymPy object. Text is refused: SymPy would execute it as Python."""
    if isinstance(given, str | bytes):
        raise TraceError(
            f"{called} is text, {given!r}; text is not executed here. Give the SymPy expression, as from "
            "sympy.sympify(text) if you trust the text"
        )
    try:
        return sp.sympify(given, strict=True)
    except sp.SympifyError:
        raise TraceError(f"{called} must be a SymPy expression, got {type(given).__name__}") from None


def _one(L: Any, called: str) -> Any:
    L = _read(L, called)
    if isinstance(L, sp.MatrixBase):
        if L.shape != (1, 1):
            raise TraceError(f"{called} is a matrix of shape {L.shape}; it must be one expression")
        L = L[0, 0]
    if not isinstance(L, sp.Expr):
        raise TraceError(f"{called} must be a SymPy expression, got {type(L).__name__}")
    return L


def _components(force: Any, n: int) -> list[Any]:
    """The components of a force: a list, a matrix, or one expression."""
    listed = _listed(force)
    if len(listed) != n:
        raise TraceError(f"the force has n = {n} components, one for each coordinate; got {len(listed)}")
    return [_one(e, "the force") for e in listed]


def _listed(given: Any) -> list[Any]:
    """The expressions of a list, a matrix or an array; one alone is a list of one."""
    return sp.flatten(given) if isinstance(given, sp.MatrixBase | sp.NDimArray | sp.Tuple | list | tuple) else [given]


def _time(q: Sequence[Any]) -> Any:
    """The one argument of the coordinates, if they are functions."""
    arguments = {x.args for x in q if isinstance(x, AppliedUndef)}
    if not arguments:
        return None
    if len(arguments) > 1 or len(next(iter(arguments))) != 1:
        raise TraceError(f"the coordinates {q} are not functions of one time")
    return next(iter(arguments))[0]


def _write(e: Any, known: dict[Any, Any]) -> Any:
    """The Scalar or number that a node of the expression tree stands for."""
    if e not in known:
        known[e] = _write_new(e, known)
    return known[e]


def _write_new(e: Any, known: dict[Any, Any]) -> Any:
    if isinstance(e, sp.Rational):
        return Fraction(int(e.p), int(e.q))
    if isinstance(e, sp.Float):
        return fraction(e)
    if isinstance(e, sp.Mul):
        numerator: list[Any] = []
        denominator: list[Any] = []
        for factor in e.args:
            inverted = isinstance(factor, sp.Pow) and factor.exp.is_Rational and factor.exp < 0
            (denominator if inverted else numerator).append(1 / factor if inverted else factor)
        product = _fold("mul", [_write(x, known) for x in numerator], 1)
        return apply("div", product, _fold("mul", [_write(x, known) for x in denominator], 1))
    if isinstance(e, sp.Piecewise):
        return _piecewise(e, known)
    rule = RULES.get(e.func)
    if rule is None:
        raise TraceError(
            f"{e.func.__name__} in {e} has no counterpart; rewrite the Lagrangian with elementary functions"
        )
    return rule(*(_write(x, known) for x in e.args))


def _fold(op: str, values: Sequence[Any], start: Any = None) -> Any:
    return functools.reduce(lambda x, y: apply(op, x, y), values if start is None else [start, *values])


def _piecewise(e: Any, known: dict[Any, Any]) -> Any:
    *branches, (last, _) = e.args
    if sp.Or(*(c for _, c in e.args)) != sp.true:
        raise TraceError(f"{e} is not defined everywhere; end it with a branch (..., True)")
    result = _write(last, known)
    for value, condition in reversed(branches):
        result = where(_write(condition, known), _write(value, known), result)
    return result


def _inverse(op: str) -> Callable[[Any], Any]:
    return lambda x: apply("div", 1, apply(op, x))


def _of_inverse(op: str) -> Callable[[Any], Any]:
    return lambda x: apply(op, apply("div", 1, x))


RULES: dict[Any, Callable[..., Any]] = {
    sp.Add: lambda *terms: _fold("add", terms), sp.Pow: power, sp.exp: on("exp"), sp.log: on("log"),
    type(sp.pi): lambda: apply("acos", -1), type(sp.E): lambda: apply("exp", 1),
    sp.sin: on("sin"), sp.cos: on("cos"), sp.tan: on("tan"),
    sp.cot: _inverse("tan"), sp.sec: _inverse("cos"), sp.csc: _inverse("sin"),
    sp.asin: on("asin"), sp.acos: on("acos"), sp.atan: on("atan"), sp.atan2: on("atan2"),
    sp.acot: _of_inverse("atan"), sp.asec: _of_inverse("acos"), sp.acsc: _of_inverse("asin"),
    sp.sinh: on("sinh"), sp.cosh: on("cosh"), sp.tanh: on("tanh"),
    sp.coth: _inverse("tanh"), sp.sech: _inverse("cosh"), sp.csch: _inverse("sinh"),
    sp.asinh: on("asinh"), sp.acosh: on("acosh"), sp.atanh: on("atanh"),
    sp.erf: on("erf"), sp.Abs: on("abs"), sp.sign: on("sign"),
    sp.floor: on("floor"), sp.ceiling: on("ceil"), sp.Mod: ELEMENTWISE["remainder"],
    sp.Heaviside: ELEMENTWISE["heaviside"], sp.re: lambda x: x, sp.conjugate: lambda x: x,
    sp.Min: lambda *args: _fold("minimum", args), sp.Max: lambda *args: _fold("maximum", args),
    sp.StrictLessThan: on("lt"), sp.LessThan: on("le"), sp.Equality: on("eq"), sp.Unequality: on("ne"),
    sp.StrictGreaterThan: lambda x, y: apply("lt", y, x), sp.GreaterThan: lambda x, y: apply("le", y, x),
    sp.And: lambda *args: _fold("and", args), sp.Or: lambda *args: _fold("or", args), sp.Not: on("not"),
    type(sp.true): lambda: True, type(sp.false): lambda: False, sp.ITE: where,
}  # fmt: skip
