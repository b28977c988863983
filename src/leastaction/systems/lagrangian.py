"""Lagrangian: the user's functions, their parameters, and the mechanics that follow from them.

momentum      p = ∂L/∂v (q, v)
velocity      its inverse v(q, p), by Newton where L is not quadratic in v
energy        E = p·v − L
acceleration  a = L_vv⁻¹ (L_q + F + Gᵀλ − L_vq v − L_vt), with the external force F and the reaction Gᵀλ, if there are
multipliers   λ such that g̈ = 0 where constraints g(t, q) = 0 hold, G = ∂g/∂q
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.backends import points
from leastaction.backends.composed import ComposedStepper
from leastaction.backends.fused.rk4 import rk4_program
from leastaction.backends.galerkin import GalerkinStepper
from leastaction.backends.native import fingerprint
from leastaction.backends.rk4 import RK4Stepper, RK4Tangent
from leastaction.backends.rows import Row
from leastaction.backends.status import BRANCH_ENDS, GOING_WELL, NOT_CONVERGED, NOT_FINITE, SINGULAR
from leastaction.backends.stepper import Start
from leastaction.backends.trajectories import Backend, backend
from leastaction.errors import DegenerateLagrangianError, TraceError
from leastaction.methods import Composition, Galerkin, Method, RungeKutta4
from leastaction.numbers.notation import to_texts
from leastaction.numbers.rounding import FLOAT64, Reals, all_finite
from leastaction.program import Builder, Program
from leastaction.reading import entry, integer, mapping, numbers, text
from leastaction.step.constraints import end, geometry, held, reaction
from leastaction.step.form import End, Term, with_rest
from leastaction.step.inputs import flat, shapes_from, shapes_of, size_of
from leastaction.systems.forces import DRIVEN, UNDRIVEN, check_inputs, taken, total_force, with_force
from leastaction.systems.frequencies import fastest
from leastaction.systems.usual import Usual

if TYPE_CHECKING:
    from leastaction.systems.sums import Sum
    from leastaction.systems.sums import Term as SumTerm

FloatArray = NDArray[np.float64]
EQUILIBRATIONS = 24  # each one halves the remaining exponents
DOMINANT = 1.999  # times the diagonal: if a row sums up to less, its diagonal outweighs its other entries
ORDINARY = 1e-100  # quotients of numbers between this and one over this do not overflow

Params = Mapping[str, Any] | FloatArray  # by name, or all of them as the flat array of `values`
Given = Mapping[str, Any] | FloatArray | None  # inputs by name, or all of them as one flat array, or rows of it


# What to do about a degenerate Lagrangian: at one configuration, or anywhere.
POLE = (
    "Beside this configuration it is not: this is a pole of its chart, as of an upright top in Euler's angles. Start "
    "beside it, or take coordinates without a pole there."
)
EVERYWHERE = "Give every coordinate a kinetic term, or eliminate the ones without."


def _is_regular(Lvv: FloatArray) -> bool:
    """Whether a matrix has full rank, whatever the units of its rows and columns."""
    return bool(Lvv.any(axis=1).all()) and int(np.linalg.matrix_rank(equilibrated(Lvv))) == len(Lvv)


_REASONS = {
    NOT_CONVERGED: "Newton's iteration did not converge",
    NOT_FINITE: "the Lagrangian or a derivative became infinite or not a number",
    BRANCH_ENDS: "no solution of this size of step is connected with the motion",
    SINGULAR: "the equations became singular",
}


def explained(status: int, h: float) -> tuple[str, str]:
    """Why a step of any Lagrangian that ended with this status could not be done, and what to try."""
    advice = (
        f"Try a smaller step, h = {h:g}, or a method with more nodes; near a singularity of L (a collision, a "
        "chart's pole) other coordinates help"
    )
    return _REASONS[status], advice


def check_start(
    system: Any,
    t: Any,
    q: NDArray[Any],
    p: NDArray[Any] | None,
    v: NDArray[Any] | None,
    params: NDArray[Any],
    inputs: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """p and v where a trajectory begins, or why it cannot; `system` may be a Lagrangian at another precision."""
    if p is None:
        system.check_regular(q, v, t, params)
        p = system.momentum(q, v, t, params)
    else:
        try:
            v = system.velocity(q, p, t, params)
        except DegenerateLagrangianError:
            system.check_regular(q, 0 * q, t, params)
            raise
        system.check_regular(q, v, t, params)
    if not all_finite(p):
        raise ValueError(f"the momentum is not finite at the start, q = {q}, v = {v}: p = {p}")
    if not all_finite(np.array(system.energy(q, p, t, params))):
        raise ValueError(f"L is not finite at the start, q = {q}, v = {v}: the motion begins outside its domain")
    a = system.acceleration(q, v, t, params) if inputs is None else system.acceleration(q, v, t, params, inputs)
    if not all_finite(a):
        raise ValueError(f"the acceleration is not finite at the start, q = {q}, v = {v}: {a}")
    assert v is not None
    return p, v


class Lagrangian(Usual):
    """A mechanical system: a Lagrangian L(q, v) or L(t, q, v), its parameters, forces and constraints.

    The function is ordinary NumPy. It is called once, to be traced. The library differentiates the trace exactly and
    compiles it; see :doc:`/design`.

    Parameters
    ----------
    fn : callable
        ``fn(q, v, **params)`` or ``fn(t, q, v, **params)``, which returns the number L. q and v are arrays of length
        n.
    n : int
        Degrees of freedom.
    params : mapping, optional
        Names and default values of parameters: numbers or arrays. A new value never recompiles the system, and every
        run may bring its own. Text ("9.81", "pi/6") and exact numbers (Fraction, SymPy) are kept exactly, and each
        precision rounds them itself.
    force : callable, optional
        ``F(q, v, …)`` or ``F(t, q, v, …)``, which returns n generalised forces, in d/dt ∂L/∂v − ∂L/∂q = F. It takes
        the parameters that its signature names.
    dissipation : callable, optional
        A Rayleigh function ``D(q, v, …)`` or ``D(t, q, v, …)``. It adds the force −∂D/∂v.
    constraints : callable, optional
        ``g(q, …)`` or ``g(t, q, …)``, which returns m < n numbers. Reactions Gᵀλ with G = ∂g/∂q hold them at zero.
    inputs : mapping of str to int or tuple of int, optional
        Names and shapes of what drives the system from outside: an integer is the length of a vector, () a number. The
        force and the Rayleigh function take the inputs that their signatures name; L and constraints take none. A run
        brings the values, ``la.integrate(…, inputs={"u": U})``.

    Attributes
    ----------
    n : int
        Degrees of freedom.
    m : int
        Number of constraints.
    params : dict
        Names and default values of the parameters, as floats.
    given : dict
        The same values as they were given, exact where they were exact.
    inputs : dict of str to tuple of int
        The shapes of the inputs.
    name : str
        The name of the function.
    depends_on_time : bool
        Whether t occurs in L, in the force or in the constraints, or there are inputs, which change with time.
    forced : bool
        Whether a force acts.

    Methods
    -------
    momentum(q, v)
        p = ∂L/∂v.
    velocity(q, p)
        The velocity that has this momentum.
    energy(q, p)
        E = p·v − L.
    value(q, v)
        L itself.
    acceleration(q, v)
        The acceleration by Lagrange's equations.
    external_force(q, v)
        F, with that of the Rayleigh function.
    multipliers(q, v)
        λ of the constraints.
    reaction(q, v)
        Gᵀλ, the forces that hold the constraints.
    from_sympy(L, q, v)
        A system from a SymPy expression.
    sum(terms, n)
        A large system: terms summed over tables of coordinates.

    Raises
    ------
    TraceError
        The function does something that cannot be traced. The message says what, and what to write.
    ValueError
        n, a parameter or the shape of an input is not what was expected.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> def pendulum(q, v, m, l, g):
    ...     return 0.5 * m * l**2 * v[0] ** 2 + m * g * l * np.cos(q[0])
    >>> system = la.Lagrangian(pendulum, n=1, params={"m": 1.0, "l": 2.0, "g": 9.81})
    >>> system.momentum([0.0], [3.0])
    array([12.])

    With friction:

    >>> given = {"m": 1.0, "l": 2.0, "g": 9.81, "c": 0.5}
    >>> damped = la.Lagrangian(pendulum, n=1, params=given, force=lambda q, v, c: -c * v)
    >>> damped.acceleration([0.0], [3.0])
    array([-0.375])

    With a force that a run brings, an input:

    >>> pushed = la.Lagrangian(pendulum, n=1, params=given, force=lambda q, v, u, c: u - c * v, inputs={"u": 1})
    >>> pushed.acceleration([0.0], [3.0], inputs={"u": [5.5]})
    array([1.])

    With a constraint; its multiplier is the pull of the rod, ½ (9.81 + 3²/2):

    >>> def falling(q, v, g):
    ...     return 0.5 * (v @ v) - g * q[1]
    >>> rod = la.Lagrangian(falling, n=2, params={"g": 9.81, "l": 2.0}, constraints=lambda q, l: (q @ q - l**2) / 2)
    >>> rod.multipliers([0.0, -2.0], [3.0, 0.0])
    array([-7.155])
    """

    linear = False
    rest: Program | None = None  # (t, q, v, params) ↦ velocities at which L has a value, if L has none at rest
    still: tuple[int, ...] = ()  # coordinates whose constant masses are so great that no force moves them

    def __init__(
        self,
        fn: Callable[..., Any],
        n: int,
        params: Mapping[str, Any] | None = None,
        *,
        force: Callable[..., Any] | None = None,
        dissipation: Callable[..., Any] | None = None,
        constraints: Callable[..., Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        from leastaction.trace.function import CONSTRAINTS, LAGRANGIAN, Role, trace

        if not callable(fn):
            raise TypeError(f"expected a function fn(q, v, **params) that returns L; got {fn!r}")
        for name, function in (("force", force), ("dissipation", dissipation)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function of q and v, as in {name}=lambda q, v: …; got {function!r}")
        if constraints is not None and not callable(constraints):
            raise TypeError(f"constraints must be a function of q, as in constraints=lambda q: …; got {constraints!r}")
        self.n = _degrees(n)
        self._given, self._defaults = deepcopy(dict(params or {})), _values(params or {})
        self.fn: Callable[..., Any] | None = fn
        self.name = getattr(fn, "__name__", type(fn).__name__)
        self.inputs = shapes_of(inputs)
        shapes = {name: value.shape for name, value in self._defaults.items()}
        roles = {"L": LAGRANGIAN, "F": Role("F", "the force", self.n), "D": Role("D", "the Rayleigh function")}
        roles["g"] = CONSTRAINTS
        given = {"L": fn, "F": force, "D": dissipation, "g": constraints}
        functions = {name: f for name, f in given.items() if f is not None}
        check_inputs(functions, shapes, self.inputs)
        takes: Mapping[str, Any] = taken(functions, shapes) if len(functions) > 1 else {}
        programs = {}
        for name, f in functions.items():
            role, driven = roles[name], self.inputs if name in DRIVEN else {}
            time = takes_time(f, {**shapes, **driven}, role.reads)
            programs[name] = trace(f, self.n, shapes, time, role, takes.get(name), driven)
        self.program = programs["L"]
        self.force = total_force(programs.get("F"), programs.get("D"))
        self.constraints = _fewer(programs.get("g"), self.n)

    @classmethod
    def from_program(
        cls,
        program: Program,
        n: int,
        params: Mapping[str, Any] | None = None,
        name: str = "L",
        force: Program | None = None,
        constraints: Program | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Lagrangian:
        """A system from the Programs of L, (t, q, v, params) ↦ L, of the force, (t, q, v, params) ↦ F, where there are
        inputs (t, q, v, params, inputs) ↦ F, and of the constraints, (t, q, params) ↦ g.
        """
        system = cls.__new__(cls)
        system.n, system.program, system.name, system.fn = _degrees(n), program, name, None
        system.force, system.constraints = force, _fewer(constraints, system.n)
        system.inputs = shapes_of(inputs)
        system._given, system._defaults = deepcopy(dict(params or {})), _values(params or {})
        size = sum(value.size for value in system._defaults.values())
        reads = (("t", 1), ("q", system.n), ("v", system.n), ("params", size))
        still = (reads[0], reads[1], reads[3])
        driven = (*reads, ("inputs", system.channels)) if system.inputs else reads
        parts = [("a Lagrangian", program, reads, ("L", 1)), ("a force", force, driven, ("F", system.n))]
        for what, given, takes, outputs in [*parts, ("constraints", constraints, still, ("g", system.m))]:
            if given is not None and (given.inputs, given.outputs) != (takes, (outputs,)):
                raise ValueError(
                    f"the Program of {what} with n = {system.n} and {size} parameters takes {takes} to "
                    f"{(outputs,)}; got {given.inputs} and {given.outputs}"
                )
        return system

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Lagrangian:
        """A system from the header of a file: program, force, constraints, n, defaults and name. Everything in it is
        checked.
        """
        program = Program.from_json(entry(record, "program"))
        force, constraints = (
            None if entry(record, name) is None else Program.from_json(record[name])
            for name in ("force", "constraints")
        )
        # Momenta determine velocities, so every velocity is read by some instruction.
        n = integer(entry(record, "n"), "n, the number of degrees of freedom,", 1, len(program.code))
        defaults = mapping(entry(record, "defaults"), "defaults")
        given = {text(name, "a parameter's name"): numbers(value, f"{name!r}") for name, value in defaults.items()}
        inputs, name = shapes_from(entry(record, "inputs")), text(entry(record, "name"), "name")
        if inputs and force is None:
            raise ValueError("the system has inputs and no force, and only a force reads inputs: give force=")
        return cls.from_program(program, n, given, name, force, constraints, inputs)

    @classmethod
    def from_sympy(
        cls,
        L: Any,
        q: Sequence[Any],
        v: Sequence[Any],
        t: Any = None,
        params: Mapping[str, Any] | None = None,
        *,
        force: Any = None,
        dissipation: Any = None,
        constraints: Any = None,
        inputs: Sequence[Any] = (),
    ) -> Lagrangian:
        """A system from a SymPy expression L in the coordinates q and the velocities v.

        Parameters
        ----------
        L : SymPy expression
            The Lagrangian.
        q, v : sequence of SymPy symbols
            Coordinates and velocities: symbols, or functions of t and their derivatives.
        t : SymPy symbol, optional
            The time, if L depends on it.
        params : mapping, optional
            Values of all other free symbols of L, by name or by the symbol itself.
        force : sequence of n expressions, optional
            The generalised forces.
        dissipation : expression, optional
            A Rayleigh function.
        constraints : expression or sequence of expressions, optional
            What is held at zero.
        inputs : sequence of SymPy symbols, optional
            Symbols of the force or of the Rayleigh function that are inputs: numbers that a run brings.

        Returns
        -------
        Lagrangian

        Raises
        ------
        ValueError
            A free symbol has no value in `params`, or `params` names a symbol that L does not have.
        TraceError
            An input stands in L or in the constraints, or nowhere.

        Examples
        --------
        >>> import sympy, leastaction as la
        >>> q, v, k = sympy.symbols("q v k")
        >>> spring = la.Lagrangian.from_sympy(v**2 / 2 - k * q**2 / 2, [q], [v], params={"k": 4.0})
        >>> spring.acceleration([0.5], [0.0])
        array([-2.])
        """
        from leastaction.trace.from_sympy import trace_sympy

        written, every = trace_sympy(L, q, v, t, force, dissipation, constraints)
        driven = [str(symbol) for symbol in inputs]
        if idle := [name for name in driven if name not in every]:
            raise TraceError(f"the input {idle[0]!r} stands neither in the force nor in the Rayleigh function")
        names = [name for name in every if name not in driven]
        parts = {name: _with_inputs(written.select(name), every, driven, name) for name, _ in written.outputs}
        program = parts["L"]
        given = {str(name): value for name, value in dict(params or {}).items()}
        missing, extra = sorted(set(names) - set(given)), sorted(set(given) - set(names))
        if missing or extra:
            raise ValueError(
                f"the parameters of L are {sorted(names)}; "
                + (f"give a value for {missing} in params" if missing else f"it has none called {extra}")
            )
        n = dict(program.inputs)["q"]
        total = total_force(parts.get("F"), parts.get("D"))
        still = None
        if "g" in parts:
            B = Builder([block for block in program.inputs if block[0] != "v"])
            at = {name: B.input(name) for name, _ in B.inputs} | {"v": [B.const(0.0)] * n}
            still = B.build(g=B.inline(parts["g"], **at)["g"])
        values, shapes = {name: given[name] for name in names}, dict.fromkeys(driven, ())
        return cls.from_program(program, n, values, "L", total, still, shapes)

    @classmethod
    def sum(cls, terms: Sequence[SumTerm], n: int) -> Sum:
        """A system of n coordinates whose Lagrangian is a sum of small terms, each over the rows of a table.

        L = Σ_terms Σ_rows fn(q[row], v[row], …). Lattices, meshes and N bodies are such sums. Each term is traced,
        differentiated and compiled once, however many rows its table has.

        Parameters
        ----------
        terms : sequence of Term
            The summands.
        n : int
            Number of coordinates.

        Returns
        -------
        Sum
            A system for `la.integrate` and `la.ensemble`.

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> masses = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(100))
        >>> springs = la.Term(lambda q, v: -0.5 * (q[1] - q[0]) ** 2, over=[[i, i + 1] for i in range(99)])
        >>> la.Lagrangian.sum([masses, springs], n=100).n
        100
        """
        from leastaction.systems.sums import Sum

        return Sum(terms, n)

    def __getstate__(self) -> dict[str, Any]:
        """The state for other processes: the Programs, not the functions, which may be defined in a notebook."""
        names = ("n", "program", "force", "constraints", "inputs", "name", "_given", "_defaults")
        return {name: getattr(self, name) for name in names} | {"fn": None}

    @property
    def given(self) -> dict[str, Any]:
        """Names and default values of the parameters, as they were given."""
        return dict(self._given)

    @property
    def params(self) -> dict[str, Any]:
        """Names and default values of the parameters."""
        return self.named(self.values())

    def named(self, values: NDArray[Any]) -> dict[str, Any]:
        """The flat array of `values`, by name."""
        named, start = {}, 0
        for name, default in self._defaults.items():
            block = values[start : start + default.size].reshape(default.shape)
            named[name] = block.item() if default.shape == () else block.copy()
            start += default.size
        return named

    @cached_property
    def depends_on_time(self) -> bool:
        """Whether t occurs in L, in the force or in the constraints, or there are inputs, which change with time."""
        programs = (self.program, self.force, self.constraints)
        return bool(self.inputs) or any(("input", 0) in program.code for program in programs if program is not None)

    @property
    def m(self) -> int:
        """How many constraints hold."""
        return 0 if self.constraints is None else self.constraints.output_size

    @property
    def forced(self) -> bool:
        """Whether a force acts."""
        return self.force is not None

    @property
    def forced_by_state(self) -> bool:
        """Whether a force acts that depends on q or v."""
        return self.force is not None and self.force.depends("F", "q", "v")

    def expanded(self) -> Lagrangian:
        """The system as one Lagrangian, which it is."""
        return self

    @property
    def channels(self) -> int:
        """The number of values that all inputs have at one instant."""
        return sum(map(size_of, self.inputs.values()))

    @property
    def digest(self) -> str:
        """A fingerprint of L, the force and the constraints: systems with the same fingerprint differ only in names and
        values of parameters.
        """
        parts = {"": self.program, "F": self.force, "g": self.constraints}
        return "".join(name + program.digest for name, program in parts.items() if program is not None)

    @cached_property
    def gradient(self) -> Program:
        """(t, q, v, params) ↦ L, Lq, Lv."""
        from leastaction.trace import derivatives

        return derivatives(self.program, second=False)

    @cached_property
    def hessian(self) -> Program:
        """(t, q, v, params) ↦ L, Lq, Lv, Lqq, Lqv, Lvv, Lvt."""
        from leastaction.trace import derivatives

        return derivatives(self.program, second=True)

    @cached_property
    def mass_varies_with_velocity(self) -> bool:
        """Whether L is not quadratic in v."""
        return self.hessian.depends("Lvv", "v")

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The system as a step sees it: the force f = ∂L/∂q + F and the momentum m = ∂L/∂v at the nodes, and the
        constraints at the control points.
        """
        first, node = self.gradient, self.node
        values = with_force(first.with_outputs(f=first.output("Lq"), m=first.output("Lv")), self.force)
        own = Term(values, node.select("f", "m", "f_q", "f_v", "m_q", "m_v"), rest=self.rest, still=self.still)
        return (own,) if self.constraints is None else (own, held(self.constraints))

    @cached_property
    def end(self) -> End | None:
        """The equations for the end of a step, if constraints hold."""
        return None if self.constraints is None else end(self.constraints, self.node, self.sensitive_node)

    @cached_property
    def geometry(self) -> Program:
        """(t, q, v, params) ↦ g, c = ġ, G = ∂g/∂q, and g̈ without acceleration; only if constraints hold."""
        if self.constraints is None:
            raise ValueError(f"{self.name} has no constraints: give them as la.Lagrangian(…, constraints=g)")
        return geometry(self.constraints)

    @cached_property
    def node(self) -> Program:
        """(t, q, v, params) ↦ f, m, their derivatives f_q, f_v, m_q, m_v, and m_t; and first velocities for the solver,
        if L has no value at rest.
        """
        return with_rest(self._node(self.hessian, m_t="Lvt"), self.rest)

    @cached_property
    def sensitive_node(self) -> Program:
        """The same outputs and, after the derivatives by q and v, those by time and by the parameters w."""
        from leastaction.trace import derivatives

        second = derivatives(self.program, second=True, parameters=True)
        return self._node(second, f_t="Lqt", m_t="Lvt", f_w="Lqw", m_w="Lvw")

    @property
    def sensitive_terms(self) -> tuple[Program, ...]:
        """The terms with all derivatives."""
        still = () if self.constraints is None else (reaction(self.constraints, parameters=True),)
        return (self.sensitive_node, *still)

    @cached_property
    def inertia(self) -> Program:
        """(t, q, v, params) ↦ m, m_q, m_v, which do not depend on forces."""
        return self._unforced(self.hessian).select("m", "m_q", "m_v")

    def _node(self, second: Program, **further: str) -> Program:
        return with_force(self._unforced(second, **further), self.force)

    def _unforced(self, second: Program, **further: str) -> Program:
        n, Lqv = self.n, second.output("Lqv")
        return second.with_outputs(
            f=second.output("Lq"),
            m=second.output("Lv"),
            f_q=second.output("Lqq"),
            f_v=Lqv,
            m_q=[Lqv[k * n + j] for j in range(n) for k in range(n)],
            m_v=second.output("Lvv"),
            **{name: second.output(block) for name, block in further.items()},
        )

    @cached_property
    def acceleration_slopes(self) -> Program:
        """(t, q, v, params, a) ↦ g = f − m_q v − m_t − m_v a, which is zero; and g_q, g_v, g_params, g_t."""
        from leastaction.trace import jacobian

        n, node = self.n, self.node
        B = Builder([*node.inputs, ("a", n)])
        at = B.inline(node, **{name: B.input(name) for name, _ in node.inputs})
        v, a = B.input("v"), B.input("a")
        g = []
        for j in range(n):
            moved = B.sum(B.add(B.mul(at["m_q"][j * n + k], v[k]), B.mul(at["m_v"][j * n + k], a[k])) for k in range(n))
            g.append(B.sub(at["f"][j], B.add(moved, at["m_t"][j])))
        return jacobian(B.build(g=g), "q", "v", "params", "t")

    def values(self, params: Params | None = None, reals: Reals = FLOAT64) -> NDArray[Any]:
        """The parameters as one flat array, defaults replaced by what `params` brings."""
        if isinstance(params, np.ndarray):
            size = self.program.inputs[-1][1]
            if params.shape != (size,):
                raise ValueError(f"the flat array of {self.name}'s parameters has shape ({size},), got {params.shape}")
            return params
        if not isinstance(params, Mapping | None):
            raise TypeError(f"params must map names to values, as in dict(m=1.0); got {params!r}")
        if not params and reals is FLOAT64:
            return self._flat.copy()
        merged = dict(self._defaults) if reals is FLOAT64 else _values(self._given, reals)
        for name, value in _values(params or {}, reals).items():
            if name not in merged:
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {sorted(merged) or 'none'}")
            if value.shape != merged[name].shape:
                raise ValueError(f"parameter {name!r} has shape {merged[name].shape}, got {value.shape}")
            merged[name] = value
        return np.concatenate([reals.array([]), *(value.ravel() for value in merged.values())])

    @cached_property
    def _flat(self) -> FloatArray:
        """The defaults of the parameters, one after the other."""
        return np.concatenate([np.zeros(0), *(value.ravel() for value in self._defaults.values())])

    def momentum(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The momentum p = ∂L/∂v.

        Parameters
        ----------
        q, v : array_like, shape (n,) or (K, n)
            Positions and velocities of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.

        Returns
        -------
        ndarray, shape (n,) or (K, n)

        Examples
        --------
        >>> import leastaction as la
        >>> free = la.Lagrangian(lambda q, v, m: 0.5 * m * v[0] ** 2, n=1, params={"m": 2.0})
        >>> free.momentum([0.0], [3.0]), free.momentum([0.0], [3.0], params={"m": 5.0})
        (array([6.]), array([15.]))
        """
        return self._evaluate(self.gradient, q, v, t, params)["Lv"]

    def value(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The Lagrangian L itself.

        Parameters
        ----------
        q, v : array_like, shape (n,) or (K, n)
            Positions and velocities of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.

        Returns
        -------
        float or ndarray of shape (K,)

        Examples
        --------
        >>> import leastaction as la
        >>> free = la.Lagrangian(lambda q, v, m: 0.5 * m * v[0] ** 2, n=1, params={"m": 2.0})
        >>> float(free.value([0.0], [3.0]))
        9.0
        """
        return self._evaluate(self.gradient, q, v, t, params)["L"][..., 0]

    def velocity(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The velocity v with ∂L/∂v(q, v) = p. Newton's iteration finds it where L is not quadratic in v.

        Parameters
        ----------
        q, p : array_like, shape (n,) or (K, n)
            Positions and momenta of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.

        Returns
        -------
        ndarray, shape (n,) or (K, n)

        Raises
        ------
        DegenerateLagrangianError
            No velocity has this momentum.

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> relativistic = la.Lagrangian(lambda q, v: -np.sqrt(1 - v[0] ** 2), n=1)
        >>> relativistic.velocity([0.0], [0.75])
        array([0.6])
        """
        Q, P, T, single = self._rows(q, p, t, "p")
        V, failed = self._inverse(T, Q, P, self.values(params))
        if failed is not None:
            raise DegenerateLagrangianError(
                f"no velocity of {self.name} has the momentum p = {P[failed]} at q = {Q[failed]}: ∂²L/∂v² is singular "
                "there, or the momentum is outside the range of ∂L/∂v. A Lagrangian must be regular in its velocities."
            )
        return V[0] if single else V

    def energy(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The energy E = p·v − L, which is the Hamiltonian.

        Parameters
        ----------
        q, p : array_like, shape (n,) or (K, n)
            Positions and momenta of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.

        Returns
        -------
        float or ndarray of shape (K,)

        Examples
        --------
        >>> import leastaction as la
        >>> spring = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 2 * q[0] ** 2, n=1)
        >>> float(spring.energy([1.0], [2.0]))
        4.0
        """
        v = self.velocity(q, p, t, params)
        return np.einsum("...i,...i->...", np.asarray(p, float), v) - self.value(q, v, t, params)

    def external_force(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The external force F, with that of the Rayleigh function. Zero where there is none.

        Parameters
        ----------
        q, v : array_like, shape (n,) or (K, n)
            Positions and velocities of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.
        inputs : mapping of str to array_like, optional
            Values of the inputs of a system that has some, by name: the shape of the input, the same for all states, or
            (K, …), one for each.

        Returns
        -------
        ndarray, shape (n,) or (K, n)

        Examples
        --------
        >>> import leastaction as la
        >>> slowed = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1, dissipation=lambda q, v: 0.1 * v[0] ** 2)
        >>> slowed.external_force([0.0], [3.0])
        array([-0.6])
        """
        if self.force is None:
            return np.zeros(np.shape(v))
        return self._evaluate(self.force, q, v, t, params, inputs)["F"]

    def acceleration(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The acceleration by the equations of Lagrange and d'Alembert, with forces and reactions.

        Parameters
        ----------
        q, v : array_like, shape (n,) or (K, n)
            Positions and velocities of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.
        inputs : mapping of str to array_like, optional
            Values of the inputs of a system that has some, by name: the shape of the input, the same for all states, or
            (K, …), one for each.

        Returns
        -------
        ndarray, shape (n,) or (K, n)

        Raises
        ------
        DegenerateLagrangianError
            ∂²L/∂v² is singular at this state, or constraints depend on each other.

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> kepler = la.Lagrangian(lambda q, v: 0.5 * (v @ v) + 1 / np.sqrt(q @ q), n=2)
        >>> kepler.acceleration([2.0, 0.0], [0.0, 1.0])
        array([-0.25,  0.  ])
        """
        return self._motion(q, v, t, params, inputs)[0]

    def multipliers(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The multipliers λ with which the constraints stay satisfied, g̈ = 0.

        Parameters
        ----------
        q, v : array_like, shape (n,) or (K, n)
            Positions and velocities of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.
        inputs : mapping of str to array_like, optional
            Values of the inputs of a system that has some, by name: the shape of the input, the same for all states, or
            (K, …), one for each.

        Returns
        -------
        ndarray, shape (m,) or (K, m)
            The sign is that of the reaction Gᵀλ, which acts beside ∂L/∂q.

        Examples
        --------
        >>> import leastaction as la
        >>> hanging = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 10 * q[1], n=2, constraints=lambda q: q[1] + 1)
        >>> hanging.multipliers([0.0, -1.0], [0.0, 0.0])
        array([10.])
        """
        return self._motion(q, v, t, params, inputs)[1]

    def reaction(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The generalised forces Gᵀλ that hold the constraints. Zero where there are none.

        Parameters
        ----------
        q, v : array_like, shape (n,) or (K, n)
            Positions and velocities of one state or of K states.
        t : number or array_like of shape (K,), default 0
            The time.
        params : mapping, optional
            Values of parameters, in place of the defaults.
        inputs : mapping of str to array_like, optional
            Values of the inputs of a system that has some, by name: the shape of the input, the same for all states, or
            (K, …), one for each.

        Returns
        -------
        ndarray, shape (n,) or (K, n)

        Examples
        --------
        >>> import leastaction as la
        >>> hanging = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 10 * q[1], n=2, constraints=lambda q: q[1] + 1)
        >>> hanging.reaction([0.0, -1.0], [0.0, 0.0])
        array([ 0., 10.])
        """
        if not self.m:
            return np.zeros(np.shape(v))
        G = self._evaluate(self.geometry, q, v, t, params)["G"].reshape(*np.shape(v)[:-1], self.m, self.n)
        return np.einsum("...ij,...i->...j", G, self.multipliers(q, v, t, params, inputs))

    def _motion(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike, params: Params | None, inputs: Given
    ) -> tuple[FloatArray, FloatArray]:
        """Accelerations and multipliers: m_v a − Gᵀλ = f − m_q v − m_t, and G a = −bend."""
        n, m = self.n, self.m
        at = self._evaluate(self.node, q, v, t, params, inputs)
        shape = at["f"].shape[:-1]
        m_q, m_v = at["m_q"].reshape(*shape, n, n), at["m_v"].reshape(*shape, n, n)
        right = (at["f"] - np.einsum("...jk,...k->...j", m_q, np.asarray(v, float)) - at["m_t"])[..., None]
        try:
            if not m:
                return np.linalg.solve(m_v, right)[..., 0], np.zeros((*shape, 0))
            held = self._evaluate(self.geometry, q, v, t, params)
            G = held["G"].reshape(*shape, m, n)
            by_mass = np.linalg.solve(m_v, np.concatenate([right, np.swapaxes(G, -1, -2)], axis=-1))
            free, pulled = by_mass[..., :1], by_mass[..., 1:]
            multipliers = np.linalg.solve(G @ pulled, -held["bend"][..., None] - G @ free)
            return (free + pulled @ multipliers)[..., 0], multipliers[..., 0]
        except np.linalg.LinAlgError:
            reason = "∂²L/∂v² is singular there" + (", or its constraints depend on each other" if m else "")
            raise DegenerateLagrangianError(
                f"{self.name} has no acceleration at q = {q!r}, v = {v!r}: {reason}"
            ) from None

    def check_regular(self, q: FloatArray, v: FloatArray, t: float, params: FloatArray) -> None:
        """Raise if ∂²L/∂v² is singular at this point."""
        Lvv = self._evaluate(self.inertia, q, v, t, params)["m_v"].reshape(self.n, self.n)
        if not np.isfinite(Lvv).all():
            raise ValueError(f"∂²L/∂v² of {self.name} is not finite at q = {q}, v = {v}: {Lvv.tolist()}")
        if not _is_regular(Lvv):
            still = ", ".join(f"∂L/∂v[{j}]" for j in np.flatnonzero(~Lvv.any(axis=1)))
            reason = f"{still} does not depend on v" if still else f"∂²L/∂v² = {Lvv.tolist()}"
            beside = q + 1e-3 * np.random.default_rng(0).standard_normal(self.n) * np.maximum(1.0, np.abs(q))
            near = self._evaluate(self.inertia, beside, v, t, params)["m_v"].reshape(self.n, self.n)
            raise DegenerateLagrangianError(
                f"{self.name} is degenerate at q = {q}, v = {v}: {reason}, so momenta do not determine velocities. "
                + (POLE if _is_regular(near) else EVERYWHERE)
            )

    # Many trajectories at once, each with its own parameters.

    @cached_property
    def _inverse(self) -> points.Velocities:
        return points.Velocities(self.node, self.n)

    def velocities(
        self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """v(t, q, p) at K points with parameters (K, …), and a mask of the points that have a v; NaN elsewhere."""
        v, failed = self._inverse(t, q, p, params)
        found = np.ones(len(q), bool)
        if failed is None:
            return v, found
        v[failed:], found[failed:] = np.nan, False
        begin = failed + 1
        while begin < len(q):
            rest = slice(begin, None)
            part, failed = self._inverse(t[rest], q[rest], p[rest], params[rest])
            end = len(q) if failed is None else begin + failed
            v[begin:end], found[begin:end] = part[: end - begin], True
            begin = end + 1
        return v, found

    def energies(self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        """E = p·v − L at K points with parameters (K, …)."""
        v, _ = self.velocities(t, q, p, params)
        L = points.evaluate(self.program, np.concatenate([t[:, None], q, v, params], axis=1))[:, 0]
        return np.asarray(np.einsum("ki,ki->k", p, v) - L)

    def terms_of_energy(
        self, t: float, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """v and L, and f and m at rest, at many states (K, n), each with its parameters; NaN where there is no v."""
        head = np.full((len(q), 1), t)
        v, _ = self.velocities(head[:, 0], q, p, params)
        found = points.evaluate(self._of_energy, np.concatenate([head, q, v, params], axis=1))
        return v, found[:, 0], found[:, 1 : 1 + self.n], found[:, 1 + self.n :]

    @cached_property
    def _of_energy(self) -> Program:
        """(t, q, v, params) ↦ L, and f = ∂L/∂q and m = ∂L/∂v at rest."""
        B = Builder(self.program.inputs)
        given = {name: B.input(name) for name, _ in B.inputs}
        rest = B.inline(self.gradient, **(given | {"v": [B.const(0.0)] * self.n}))
        return B.build(L=B.inline(self.program, **given)["L"], f=rest["Lq"], m=rest["Lv"])

    def potentials(
        self, t: float, q: FloatArray, v: FloatArray, params: FloatArray, times: Sequence[float]
    ) -> FloatArray:
        """−L at rest at the places that the motions from q reach, about, after these times, (times, B); NaN if none."""
        return self.at_rest(t, self.places_ahead(t, q, v, params, times), params)

    def places_ahead(
        self, t: float, q: FloatArray, v: FloatArray, params: FloatArray, times: Sequence[float]
    ) -> FloatArray:
        """q + v τ + ½ a τ² for these τ, (times, B, n), with a as without constraints; NaN where there is no a."""
        size, n = q.shape
        node = points.evaluate(self.node, np.concatenate([np.full((size, 1), t), q, v, params], axis=1))
        f, m_q, m_v = (node[:, self.node.output_slice(name)] for name in ("f", "m_q", "m_v"))
        right = f - np.einsum("bjk,bk->bj", m_q.reshape(size, n, n), v)
        try:
            a = np.linalg.solve(m_v.reshape(size, n, n), right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # constraints may make up for a singular mass
            a = np.full((size, n), np.nan)
        return np.array([q + v * tau + a * tau**2 / 2 for tau in times])

    def at_rest(self, t: float, q: FloatArray, params: FloatArray) -> FloatArray:
        """−L(q, 0) at places (…, B, n), with parameters (B, …)."""
        rows = q.reshape(-1, self.n)
        given = np.broadcast_to(params, (*q.shape[:-1], params.shape[1])).reshape(len(rows), -1)
        at = np.concatenate([np.full((len(rows), 1), t), rows, 0 * rows, given], axis=1)
        return -points.evaluate(self.program, at)[:, 0].reshape(q.shape[:-1])

    def frequency(
        self, t: float, q: FloatArray, p: FloatArray, v: FloatArray, params: FloatArray, length: float
    ) -> float:
        """The largest frequency or growth rate of the linearised motion at its start, or soon after."""
        return fastest(self, t, q, v, params, length)

    def begin(
        self,
        t: float,
        q: FloatArray,
        p: FloatArray | None,
        v: FloatArray | None,
        params: FloatArray,
        inputs: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int8]]:
        """Momenta, velocities and a status of trajectories that begin at q with p or v, a row for each."""
        n, size, times = self.n, len(q), np.full(len(q), t)
        status = np.zeros(size, np.int8)
        if v is None:
            assert p is not None
            v, found = self.velocities(times, q, p, params)
            status[~found] = SINGULAR
        at = np.concatenate([times[:, None], q, v, params], axis=1)
        driven = at if inputs is None else np.concatenate([at, inputs], axis=1)
        values = points.evaluate(self.node, driven)
        block = {name: values[:, self.node.output_slice(name)] for name, _ in self.node.outputs}
        p = block["m"] if p is None else p
        m_q, Lvv = block["m_q"].reshape(size, n, n), block["m_v"].reshape(size, n, n)
        right = block["f"] - (m_q @ v[:, :, None])[:, :, 0] - block["m_t"]
        L = points.evaluate(self.program, at)
        terms = np.abs(np.concatenate([p, right, L], axis=1))
        if not status.any() and _dominant(Lvv) and (terms < 1 / ORDINARY).all():
            return p, v, status
        finite = np.isfinite(Lvv).all(axis=(1, 2))
        usable = finite & (np.abs(Lvv).max(axis=2) > 0).all(axis=1)
        safe = np.where(usable[:, None, None], Lvv, np.eye(n))
        regular = usable & (np.linalg.matrix_rank(equilibrated(safe)) == n)
        a = np.linalg.solve(np.where(regular[:, None, None], safe, np.eye(n)), right[:, :, None])[:, :, 0]
        status[finite & ~regular] = SINGULAR
        known = finite & np.isfinite(np.concatenate([p, a, L], axis=1)).all(axis=1)
        status[(status == GOING_WELL) & ~known] = NOT_FINITE
        return p, v, status

    def check_start(
        self,
        t: Any,
        q: NDArray[Any],
        p: NDArray[Any] | None,
        v: NDArray[Any] | None,
        params: NDArray[Any],
        inputs: NDArray[Any] | None = None,
    ) -> None:
        """Say why one trajectory cannot begin."""
        check_start(self, t, q, p, v, params, inputs)

    def check_inputs(self) -> None:
        """Accept inputs: they are checked by their names."""

    def backend(
        self, method: Galerkin, lanes: int = 1, energy: bool = False, composed: bool = False
    ) -> Backend:  # fmt: skip
        """How the kernels and loops step this system."""
        return backend(self, method, lanes, energy, composed)

    def rk4(self, method: RungeKutta4) -> Program | None:
        """A step of RK4 as one Program; None if it cannot be written as one."""
        return rk4_program(self, method)

    def stepper(
        self, method: Method, start: Start, row: Row | None = None
    ) -> GalerkinStepper | ComposedStepper | RK4Stepper:
        """The stepper of one trajectory in float64."""
        if isinstance(method, Composition):
            return ComposedStepper(self, method, start, row)
        if isinstance(method, Galerkin):
            return GalerkinStepper(self, method, start, row)
        if row is not None and row.varied:
            return RK4Tangent(self, method, start, row)
        return RK4Stepper(self, method, start, row)

    def explain(self, status: int, h: float) -> tuple[str, str]:
        """Why a step that ended with this status could not be done, and what to try; h is a smaller step."""
        reason, advice = explained(status, h)
        if status == BRANCH_ENDS and self.n > 2:
            advice += (
                ". Parts that are alike, some of them at rest, as in a chain: write L as la.Lagrangian.sum, which "
                "compares a part at rest with the others"
            )
        return reason, advice

    def record(self) -> dict[str, Any]:
        """What a file's header says of the system: `from_record` reads it."""
        defaults = {name: to_texts(value) for name, value in self._given.items()}
        parts = {"program": self.program, "force": self.force, "constraints": self.constraints}
        programs = {name: None if program is None else program.to_json() for name, program in parts.items()}
        shapes = {name: list(shape) for name, shape in self.inputs.items()}
        return {"n": self.n, "name": self.name, "defaults": defaults, "inputs": shapes, **programs}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a file has beside the header: none."""
        return {}

    def machine(self) -> str:
        """The facts about the machine that decide the last bits of a run in float64."""
        return fingerprint()

    def _evaluate(
        self, program: Program, q: ArrayLike, v: ArrayLike, t: ArrayLike, params: Params | None, inputs: Given = None
    ) -> Any:
        Q, V, T, single = self._rows(q, v, t, "v")
        values = self.values(params)
        rows = np.concatenate([T[:, None], Q, V, np.broadcast_to(values, (len(Q), len(values)))], axis=1)
        if "inputs" in dict(program.inputs) or inputs is not None:
            rows = np.concatenate([rows, flat(inputs, self.inputs, len(Q), self.name)], axis=1)
        result = points.evaluate(program, rows)
        blocks = {name: result[:, program.output_slice(name)] for name, _ in program.outputs}
        return {name: block[0] if single else block for name, block in blocks.items()}

    def _rows(
        self, q: ArrayLike, other: ArrayLike, t: ArrayLike, name: str
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Both arrays as (K, n), the times as (K,), and whether a single point was given."""
        Q, X = np.asarray(q, float), np.asarray(other, float)
        for label, array in (("q", Q), (name, X)):
            if array.ndim not in (1, 2) or array.shape[-1] != self.n:
                raise ValueError(f"{label} must have shape ({self.n},) or (K, {self.n}); got {array.shape}")
        if Q.shape != X.shape:
            raise ValueError(f"q and {name} must have the same shape; got {Q.shape} and {X.shape}")
        single = Q.ndim == 1
        Q, X = np.atleast_2d(Q), np.atleast_2d(X)
        T = np.asarray(t, float)
        if T.shape not in ((), (1,), (len(Q),)):
            wanted = "one number" if single else f"one number or {len(Q)}, one for each state"
            raise ValueError(f"t must be {wanted}; got shape {T.shape}")
        T = np.broadcast_to(T, (len(Q),))
        return np.ascontiguousarray(Q), np.ascontiguousarray(X), np.ascontiguousarray(T), single

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.params.items())
        by = f" by {', '.join(self.inputs)}" if self.inputs else ""
        force = f", with a force{by}" if self.forced else ""
        rows = f", with {self.m} constraint{'s' if self.m > 1 else ''}" if self.m else ""
        return f"Lagrangian({self.name}, n={self.n}{', ' if inside else ''}{inside}{force}{rows})"


def equilibrated(matrices: FloatArray) -> FloatArray:
    """Symmetric matrices, (…, n, n), with rows and columns scaled until the largest entry of each is about one.

    The result does not depend on units (Ruiz, *A scaling algorithm to equilibrate both rows and columns norms in
    matrices*, 2001). Rows of zeros stay zero.
    """
    scaled = matrices
    for _ in range(EQUILIBRATIONS):
        row = np.sqrt(np.abs(scaled).max(axis=-1, initial=0.0))
        row = np.where(row > 0, row, 1.0)
        scaled = scaled / row[..., :, None] / row[..., None, :]
    return scaled


def _dominant(matrices: FloatArray) -> bool:
    """Whether matrices, (B, n, n), have diagonals of ordinary size that outweigh the rest of their rows, and so are
    regular beyond doubt.
    """
    size = np.abs(matrices)
    diagonal = np.diagonal(size, axis1=1, axis2=2)
    return bool((diagonal > ORDINARY).all() and (size.sum(axis=2) < DOMINANT * diagonal).all())


def takes_time(fn: Callable[..., Any], params: Mapping[str, Any], reads: Sequence[str] = ("q", "v")) -> bool:
    """Whether the function is fn(t, q, v, …) or fn(q, v, …): the number of arguments that are no parameters decides."""
    try:
        arguments = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return False
    free = [a for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.name not in params]
    required = [a.name for a in free if a.default is a.empty]
    return len(required) > len(reads) and required[0] in ("t", "time")


def _with_inputs(program: Program, names: Sequence[str], inputs: Sequence[str], role: str) -> Program:
    """A Program whose parameters have these names; parameters that are inputs move to a separate block."""
    if not inputs:
        return program
    first = program.input_slice("params").start
    used = {names[args[0] - first] for op, *args in program.code if op == "input" and args[0] >= first}
    if role not in DRIVEN and (wrong := [name for name in inputs if name in used]):
        what, instead = UNDRIVEN[role]
        raise TraceError(f"{what} cannot take the input {wrong[0]!r}: {instead}")
    own = [name for name in names if name not in inputs]
    blocks = [*program.inputs[:-1], ("params", len(own))]
    B = Builder([*blocks, ("inputs", len(inputs))] if role in DRIVEN else blocks)
    values = dict(zip(own, B.input("params"), strict=True))
    if role in DRIVEN:
        values |= dict(zip(inputs, B.input("inputs"), strict=True))
    nothing = B.const(0.0)
    at = {name: B.input(name) for name, _ in program.inputs[:-1]}
    return B.build(**B.inline(program, **at, params=[values.get(name, nothing) for name in names]))


def _fewer(constraints: Program | None, n: int) -> Program | None:
    """The constraints, if they are fewer than the coordinates."""
    m = 0 if constraints is None else constraints.output_size
    if m >= n:
        raise ValueError(
            f"{m} constraints on n = {n} coordinates leave nothing free to move: m must be less than n. Leave out "
            "those that follow from others, or add the coordinates that move"
        )
    return constraints


def _degrees(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n, the number of degrees of freedom, must be a positive integer; got {n!r}")
    return int(n)


def _values(params: Mapping[str, Any], reals: Reals = FLOAT64) -> dict[str, NDArray[Any]]:
    """Parameters as arrays of numbers, checked."""
    checked = {}
    for name, value in params.items():
        try:
            array = reals.array(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"parameter {name!r} must be a number or an array of numbers; got {value!r} ({error})"
            ) from None
        if not all_finite(array):
            raise ValueError(f"parameter {name!r} must be finite; got {value!r}")
        checked[name] = array
    return checked
