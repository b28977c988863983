"""Path: what a run gives back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.docstrings import documented
from leastaction.events import T_END, Happened
from leastaction.linear import response
from leastaction.linear.matrices import chosen_dofs
from leastaction.methods import Method
from leastaction.numbers.rounding import Reals, reals
from leastaction.printing import freedom
from leastaction.results import files, tables
from leastaction.results.saved import Savable, fields
from leastaction.run.advice import Advice, with_pace
from leastaction.step.inputs import Inputs
from leastaction.systems.pace import OWN, STIFF, UNTIL, Paced
from leastaction.systems.protocol import System

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Path(Savable):
    """One trajectory: what `la.integrate` gives back.

    Attributes
    ----------
    t : ndarray, shape (K,)
        The times of the stored states.
    q, p : ndarray, shape (K, n)
        Positions and momenta at the start, after every `every` steps, and at the end.
    h : number
        The step used.
    system, method
        What moved, and how.
    params : dict
        The values of the parameters in this run.
    stats : dict
        What the run counted: steps, Newton iterations, compile and run times.
    every : int
        Steps between two stored states.
    output : ndarray of int or None
        The degrees of freedom stored, where not all are. q and p then have shape (K, len(output)).
    digits : int or None
        Decimal digits of the arithmetic. None means float64; otherwise t, q, p, h and params are mpmath numbers.
    tangent : ndarray, shape (K, 2n, 2n), or None
        ∂(q, p)/∂(q₀, p₀) at every stored time, if it was asked for.
    sensitivity : ndarray, shape (K, 2n, P + 1), or None
        ∂(q, p)/∂(w, h), if it was asked for: by the P numbers of the parameters, with q₀ and p₀ fixed, and by h.
    events : dict of str to Happened
        What happened, by name: ``.t``, ``.q``, ``.p``, ``.count``. A run that an event stopped ends with the state of
        that event.
    pace : Path or None
        Of a run with a pace: the same run in its own time s, a path of L̂. Its states are (q, E) and (p, t), or (q, t)
        and (p, −E) where E changes. `tangent` is the derivative at fixed s and E, which is symplectic where E is
        constant; ``pace.tangent`` also holds the derivatives by and of E and t, and is symplectic unless forces act.
    advice : Advice or None
        Of a run with ``tol=``: how method, step and pace were chosen, and the error reached. Of a run with
        ``pace="auto"``: the pace that was made. Files and archives keep it.
    inputs : mapping of str to ndarray or Samples, or None
        Of a system with inputs: what the run was given, by name. Files and archives keep them.
    multipliers : ndarray, shape (K, m)
        λ of the constraints at every stored time, such that g̈ = 0. λ has the order of q and p.

    Methods
    -------
    energy, work, velocity, acceleration, reaction, plot, show, to_html, animate, save, load, to_csv,
    to_pandas, to_xarray

    Notes
    -----
    ``path(t)`` is dense output: the position at any time t of the run, shape (n,), or (…, n) for an array of times.
    Between steps it is the method's own polynomial of degree s, found by solving the step again from the stored state.
    Its error is that of the run at the ends of steps, O(h^order), and inside steps O(h^{s+1}), or O(h^s) for the
    members with u = 2s − 2. For RK4 it is the cubic through positions and velocities, O(h⁴).

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> path = la.integrate(kepler.system, "P4N4Q8Gau", kepler.q0, kepler.p0, h=0.05, t_end=1.0)
    >>> path.t.shape, path.q.shape, path.energy().shape
    ((21,), (21, 2), (21,))
    >>> path([0.25, 0.333]).shape
    (2, 2)
    """

    system: System
    method: Method
    t: NDArray[Any]
    q: NDArray[Any]
    p: NDArray[Any]
    h: Any
    every: int
    params: Mapping[str, Any]
    stats: Mapping[str, Any] = field(default_factory=dict)
    output: NDArray[np.int64] | None = None
    digits: int | None = None
    tangent: NDArray[Any] | None = None
    sensitivity: NDArray[Any] | None = None
    events: Mapping[str, Happened] = field(default_factory=dict)
    pace: Path | None = None
    advice: Advice | None = None
    inputs: Inputs | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state that a pickle keeps: without the mechanics, which is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "mechanics"}

    @property
    def reals(self) -> Reals:
        """The arithmetic of the run."""
        return reals(self.digits)

    @cached_property
    def mechanics(self) -> Any:
        """momentum, velocity, energy of the system in the arithmetic of the run: the system itself in float64."""
        from leastaction.systems.protocol import mechanics

        return mechanics(self.system, self.system.values(self.params, self.reals), self.reals)

    def energy(self) -> NDArray[Any]:
        """The energy E = p·v − L at every stored time, (K,). It needs whole states."""
        self._require_whole("the energy")
        with self.reals.working():
            return np.asarray(self.mechanics.energy(self.q, self.p, self.t, self.params))

    def work(self) -> NDArray[Any]:
        """The work W = ∫ F·v dt of the external forces since the start, at every stored time, (K,); without impacts.

        The quadrature is that of the steps, which are solved again. ``path.energy() - path.work()`` is constant up to
        the order of the method where L does not depend on time. For a Quadratic system the forces are f(t) − C v. With
        a pace the work is what the momentum of the time, −E, has lost, where neither L nor σ depends on t.

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> slowed = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1, force=lambda q, v: -v)
        >>> path = la.integrate(slowed, "simpson", [0.0], [1.0], h=0.1, t_end=1.0)
        >>> bool(abs(path.work()[-1] - (np.exp(-2) - 1) / 2) < 1e-6)
        True
        """
        from leastaction.results.impulses import accumulated

        self._require_whole("the work")
        if any(found.p_after is not None for found in self.events.values()):
            raise ValueError(
                "the work is summed over whole steps, and an impact divides a step: path.work() is known for runs "
                "without impacts"
            )
        with self.reals.working():
            if self.pace is not None and self.system.forced and not cast(Paced, self.pace.system).moved_by_time:
                lost = np.asarray(self.pace.p)[:, -1]
                return np.asarray(lost[0] - lost)
            return accumulated(self, lambda q, v: v)

    @property
    def multipliers(self) -> NDArray[Any]:
        self._require_whole("the multipliers")
        if not self.system.m:
            return self.reals.array(np.zeros((len(self), 0)))
        with self.reals.working():
            return np.asarray(
                self.mechanics.multipliers(self.q, self.velocity(), self.t, self.params, *self._driving())
            )

    def reaction(self) -> NDArray[Any]:
        """The generalised forces Gᵀλ that hold the constraints, at every stored time, (K, n); zero without any."""
        self._require_whole("the reaction")
        if not self.system.m:
            return self.reals.array(np.zeros((len(self), self.system.n)))
        with self.reals.working():
            return np.asarray(self.mechanics.reaction(self.q, self.velocity(), self.t, self.params, *self._driving()))

    def _driving(self) -> list[NDArray[Any]]:
        """The inputs at the stored times, each in the step that begins at this time, if there are inputs."""
        return [] if self.inputs is None else [self.inputs.instant(self.t)]

    def velocity(self, dofs: ArrayLike | None = None) -> NDArray[Any]:
        """The velocity at every stored time, (K, n) or (K, len(dofs)). It needs whole states, unless the system is
        Quadratic with a lumped mass.

        Parameters
        ----------
        dofs : array_like of int, optional
            Of which degrees of freedom. Without `dofs`: of all that are stored.
        """
        if self.system.linear and self.digits is None:
            return response.velocity(self, dofs)
        self._require_whole("the velocity")
        v = self.mechanics.velocity(self.q, self.p, self.t, self.params)
        return v if dofs is None else v[:, chosen_dofs(dofs, self.system.n)]

    def acceleration(self, dofs: ArrayLike | None = None) -> NDArray[Any]:
        """The acceleration at every stored time, of a Quadratic system in float64, (K, n) or (K, len(dofs)).

        Parameters
        ----------
        dofs : array_like of int, optional
            Of which degrees of freedom. Where not all are stored, their neighbours must be:
            ``output=system.around(dofs)`` of the run stores them.

        Notes
        -----
        In stiff systems M⁻¹(f − Cv − Kq) would multiply the rounding of q. So a is found without modes that are far
        quicker than the motion, to a thousandth of the largest value asked for where that is possible. What hardly
        moves, as near a clamped end, is best asked for alone.

        Examples
        --------
        >>> import leastaction as la
        >>> spring = la.Quadratic([1.0], [4.0])
        >>> la.integrate(spring, "simpson", [0.5], [0.0], h=0.1, steps=1).acceleration()[0]
        array([-2.])
        """
        if not self.system.linear or self.digits is not None:
            raise TypeError("accelerations are those of Quadratic systems in float64")
        return response.acceleration(self, dofs)

    def __call__(self, t: Any) -> NDArray[Any]:
        """q at any time of the run, shape (n,) for one time or (…, n) for an array of times; see the class."""
        from leastaction.results.dense import paced_positions, positions

        self._require_whole("dense output")
        with self.reals.working():
            if self.pace is not None:
                return paced_positions(self, self.pace, self.reals.array(t))
            return positions(self, self.reals.array(t))

    def _require_whole(self, what: str) -> None:
        if self.output is not None:
            raise ValueError(
                f"{what} needs the whole state; this path stores {len(self.output)} of {self.system.n} degrees of "
                "freedom"
            )

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        digits = "" if self.digits is None else f", {self.digits} digits"
        pace = "" if self.pace is None else " by its pace"
        return (
            f"Path({self.system.name}, {self.method.name}, t = {float(self.t[0]):g} … {float(self.t[-1]):g}, "
            f"h = {float(self.h):g}{pace}, {len(self)} states of {freedom(self.q.shape[1])}{digits})"
        )

    @documented()
    def plot(self, what: str = "configuration", ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the path with Matplotlib. Several paths may share an axis. Where states are few, "configuration" and
        "phase" follow the method's own polynomial between them.

        Parameters
        ----------
        what : str, default "configuration"
            "configuration": q over t. "phase": p over q. "energy": its error. "invariants": the change of each
            conserved quantity. "spectrum": the amplitudes of q by frequency. "history": some degrees of freedom over
            t. "section": a Poincaré section, p over q where another coordinate passes a value.
        {ax}
        **options
            Of "history": `dofs`, `names` ({number: name}) and `of` ("q", "v" or "a"). Of "section": `coordinate`,
            `value`, `direction` (+1, −1 or 0), `show` (the coordinate drawn), and `period` for one state in each
            period of a drive.
        """
        from leastaction.results.plots import plot_path

        return plot_path(self, what, ax, **options)

    @documented()
    def show(self, draw: Any = None, beside: Sequence[Path] = ()) -> None:
        """Play the motion: in a window of the browser, or in the cell of a notebook.

        Parameters
        ----------
        {draw, beside}
        """
        from leastaction.results import viewer

        viewer.show(viewer.path_page(self, draw, beside))

    @documented()
    def to_html(
        self,
        file: str | os.PathLike[str],
        draw: Any = None,
        beside: Sequence[Path] = (),
        begin: float | None = None,
        megabytes: float = 1.4,
    ) -> None:
        """Write one file that plays the motion in any browser, without a network.

        Parameters
        ----------
        {file}
        draw : callable, optional
            A function of q that returns points in the plane or in space, or (points, links). It may also ask for t, p
            and parameters of the system by their names. Without links each point is linked to the next. A link is a
            pair (i, j), or (i, j, "spring"), or (i, j, "thread"). Among the links may be bodies, by their centre c and
            the ends a, b, e of their half axes: (c, a, b, "disc"), (c, a, b, e, "ellipsoid"), (c, a, b, e, "box"), and
            (c, a, b, "box") in the plane. The catalogue's problems bring their own drawing.
        {beside}
        begin : float, optional
            Show the motion from this time on. Energy and invariants are shown from the start.
        megabytes : float, default 1.4
            How large the frames may become. A long run is thinned to fit.
        """
        from leastaction.results import viewer

        viewer.write(viewer.path_page(self, draw, beside, begin, megabytes), file)

    def _repr_html_(self) -> str:
        from leastaction.results import viewer

        return viewer.frame(viewer.path_page(self, megabytes=viewer.CELL_MEGABYTES))

    @documented()
    def animate(
        self,
        file: str | os.PathLike[str],
        draw: Any = None,
        seconds: float = 10.0,
        fps: int | None = None,
        dpi: int = 120,
    ) -> None:
        """Film the whole path.

        Parameters
        ----------
        file : path
            "run.gif", or "run.mp4": ``pip install 'leastaction[film]'`` brings the ffmpeg that it needs.
        {draw}
        seconds : float, default 10
            How long the film is.
        fps : int, optional
            Frames in a second: 30, and 20 of a gif.
        dpi : int, default 120
            Dots per inch of a picture of 6.4 inches.
        """
        from leastaction.results import viewer

        viewer.animate(self, file, draw, seconds, fps, dpi)

    def to_xarray(self) -> xarray.Dataset:
        """The path as an xarray Dataset with the coordinates t and dof. Needs the extra ``leastaction[xarray]``."""
        return tables.dataset(self, ("t", "dof"), {"t": np.asarray(self.t)})

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Path:
        """Read a path back, with its system. Energy, dense output and plots work as before.

        The file may come from anybody: everything in it is checked, and nothing in it is executed but its Program of
        L.

        Parameters
        ----------
        file : path
            A file that `Path.save` wrote.
        """
        path: Path = files.loaded(file, lambda arrays, header: in_time(cls(**fields(arrays, header, False))))
        return path


