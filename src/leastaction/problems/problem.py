"""Problem: a system with data, invariants and, where one is known, its exact solution."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from importlib import resources
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from leastaction.numbers.formulas import DOUBLES, MPFS, Arithmetic, by_components
from leastaction.numbers.notation import readable
from leastaction.numbers.precision import mpmath_digits
from leastaction.numbers.rounding import Digits, reals, to_float, to_mpf
from leastaction.numbers.symbolic import positive, symbolic, symbolic_vector
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import mechanics

GUARD = 20  # digits beyond those asked for, in the evaluation of formulas
DOUBLE_DIGITS = 17

Components = tuple[Any, ...]  # one array of shape (K,) per degree of freedom
Positive: TypeAlias = Any  # how a setting is read …
Number: TypeAlias = Any
Vector: TypeAlias = Any
Count: TypeAlias = Any
Parts = dict[str, Any]  # arguments of Problem


def listed(name: str) -> tuple[str, ...]:
    """The numbers of this name in numbers.txt, as text, which is exact."""
    text = resources.files("leastaction.problems").joinpath("numbers.txt").read_text(encoding="utf-8")
    return tuple(text.split(f"[{name}]\n")[1].split("\n\n")[0].split())


@dataclass(frozen=True)
class Data:
    """A problem's numbers as mpf: initial values, parameters by name, period (or None)."""

    q0: Components
    p0: Components
    params: dict[str, Any]
    period: Any = None


@dataclass(frozen=True)
class ExactMotion:
    """An exact solution, its constants found: at(x, t) gives the components of q and of p at the times t, (K,)."""

    at: Callable[[Arithmetic, NDArray[Any]], tuple[Components, Components]]
    period: Any = None


@dataclass(frozen=True, eq=False)
class Formula:
    """A function of the state, f(q, p) or f(y), each of shape (n,) or (K, n), that one formula gives in any arithmetic.

    f(q, p, digits=N) takes and gives mpmath numbers of N digits, in object arrays.
    """

    formula: Callable[..., Any]
    exact_params: Mapping[str, Any]

    def __call__(self, *state: ArrayLike, digits: int | None = None) -> Any:
        if digits is None:
            return self._at(DOUBLES, to_float, state)
        reals(digits)  # refuses what is no number of digits
        with mpmath_digits(digits + GUARD):
            value = self._at(MPFS, to_mpf, state)
        return _rounded(value, digits)

    def _at(self, x: Arithmetic, number: Callable[[Any], Any], state: tuple[ArrayLike, ...]) -> Any:
        c = SimpleNamespace(**{name: x(number(value)) for name, value in self.exact_params.items()})
        return by_components(x, lambda *parts: self.formula(x, c, *parts), *state)


@dataclass(frozen=True, eq=False)
class Energy:
    """E = p·v − L of a Lagrangian as an invariant: f(q, p) and f(q, p, digits=N) as of `Formula`."""

    system: Lagrangian
    exact_params: Mapping[str, Any]

    def __call__(self, q: ArrayLike, p: ArrayLike, digits: int | None = None) -> Any:
        if digits is None:
            return self.system.energy(q, p)
        reals(digits)
        more = Digits(digits + GUARD)
        Q, P = more.array(q), more.array(p)
        exactly = mechanics(self.system, self.system.values(self.exact_params, more), more)
        with more.working():
            value = exactly.energy(Q, P, more.array(np.zeros(Q.shape[:-1])))
        return _rounded(value, digits)


def catalogued(title: str, description: str, source: str) -> Callable[[Callable[..., Parts]], Callable[..., Problem]]:
    """A function whose arguments are the settings of a problem, and which gives its parts.

    The problem has the name of the function. Settings are read as their annotations say. Where the parts name no
    parameters, these are the settings for which Lagrangian, force and constraints ask; q0 and p0 may be settings, too.
    """

    def complete(make: Callable[..., Parts]) -> Callable[..., Problem]:
        signature = inspect.signature(make)

        @wraps(make)
        def made(*args: Any, **given: Any) -> Problem:
            bound = signature.bind(*args, **given)
            bound.apply_defaults()
            settings = {key: _read(signature.parameters[key], value) for key, value in bound.arguments.items()}
            parts: Parts = {"settings": settings}
            for key in settings.keys() & {"q0", "p0"}:
                parts[key] = settings[key] if isinstance(settings[key], tuple) else (settings[key],)
            parts |= make(**settings)
            return Problem(make.__name__.replace("_", "-"), title, description, source, **parts)

        return made

    return complete


