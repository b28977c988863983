"""The trajectories of a plan at work: side by side in lanes where they fit, else one by one."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.backend import Backend
from leastaction.backends.composed import ComposedStepper
from leastaction.backends.galerkin import GalerkinStepper
from leastaction.backends.rk4 import RK4Stepper
from leastaction.backends.rows import Row
from leastaction.backends.status import (
    BRANCH_ENDS,
    GOING_WELL,
    HELD,
    NOT_CONVERGED,
    NOT_FINITE,
    RESTING,
    SINGULAR,
    STOPPED,
)
from leastaction.backends.stepper import Start, Stepper
from leastaction.engine.run import Engine
from leastaction.engine.stepper import FormStepper
from leastaction.events import GROWING, LAST_STATES, Watch, WatchedForms, WatchedGalerkin, WatchedStates
from leastaction.kernel import native_lanes
from leastaction.methods import Composition, Galerkin, RungeKutta4
from leastaction.numbers.rounding import Digits
from leastaction.program import Program
from leastaction.reading import MOST_STEPS, floats
from leastaction.run.plan import Plan
from leastaction.run.standing import Standing
from leastaction.run.starts import Starts
from leastaction.run.watched import WatchedEnergy
from leastaction.systems import steppers
from leastaction.systems.lagrangian import Lagrangian

ENDS = (GOING_WELL, NOT_CONVERGED, NOT_FINITE, BRANCH_ENDS, SINGULAR, STOPPED, RESTING, HELD)  # ends of a trajectory
EACH = 32_768  # rows and coordinates that are enough for a thread
_ready = threading.local()  # the stepper with which a single run was prepared


def lanes(plan: Plan) -> int:
    """Trajectories that go side by side: of an ensemble the lanes of a vector, or one.

    Derivatives are carried for one trajectory at a time, and the range of the energy needs a fused step.
    """
    if not plan.many or plan.row.varied:
        return 1
    if (engine := _engine(plan, native_lanes())) is not None:
        return engine.width if plan.events is None or not isinstance(plan.method, Composition) else 1
    if _engine(plan, 1) is not None:
        return 1
    how = _native(plan, native_lanes())
    if _explicit(plan) is not None or (how is not None and isinstance(plan.method, Composition)):
        return 1 if plan.energies or plan.events is not None else native_lanes()
    return 1 if how is None or (plan.energies and not how.fused) else how.lanes


def _explicit(plan: Plan) -> Program | None:
    """A step of RK4 as one Program, if the plan's method is RK4 and its step can be written as a Program."""
    if not isinstance(plan.method, RungeKutta4) or isinstance(plan.reals, Digits):
        return None
    return plan.system.rk4(plan.method)


def together(plan: Plan, size: int) -> int:
    """How many of these trajectories one stepper takes."""
    return size if lanes(plan) > 1 else 1


