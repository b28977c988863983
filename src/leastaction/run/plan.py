"""A Plan: what was asked of a run, checked once, as plain data that can travel to other threads and processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction import events as happening
from leastaction.backends.rows import Row
from leastaction.linear.matrices import chosen_dofs
from leastaction.methods import Branch, Composition, Galerkin, Method, RungeKutta4, with_branch
from leastaction.methods import method as method_named
from leastaction.numbers.rounding import Digits, Reals, reals
from leastaction.run.advice import Advice
from leastaction.run.checks import MOST_STEPS, check_times, count_steps, number, positive
from leastaction.run.given_inputs import given_inputs
from leastaction.run.reductions import Reduction, wanted
from leastaction.run.starts import Starts, begin, begin_paced, check_events_begin
from leastaction.step.inputs import Inputs
from leastaction.systems.pace import Paced, paced
from leastaction.systems.protocol import System, check_system
from leastaction.systems.sums import MOST_EXPANDED

# The most steps of a run with a pace until t_end: the larger of this number and this multiple of the steps at the
# pace of its start.
AT_LEAST, AT_MOST = 2**20, 2**10


@dataclass(frozen=True, eq=False)
class Plan:
    """What is the same for all trajectories of a run.

    reals    the arithmetic
    every    steps from one stored state to the next; 0: the last state alone
    row      what is stored of a state
    energies the names under which the range of the energy is wanted
    events   the events that the run looks for
    many     an ensemble; else one trajectory, which is a batch of one
    until    a time that was asked for, and the steps to it; for an open run, more steps than it needs
    open     whether an event, at that time, ends the run, so that the number of steps is not known
    allow_unstable   whether h may be unstable on a linear system
    advice   how method and h were chosen, if they were
    hasty    whether a step fails that only continuation could solve: of trials, which shorter steps follow
    """

    system: System
    method: Method
    reals: Reals
    t0: Any
    h: Any
    steps: int
    every: int
    row: Row
    energies: tuple[str, ...] = ()
    events: happening.Watch | None = None
    many: bool = False
    until: tuple[Any, int] | None = None
    open: bool = False
    allow_unstable: bool = False
    advice: Advice | None = None
    hasty: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the numbers of a state."""
        return np.dtype(object if isinstance(self.reals, Digits) else float)

    def regular(self, steps: Any) -> Any:
        """States stored at multiples of `every` in this number of steps, with the first; a last state may be extra."""
        return steps // self.every + 1 if self.every else steps * 0

    @property
    def kept(self) -> int:
        """States stored of each trajectory that goes to the end."""
        return self.rows(self.steps)

    def rows(self, steps: int) -> int:
        """States stored of a trajectory that ends after this number of steps."""
        return int(self.regular(steps)) + (steps % self.every != 0 if self.every else 1)

    def times(self, first: int, end: int, last: int | None = None) -> NDArray[Any]:
        """Times of the stored states first … end of a trajectory that ends after `last` steps."""
        last = self.steps if last is None else last
        k = np.minimum(np.arange(first, end) * self.every, last) if self.every else np.full(end - first, last)
        with self.reals.working():
            k = self.reals.array(k)
            if self.until is None or self.open:
                return np.asarray(self.t0 + k * self.h)
            t_end, count = self.until
            return np.asarray(self.t0 + (t_end - self.t0) * (k / count))