def in_time(run: Any) -> Any:
    """A Path in time: a run of a paced system, which is in s, as a Path in t of the original system, whose `pace` the
    run becomes; other runs as they are.
    """
    if run.system.clock.steady:
        return run
    params = {name: value for name, value in run.params.items() if name not in (*OWN, STIFF, UNTIL)}
    events = {name: found.in_time(run.system.clock) for name, found in run.events.items() if name != T_END}
    about = states_in_time(run, 1)
    return replace(run, **about, params=params, events=events, pace=run, advice=with_pace(run, run.advice))


def states_in_time(run: Any, ahead: int) -> dict[str, Any]:
    """The part of a paced run that is about L: the system, and t, q, p, … without energy and time.

    The first `ahead` axes count states, and perhaps trajectories.
    """
    of = run.system.in_time
    width = run.q.shape[-1] - 1

    def part(name: str, *keys: Any) -> Any:
        array = getattr(run, name)
        return array[(slice(None),) * ahead + keys] if isinstance(array, np.ndarray) else array.selected(name, *keys)

    derivatives: dict[str, Any] = {"tangent": None, "sensitivity": None}
    if run.tangent is not None:
        state = np.delete(np.arange(2 * of.n + 2), [of.n, 2 * of.n + 1])
        derivatives["tangent"] = part("tangent", state[:, None], state)
        if run.sensitivity is not None:
            columns = np.array([*range(len(of.values())), -1])
            derivatives["sensitivity"] = part("sensitivity", state[:, None], columns)
    return {
        "system": of,
        "t": part(run.system.clock.block, width),
        "q": part("q", slice(width)),
        "p": part("p", slice(width)),
        **derivatives,
        "output": None if run.output is None else run.output[:-1],
    }
