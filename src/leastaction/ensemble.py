"""la.ensemble: many trajectories of one system, in SIMD lanes, on all cores, or on a cluster."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from numpy.typing import ArrayLike

from leastaction.events import Event, Impact
from leastaction.linear import Quadratic
from leastaction.methods import Branch, Method
from leastaction.results.assembly import execute
from leastaction.results.paths import Paths
from leastaction.run.advice import check_tolerance
from leastaction.run.plan import EnergyRange, positive
from leastaction.systems.protocol import System, check_system
from leastaction.systems.varied import varied
from leastaction.tolerance import Many, advice_for_many, measurable


def ensemble(
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
    final_only: bool = False,
    digits: int | None = None,
    output: ArrayLike | None = None,
    allow_unstable: bool = False,
    branch: Branch = "followed",
    tangent: bool | Literal["all"] = False,
    reduce: Mapping[str, EnergyRange] | None = None,
    events: Mapping[str, Event | Impact] | None = None,
    inputs: Mapping[str, Any] | None = None,
    pace: Callable[..., Any] | str | None = None,
    client: Any = None,
    threads: int | None = None,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> Paths:
    """Integrate many trajectories of one system, in the lanes of the processor's vectors, on all cores, or on a
    cluster.

    A trajectory with a step that cannot be solved ends there: `paths.status` says why, and its later states are NaN.
    The others go on. The result does not depend on the order of the trajectories, on `threads` or on `client`.

    Parameters
    ----------
    system : Lagrangian, Quadratic or Sum
        What moves.
    method : str or method, optional
        A method or its name. Left out where `tol` is given.
    q0, p0, v0 : array_like, shape (B, n) or (n,)
        The start: positions, and momenta or velocities. An array of shape (n,) is shared by all trajectories.
    params : mapping, optional
        Values of parameters. An array with one more axis of length B in front gives each trajectory its own value. A
        Quadratic system takes "M", "K" and, where it has them, "C" and a constant "f".
    h, steps, t_end, t0, every, digits, output, allow_unstable, branch, tangent, pace, progress
        As for `la.integrate`.
    tol : float, optional
        In place of `method` and `h`, as for `la.integrate`. One advice serves all trajectories, `paths.advice`: some of
        them find the step, all are judged, and the advice tells the largest of their errors. It may choose a pace: then
        each trajectory has times of its own, and `paths.last` holds the states at `t_end`.
    final_only : bool, default False
        Store the last state alone.
    reduce : mapping of str to EnergyRange, optional
        What to compute during the run, by name: ``{"E": la.EnergyRange()}``.
    events : mapping of str to Event or Impact, optional
        What to look for. `paths.events["name"].t` has shape (B, m), with NaN where a trajectory has fewer than m
        events. A trajectory that an event stops ends there: `paths.end_time` is its time.
    inputs : mapping of str to array_like or Samples, optional
        Of a system with inputs, by name. An array holds a value in each step: shape (steps, …) for all trajectories
        alike, or (B, steps, …). An array (B, steps, r, …) has a value for each of the r nodes of the method; B = 1
        serves all alike. `la.Samples` has values (m, …) or (B, m, …). Not with `tol` or `pace`.
    client : dask.distributed.Client, optional
        Run on this cluster.
    threads : int, optional
        How many cores to use on this machine. Without `threads` all are used.
    store : path, optional
        Stream the states to this Zarr archive. q and p of the result stay on disk until they are asked for, and
        `la.resume` continues the archive.

    Returns
    -------
    Paths
        Times (K,), states (B, K, n), and everything that follows from them.

    Raises
    ------
    ValueError
        What was asked for is incomplete or contradicts itself.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> def pendulum(q, v, g):
    ...     return 0.5 * v[0] ** 2 + g * np.cos(q[0])
    >>> system = la.Lagrangian(pendulum, n=1, params={"g": 9.81})
    >>> paths = la.ensemble(system, "simpson", [1.0], [0.0], params={"g": [1.0, 4.0, 9.0]}, h=0.01, steps=100, every=50)
    >>> paths.q.shape
    (3, 3, 1)
    """
    if q0 is None:
        raise ValueError("the start lacks its positions: give q0=")
    check_system(system)
    advice = None
    if tol is not None:
        if method is not None or h is not None or steps is not None or digits is not None:
            raise ValueError("with tol= the method and h are chosen: give t_end= and none of method, h, steps, digits")
        system = measurable(system, pace, inputs)
        within = check_tolerance(tol)

        def run(**how: Any) -> Paths:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ensemble(system, t0=t0, branch=branch, threads=threads, client=client, **how)

        many = Many(system, (q0, p0, v0), t_end, t0, params, pace, events, runs=run)
        advice = advice_for_many(many, within)
        method, pace = advice.chosen.method, advice.chosen.pace
        h = math.copysign(advice.chosen.h, many.t_end - many.t0)
    if method is None or h is None:
        raise ValueError("say how to run: give method= and h=; or tol=, and both are chosen")
    if system.linear and params:
        system, allow_unstable = varied(cast(Quadratic, system), method, h, params, allow_unstable), False
    return cast(Paths, execute(
        system, method, (q0, p0, v0), h=h, steps=steps, t_end=t_end, t0=t0, params=params,
        every=0 if final_only else positive("every", every), digits=digits, output=output, tangent=tangent,
        allow_unstable=allow_unstable, branch=branch, reduce=reduce, events=events, inputs=inputs, pace=pace,
        advice=advice, many=True, store=store, client=client, threads=threads, progress=progress,
    ))  # fmt: skip
