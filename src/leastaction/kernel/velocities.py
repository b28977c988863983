"""The inverse of the Legendre transform: p = ∂L/∂v(t, q, v) solved for v, natively, at one point or many.

Newton's iteration with backtracking; one iteration is enough where L is quadratic in v. A step that leaves the domain
of L, or does not bring the momentum nearer, is halved. The distance is the largest |p_j − L_v_j|/|p_j|, so that a heavy
coordinate does not hide a light one. For p_j = 0 the distance is counted in the size of what that momentum is summed
from, |L_vv_jk v_k| at the largest velocities on the way. Rounding is measured by the same size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel.compile import compile_program
from leastaction.kernel.driver import _Code
from leastaction.kernel.loops import Loop
from leastaction.program import Program

FloatArray = NDArray[np.float64]

MOST_ITERATIONS = 100
SHORTEST = "1.0e-12"  # relative to v: where a step as short as this does not bring the momentum nearer, none will …
ROUNDING = "1.0e-10"  # … and that is rounding if the momentum is missed by this part of what it is summed from, at most
CLOSE = f"{4 * 2.0**-52:.17e}"
OUTSIDE = "1.0e300"  # a miss that is infinite or not a number

# What the functions share. `at` is the row of a point, with v in it; m and m_v say where they begin in `values`.
_ARRAYS = ("kernel", "at", "v", "p", "values", "move", "fastest", "units", "V", "missed", "work")
_NUMBERS = ("n", "m", "m_v")
_GIVEN = ", ".join([*(f"ptr %{name}" for name in _ARRAYS), *(f"i64 %{name}" for name in _NUMBERS)])


def velocities(
    point: Program, n: int, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """v at K points, and a mask of the points that have one; NaN elsewhere.

    `point` is a Program of (t, q, v, params, …) that gives m = L_v and m_v = L_vv, and `rest`, a velocity to begin
    with, where L has no value at v = 0. `params` is one set or a row for each point.
    """
    kernel = compile_program(point, rarely=True)
    rows = np.zeros((len(q), kernel.inputs))
    rows[:, 0], rows[:, 1 : 1 + n] = t, q
    rows[:, 1 + 2 * n : 1 + 2 * n + params.shape[-1]] = params
    m, m_v = (point.output_slice(name).start for name in ("m", "m_v"))
    rest = point.output_slice("rest").start if "rest" in dict(point.outputs) else -1
    room = [np.zeros(size) for size in (kernel.outputs, n * (n + 3) + 2, kernel.work)]
    _loop()(kernel.address, len(q), kernel.inputs, rows, np.ascontiguousarray(p, float), *room, n, m, m_v, rest)
    v = rows[:, 1 + n : 1 + 2 * n].copy()
    return v, v[:, 0] == v[:, 0]


@cache
def _loop() -> Loop:
    texts = ["declare double @llvm.fabs.f64(double)", _look(), _solve(), _invert(), _hold_time(), _points()]
    return Loop("velocities", "nnndddddnnnn", "\n".join(texts))


class _Writer(_Code):
    """IR of numbers in arrays, which have the names of arguments."""

    def number(self, array: str, place: str | int = 0) -> str:
        return self.get(self.at(f"%{array}", place), "double")

    def set(self, array: str, place: str | int, x: str) -> None:
        self.put(self.at(f"%{array}", place), x, "double")

    def place(self, i: str, j: str) -> str:
        """Of an entry of a matrix."""
        return self.add(self.mul(i, "%n"), j)

    def f(self, op: str, x: str, y: str) -> str:
        return self.op(f"f{op} double {x}, {y}")

    def test(self, x: str, order: str, y: str) -> str:
        """A comparison, false for what is no number."""
        return self.op(f"fcmp o{order} double {x}, {y}")

    def unless(self, condition: str) -> str:
        return self.op(f"xor i1 {condition}, true")

    def select(self, condition: str, x: str, y: str) -> str:
        return self.op(f"select i1 {condition}, double {x}, double {y}")

    def size(self, x: str) -> str:
        return self.op(f"call double @llvm.fabs.f64(double {x})")

    def raise_to(self, variable: str, x: str) -> None:
        """variable ← the larger of it and x."""
        old = self.get(variable, "double")
        self.put(variable, self.select(self.test(x, "gt", old), x, old), "double")

    def product(self, x: str, y: str, added: str) -> str:
        """x y + added."""
        return self.op(f"fadd contract double {self.op(f'fmul contract double {x}, {y}')}, {added}")

    def call(self, name: str, kind: str = "void", further: str = "") -> str:
        text = f"call {kind} @{name}({_GIVEN}{further})"
        if kind == "void":
            self.do(text)
            return ""
        return self.op(text)

    def evaluate(self) -> None:
        self.do("call void %kernel(ptr %at, ptr %values, ptr %work)")

    def leave(self, value: str) -> None:
        self.do(f"ret i1 {value}")
        self.label(self.name())

    def function(self, name: str, kind: str, value: str = "", further: str = "") -> str:
        return self.finished(f"internal {kind} @{name}({_GIVEN}{further}) noinline", f"{kind} {value}".strip())


def _look() -> str:
    """Evaluate at v. missed ← how far L_v is from p, in units of p, and in units of what L_v is summed from."""
    c = _Writer()
    with c.each("%n") as j:
        fastest = c.at("%fastest", j)
        c.raise_to(fastest, c.size(c.number("v", j)))
    c.evaluate()
    miss, rough, inside = c.variable("0.0", "double"), c.variable("0.0", "double"), c.variable("true", "i1")
    with c.each("%n") as j:
        gap = c.size(c.f("sub", c.number("p", j), c.number("values", c.add("%m", j))))
        c.put(inside, c.op(f"and i1 {c.get(inside, 'i1')}, {c.test(gap, 'lt', OUTSIDE)}"), "i1")
        with c.when(c.test(gap, "gt", "0.0")):
            size = c.size(c.number("p", j))
            unit = c.variable(size, "double")
            with c.each("%n") as k:
                mass = c.size(c.number("values", c.add("%m_v", c.place(j, k))))
                c.put(unit, c.product(mass, c.number("fastest", k), c.get(unit, "double")), "double")
            whole = c.get(unit, "double")
            part = c.select(c.test(whole, "gt", "0.0"), c.f("div", gap, whole), "1.0")
            c.raise_to(rough, part)
            c.raise_to(miss, c.select(c.test(size, "gt", "0.0"), c.f("div", gap, size), part))
    for place, x in enumerate((miss, rough)):
        c.set("missed", place, c.select(c.get(inside, "i1"), c.get(x, "double"), OUTSIDE))
    return c.function("look", "void")


def _solve() -> str:
    """move ← L_vv⁻¹ (p − L_v) for the first `count` velocities; false if L_vv is singular.

    Each row is measured by its largest entry when it is compared with others, so that units do not choose the pivots.
    """
    c = _Writer()
    with c.each("%count") as i:
        c.set("move", i, c.f("sub", c.number("p", i), c.number("values", c.add("%m", i))))
        largest = c.variable("0.0", "double")
        with c.each("%count") as j:
            x = c.number("values", c.add("%m_v", c.place(i, j)))
            c.set("V", c.place(i, j), x)
            c.raise_to(largest, c.size(x))
        most = c.get(largest, "double")
        c.set("units", i, c.select(c.test(most, "gt", "0.0"), c.f("div", "1.0", most), "0.0"))
    with c.each("%count") as k:
        best, longest = c.variable(k), c.variable("-1.0", "double")
        with c.between(k, "%count") as i:
            length = c.f("mul", c.size(c.number("V", c.place(i, k))), c.number("units", i))
            with c.when(c.test(length, "gt", c.get(longest, "double"))):
                c.put(longest, length, "double")
                c.put(best, i)
        row = c.get(best)
        _swap(c, "units", k, row)
        _swap(c, "move", k, row)
        with c.each("%count") as j:
            _swap(c, "V", c.place(k, j), c.place(row, j))
        inverse = c.f("div", "1.0", c.number("V", c.place(k, k)))
        usable = c.test(c.size(inverse), "lt", "0x7FF0000000000000")
        with c.when(c.unless(usable)):
            c.leave("false")
        with c.between(c.add(k, 1), "%count") as i:
            factor = c.op(f"fneg double {c.f('mul', c.number('V', c.place(i, k)), inverse)}")
            with c.between(c.add(k, 1), "%count") as j:
                at = c.place(i, j)
                c.set("V", at, c.product(factor, c.number("V", c.place(k, j)), c.number("V", at)))
            c.set("move", i, c.product(factor, c.number("move", k), c.number("move", i)))
    with c.each("%count") as back:
        i = c.op(f"sub i64 {c.add('%count', -1)}, {back}")
        rest = c.variable(c.number("move", i), "double")
        with c.between(c.add(i, 1), "%count") as j:
            factor = c.op(f"fneg double {c.number('V', c.place(i, j))}")
            c.put(rest, c.product(factor, c.number("move", j), c.get(rest, "double")), "double")
        c.set("move", i, c.f("div", c.get(rest, "double"), c.number("V", c.place(i, i))))
    return c.function("solve", "i1", "true", ", i64 %count")


def _swap(c: _Writer, array: str, i: str, j: str) -> None:
    x, y = c.number(array, i), c.number(array, j)
    c.set(array, i, y)
    c.set(array, j, x)


def _invert() -> str:
    """Newton's iteration from the guess in v: whether it came to an end."""
    c = _Writer()
    with c.each("%n") as j:
        c.set("fastest", j, "0.0")
    c.call("look")
    with c.when(c.unless(c.test(c.number("missed"), "lt", OUTSIDE))):
        with c.each("%n") as j:
            c.set("v", j, "0.0")
        c.call("look")
    with c.each(MOST_ITERATIONS):
        before, length = c.number("missed"), c.variable("0.0", "double")
        with c.when(c.test(before, "le", CLOSE)):
            c.leave("true")
        with c.when(c.unless(c.call("solve", "i1", ", i64 %n"))):
            c.leave("false")
        with c.each("%n") as j:
            v, move = c.number("v", j), c.number("move", j)
            c.raise_to(length, c.f("div", c.size(move), c.f("add", c.size(v), c.size(move))))
            c.set("v", j, c.f("add", v, move))
        c.call("look")

        def worse(before: str = before) -> str:
            return c.unless(c.test(c.number("missed"), "lt", before))

        def halve(worse: Callable[[], str] = worse, length: str = length) -> str:
            return c.op(f"and i1 {worse()}, {c.test(c.get(length, 'double'), 'gt', SHORTEST)}")

        with c.repeat(halve):
            c.put(length, c.f("mul", c.get(length, "double"), "0.5"), "double")
            with c.each("%n") as j:
                move = c.f("mul", c.number("move", j), "0.5")
                c.set("move", j, move)
                c.set("v", j, c.f("sub", c.number("v", j), move))
            c.call("look")
        with c.when(worse()):
            c.leave(c.test(c.number("missed", 1), "le", ROUNDING))
    return c.function("invert", "i1", "false")


