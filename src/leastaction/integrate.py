"""One trajectory: check the input, run it, and hand back the Path."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

from numpy.typing import ArrayLike

from leastaction.docstrings import documented
from leastaction.events import Event, Impact, watch
from leastaction.methods import Branch, Method
from leastaction.results.assembly import execute
from leastaction.results.path import Path
from leastaction.run.advice import Advice, check_tolerance
from leastaction.run.plan import positive
from leastaction.systems.protocol import System
from leastaction.tolerance import One, advice_for, integrate_within, measurable


def integrate(
    system: System,
    method: str | Method | None = None,
    q0: ArrayLike | None = None,
    p0: ArrayLike | None = None,
    *,
    v0: ArrayLike | None = None,
    h: Any = None,
    tol: float | None = None,
    steps: int | None = None,
    t_end: Any = None,
    t0: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    every: int = 1,
    digits: int | None = None,
    progress: bool = False,
    output: ArrayLike | None = None,
    allow_unstable: bool = False,
    branch: Branch = "followed",
    tangent: bool | Literal["all"] = False,
    store: str | os.PathLike[str] | None = None,
    events: Mapping[str, Event | Impact] | None = None,
    inputs: Mapping[str, Any] | None = None,
    pace: Callable[..., Any] | str | None = None,
) -> Path:
    """Integrate a system from the state (q0, p0) or (q0, v0): one trajectory.

    Give a method and a step h, or give a tolerance `tol` and let the library choose both. Numbers may be given
    exactly: as text ("9.81", "1/3", "pi/6"), as Fraction, Decimal, mpmath or SymPy numbers. A float means its exact
    binary value. Units are those of the Lagrangian: if L is in joules and seconds, then t is in seconds and p·v in
    joules.

    Parameters
    ----------
    system : Lagrangian, Quadratic or Sum
        What moves.
    method : str or method, optional
        A method or its name: "simpson", "P4N4Q8Gau", "rk4". Left out where `tol` is given.
    q0 : array_like, shape (n,)
        Positions at the start.
    p0 : array_like, shape (n,), optional
        Momenta at the start.
    v0 : array_like, shape (n,), optional
        Velocities at the start, in place of p0.
    h : number, optional
        The step. A negative step goes backward in time.
    tol : float, optional
        In place of `method` and `h`: the error that the position at `t_end` may have, relative to the size of the
        motion. The library chooses method, step and pace by counted work (`la.advise`), and estimates the error by runs
        with other steps. `path.advice` tells the choice and the error. A tolerance that is missed, or not checked, is a
        warning.
    steps : int, optional
        How many steps to do.
    t_end : number, optional
        Until when to go, in place of `steps`. The steps are then equal and at most abs(h) long, and `path.h` is their
        length.
    t0 : number, default 0
        Time at the start.
    params : mapping, optional
        Values of parameters for this run, in place of the system's defaults.
    every : int, default 1
        Store one state in this many steps. The start and the end are always stored.
    digits : int, optional
        Decimal digits of the arithmetic. Without `digits` the run is in float64. With `digits` the path holds mpmath
        numbers.
    progress : bool, default False
        Show a progress bar.
    output : array_like of int, optional
        Degrees of freedom to store. Without `output` all are stored.
    allow_unstable : bool, default False
        Run a Quadratic system even where the method is unstable with this h.
    branch : {"followed", "any"}, default "followed"
        Which root of a step's equations to take. "followed" is the root that is connected with the motion at h → 0.
        "any" is the root that Newton's iteration finds, which may belong to no motion: it shows what a program without
        this check computes.
    tangent : bool or "all", default False
        Carry the exact derivative by the initial state along, `path.tangent`. With "all" also the derivatives by the
        parameters and by h, `path.sensitivity`.
    store : path, optional
        Write the states to this Zarr archive during the run, and keep none in memory. `la.resume` continues the
        archive, also after a kill. Needs the extra ``leastaction[zarr]``.
    events : mapping of str to Event or Impact, optional
        What to look for, by name. `path.events[name]` holds times and states.
    inputs : mapping of str to array_like or Samples, optional
        Of a system with inputs, by name. An array of shape (steps, …) holds a value in each step. An array of shape
        (steps, r, …) has a value for each of the r nodes of the method. Of `la.Samples` the nodes take what they need.
        Not with `tol` or `pace`. `path.inputs` keeps them.
    pace : callable or "auto", optional
        A function σ(q, …) > 0 or σ(t, q, …) > 0 in plain NumPy, or "auto": σ is made from L, and `path.advice` shows
        it. Steps are then equal in s with dt = σ ds: h is a step of s, and σ h is a step of time. `steps` counts the
        steps of s, a last shorter step meets `t_end`, and `path.t` holds times. Where the energy changes, since L or σ
        depends on t, a force acts or constraints hold, time is one more coordinate of the step. With constraints σ
        must be given.

    Returns
    -------
    Path
        Times, states, and everything that follows from them.

    Raises
    ------
    StepFailed
        A step cannot be solved. The exception's ``.path`` holds all states before it.
    UnstableStepError
        The method cannot take the highest frequency of a Quadratic system with this h. Nothing was computed.
    ConstraintError
        The start is not on the constraints.
    ValueError
        What was asked for is incomplete or contradicts itself.

    Warns
    -----
    EnergyWarning
        The run loses energy that nothing takes. ``path.stats["energy_lost"]`` holds when and how much.
    RuntimeWarning
        Ctrl-C ended the run: the path holds all states so far, and ``path.stats["interrupted"]`` is set.

    See Also
    --------
    ensemble : many trajectories at once
    advise : the choice behind `tol`

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> def pendulum(q, v, g):
    ...     return 0.5 * v[0] ** 2 + g * np.cos(q[0])
    >>> system = la.Lagrangian(pendulum, n=1, params={"g": 9.81})
    >>> path = la.integrate(system, "simpson", q0=[1.0], v0=[0.0], h=0.01, t_end=10)
    >>> path
    Path(pendulum, P2N3Q4Lob, t = 0 … 10, h = 0.01, 1001 states of 1 degree of freedom)
    >>> path(np.pi).shape  # the position at any time of the run
    (1,)

    With a tolerance, neither a method nor a step is needed:

    >>> path = la.integrate(system, q0=[1.0], v0=[0.0], t_end=2, tol=1e-6)
    >>> path.advice.reached < 1e-6
    True
    """
    if q0 is None:
        raise ValueError("the start lacks its positions: give q0=")
    options: dict[str, Any] = {
        "every": positive("every", every), "digits": digits, "progress": progress, "output": output,
        "allow_unstable": allow_unstable, "branch": branch, "tangent": tangent, "store": store, "events": events,
        "inputs": inputs,
    }  # fmt: skip
    start = (q0, p0, v0)
    if tol is None:
        if method is None or h is None:
            missing = "method= and h=" if method is None and h is None else "method=" if method is None else "h="
            raise ValueError(f"say how to run: give {missing}; or tol=, and both are chosen")
        timed: dict[str, Any] = {"h": h, "steps": steps, "t_end": t_end, "t0": t0, "params": params, "pace": pace}
        path: Path = execute(system, method, start, **timed, **options)
        return path
    if method is not None or h is not None or steps is not None:
        raise ValueError("with tol= the method and h are chosen: give t_end= and none of method, h and steps")
    system = measurable(system, pace, inputs)
    if digits is not None:
        raise ValueError("tol= is for float64: with digits= give a method and h")
    watch(events, system)  # a mistake in an event must not wait for the trials
    within = check_tolerance(tol)
    return integrate_within(One(system, start, t_end, t0, params, pace, events), within, **options)


@documented()
def advise(
    system: System,
    q0: ArrayLike,
    p0: ArrayLike | None = None,
    *,
    v0: ArrayLike | None = None,
    t_end: Any,
    tol: float,
    t0: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    pace: Callable[..., Any] | str | None = None,
) -> Advice:
    """Find a method, a step and a pace that keep the error of the position at t_end below tol.

    Runs with several steps are made and compared, as :doc:`/explanation/tolerance` describes; for a Quadratic system
    formulas give method and step. `la.integrate` with ``tol=`` takes the advice. Systems with inputs
    are refused, since inputs belong to the steps of one method.

    Parameters
    ----------
    {moved, start}
    t_end : number
        Until when the run is to go.
    tol : float
        The error that the position at `t_end` may have, relative to the largest range of a coordinate.
    {t0, params}
    pace : callable or "auto", optional
        A pace of one's own, which is then used. Without `pace` equal steps are tried, and the pace made from L where
        these take much work.

    Returns
    -------
    Advice
        What was chosen, the error that can be expected, and the line of code that runs it; ``.details`` has all runs.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> advice = la.advise(pendulum, [1.0], v0=[0.0], t_end=2, tol=1e-8)
    >>> advice.chosen.error <= 1e-8
    True
    """
    within = check_tolerance(tol)
    return advice_for(One(measurable(system, pace), (q0, p0, v0), t_end, t0, params, pace, None), within)
