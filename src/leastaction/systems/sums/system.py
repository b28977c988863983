"""Sum: a mechanical system whose Lagrangian is a sum of terms over rows of tables.

    L(t, q, v) = Σ_terms Σ_rows L_term(t, q[row], v[row], params of the row)

Each term is traced, differentiated and compiled once; the rows are data. A sum of n coordinates costs memory and time
in proportion to its rows, whatever n is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.engine.long_form import Scripted
from leastaction.engine.long_sums import summed
from leastaction.engine.run import Engine, engine
from leastaction.engine.stepper import FormStepper
from leastaction.errors import ConstraintError, DegenerateLagrangianError
from leastaction.methods import Galerkin, Method
from leastaction.numbers.notation import to_texts
from leastaction.numbers.rounding import FLOAT64
from leastaction.program import Builder, Program
from leastaction.reading import entry, floats, integer, listing, mapping, numbers, text
from leastaction.step.form import Summand
from leastaction.step.status import GOING_WELL, NOT_FINITE, SINGULAR
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row
from leastaction.systems.arguments import Params, coordinate_names, values_of
from leastaction.systems.defaults import Usual
from leastaction.systems.frequencies import fastest_of_sum
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.mechanics import states_of
from leastaction.systems.programs import Parameters
from leastaction.systems.sums.assembly import Assembly
from leastaction.systems.sums.term import Term

FloatArray = NDArray[np.float64]
EPS = float(np.finfo(float).eps)
ROUND_OFF = 64  # units in the last place of the terms of g and ġ, or of the state
MOST_EXPANDED = 200  # coordinates of a sum that is written out as one Program
QUICKLY = 12_000  # instructions of all rows that are differentiated and compiled in seconds: thirty bodies in space


class Sum(Parameters, Usual):
    """A system of n coordinates: the sum of terms. `la.Lagrangian.sum` makes it.

    >>> import leastaction as la
    >>> kinetic = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=[0, 1, 2])
    >>> springs = la.Term(lambda q, v, k: -0.5 * k * (q[1] - q[0]) ** 2, over=[[0, 1], [1, 2]], params={"k": 4.0})
    >>> chain = la.Lagrangian.sum([kinetic, springs], n=3)
    >>> chain.acceleration([0.0, 0.5, 0.0], [0.0, 0.0, 0.0])
    array([ 2., -4.,  2.])
    """

    linear = False
    tools = ("scipy",)

    def __init__(self, terms: Sequence[Term], n: int, name: str = "a sum", names: Sequence[str] | None = None) -> None:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n, the number of degrees of freedom, must be a positive integer; got {n!r}")
        terms = tuple(terms) if isinstance(terms, Iterable) else terms
        if not isinstance(terms, tuple) or not terms or not all(isinstance(term, Term) for term in terms):
            raise TypeError(f"expected a list of terms, as [la.Term(fn, over=rows), …]; got {terms!r}")
        self.n, self.terms, self.name = int(n), terms, name
        self.names = coordinate_names(names, self.n)
        self._given: dict[str, Any] = {}
        self._defaults: dict[str, NDArray[Any]] = {}
        for term in terms:
            if term.table.max() >= self.n:
                row, column = np.argwhere(term.table >= self.n)[0]
                raise ValueError(
                    f"over= of {term.name} names coordinate {term.table[row, column]} in row {row}; with n = {self.n} "
                    f"they are counted from 0 to {self.n - 1}"
                )
            for key, value in term.given.items():
                self._add(key, value, term)

    def _add(self, key: str, value: Any, term: Term) -> None:
        array = values_of({key: value})[key]
        if key in self._defaults and not np.array_equal(self._defaults[key], array):
            raise ValueError(
                f"two terms have a parameter {key!r} with different values; terms share parameters of one name: give "
                "it the same value in both, or another name"
            )
        self._given[key], self._defaults[key] = value, array

    def __getstate__(self) -> dict[str, Any]:
        """The state for other processes: the terms, without compiled code."""
        return {name: getattr(self, name) for name in ("n", "terms", "name", "names", "_given", "_defaults")}

    # What a step and the evaluation of many rows need.

    @cached_property
    def summands(self) -> tuple[Summand, ...]:
        """The terms as a step sees them."""
        return tuple(self._summand(term) for term in self.terms)

    def _summand(self, term: Term) -> Summand:
        sizes = [array.size for array in self._defaults.values()]
        places = dict(zip(self._defaults, np.cumsum([0, *sizes]).tolist(), strict=False))
        first: list[int] = []
        pitch: list[int] = []
        for key in term.given:
            begin, size = places[key], self._defaults[key].size
            own = size // term.rows if term.own[key] else size
            first += range(begin, begin + own)
            pitch += [own if term.own[key] else 0] * own
        return Summand(
            L=term.local.program,
            values=term.local.terms[0].program,
            node=term.local.node,
            force=term.local.force,
            rows=term.table,
            first=np.array(first, np.int64),
            pitch=np.array(pitch, np.int64),
        )

    def check_inputs(self) -> None:
        """Refuse inputs."""
        raise ValueError(
            "inputs= are for Lagrangians: a force on the rows of a sum takes parameters alone. Write the system as one "
            "la.Lagrangian(L, n, force=F, inputs={…})"
        )

    @property
    def m(self) -> int:
        """How many constraints hold."""
        return sum(term.rows * term.local.m for term in self.terms)

    @cached_property
    def assembly(self) -> Assembly:
        """The sums over rows, for one point at a time."""
        held = [(one, term.local) for one, term in zip(self.summands, self.terms, strict=True) if term.local.m]
        return Assembly(self.n, self.summands, [(one, cast(Program, local.constraints)) for one, local in held])

    @property
    def depends_on_time(self) -> bool:
        """Whether t occurs in L or in a force."""
        return any(term.local.depends_on_time for term in self.terms)

    @property
    def mass_varies_with_velocity(self) -> bool:
        """Whether ∂²L/∂v² depends on v."""
        return any(term.local.mass_varies_with_velocity for term in self.terms)

    @property
    def forced(self) -> bool:
        """Whether a force acts."""
        return any(term.local.forced for term in self.terms)

    @property
    def forced_by_state(self) -> bool:
        """Whether a force acts that depends on q or v."""
        return any(term.local.forced_by_state for term in self.terms)

    @property
    def has_tangent(self) -> bool:
        """Whether a run can soon carry the derivatives of its states: of the system `expanded`, if that is short."""
        return self.n <= MOST_EXPANDED and self.instructions <= QUICKLY

    @property
    def instructions(self) -> int:
        """The instructions of L and the forces at one point, over all rows."""
        return sum(term.rows * term.local.instructions for term in self.terms)

    def expanded(self) -> Lagrangian:
        """The same system as one Lagrangian, every row written out: for computations that only small systems allow."""
        return self._written_out

    @cached_property
    def _written_out(self) -> Lagrangian:
        if self.n > MOST_EXPANDED:
            raise ValueError(
                f"{self.name} has n = {self.n} coordinates; what needs its Lagrangian written out row by row (digits=, "
                f"tangent=, reduce=, pace=, RK4, compositions, and analysis) is for at most {MOST_EXPANDED}. A "
                "larger one takes a member of the Galerkin family and h=: for a derivative along one direction compare "
                "two runs that begin close together, for an error compare with half the step"
            )
        size = len(self._flat)
        B = Builder([("t", 1), ("q", self.n), ("v", self.n), ("params", size)])
        t, q, v, flat = (B.input(block) for block, _ in B.inputs)
        parts: list[int] = []
        held: list[int] = []
        push: dict[int, list[int]] = {}
        for term, summand in zip(self.terms, self.summands, strict=True):
            for r, row in enumerate(term.table.tolist()):
                w = [flat[a + r * b] for a, b in zip(summand.first.tolist(), summand.pitch.tolist(), strict=True)]
                at = {"t": t, "q": [q[j] for j in row], "v": [v[j] for j in row], "params": w}
                parts += B.inline(term.local.program, **at)["L"]
                if term.local.force is not None:
                    for j, x in zip(row, B.inline(term.local.force, **at)["F"], strict=True):
                        push.setdefault(j, []).append(x)
                if term.local.constraints is not None:
                    still = {name: value for name, value in at.items() if name != "v"}
                    held += B.inline(term.local.constraints, **still)["g"]
        force = None
        if push:
            force = B.build(F=[B.sum(push.get(j, [])) for j in range(self.n)]).select("F")
        program = B.build(L=[B.sum(parts)]).select("L")
        constraints = _still(B.build(g=held), self.n, size) if held else None
        return Lagrangian.from_program(program, self.n, self._given, self.name, force, constraints, names=self.names)

    # Mechanics.

    def momentum(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """p = ∂L/∂v at one point (n,) or many (K, n)."""
        return self._each(q, v, t, "v", lambda q, v, t: self.assembly.at(self.values(params)).momentum(t, q, v))

    def velocity(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """v with ∂L/∂v(q, v) = p, at one point (n,) or many (K, n)."""
        return self._each(q, p, t, "p", lambda q, p, t: self._velocity(q, p, t, self.values(params)))

    def _velocity(self, q: FloatArray, p: FloatArray, t: float, params: FloatArray) -> FloatArray:
        v = self.assembly.at(params).velocity(t, q, p)
        if v is None:
            raise DegenerateLagrangianError(
                f"no velocity of {self.name} has these momenta: ∂²L/∂v² is singular, or a momentum is outside the "
                "range of ∂L/∂v. Every coordinate needs a kinetic term, and L must be regular in its velocities."
            )
        return v

    def energy(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> Any:
        """E = p·v − L, the Hamiltonian, at one point (n,) or many (K, n)."""
        values = self.values(params)

        def one(q: FloatArray, p: FloatArray, t: float) -> FloatArray:
            v = self._velocity(q, p, t, values)
            parts = self.assembly.at(values).parts_of_L(t, q, v)
            return np.array([np.sum(p * v) - sum(np.sum(part) for part in parts)])

        return self._each(q, p, t, "p", one)[..., 0]

    def external_force(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None
    ) -> FloatArray:
        """The forces that do not come from L, at one point (n,) or many (K, n)."""
        return self._each(q, v, t, "v", lambda q, v, t: self.assembly.at(self.values(params)).external(t, q, v))

    def acceleration(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The acceleration by Euler, Lagrange and d'Alembert at one point (n,) or many (K, n)."""

        return self._each(q, v, t, "v", lambda q, v, t: self._motion(q, v, t, params)[0])

    def multipliers(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """λ of the constraints, such that g̈ = 0, term by term and row by row, at one point (m,) or many (K, m)."""
        return self._each(q, v, t, "v", lambda q, v, t: self._motion(q, v, t, params)[1])

    def reaction(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """Gᵀλ, the forces that hold the constraints, at one point (n,) or many (K, n)."""

        def one(q: FloatArray, v: FloatArray, t: float) -> FloatArray:
            if not self.m:
                return np.zeros(self.n)
            G = self.assembly.at(self.values(params)).constraints(t, q, v).G
            return np.asarray(G.T @ self._motion(q, v, t, params)[1])

        return self._each(q, v, t, "v", one)

    def _motion(self, q: FloatArray, v: FloatArray, t: float, params: Any) -> tuple[FloatArray, FloatArray]:
        """Acceleration and multipliers."""
        found = self.assembly.at(self.values(params)).motion(t, q, v)
        if found is None:
            reason = ", or its constraints depend on each other" if self.m else ""
            raise DegenerateLagrangianError(f"{self.name} has no acceleration there: ∂²L/∂v² is singular{reason}")
        return found

    def freely(self, gradient: FloatArray, t: float, q: FloatArray, v: FloatArray, params: FloatArray) -> FloatArray:
        """The part of a gradient that constraints leave free: d = ∇g − Gᵀy with G M⁻¹d = 0."""
        d = self.assembly.at(params).freely(t, q, v, gradient)
        if d is None:
            raise ArithmeticError(f"the constraints of {self.name} depend on each other at t = {t:.6g}")
        return d

    def project(self, q: FloatArray, v: FloatArray, t: float, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The state on the constraints that is nearest to (q, v), in the metric of the mass."""
        found = self.assembly.at(params).nearest(t, q, v)
        if found is None:
            raise ConstraintError(
                f"no state on the constraints of {self.name} was found near q0: begin nearer, or ask whether the "
                "constraints contradict each other or depend on each other"
            )
        return found

    def energies(self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        """The energy at many states, each with its own parameters."""
        return np.array([float(self.energy(*x)) for x in zip(q, p, t, params, strict=True)])

    def terms_of_energy(
        self, t: float, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """v and L, and f and m at rest, at many states (K, n), each with its parameters; NaN where there is no v."""
        v, L, f, m = np.full(q.shape, np.nan), np.full(len(q), np.nan), np.zeros(q.shape), np.zeros(q.shape)
        for i in range(len(q)):
            at = self.assembly.at(params[i])
            found = at.velocity(t, q[i], p[i])
            if found is not None:
                v[i] = found
                L[i] = sum(np.sum(part) for part in at.parts_of_L(t, q[i], found))
            f[i], m[i] = (x[: self.n] for x in self.assembly.gradient(t, q[i], 0 * q[i], params[i]))
        return v, L, f, m

    def frequency(
        self, t: float, q: FloatArray, p: FloatArray, v: FloatArray, params: FloatArray, length: float
    ) -> float:
        """The largest frequency or growth rate of the linearised motion at its start, or soon after."""
        if not self.has_tangent:
            return fastest_of_sum(self, t, q, v, params)
        return self.expanded().frequency(t, q, p, v, params, length)

    def begin(
        self, t: float, q: FloatArray, p: FloatArray | None, v: FloatArray | None, params: FloatArray
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int8]]:
        """Momenta, velocities and a status of trajectories that begin at q with p or v, a row for each."""
        P, V = np.full(q.shape, np.nan), np.full(q.shape, np.nan)
        status = np.zeros(len(q), np.int8)
        for i in range(len(q)):
            try:
                P[i], V[i] = self._start(t, q[i], None if p is None else p[i], None if v is None else v[i], params[i])
            except DegenerateLagrangianError:
                status[i] = SINGULAR
            except ValueError:
                status[i] = NOT_FINITE
        assert GOING_WELL == 0
        return P, V, status

    def check_start(self, t: Any, q: Any, p: Any, v: Any, params: Any) -> None:
        """Say why one trajectory cannot begin."""
        self._start(t, q, p, v, params)

    def _start(self, t: float, q: Any, p: Any, v: Any, params: Any) -> tuple[FloatArray, FloatArray]:
        """p and v where a trajectory begins, or why it cannot."""
        at = self.assembly.at(params)
        still = at.without_mass(t, q, 0 * q if v is None else v)
        if still is not None:
            raise DegenerateLagrangianError(
                f"{self.name} is degenerate: ∂L/∂v[{still}] does not depend on v[{still}], so momenta do not determine "
                "velocities. Every coordinate needs a kinetic term."
            )
        if v is None:
            v = self._velocity(q, p, t, params)
        else:
            p = at.momentum(t, q, v)
        a, _ = self._motion(q, v, t, params)
        for what, array in (("momentum", p), ("acceleration", a)):
            if not np.isfinite(array).all():
                j = int(np.flatnonzero(~np.isfinite(array))[0])
                raise ValueError(
                    f"the {what} of coordinate {j} is not finite at the start, where q[{j}] = {q[j]}, v[{j}] = {v[j]}: "
                    "the motion begins outside the domain of a term"
                )
        if not all(np.isfinite(part).all() for part in at.parts_of_L(t, q, v)):
            raise ValueError("L is not finite at the start: the motion begins outside the domain of a term")
        if self.m:
            self._check_held(t, q, v, params)
        return p, v

    def _check_held(self, t: float, q: FloatArray, v: FloatArray, params: FloatArray) -> None:
        """Refuse a state that is off the constraints by more than round-off."""
        at, found = self.assembly.at(params), []
        here = at.constraints(t, q, v)
        for what, off, size, x in (("q0", here.g, here.g_size, q), ("the velocity", here.c, here.c_size, v)):
            if (np.abs(off) <= ROUND_OFF * EPS * size).all():
                continue
            change = at.lifted(t, q, v, off)
            if change is not None and np.abs(change).max() <= ROUND_OFF * EPS * np.abs(x).max():
                continue
            far = "" if change is None else f", and the nearest that is on them differs by {np.abs(change).max():.2g}"
            worst = int(np.argmax(np.abs(off)))
            found.append(f"{what} is off the constraints, at most by {abs(off[worst]):.2g} in number {worst}{far}")
        if found:
            raise ConstraintError("; ".join(found) + ". Begin with q0, v0 = la.project(system, q0, v0)")

    def engine(self, method: Method, width: int = 1, energy: bool = False, varied: int = 0) -> Engine | None:
        """How one native function steps the system; methods beside the family step it `expanded`."""
        if not isinstance(method, Galerkin):
            return self.expanded().engine(method, width, energy, varied)
        return None if width > 1 or varied else engine(self, method)

    def scripted(self, method: Galerkin) -> Scripted:
        """What the steps of a method ask of this system."""
        return summed(self, method)

    def stepper(self, method: Method, start: Start, row: Row | None = None) -> FormStepper:
        """The stepper of one trajectory in float64."""
        return FormStepper(self if isinstance(method, Galerkin) else self.expanded(), method, start, row)

    # Files.

    def record(self) -> dict[str, Any]:
        """What a file's header says of the system."""
        terms = [
            {
                "name": term.name,
                "program": term.local.program.to_json(),
                "force": None if term.local.force is None else term.local.force.to_json(),
                "constraints": None if term.local.constraints is None else term.local.constraints.to_json(),
                "params": {key: to_texts(value) for key, value in term.given.items() if not term.own[key]},
                "own": [key for key in term.given if term.own[key]],
                "order": list(term.given),
            }
            for term in self.terms
        ]
        return {"n": self.n, "name": self.name, "names": list(self.names), "terms": terms}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a file has beside the header: the tables, and parameters with a value for every row."""
        found: dict[str, NDArray[Any]] = {}
        for k, term in enumerate(self.terms):
            found[f"term{k}_over"] = term.table
            for key in term.given:
                if term.own[key]:
                    found[f"term{k}_{key}"] = FLOAT64.array(term.given[key])
        return found

    @classmethod
    def from_record(cls, record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Sum:
        """A system from header and arrays of a file. Everything in them is checked."""
        terms = []
        for k, data in enumerate(listing(entry(record, "terms"), "terms")):
            name = text(entry(data, "name"), "a term's name")
            program = Program.from_json(entry(data, "program"))
            force, constraints = (
                None if entry(data, name) is None else Program.from_json(data[name])
                for name in ("force", "constraints")
            )
            shared = mapping(entry(data, "params"), "params")
            own = [text(key, "a parameter's name") for key in listing(entry(data, "own"), "own")]
            params: dict[str, Any] = {}
            for key in listing(entry(data, "order"), "order"):
                if key in own:
                    kept = entry(arrays, f"term{k}_{key}")
                    params[key] = floats(arrays, f"term{k}_{key}", (None,) * np.ndim(kept))
                else:
                    params[text(key, "a parameter's name")] = numbers(entry(shared, key), f"{key!r}")
            table = floats(arrays, f"term{k}_over", (None, None), np.int64)
            terms.append(Term.from_programs(program, table, params, name, force, constraints))
        n = integer(entry(record, "n"), "n, the number of degrees of freedom,", 1, sum(t.table.size for t in terms))
        names = [text(one, "a coordinate's name") for one in listing(record.get("names", []), "names")]
        return cls(terms, n, text(entry(record, "name"), "name"), names)

    def _each(self, q: ArrayLike, other: ArrayLike, t: ArrayLike, name: str, one: Any) -> FloatArray:
        """The results of `one` at one state or at many, after a check of their shapes."""
        Q, X, T, single = states_of(self.n, q, other, t, name)
        found = np.array([one(a, b, float(c)) for a, b, c in zip(Q, X, T, strict=True)])
        return found[0] if single else found

    def __repr__(self) -> str:
        return f"Sum({', '.join(map(repr, self.terms))}, n={self.n})"


def _still(program: Program, n: int, params: int) -> Program:
    """A Program of (t, q, v, params) that does not read v, without v."""
    B = Builder([("t", 1), ("q", n), ("params", params)])
    given = {name: B.input(name) for name, _ in B.inputs} | {"v": [B.const(0.0)] * n}
    return B.build(**B.inline(program, **given))