def _hold_time() -> str:
    """One iteration for all velocities but the last, the rate u of time in u L(t, q, w/u): at the right u it is exact
    where L is quadratic in v. An iteration for all together would lead to u < 0 if the motion is fast.
    """
    c = _Writer()
    with c.each("%n") as j:
        c.set("fastest", j, "0.0")
    c.call("look")
    count = c.add("%n", -1)
    with c.when(c.call("solve", "i1", f", i64 {count}")):
        with c.each(count) as j:
            c.set("v", j, c.f("add", c.number("v", j), c.number("move", j)))
        c.call("look")
        with c.when(c.unless(c.test(c.number("missed"), "lt", OUTSIDE))), c.each(count) as j:
            c.set("v", j, c.f("sub", c.number("v", j), c.number("move", j)))
    return c.function("hold_time", "void")


def _points() -> str:
    """Each point from v = 0, or from `rest`, so that the result depends on nothing that was solved before. Where that
    fails, as it does if L_vv is singular at rest, v = p is tried.
    """
    c = _Writer()
    sizes = {"move": "%n", "fastest": "%n", "units": "%n", "missed": "2"}
    where, found = "%room", {}
    for name, size in sizes.items():
        found[name], where = where, c.at(where, size)
    with c.each("%count") as k:
        at = c.at("%rows", c.mul(k, "%inputs"))
        own = {"at": at, "v": c.at(at, c.add("%n", 1)), "p": c.at("%momenta", c.mul(k, "%n"))}
        own |= {**found, "V": where}
        given = ", ".join(
            [*(f"ptr {own.get(name, f'%{name}')}" for name in _ARRAYS), *(f"i64 %{name}" for name in _NUMBERS)]
        )
        c.do(f"call void @point({given}, i64 %rest)")
    head = "i64 @velocities(ptr %kernel, i64 %count, i64 %inputs, ptr %rows, ptr %momenta, ptr %values, ptr %room, "
    whole = c.finished(f"{head}ptr %work, i64 %n, i64 %m, i64 %m_v, i64 %rest)", "i64 0")
    c = _Writer()
    with c.when(c.op("icmp sge i64 %rest, 0")):
        c.evaluate()
        with c.each("%n") as j:
            c.set("v", j, c.number("values", c.add("%rest", j)))
        c.call("hold_time")
    with c.when(c.unless(c.call("invert", "i1"))):
        with c.each("%n") as j:
            c.set("v", j, c.number("p", j))
        with c.when(c.unless(c.call("invert", "i1"))), c.each("%n") as j:
            c.set("v", j, "0x7FF8000000000000")
    return c.function("point", "void", "", ", i64 %rest") + whole