def plan_run(
    system: System,
    method: str | Method,
    initial: tuple[Any, Any, Any],
    *,
    h: Any,
    every: int,
    steps: int | None = None,
    t_end: Any = None,
    t0: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    digits: int | None = None,
    output: ArrayLike | None = None,
    tangent: bool | Literal["all"] = False,
    allow_unstable: bool = False,
    branch: Branch = "followed",
    reduce: Mapping[str, Reduction] | None = None,
    events: Mapping[str, happening.Event | happening.Impact] | None = None,
    inputs: Mapping[str, Any] | None = None,
    pace: Any = None,
    most: int | None = None,
    advice: Advice | None = None,
    hasty: bool = False,
    many: bool = False,
) -> tuple[Plan, Starts]:
    """What was asked for, by `la.integrate` or `la.ensemble`, checked; and where the trajectories begin.

    most   steps of a run with a pace until t_end: the run ends after them, wherever it is
    """
    check_system(system)
    method = method_named(method)
    whole = digits is not None or pace is not None or bool(tangent or reduce) or not isinstance(method, Galerkin)
    if whole or (events and system.n <= MOST_EXPANDED):  # sums over rows cannot do it
        system = system.expanded()
    arithmetic = reals(digits)
    if allow_unstable and not system.linear:
        raise ValueError(
            "allow_unstable= is for Quadratic systems: for other systems no step is refused before it is tried"
        )
    if reduce and (digits is not None or system.linear or tangent or output is not None):
        raise ValueError(
            "reduce= is for float64 ensembles of Lagrangian systems that store whole states without tangent=; compute "
            "it from the stored states instead"
        )
    check_constraints(system, method)
    with arithmetic.working():
        t0 = number("t0", t0, arithmetic)
        t_end = None if t_end is None else number("t_end", t_end, arithmetic)
        asked = number("h", h, arithmetic)
        count, h = count_steps(asked, steps, t_end, t0, pace is not None)
        if pace is not None:
            check_pace(method, reduce)
        plan = Plan(
            system=system,
            method=_method(system, method, branch, bool(events)),
            reals=arithmetic,
            t0=t0,
            h=h,
            steps=count,
            every=every and positive("every", every),
            row=_row(system, output, _varied(system, tangent)),
            energies=wanted(reduce),
            events=happening.watch(events, system),
            many=many,
            until=None if t_end is None else (t_end, count),
            allow_unstable=allow_unstable,
            advice=advice,
            hasty=hasty,
        )
        driven = given_inputs(inputs, system, plan.method, arithmetic, t0, h, count, many)
        check_driven(plan, driven)
        starts = begin(system, arithmetic, *initial, t0, params, many, driven)
        if pace is not None:
            at_pace = paced(system, pace, arithmetic)
            starts, slowest = begin_paced(at_pace, arithmetic, starts, t0, t_end, many)
            plan = paced_plan(plan, at_pace, slowest, t_end, most)
        check_events(plan)
        if plan.events is not None:
            check_events_begin(plan.events, plan.t0, starts)
        return plan, starts


def check_pace(method: Method, reduce: Any) -> None:
    """Refuse options that cannot be combined with a pace."""
    if isinstance(method, Composition):
        raise ValueError(
            "pace= is for members of the Galerkin family: the polynomial of a step tells the times between two "
            f"states. {method.name} is a composition and has no polynomial. Take a member of the same order"
        )
    if not isinstance(method, Galerkin):
        raise ValueError(
            f"pace= keeps variable steps symplectic, so it is for members of the Galerkin family; {method.name} is not "
            "symplectic"
        )
    if reduce:
        raise ValueError(
            "reduce= looks at steps of equal time; with pace= compute it from the stored states, or ask for events="
        )


def paced_plan(plan: Plan, system: Paced, slowest: float, t_end: Any, most: int | None) -> Plan:
    """The same run of a paced system, in s; a run until t_end ends by an event, after an unknown number of steps.

    slowest   the least pace at the starts
    """
    varied, P = plan.row.varied, len(system.values())
    limit = plan.steps if t_end is None else most or _limit(plan, slowest, t_end)
    if varied:
        varied = 2 * system.n + (P + 1 if varied > 2 * plan.row.n else 0)
    return replace(
        plan,
        system=system,
        t0=plan.t0 * 0,
        steps=limit,
        row=_paced_row(plan.row, system, varied),
        events=happening.paced_watch(plan.events, system, t_end is not None, 1 if plan.h > 0 else -1),
        until=None if t_end is None or most else (t_end, limit),
        open=t_end is not None,
    )