def state_size(plan: Plan, starts: Starts) -> int:
    """About how many numbers a trajectory needs to go on from where it stands."""
    if (engine := _engine(plan, lanes(plan))) is not None:
        return int(engine.lasting.sum()) * engine.phases * (engine.lanes // engine.width)
    how = _native(plan, lanes(plan))
    if how is not None:
        phases = len(plan.method.parts) if isinstance(plan.method, Composition) else 1
        return int(how.lasting.sum()) * phases
    n, s = plan.row.n, plan.method.s if isinstance(plan.method, Galerkin) else 0
    return 2 + (5 + s) * n + starts.params.shape[1] + 2 * n * plan.row.varied


def _engine(plan: Plan, width: int) -> Engine | None:
    """The native function of these trajectories side by side; None if there is none."""
    if isinstance(plan.reals, Digits):
        return None
    return plan.system.engine(plan.method, width, width > 1 and bool(plan.energies), plan.row.varied)


def _native(plan: Plan, width: int) -> Backend | None:
    """The stepper of these trajectories side by side; None if no kernel of the family steps them."""
    system, method = plan.system, plan.method
    if isinstance(method, RungeKutta4) or isinstance(plan.reals, Digits):
        return None
    if isinstance(method, Composition):
        return system.backend(method.root, width, composed=True)
    return system.backend(method, width, width > 1 and bool(plan.energies))


def prepare(plan: Plan, starts: Starts, standing: Standing | None = None) -> dict[str, Any]:
    """Check what must be checked before the first step, and compile the kernels; return the facts found. A single run
    may have its standing before the first step already.
    """
    plan.system.check_span(float(plan.t0), float(plan.t0 + plan.steps * plan.h))
    clock = time.perf_counter()
    if not plan.allow_unstable:
        plan.system.check_stable(plan.method, float(plan.h))
    stability = time.perf_counter() - clock
    engine = _engine(plan, lanes(plan))
    how = None if engine is not None else _native(plan, lanes(plan))
    if engine is not None and plan.events is None:
        engine.compiled(hard=False)
    elif how is not None and plan.events is None:
        how.prepare()
    else:
        stepper = at_work(plan, starts.part(0, 1), standing or Standing.begin(plan, starts.part(0, 1)))
        _ready.found = None if plan.many else (plan, stepper)
    return {"stability_time": stability} if plan.system.linear else {}


def team(plan: Plan, cores: int) -> int:
    """How many of the cores one trajectory has work for, by the rows of its sums and its coordinates."""
    how = _native(plan, 1)
    return 1 if how is None else max(1, min(cores, how.rows // EACH))


def at_work(plan: Plan, starts: Starts, standing: Standing) -> Stepper:
    """Trajectories at work, from where they stand: all lanes, or one. A single run has its stepper already."""
    ready, _ready.found = getattr(_ready, "found", None), None
    if ready is not None and ready[0] is plan and not standing.steps.any():
        return cast(Stepper, ready[1])
    width = lanes(plan)
    if width == 1:
        return _one(plan, starts, standing)
    system, method = cast(Lagrangian, plan.system), plan.method  # all others go one by one
    start = Start(plan.t0, starts.q, starts.p, starts.v, plan.h, starts.params, starts.inputs)
    if isinstance(method, RungeKutta4):
        found: Stepper = RK4Stepper(system, method, start, plan.row, width, starts.status)
    elif _engine(plan, width) is not None:
        energy, watch = bool(plan.energies), plan.events
        formed = (
            FormStepper(system, method, start, plan.row, width, energy=energy)
            if watch is None
            else WatchedForms(system, cast(Galerkin, method), start, plan.row, watch, width, energy)
        )
        formed.leave(starts.status)
        found = formed
    elif isinstance(method, Composition):
        composed = ComposedStepper(system, method, start, plan.row, width)
        composed.leave(starts.status)
        found = composed
    else:
        how = (system, method, start, plan.row)
        energy, watch = bool(plan.energies), plan.events
        side_by_side: GalerkinStepper | WatchedGalerkin = (
            GalerkinStepper(*how, width, energy) if watch is None else WatchedGalerkin(*how, watch, width, energy)
        )
        side_by_side.leave(starts.status)
        found = side_by_side
    return _restored(found, standing)


def _one(plan: Plan, starts: Starts, standing: Standing) -> Stepper:
    (values,) = starts.params
    start = Start(plan.t0, starts.q[0], starts.p[0], starts.v[0], plan.h, values, starts.inputs)
    at = steppers.mechanics(plan.system, values, plan.reals)
    if plan.events is not None:
        found: Stepper = _eventful(plan, plan.events, start, at)
    else:
        found = steppers.stepper(plan.system, plan.method, start, plan.row, at)
    if plan.energies:
        found = WatchedEnergy(plan, start, found, standing)
    return _restored(found, standing)


def _eventful(plan: Plan, events: Watch, start: Start, at: Any) -> Stepper:
    """One trajectory, its events looked for; `at` is its mechanics."""
    system, method, reals = plan.system, plan.method, plan.reals
    if (engine := _engine(plan, 1)) is not None and engine.watches and isinstance(method, Galerkin):
        return WatchedForms(cast(Lagrangian, system), method, start, plan.row, events)
    how = _native(plan, 1) if engine is None else None
    if how is not None and how.watches:
        return WatchedGalerkin(how.system, how.method, start, plan.row, events)

    def make(t: Any, q: NDArray[Any], p: NDArray[Any], h: Any, *, number: int = 0, varied: int = 0) -> Stepper:
        at_start = q is start.q and p is start.p  # whose velocity may have been given
        v = start.v if at_start else at.velocity(q, p, t + number * h, start.params)
        row = Row.whole(system.n, varied)
        made: Any = steppers.stepper(system, method, Start(t, q, p, v, h, start.params, start.inputs), row, at)
        if number:
            made.count_from(number)
        return cast("Stepper", made)

    return WatchedStates(make, system, at, reals, start, plan.row, events)


def _restored(stepper: Stepper, standing: Standing) -> Stepper:
    """A stepper set up again as it stood."""
    if standing.steps.any():
        stepper.restore(standing.state)
    return stepper


def check_state(plan: Plan, starts: Starts, standing: Standing) -> None:
    """Refuse, with a ValueError, a state that no stepper leaves: it may be a stranger's, and native loops trust it."""
    begun = standing.steps > 0
    if not begun.any():
        return
    some = together(plan, len(starts))
    stepper = at_work(plan, starts.part(0, some), Standing.begin(plan, starts.part(0, some)))
    fresh, state = stepper.state(), standing.state
    if state.keys() != fresh.keys():
        raise ValueError(
            f"the trajectories stand as {', '.join(state)}, while this version of leastaction goes on from "
            f"{', '.join(fresh)}; go on with the version that wrote it"
        )
    for name, array in fresh.items():
        shape = (len(starts), *array.shape[1:])
        if name in GROWING:
            shape = (len(starts), None, *array.shape[2:])
        floats(state, name, shape, array.dtype)
    steps = standing.steps[begun]
    for k, name in enumerate(stepper.INTEGERS):
        low, high = {"steps": (steps, steps), "last_count": (1, LAST_STATES)}.get(name, (0, MOST_STEPS))
        found = state["integers"][begun, k]
        if name == "layout":
            if (found != fresh["integers"][0, k]).any():
                raise ValueError(
                    "the trajectories stand as another version of leastaction has left them; go on with it"
                )
        elif not ((low <= found) & (found <= high)).all() or (name == "status" and not np.isin(found, ENDS).all()):
            raise ValueError(f"the state's integers are not those after {steps} steps: {name} = {found}")
