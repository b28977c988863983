"""Paths: what an ensemble gives back."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.docstrings import documented
from leastaction.events import Happened
from leastaction.methods import Method
from leastaction.numbers.rounding import all_finite, reals
from leastaction.printing import freedom
from leastaction.results import files, tables
from leastaction.results.path import Path, in_time
from leastaction.results.saved import Savable, fields
from leastaction.run.standing import Status
from leastaction.step.inputs import Inputs
from leastaction.systems.protocol import System

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from leastaction.run.advice import Advice

BLOCK = 1 << 18  # states whose energy is computed at once


@dataclass(frozen=True, eq=False)
class Paths(Savable):
    """Many trajectories: what `la.ensemble` gives back.

    ``paths[i]`` is trajectory i as a single `Path`, as far as it went. ``len(paths)`` is their number B, and a loop
    over `paths` goes over them.

    Attributes
    ----------
    t : ndarray, shape (K,)
        Times of the stored states, the same for all. With a pace the shape is (B, K).
    q, p : ndarray, shape (B, K, n)
        Positions and momenta, NaN after a trajectory's end. Of a stored run they and t stay on disk until they are
        asked for: ``paths.q[17, 1000:2000]`` reads those rows.
    status : ndarray, shape (B,)
        How each trajectory ended: 0 means complete.
    steps : ndarray, shape (B,)
        Steps done by each.
    failed : ndarray of bool, shape (B,)
        Which trajectories met a step that could not be solved.
    end_time : ndarray, shape (B,)
        The time that each trajectory has reached: that of the failure, or of the event that stopped it, or `t_end`.
        With a pace it is the time of the last stored state.
    values : ndarray, shape (B, P)
        Parameters of each, flat. ``paths[i].params`` has their names.
    reduced : dict
        What was computed during the run, by the names given in ``reduce=``.
    events : dict of str to Happened
        What happened, by name: ``.count`` (B,), ``.t`` (B, m), ``.q`` and ``.p`` (B, m, n).
    last : dict
        q, p and derivatives of the state that each has come to, each (B, …): that of the event where one stopped it.
    advice : Advice or None
        Of a run with ``tol=``: how method, step and pace were chosen for all, from a few of the trajectories, and the
        largest estimated error of all. Archives keep it.
    inputs : mapping of str to ndarray or Samples, or None
        Of a system with inputs: what the run was given, by name. ``paths[i].inputs`` are those of one trajectory.
    output, digits, tangent, sensitivity, pace
        As of a `Path`, with an axis for the trajectories in front.

    Methods
    -------
    energy, plot, show, to_html, save, load, to_csv, to_pandas, to_xarray

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> paths = la.ensemble(pendulum, "simpson", q0=[[0.5], [1.0], [1.5]], p0=[0.0], h=0.1, steps=50)
    >>> paths.q.shape, paths.failed.any(), paths[2].energy().shape
    ((3, 51, 1), np.False_, (51,))
    """

    system: System
    method: Method
    t: NDArray[Any]
    q: NDArray[Any]
    p: NDArray[Any]
    h: Any
    t0: Any
    every: int
    values: NDArray[Any]
    status: NDArray[np.int8]
    steps: NDArray[np.int64]
    last: Mapping[str, NDArray[Any]]
    reduced: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[str, Happened] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    output: NDArray[np.int64] | None = None
    digits: int | None = None
    tangent: NDArray[Any] | None = None
    sensitivity: NDArray[Any] | None = None
    pace: Paths | None = None
    advice: Advice | None = None
    inputs: Inputs | None = None

    @property
    def failed(self) -> NDArray[np.bool_]:
        return ~np.isin(self.status, (Status.COMPLETE, Status.STOPPED, Status.INTERRUPTED, Status.PENDING))

    @property
    def end_time(self) -> NDArray[Any]:
        if self.pace is not None:
            return np.array([path.t[-1] for path in self])
        arithmetic = reals(self.digits)
        with arithmetic.working():
            found = np.asarray(self.t0 + arithmetic.array(self.steps) * self.h)
            for i in np.flatnonzero(self.status == Status.STOPPED):
                found[i] = self._stopped(int(i))
            return found

    def _stopped(self, i: int) -> Any:
        """The time at which an event has stopped trajectory i: no event is later."""
        times = [t for some in self.events.values() for t in some.one(i).t]
        return max(times) if self.h > 0 else min(times)

    def energy(self) -> NDArray[Any]:
        """The energy E = p·v − L at every stored state."""
        if self.output is not None:
            raise ValueError(
                f"the energy needs the whole state; these paths store {len(self.output)} of {self.system.n} degrees of "
                "freedom"
            )
        B, K, _ = self.q.shape
        if self.digits is not None:
            E = np.full((B, K), reals(self.digits).array(np.nan)[()])
            for i, path in enumerate(self):
                E[i, self._there(i)] = path.energy()
            return E
        E = np.full((B, K), np.nan)
        many, rows = max(1, BLOCK // K), min(K, BLOCK)
        for i, k in product(range(0, B, many), range(0, K, rows)):
            block = slice(i, i + many), slice(k, k + rows)
            q, p = np.asarray(self.q[block]), np.asarray(self.p[block])
            there = np.isfinite(q).all(axis=2) & np.isfinite(p).all(axis=2)
            trajectory, row = np.nonzero(there)
            t = np.asarray(self.t[block[1]])[row] if self.pace is None else np.asarray(self.t[block])[there]
            E[block][there] = self.system.energies(t, q[there], p[there], self.values[block[0]][trajectory])
        return E

    def _there(self, i: int) -> NDArray[np.bool_]:
        """Which states trajectory i has."""
        q, p = np.asarray(self.q[i]), np.asarray(self.p[i])
        if self.digits is None:
            return np.asarray(np.isfinite(q).all(axis=1) & np.isfinite(p).all(axis=1))
        return np.array([all_finite(a) and all_finite(b) for a, b in zip(q, p, strict=True)])

    def __len__(self) -> int:
        return len(self.q)

    def __getitem__(self, i: int) -> Path:
        """Trajectory i as a single Path, as far as it went: up to the event, if an event has stopped it."""
        i = operator.index(i)
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} trajectories; asked for number {i}")
        if self.pace is not None:
            return cast(Path, in_time(self.pace[i]))
        there = self._there(i)
        arrays: dict[str, Any] = {"t": np.asarray(self.t)[there]}
        arrays |= {name: np.asarray(getattr(self, name)[i])[there] for name in self.last}
        if self.status[i] == Status.STOPPED:
            end = {"t": self._stopped(i), **{name: array[i] for name, array in self.last.items()}}
            before = slice(None) if self.every else slice(0)
            arrays = {name: np.concatenate([array[before], [end[name]]]) for name, array in arrays.items()}
        return Path(
            system=self.system,
            method=self.method,
            **arrays,
            h=self.h,
            every=max(1, self.every),
            params=self.system.named(self.values[i]),
            stats={"steps": int(self.steps[i]), "status": Status(int(self.status[i])).name},
            output=self.output,
            digits=self.digits,
            events={name: some.one(i) for name, some in self.events.items()},
            inputs=None if self.inputs is None else self.inputs.alone(i % len(self)),
        )

    def __iter__(self) -> Iterator[Path]:
        return (self[i] for i in range(len(self)))

    @documented()
    def plot(self, what: str = "configuration", ax: Axes | None = None, most: int = 50, **options: Any) -> Axes:
        """Draw trajectories with Matplotlib, one over the other, from dark to bright in their order.

        Parameters
        ----------
        what : str, default "configuration"
            As for `Path.plot`.
        {ax}
        most : int, default 50
            How many are drawn at most, evenly chosen.
        **options
            Of "history" and "section", as for `Path.plot`.
        """
        from leastaction.results.plots import plot_paths

        return plot_paths(self, what, ax, most, **options)

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Paths:
        """Read back what `Paths.save` wrote. The file may come from anybody, as for `Path.load`.

        Parameters
        ----------
        file : path
            A file that `Paths.save` wrote.
        """

        def made(arrays: Any, header: Any) -> Paths:
            found = fields(arrays, header, True)
            own = found["pace"]
            return cls(**found | {"pace": None if own is None else cls(**own)})

        loaded: Paths = files.loaded(file, made)
        return loaded

    def to_xarray(self) -> xarray.Dataset:
        """The paths as an xarray Dataset with the coordinates trajectory, t and dof. Needs the extra
        ``leastaction[xarray]``.
        """
        axis, times = "t", dict[str, Any](t=np.asarray(self.t))
        if self.pace is not None:  # the axis is s, and t is a function of s
            axis, times = "s", {"s": np.asarray(self.pace.t), "t": (("trajectory", "s"), np.asarray(self.t))}
        coords = {"trajectory": np.arange(len(self)), **times}
        return tables.dataset(self, ("trajectory", axis, "dof"), coords, status=("trajectory", self.status))

    @documented()
    def to_html(self, file: str | os.PathLike[str], draw: Any = None, megabytes: float = 1.4) -> None:
        """Write one file that plays the ensemble as a cloud, one point for each trajectory.

        Parameters
        ----------
        {file, draw}
        megabytes : float, default 1.4
            How large the frames may become.
        """
        from leastaction.results import viewer

        viewer.write(viewer.cloud_page(self, draw, megabytes), file)

    @documented("draw")
    def show(self, draw: Any = None) -> None:
        """Play the ensemble as a cloud: in a window of the browser, or in the cell of a notebook."""
        from leastaction.results import viewer

        viewer.show(viewer.cloud_page(self, draw))

    def _repr_html_(self) -> str:
        from leastaction.results import viewer

        return viewer.frame(viewer.cloud_page(self, megabytes=viewer.CELL_MEGABYTES))

    def __repr__(self) -> str:
        failed = int(self.failed.sum())
        t = self.t if self.pace is None else self.pace.t
        return (
            f"Paths({len(self)} trajectories of {self.system.name}, {self.method.name}, "
            f"{'t' if self.pace is None else 's'} = {float(t[0]):g} … {float(t[-1]):g}, h = {float(self.h):g}, "
            f"each {len(t)} states of {freedom(self.q.shape[2])}{f'; {failed} failed' if failed else ''})"
        )
