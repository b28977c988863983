"""Problems with answers: systems, their data, invariants and exact solutions, by name.

>>> from leastaction import problems
>>> kepler = problems.get("kepler", eccentricity="0.9")
>>> q, p = kepler.exact(kepler.period / 2)  # half a turn later, at the far end of the ellipse
>>> q.round(12), (1 + kepler.settings["eccentricity"]) * -1
(array([-1.9,  0. ]), -19/10)
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leastaction.problems.large import Bodies, lattice, n_body
from leastaction.results import looks

if TYPE_CHECKING:
    from leastaction.problems.problem import Problem
    from leastaction.results.looks import Look

__all__ = ["Bodies", "driven", "get", "lattice", "n_body", "names"]

# Problems with a module of their own name, and the modules of the others; a module is imported only when asked for.
# fmt: off
_OWN = (
    "andrews-squeezer", "arenstorf", "charged-particle", "damped-driven-pendulum", "driven-oscillator",
    "four-bar-linkage", "henon-heiles", "lagrange-top", "linear-double-pendulum", "n-four-bar",
    "outer-solar-system", "pendulum", "pendulum-cartesian", "pleiades", "quadratic-drag",
    "rotating-hoop", "slider-crank", "spherical-pendulum", "van-der-pol",
)
# fmt: on
_PROBLEMS = {
    **{name: name.replace("-", "_") for name in _OWN},
    **dict.fromkeys(("chain", "falling-chain"), "chain"),
    **dict.fromkeys(("double-pendulum", "double-pendulum-chaotic"), "double_pendulum"),
    **dict.fromkeys(("harmonic-oscillator", "harmonic-oscillator-2d"), "harmonic_oscillator"),
    **dict.fromkeys(("kepler", "kepler-3d", "kepler-galerkin"), "kepler"),
    **dict.fromkeys(("lagrange-top-cusps", "lagrange-top-cusps-reduced"), "lagrange_top_cusps"),
    **dict.fromkeys(("butterfly", "figure-eight", "moth", "pythagorean", "yin-yang"), "three_bodies"),
}
# The problems with inputs: a run must be given the inputs.
_DRIVEN = {"cart-pole": "cart_pole"}


def names() -> tuple[str, ...]:
    """The names of all problems of the catalogue that move by themselves, in alphabetical order.

    See Also
    --------
    driven : the problems with inputs

    Examples
    --------
    >>> import leastaction as la
    >>> la.problems.names()[:3]
    ('andrews-squeezer', 'arenstorf', 'butterfly')
    """
    return tuple(sorted(_PROBLEMS))


def driven() -> tuple[str, ...]:
    """The names of the problems with inputs, in alphabetical order. A run has to bring what drives them.

    See Also
    --------
    names : the problems that move by themselves

    Examples
    --------
    >>> import leastaction as la
    >>> la.problems.driven()
    ('cart-pole',)
    >>> la.problems.get("cart-pole").system.inputs
    {'u': (1,)}
    """
    return tuple(sorted(_DRIVEN))


def get(name: str, **settings: Any) -> Problem:
    """A problem of the catalogue, with its usual data or with others.

    Parameters
    ----------
    name : str
        One of `la.problems.names` or of `la.problems.driven`.
    **settings
        Data by name, such as ``eccentricity="0.9"``: int, float (its binary value), Fraction, mpf, SymPy number, or
        text such as "9.81" or "pi/2"; or a sequence of them, as for q0. Text is exact: "0.1" is one tenth at any
        precision.

    Returns
    -------
    Problem
        Its ``.settings`` holds all data, exactly.

    Raises
    ------
    ValueError
        No problem has this name, or it has no such setting.

    Examples
    --------
    >>> import leastaction as la
    >>> la.problems.get("pendulum", theta0="pi/3").q0
    array([1.04719755])
    """
    known_names = _PROBLEMS | _DRIVEN
    if not isinstance(name, str) or name not in known_names:
        near = difflib.get_close_matches(str(name).lower().replace("_", "-").replace(" ", "-"), known_names, 3, 0.4)
        raise ValueError(
            f"no problem is called {name!r}. "
            + (f"Did you mean {' or '.join(map(repr, near))}? " if near else "")
            + f"There are {', '.join(sorted(known_names))}"
        )
    make = maker(name)
    known = tuple(inspect.signature(make).parameters)
    if unknown := [setting for setting in settings if setting not in known]:
        raise ValueError(f"{name} has no setting {unknown[0]!r}; it has {', '.join(known)}")
    return make(**settings)


def maker(name: str) -> Callable[..., Problem]:
    """The function that makes a problem of the catalogue."""
    module = importlib.import_module(f"leastaction.problems.{(_PROBLEMS | _DRIVEN)[name]}")
    made: Callable[..., Problem] = getattr(module, name.replace("-", "_"))
    return made


def _look(system: Any) -> Look | None:
    from leastaction.problems.drawings import find

    return find(system)


looks.finders.append(_look)
