"""The gradient and the Hessian of a Program, and its Jacobian, written as Programs.

One sweep backwards over the instructions w_k = f(w_a, w_b) of L carries the adjoints w̄_k = ∂L/∂w_k and the
edges H_kl = ∂²L/∂w_k∂w_l between the values still alive (edge pushing: Gower and Mello, *A new framework for the
computation of Hessians*, Optim. Methods Softw. 27, 2012). Eliminating w_k:

    H_al += f_a H_kl          H_ab += f_a f_b H_kk + w̄_k f_ab          w̄_a += w̄_k f_a

Every entry is found once, symmetry and sparsity come for free, and constants are multiplied as exact rationals, so that
the derivatives mean the same at any precision.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from leastaction.program import LOGICAL, Program, finite
from leastaction.trace.algebra import Algebra
from leastaction.trace.rules import BINARY, UNARY, select_slopes

# Operations that are constant wherever they have a derivative.
FLAT = LOGICAL | {"sign", "floor", "ceil"}
# The arguments of the second partials, in the order in which a rule gives them.
PAIRS = {k: [(i, j) for i in range(k) for j in range(i, k)] for k in (1, 2, 3)}


def derivatives(program: Program, second: bool, parameters: bool = False) -> Program:
    """L, Lq, Lv and, if `second`, Lqq, Lqv, Lvv (row-major) and Lvt, from the Program of L(t, q, v, params).

    Lqv[i n + j] = ∂²L/∂q_i∂v_j. With `parameters` also Lt and Lw and, if `second`, Lqt, Lqw and Lvw, where w are the
    parameters.
    """
    by = ("t", "q", "v", "params") if parameters else ("t", "q", "v")
    sweep = _Sweep(program.select("L"), second, by)
    L, q, v = sweep.program.output("L")[0], sweep.reads("q"), sweep.reads("v")
    sweep.run(L)
    outputs = {"L": [sweep.value[L]], "Lq": sweep.gradient(q), "Lv": sweep.gradient(v)}
    if second:
        outputs |= {"Lqq": sweep.hessian(q, q), "Lqv": sweep.hessian(q, v), "Lvv": sweep.hessian(v, v)}
        outputs["Lvt"] = sweep.hessian(v, sweep.reads("t"))
    if parameters:
        t, w = sweep.reads("t"), sweep.reads("params")
        outputs |= {"Lt": sweep.gradient(t), "Lw": sweep.gradient(w)}
        if second:
            outputs |= {"Lqt": sweep.hessian(q, t), "Lqw": sweep.hessian(q, w), "Lvw": sweep.hessian(v, w)}
    return sweep.build(**outputs)


def jacobian(program: Program, *by: str) -> Program:
    """The outputs of a program and, behind them, their derivatives by these blocks of inputs.

    Block f_q has row by row ∂f_j/∂q_k. Each number given takes a backward sweep of its own.
    """
    B = Algebra(program.inputs)
    inputs = {name: B.input(name) for name, _ in program.inputs}
    outputs: dict[str, list[int]] = dict(B.inline(program, **inputs))
    for name, _ in program.outputs:
        slopes: dict[str, list[int]] = {block: [] for block in by}
        for k in program.output(name):
            sweep = _Sweep(program.with_outputs(L=[k]), False, by)
            sweep.run(sweep.program.output("L")[0])
            rows = sweep.build(**{block: sweep.gradient(sweep.reads(block)) for block in by})
            for block, row in B.inline(rows, **inputs).items():
                slopes[block] += row
        outputs |= {f"{name}_{block}": entries for block, entries in slopes.items()}
    return B.build(**outputs)


class _Sweep(Algebra):
    """The backward sweep: `value`, `adjoint` and `edges` are indexed by the instructions of the program.

    by   the blocks of inputs that vary
    """

    def __init__(self, program: Program, second: bool, by: Sequence[str]) -> None:
        super().__init__(program.inputs)
        self.program, self.second = program, second
        self.value: list[int] = []
        self.adjoint: dict[int, int] = {}
        # edges[k][l] = edges[l][k] = ∂²L/∂w_k∂w_l
        self.edges: dict[int, dict[int, int]] = {}
        varied = {i for name in by for i in range(program.input_size)[program.input_slice(name)]}
        self.active: list[bool] = []
        for op, *args in program.code:
            if op == "input":
                self.value.append(self._emit("input", args[0]))
                self.active.append(args[0] in varied)
            elif op == "const":
                self.value.append(self.const(args[0]))
                self.active.append(False)
            else:
                self.value.append(self._copy(op, [self.value[a] for a in args]))
                self.active.append(op not in FLAT and any(self.active[a] for a in args))

    def _copy(self, op: str, args: list[int]) -> int:
        exponent = self.constant(args[1]) if op == "pow" else None
        if op == "select":
            return self.select(*args)
        if exponent is None or not finite(exponent):
            return self.op(op, *args)
        return self.power(args[0], Fraction(exponent))

    def reads(self, name: str) -> list[int | None]:
        """The instruction that reads each scalar of an input block, None where L does not."""
        place = {args[0]: k for k, (op, *args) in enumerate(self.program.code) if op == "input"}
        return [place.get(i) for i in range(*self.program.input_slice(name).indices(self.program.input_size))]

    def gradient(self, x: list[int | None]) -> list[int]:
        zero = self.const(0.0)
        return [zero if k is None else self.adjoint.get(k, zero) for k in x]

    def hessian(self, x: list[int | None], y: list[int | None]) -> list[int]:
        zero = self.const(0.0)

        def entry(k: int | None, l: int | None) -> int:
            return zero if k is None or l is None else self.edges.get(k, {}).get(l, zero)

        return [entry(k, l) for k in x for l in y]

    def run(self, L: int) -> None:
        """Eliminate every value after all its uses are eliminated, the cheapest first.

        Any such order gives the Hessian; one that keeps few edges alive writes fewer instructions.
        """
        arguments = self._arguments(L)
        uses = Counter(a for used in arguments.values() for a in used)
        self.adjoint[L] = self.const(1.0)
        ready = [(0, -L)] if L in arguments else []
        while ready:
            estimate, k = heapq.heappop(ready)
            cost = len(self.edges.get(-k, ())) * len(arguments[-k])
            if cost > estimate:
                heapq.heappush(ready, (cost, k))
                continue
            self._eliminate(-k, arguments[-k])
            for a in arguments[-k]:
                uses[a] -= 1
                if not uses[a] and a in arguments:
                    heapq.heappush(ready, (len(self.edges.get(a, ())) * len(arguments[a]), -a))

    def _arguments(self, L: int) -> dict[int, list[int]]:
        """For each value through which t, q or v reach L smoothly, its distinct arguments that depend on them."""
        arguments: dict[int, list[int]] = {}
        reached = {L} if self.active[L] else set()
        for k in range(L, -1, -1):
            op, *args = self.program.code[k]
            if k in reached and op != "input":
                arguments[k] = sorted({a for a in args if self.active[a]})
                reached.update(arguments[k])
        return arguments

    def _eliminate(self, k: int, arguments: list[int]) -> None:
        slope, curvature = self._partials(k)
        edges = self.edges.pop(k, {})
        own = edges.pop(k, None)
        for l, edge in edges.items():
            del self.edges[l][k]
            for a in arguments:
                push = self.times(edge, slope[a])
                self._connect(a, l, self.scaled(2, push) if a == l else push)
        adjoint = self.adjoint.pop(k)
        for i, a in enumerate(arguments):
            if own is not None:
                half = self.times(own, slope[a])
                for b in arguments[i:]:
                    self._connect(a, b, self.times(half, slope[b]))
            term = self._passed_on(k, len(arguments), adjoint, slope[a])
            self.adjoint[a] = self.plus(self.adjoint[a], term) if a in self.adjoint else term
        if self.second:
            for (a, b), bend in curvature.items():
                self._connect(a, b, self.times(adjoint, bend))

    def _passed_on(self, k: int, count: int, adjoint: int, slope: int) -> int:
        """w̄_k f_a. The constant of a square's slope goes to the adjoint, which other squares share. The constant of
        another function's slope goes in front, where a square takes it up: the −½ and the 2 in the gradient of 1/|x|
        leave nothing.
        """
        if count > 1 or self.constant(adjoint) is not None:
            return self.times(adjoint, slope)
        c, x = self.split(slope)
        if self.program.code[k][0] == "sq":
            return self.times(self.scaled(c, adjoint), x)
        return self.scaled(c, self.times(adjoint, x))

    def _connect(self, a: int, b: int, term: int) -> None:
        if self.constant(term) == 0:
            return
        old = self.edges.setdefault(a, {}).get(b)
        edge = term if old is None else self.plus(old, term)
        self.edges[a][b] = self.edges.setdefault(b, {})[a] = edge

    def _partials(self, k: int) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
        """f_a and f_ab of instruction k with respect to its active arguments, equal arguments merged."""
        op, *args = self.program.code[k]
        slope: dict[int, int] = {}
        curvature: dict[tuple[int, int], int] = {}
        rule: Any = UNARY[op] if len(args) == 1 else select_slopes if op == "select" else BINARY[op]
        partials = rule(self, self.value[k], *(self.value[a] for a in args))
        for a, term in zip(args, partials, strict=False):
            if self.active[a]:
                slope[a] = self.plus(slope[a], term) if a in slope else term
        for (i, j), term in zip(PAIRS[len(args)], partials[len(args) :], strict=True):
            a, b = sorted((args[i], args[j]))
            if self.active[a] and self.active[b] and self.constant(term) != 0:
                # A mixed partial of equal arguments counts twice in the second derivative of f(w, w).
                term = self.scaled(2, term) if a == b and i != j else term
                curvature[a, b] = self.plus(curvature[a, b], term) if (a, b) in curvature else term
        return slope, curvature