def turning(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    """The angular momentum in the plane of the first two coordinates."""
    return q[0] * p[1] - q[1] * p[0]


def _read(setting: inspect.Parameter, value: Any) -> Any:
    match setting.annotation:
        case "Positive":
            return positive(value, setting.name)
        case "Number":
            return symbolic(value, setting.name)
        case "Vector":
            return symbolic_vector(value, len(np.atleast_1d(setting.default)), setting.name)
        case "Count":
            number = symbolic(value, setting.name)
            if number != int(number) or number < 1:
                raise ValueError(f"{setting.name}, how many there are, must be a positive integer; got {value!r}")
            return number
    return value


class Problem:
    """A system with data, invariants and, where one is known, its exact solution. `la.problems.get` gives it.

    Attributes
    ----------
    system : Lagrangian
        The system. Its default parameters are those of the problem.
    q0, p0 : ndarray, shape (n,)
        The start, correctly rounded.
    params : dict
        The parameters as floats.
    period : float or None
        The period of `period_of`; inf on a separatrix.
    period_of : str
        What has this period: "the motion", or a part of it, or the time unit of the source.
    exact_q0, exact_p0, exact_params
        The same data exactly, as SymPy numbers. `la.integrate` with ``digits=`` takes either.
    settings : dict
        What `la.problems.get` was given, or its defaults, exactly.
    invariants : dict of str to callable
        Constants of the motion: f(q, p) takes (K, n) to (K,), and f(q, p, digits=N) works with N digits.
    reference : tuple (t, q, p) or None
        A state known from elsewhere, as floats: the start after the period of a closed orbit, a published state, or one
        computed with more digits.
    exact_reference : tuple (t, q, p) or None
        The same as SymPy numbers. None where velocities are published in place of momenta.
    places : tuple of (t, q)
        Positions at further times, computed with more digits, as floats; `exact_places`: as SymPy numbers.
    matrices : tuple (M, K) or None
        Of L = ½ v·Mv − ½ q·Kq, where L is of that form.
    reduced : FirstOrder or None
        The first-order system that is left when conserved momenta are eliminated.
    has_exact : bool
        Whether an exact solution is known.
    name, title, description, source : str

    Methods
    -------
    exact, data
    """

    def __init__(
        self, name: str, title: str, description: str, source: str, *, lagrangian: Callable[..., Any],
        force: Callable[..., Any] | None = None, dissipation: Callable[..., Any] | None = None,
        constraints: Callable[..., Any] | None = None, inputs: Mapping[str, Any] | None = None, q0: tuple[Any, ...],
        p0: tuple[Any, ...], params: Mapping[str, Any] | None = None, settings: Mapping[str, Any],
        invariants: Mapping[str, Callable[[Arithmetic, Any, Components, Components], Any]] | None = None,
        solution: Callable[[Data], ExactMotion] | None = None, period: Any = None, period_of: str = "the motion",
        matrices: Callable[[Any], tuple[Any, Any]] | None = None, reduced: Callable[[Problem], Any] | None = None,
        reference: tuple[Any, tuple[Any, ...], tuple[Any, ...]] | None = None,
        moving_reference: tuple[Any, tuple[Any, ...], tuple[Any, ...]] | None = None,
        places: tuple[tuple[Any, tuple[Any, ...]], ...] = (),
    ) -> None:  # fmt: skip
        self.name, self.title, self.description, self.source = name, title, description, source
        if params is None:  # the settings that the functions ask for
            functions = [f for f in (lagrangian, force, dissipation, constraints) if f is not None]
            asked = {name for f in functions for name in inspect.signature(f).parameters}
            params = {key: value for key, value in settings.items() if key in asked}
        q0, p0 = _exactly(q0), _exactly(p0)
        period, reference, places, moving_reference = (
            _exactly(x) for x in (period, reference, places, moving_reference)
        )
        self.exact_q0, self.exact_p0, self.exact_params, self.settings = q0, p0, _exactly(params), dict(settings)
        self.q0, self.p0 = (np.array([to_float(x) for x in z]) for z in (q0, p0))
        self.params = {key: to_float(value) for key, value in params.items()}
        self.system = Lagrangian(
            lagrangian,
            n=len(q0),
            params=self.exact_params,
            force=force,
            dissipation=dissipation,
            constraints=constraints,
            inputs=inputs,
        )
        self.system.name = name
        self.invariants: dict[str, Energy | Formula] = {}
        if not (self.system.depends_on_time or self.system.forced):
            self.invariants["energy"] = Energy(self.system, self.exact_params)
        for key, formula in (invariants or {}).items():
            self.invariants[key] = Formula(formula, self.exact_params)
        self.matrices: Any = None
        if matrices is not None:
            self.matrices = tuple(np.array(Z, float) for Z in matrices(SimpleNamespace(**self.params)))
        self.reduced: Any = None if reduced is None else reduced(self)
        self.period_of = period_of
        self._solution, self._period = solution, period
        self.exact_reference = reference
        self.reference: Any = None
        if reference is not None:
            t, *state = reference
            self.reference = (to_float(t), *(np.array([to_float(x) for x in z]) for z in state))
        if moving_reference is not None:
            t, *state = moving_reference
            q, v = (np.array([to_float(x) for x in z]) for z in state)
            self.reference = (to_float(t), q, self.system.momentum(q, v, to_float(t)))
        self.exact_places = places
        self.places = tuple((to_float(t), np.array([to_float(x) for x in q])) for t, q in places)
        self._motions: dict[int, ExactMotion] = {}
        known = self._motion(DOUBLE_DIGITS).period if period is None and solution is not None else period
        self.period: Any = None if known is None else to_float(known)

    @property
    def has_exact(self) -> bool:
        return self._solution is not None

    def data(self, digits: int) -> Data:
        """Initial values, parameters and period as mpmath numbers.

        Parameters
        ----------
        digits : int
            Decimal digits.

        Returns
        -------
        Data
            With the fields q0, p0, params and period.
        """
        reals(digits)
        with mpmath_digits(digits + GUARD):
            period = self._motion(digits).period if self._period is None and self.has_exact else self._period
            found = self._data(None if period is None else to_mpf(period))
        return Data(
            q0=tuple(_rounded(x, digits) for x in found.q0),
            p0=tuple(_rounded(x, digits) for x in found.p0),
            params={name: _rounded(value, digits) for name, value in found.params.items()},
            period=None if found.period is None else _rounded(found.period, digits),
        )

    def exact(self, t: Any, digits: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """q and p at the times t by the exact solution.

        Parameters
        ----------
        t : number or array_like, shape (K,)
            The times. With `digits` they may be exact numbers.
        digits : int, optional
            Decimal digits of the answer, as mpmath numbers. Without `digits` the answer is in float64.

        Raises
        ------
        ValueError
            No exact solution is known.
        """
        if digits is None:
            motion = self._motion(DOUBLE_DIGITS)
            with mpmath_digits(2 * (DOUBLE_DIGITS + GUARD)):  # for values that are computed from the constants later
                return self._at(DOUBLES, motion, t)
        reals(digits)
        motion = self._motion(digits)
        with mpmath_digits(digits + GUARD):
            q, p = self._at(MPFS, motion, t)
        return _rounded(q, digits), _rounded(p, digits)

    def _at(self, x: Arithmetic, motion: ExactMotion, t: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        times = x.array(t)
        q, p = (np.stack([*components], axis=-1) for components in motion.at(x, times.reshape(-1)))
        return q.reshape(*times.shape, self.system.n), p.reshape(*times.shape, self.system.n)

    def _motion(self, digits: int) -> ExactMotion:
        """The solution's constants, found once with twice the digits, since some come from nearly double roots."""
        if self._solution is None:
            raise ValueError(
                f"{self.name} has no exact solution in closed form; for a reference, integrate it with a method of "
                "high order and a small step"
            )
        if digits not in self._motions:
            with mpmath_digits(2 * (digits + GUARD)):
                self._motions[digits] = self._solution(self._data(None))
        return self._motions[digits]

    def _data(self, period: Any) -> Data:
        return Data(
            tuple(to_mpf(x) for x in self.exact_q0),
            tuple(to_mpf(x) for x in self.exact_p0),
            {name: to_mpf(value) for name, value in self.exact_params.items()},
            period,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle keeps the arguments of `get`."""
        from leastaction.problems import get

        return partial(get, self.name, **self.settings), ()

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={readable(value)}" for name, value in self.settings.items())
        return f"Problem({self.name!r}{', ' if inside else ''}{inside})"


def _exactly(x: Any) -> Any:
    """Numbers, also in tuples and dictionaries, as SymPy's; text is read as it is in settings."""
    if isinstance(x, tuple):
        return tuple(map(_exactly, x))
    if isinstance(x, Mapping):
        return {name: _exactly(value) for name, value in x.items()}
    return x if x is None else symbolic(x) if isinstance(x, str) else sp.sympify(x)


def _rounded(value: Any, digits: int) -> Any:
    with mpmath_digits(digits):
        return +value
