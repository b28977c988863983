"""A Plan: what was asked of a run, checked once, as plain data that can travel to other threads and processes."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction import events as happening
from leastaction.linear.matrices import chosen_dofs
from leastaction.methods import Branch, Composition, Galerkin, Method, with_branch
from leastaction.methods import method as method_named
from leastaction.numbers.rounding import FLOAT64, Digits, Reals, all_finite, reals
from leastaction.reading import MOST_STEPS
from leastaction.run.advice import Advice
from leastaction.run.given_inputs import read_inputs
from leastaction.run.starts import Starts, begin, begin_paced, check_events_begin
from leastaction.step.inputs import Inputs
from leastaction.step.stored_row import Row
from leastaction.systems.pace import Paced, paced
from leastaction.systems.protocol import System, check_system
from leastaction.systems.sums import MOST_EXPANDED

# The most steps of a run with a pace until t_end: the larger of this number and this multiple of the steps at the
# pace of its start.
AT_LEAST, AT_MOST = 2**20, 2**10
FINEST = 64  # parts of a step that the time must resolve where forces depend on t


@dataclass(frozen=True)
class EnergyRange:
    """For ``reduce=`` of `la.ensemble`: the lowest and the highest energy over all steps of each trajectory.

    The result is an array of shape (B, 2) in `paths.reduced`. No state has to be stored for it.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> E = {"E": la.EnergyRange()}
    >>> paths = la.ensemble(pendulum, "simpson", [[0.5], [1.0]], [0.0], h=0.1, steps=500, final_only=True, reduce=E)
    >>> low, high = paths.reduced["E"].T
    >>> bool((high - low < 1e-6).all())
    True
    """


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
    every: int = 1,
    steps: int | None = None,
    t_end: Any = None,
    t0: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    digits: int | None = None,
    output: ArrayLike | None = None,
    tangent: bool | Literal["all"] = False,
    allow_unstable: bool = False,
    branch: Branch = "followed",
    reduce: Mapping[str, EnergyRange] | None = None,
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
            energies=_energies(reduce),
            events=None if events is None else happening.watch(events, system),
            many=many,
            until=None if t_end is None else (t_end, count),
            allow_unstable=allow_unstable,
            advice=advice,
            hasty=hasty,
        )
        driven = None
        if inputs is not None or system.inputs:
            driven = read_inputs(inputs, system, plan.method, arithmetic, t0, h, count, many)
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
    if not isinstance(method.root, Galerkin):
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
    if output is None:
        return Row.whole(system.n, varied)
    dofs = chosen_dofs(output, system.n, "output")
    if len(set(dofs.tolist())) < len(dofs):
        raise ValueError(f"output must list each degree of freedom once; got {output!r}")
    return Row(system.n, dofs, varied)


def _varied(system: System, tangent: bool | Literal["all"]) -> int:
    """The number of variables by which derivatives are carried."""
    if tangent not in (False, True, "all"):
        raise ValueError(f"tangent must be True, False or 'all'; got {tangent!r}")
    if tangent == "all" and system.linear:
        raise ValueError("a Quadratic system has no parameters to vary: give tangent=True")
    if tangent == "all":
        return 2 * system.n + len(system.values()) + 1
    return 2 * system.n if tangent else 0


def _energies(reduce: Mapping[str, EnergyRange] | None) -> tuple[str, ...]:
    """The names under which the range of the energy is wanted, checked."""
    if reduce is not None and not isinstance(reduce, Mapping):
        raise TypeError(
            f"reduce must be a mapping of names to reductions, such as {{'E': la.EnergyRange()}}; got {reduce!r}"
        )
    for name, reduction in (reduce or {}).items():
        if not isinstance(reduction, EnergyRange):
            raise TypeError(f"reduce[{name!r}] must be la.EnergyRange(); got {reduction!r}. Events go into events=")
    return tuple(reduce or ())


def positive(name: str, value: Any) -> int:
    """A positive integer, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}")
    return int(value)


