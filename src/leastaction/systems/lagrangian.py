"""Lagrangian: the user's functions and their parameters, as a system that runs can step.

What follows from it: its Programs (`programs`), and mechanics at a state or at many (`mechanics`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from leastaction.docstrings import documented
from leastaction.engine.long_form import Scripted
from leastaction.engine.long_lagrangian import written
from leastaction.engine.run import Engine, engine
from leastaction.engine.stepper import FormStepper
from leastaction.errors import TraceError
from leastaction.methods import Galerkin, Method
from leastaction.numbers.notation import to_texts
from leastaction.program import Builder, Program
from leastaction.reading import entry, integer, listing, mapping, numbers, text
from leastaction.step.status import BRANCH, Failure
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row
from leastaction.systems.arguments import (
    coordinate_names,
    degrees,
    fewer,
    shapes_from,
    shapes_of,
    takes_time,
    values_of,
)
from leastaction.systems.defaults import Usual
from leastaction.systems.forces import DRIVEN, check_inputs, taken, total_force, with_inputs
from leastaction.systems.mechanics import Mechanics, check_start

if TYPE_CHECKING:
    from leastaction.systems.sums import Sum
    from leastaction.systems.sums import Term as SumTerm


@documented()
class Lagrangian(Mechanics, Usual):
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
    {names}

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
    momentum, velocity, energy, value, acceleration, external_force, multipliers, reaction, from_sympy, sum

    Raises
    ------
    TraceError
        The function does something that cannot be traced. The message says what, and what to write.

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
        names: Sequence[str] | None = None,
    ) -> None:
        from leastaction.trace.function import CONSTRAINTS, LAGRANGIAN, Role, trace

        if not callable(fn):
            raise TypeError(f"expected a function fn(q, v, **params) that returns L; got {fn!r}")
        for name, function in (("force", force), ("dissipation", dissipation)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function of q and v, as in {name}=lambda q, v: …; got {function!r}")
        if constraints is not None and not callable(constraints):
            raise TypeError(f"constraints must be a function of q, as in constraints=lambda q: …; got {constraints!r}")
        self.n = degrees(n)
        self.names = coordinate_names(names, self.n)
        self._given, self._defaults = deepcopy(dict(params or {})), values_of(params or {})
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
        self.constraints = fewer(programs.get("g"), self.n)

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
        names: Sequence[str] | None = None,
    ) -> Lagrangian:
        """A system from the Programs of L, (t, q, v, params) ↦ L, of the force, (t, q, v, params) ↦ F, where there are
        inputs (t, q, v, params, inputs) ↦ F, and of the constraints, (t, q, params) ↦ g.
        """
        system = cls.__new__(cls)
        system.n, system.program, system.name, system.fn = degrees(n), program, name, None
        system.names = coordinate_names(names, system.n)
        system.force, system.constraints = force, fewer(constraints, system.n)
        system.inputs = shapes_of(inputs)
        system._given, system._defaults = deepcopy(dict(params or {})), values_of(params or {})
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
        names = [text(one, "a coordinate's name") for one in listing(record.get("names", []), "names")]
        return cls.from_program(program, n, given, name, force, constraints, inputs, names)

    @classmethod
    @documented()
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
        names: Sequence[str] | None = None,
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
        force, dissipation, constraints : expression or sequence of expressions, optional
            n generalised forces, a Rayleigh function, and what is held at zero.
        inputs : sequence of SymPy symbols, optional
            Symbols of the force or of the Rayleigh function that are inputs: numbers that a run brings.
        {names}

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
        own = [name for name in every if name not in driven]
        parts = {name: with_inputs(written.select(name), every, driven, name) for name, _ in written.outputs}
        program = parts["L"]
        given = {str(name): value for name, value in dict(params or {}).items()}
        missing, extra = sorted(set(own) - set(given)), sorted(set(given) - set(own))
        if missing or extra:
            raise ValueError(
                f"the parameters of L are {sorted(own)}; "
                + (f"give a value for {missing} in params" if missing else f"it has none called {extra}")
            )
        n = dict(program.inputs)["q"]
        total = total_force(parts.get("F"), parts.get("D"))
        still = None
        if "g" in parts:
            B = Builder([block for block in program.inputs if block[0] != "v"])
            at = {name: B.input(name) for name, _ in B.inputs} | {"v": [B.const(0.0)] * n}
            still = B.build(g=B.inline(parts["g"], **at)["g"])
        values, shapes = {name: given[name] for name in own}, dict.fromkeys(driven, ())
        return cls.from_program(program, n, values, "L", total, still, shapes, names)

    @classmethod
    @documented()
    def sum(cls, terms: Sequence[SumTerm], n: int, names: Sequence[str] | None = None) -> Sum:
        """A system of n coordinates whose Lagrangian is a sum of small terms, each over the rows of a table.

        L = Σ_terms Σ_rows fn(q[row], v[row], …). Lattices, meshes and N bodies are such sums. Each term is traced,
        differentiated and compiled once, however many rows its table has.

        Parameters
        ----------
        terms : sequence of Term
            The summands.
        n : int
            Number of coordinates.
        {names}

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> masses = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(100))
        >>> springs = la.Term(lambda q, v: -0.5 * (q[1] - q[0]) ** 2, over=[[i, i + 1] for i in range(99)])
        >>> la.Lagrangian.sum([masses, springs], n=100).n
        100
        """
        from leastaction.systems.sums import Sum

        return Sum(terms, n, names=names)

    def __getstate__(self) -> dict[str, Any]:
        """The state for other processes: the Programs, not the functions, which may be defined in a notebook."""
        names = ("n", "names", "program", "force", "constraints", "inputs", "name", "_given", "_defaults")
        return {name: getattr(self, name) for name in names} | {"fn": None}

    def check_start(
        self,
        t: Any,
        q: NDArray[Any],
        p: NDArray[Any] | None,
        v: NDArray[Any] | None,
        params: NDArray[Any],
        inputs: NDArray[Any] | None = None,
    ) -> None:
        check_start(self, t, q, p, v, params, inputs)

    def check_inputs(self) -> None:
        """Accept inputs: they are checked by their names."""

    def engine(self, method: Method, width: int = 1, energy: bool = False, varied: int = 0) -> Engine | None:
        """How so many trajectories side by side are stepped in float64 by one native function; None where a step is too
        long to be written out.
        """
        return engine(self, method.root, width, energy=energy, phases=len(method.parts), varied=varied)

    def scripted(self, method: Galerkin) -> Scripted:
        """What the steps of a method ask of this system."""
        return written(self, method)

    def stepper(self, method: Method, start: Start, row: Row | None = None) -> FormStepper:
        """The stepper of one trajectory in float64."""
        return FormStepper(self, method, start, row)

    def explain(self, failure: Failure, h: float) -> tuple[str, str]:
        """Why a step that failed so could not be done, and what to try; h is a smaller step."""
        reason, advice = super().explain(failure, h)
        if failure.stage == BRANCH and self.n > 2:
            advice += (
                ". Parts that are alike, some of them at rest, as in a chain: write L as la.Lagrangian.sum, which "
                "compares a part at rest with the others"
            )
        return reason, advice

    def record(self) -> dict[str, Any]:
        defaults = {name: to_texts(value) for name, value in self._given.items()}
        parts = {"program": self.program, "force": self.force, "constraints": self.constraints}
        programs = {name: None if program is None else program.to_json() for name, program in parts.items()}
        shapes = {name: list(shape) for name, shape in self.inputs.items()}
        about = {"n": self.n, "name": self.name, "names": list(self.names), "defaults": defaults, "inputs": shapes}
        return about | programs

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.params.items())
        by = f" by {', '.join(self.inputs)}" if self.inputs else ""
        force = f", with a force{by}" if self.forced else ""
        rows = f", with {self.m} constraint{'s' if self.m > 1 else ''}" if self.m else ""
        return f"Lagrangian({self.name}, n={self.n}{', ' if inside else ''}{inside}{force}{rows})"
