"""Programs: L, the force and the constraints of a system, what a step reads of them, and the parameters they have.

What answers a run is described in `protocol`.

f = ∂L/∂q + F     force
m = ∂L/∂v         momentum
f_q, f_v, m_q, m_v, m_t, and by the parameters f_w, m_w: their derivatives
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.rounding import FLOAT64, Reals
from leastaction.program import Builder, Program
from leastaction.step.constraints import end, geometry, held, reaction
from leastaction.step.form import End, Term
from leastaction.systems.arguments import Params, size_of, values_of
from leastaction.systems.forces import with_force


class Parameters:
    """A system whose parameters have names and default values."""

    name: str
    _given: Mapping[str, Any]  # the parameters as they were given
    _defaults: Mapping[str, NDArray[Any]]  # as arrays of floats

    @property
    def given(self) -> dict[str, Any]:
        return dict(self._given)

    @property
    def params(self) -> dict[str, Any]:
        return self.named(self.values())

    def named(self, values: NDArray[Any]) -> dict[str, Any]:
        named, start = {}, 0
        for name, default in self._defaults.items():
            block = values[start : start + default.size].reshape(default.shape)
            named[name] = block.item() if default.shape == () else block.copy()
            start += default.size
        return named

    def values(self, params: Params | None = None, reals: Reals = FLOAT64) -> NDArray[Any]:
        if isinstance(params, np.ndarray):
            if params.shape != self._flat.shape:
                raise ValueError(
                    f"the flat array of {self.name}'s parameters has shape {self._flat.shape}, got {params.shape}"
                )
            return params
        if not isinstance(params, Mapping | None):
            raise TypeError(f"params must map names to values, as in dict(m=1.0); got {params!r}")
        if not params and reals is FLOAT64:
            return self._flat.copy()
        merged = dict(self._defaults) if reals is FLOAT64 else values_of(self._given, reals)
        for name, value in values_of(params or {}, reals).items():
            if name not in merged:
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {sorted(merged) or 'none'}")
            if value.shape != merged[name].shape:
                raise ValueError(f"parameter {name!r} has shape {merged[name].shape}, got {value.shape}")
            merged[name] = value
        return np.concatenate([reals.array([]), *(value.ravel() for value in merged.values())])

    @cached_property
    def _flat(self) -> NDArray[np.float64]:
        """The defaults of the parameters, one after the other."""
        return np.concatenate([np.zeros(0), *(value.ravel() for value in self._defaults.values())])


class Programs:
    """A system as Programs: those it was given, and those that follow from them."""

    n: int
    name: str
    program: Program  # (t, q, v, params) ↦ L
    force: Program | None  # (t, q, v, params, inputs) ↦ F
    constraints: Program | None  # (t, q, params) ↦ g
    inputs: Mapping[str, tuple[int, ...]]
    rest: Program | None = None  # (t, q, v, params) ↦ velocities at which L has a value, if L has none at rest
    still: tuple[int, ...] = ()  # coordinates whose constant masses are so great that no force moves them

    @cached_property
    def depends_on_time(self) -> bool:
        """Whether t occurs in L, in the force or in the constraints, or there are inputs, which change with time."""
        programs = (self.program, self.force, self.constraints)
        return bool(self.inputs) or any(("input", 0) in program.code for program in programs if program is not None)

    @property
    def m(self) -> int:
        return 0 if self.constraints is None else self.constraints.output_size

    @property
    def forced(self) -> bool:
        return self.force is not None

    @property
    def forced_by_state(self) -> bool:
        return self.force is not None and self.force.depends("F", "q", "v")

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

    @property
    def instructions(self) -> int:
        return sum(len(one.code) for one in (self.program, self.force, self.constraints) if one is not None)

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
        return self.hessian.depends("Lvv", "v")

    @cached_property
    def mass_varies_with_position(self) -> bool:
        return self.hessian.depends("Lvv", "q")

    @cached_property
    def mass(self) -> Program:
        """(t, q, v, params) ↦ m_v = ∂²L/∂v²."""
        return self.inertia.select("m_v")

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
        node = self._node(self.hessian, m_t="Lvt")
        if self.rest is None:
            return node
        B = Builder(node.inputs)
        return B.finished(**B.at(node, B.blocks()), **B.at(self.rest, B.blocks()))

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