def _paced_row(row: Row, system: Paced, varied: int) -> Row:
    """The same row, with energy and time."""
    if row.output is None:
        return Row.whole(system.n, varied)
    return Row(system.n, np.append(row.dofs, system.of.n), varied)


def _limit(plan: Plan, slowest: float, t_end: Any) -> int:
    """The number of steps in which a run must reach t_end. At a double zero of its pace, time stands still for ever."""
    return int(min(MOST_STEPS / 2, max(AT_LEAST, AT_MOST * abs(float((t_end - plan.t0) / plan.h)) / slowest)))


def _method(system: System, method: Method, branch: Branch, watched: bool) -> Method:
    """The method, with the branch that was asked for."""
    chosen = method if branch == "followed" else with_branch(method, branch)
    if chosen.branch == "followed":
        return chosen
    if system.linear:
        raise ValueError("the equations of a Quadratic system are linear and have one root: leave branch= out")
    if watched:
        raise ValueError(
            "events= are found by steps of other lengths, whose roots are followed from h → 0. With branch='any' "
            "leave events= out, or compute the events from the stored states"
        )
    return chosen


def check_constraints(system: System, method: Method) -> None:
    """Refuse options that are not available for systems with constraints."""
    if not system.m:
        return
    if isinstance(method, RungeKutta4):
        raise ValueError(
            f"{method.name} has no multipliers: on the equations of the accelerations its steps would drift off the "
            "constraints. Take a member of the Galerkin family, such as 'simpson' or 'P3N3Q6Gau'"
        )


def check_events(plan: Plan) -> None:
    """Refuse derivatives that cannot be carried where events are looked for, and impacts where constraints hold."""
    if plan.events is None:
        return
    system = plan.system
    if plan.events.impacts and system.m and system.mass_varies_with_velocity:
        raise ValueError("la.Impact where constraints hold is for Lagrangians that are quadratic in the velocities")
    if not plan.row.varied:
        return
    if plan.events.impacts and system.linear:
        raise ValueError(
            "tangent= through impacts needs derivatives by the length of a step. A step of a Quadratic system is a "
            "matrix for one h and has none: write the system as la.Lagrangian(lambda q, v: (v @ M @ v - q @ K @ q) / "
            "2, n=…)"
        )
    if plan.events.impacts and system.mass_varies_with_velocity:
        raise ValueError("tangent= through impacts is for Lagrangians that are quadratic in the velocities")


def check_driven(plan: Plan, inputs: Inputs | None) -> None:
    """Refuse derivatives that would need inputs at moved times."""
    if inputs is None:
        return
    if plan.row.varied > 2 * plan.row.n and inputs.sampled:
        raise ValueError(
            "tangent='all' has the derivative by h, and another h moves the times at which samples are taken: give "
            "the input as an array, held in each step or at the nodes, or take tangent=True"
        )
    if plan.row.varied and plan.events is not None and not inputs.steady:
        raise ValueError(
            "tangent= with events= needs inputs that are held in each step: the derivative moves the time of an "
            "event, and only a held input is known at the moved time"
        )


def check_length(plan: Plan) -> None:
    """Check that rounding keeps the times of a run apart, after it is known that there is room for its states."""
    with plan.reals.working():
        check_times(plan.system, plan.t0, plan.h, plan.steps)


def _row(system: System, output: ArrayLike | None, varied: int) -> Row:
    """What is stored of a state."""
    return (
        Row.whole(system.n, varied)
        if output is None
        else Row(system.n, chosen_dofs(output, system.n, "output"), varied)
    )


def _varied(system: System, tangent: bool | Literal["all"]) -> int:
    """The number of variables by which derivatives are carried."""
    if tangent not in (False, True, "all"):
        raise ValueError(f"tangent must be True, False or 'all'; got {tangent!r}")
    if tangent == "all" and system.linear:
        raise ValueError("a Quadratic system has no parameters to vary: give tangent=True")
    if tangent == "all":
        return 2 * system.n + len(system.values()) + 1
    return 2 * system.n if tangent else 0