def archive_path(name: str, path: Any) -> Path:
    """The place of an archive, checked."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be the path of an archive, such as 'run.zarr'; got {path!r}")
    if not os.fspath(path):
        raise ValueError(f"{name} must be the path of an archive, such as 'run.zarr'; got no name")
    return Path(path)


def number(name: str, value: Any, reals: Reals = FLOAT64) -> Any:
    """One finite number."""
    if reals is FLOAT64 and type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a number; got {value!r}")
    try:
        array = reals.array(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number; got {value!r} ({error})") from None
    if array.shape != ():
        raise TypeError(f"{name} must be one number; got {value!r}")
    if not all_finite(array):
        raise ValueError(f"{name} must be finite; got {value!r}")
    return array.item()


def count_steps(h: Any, steps: int | None, t_end: Any, t0: Any, paced: bool = False) -> tuple[int, Any]:
    """The number of steps and the step, from `steps` or from `t_end`. With a pace the steps h are no times: a run until
    t_end counts as one step.
    """
    if h == 0:
        raise ValueError("h must not be zero; a negative h goes backward in time")
    if steps is None and t_end is None:
        raise ValueError("say how long: give steps= or t_end=")
    if steps is not None and t_end is not None:
        raise ValueError("say how long: give either steps= or t_end=, not both")
    if steps is not None:
        check_count(positive("steps", steps))
        return int(steps), h
    length = t_end - t0
    if length == 0:
        raise ValueError(f"t_end must differ from the start, t0 = {float(t0):g}")
    if (length > 0) != (h > 0):
        raise ValueError(
            f"h = {float(h):g} leads away from t_end = {float(t_end):g} (the run starts at t0 = {float(t0):g}); "
            f"give h = {float(-h):g}"
        )
    if paced:
        return 1, h
    ratio = float(length / h)
    check_count(ratio)
    nearest = round(ratio)
    # A ratio just above a whole number is that number: h need not be representable. The slack is less than a step.
    count = max(1, nearest if ratio - nearest <= 1e-9 * ratio else math.ceil(ratio))
    return count, length / count


def steps_until(t_end: Any, t0: Any, h: Any) -> int:
    """How many steps of a run end at t_end, counted from its start."""
    ratio = float((t_end - t0) / h)
    count = round(ratio) if math.isfinite(ratio) else 0
    if count < 1 or abs(ratio - count) > 1e-9 * max(1.0, ratio):
        begin, step = float(t0), float(h)
        near = f"; {begin + math.floor(ratio) * step:.12g} and {begin + math.ceil(ratio) * step:.12g} are"
        raise ValueError(
            f"t_end = {float(t_end)!r} is no whole number of steps h = {step:g} after the start, t0 = {begin:g}"
            f"{near if ratio >= 1 else ''}. A stored run keeps its step"
        )
    return count


def check_count(count: float) -> None:
    """Refuse more steps than a run can count."""
    if count > MOST_STEPS:
        raise ValueError("a run of more than 2⁵³ ≈ 9·10¹⁵ steps is too long to be counted; take fewer, or a larger h")


def check_times(system: Any, t0: Any, h: Any, count: int) -> None:
    """Refuse times that rounding makes equal if forces depend on t; else warn, since the states are right."""
    farthest = max(t0, t0 + count * h, key=abs)
    least = h / FINEST if system.depends_on_time else h  # the times of nodes must differ, or those of steps
    if farthest + least != farthest and farthest - least != farthest:
        return
    step = f"the step h = {float(h):g} is lost in the rounding of t = {float(farthest):g}"
    if system.depends_on_time:
        raise ValueError(
            f"a part in {FINEST} of {step}, and {system.name} depends on t: measure time from nearer by, or run with "
            "digits="
        )
    warnings.warn(f"{step}: the states are right, their times are not told apart", RuntimeWarning, stacklevel=4)
