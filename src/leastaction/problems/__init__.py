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

# The problems of each module; a module is imported only when one of its problems is asked for.
# fmt: off
_MODULES = {
    "gravity": ("arenstorf", "butterfly", "figure-eight", "kepler", "kepler-3d", "kepler-galerkin", "moth",
                "outer-solar-system", "pleiades", "pythagorean", "yin-yang"),
    "linkages": ("andrews-squeezer", "chain", "falling-chain", "four-bar-linkage", "n-four-bar", "pendulum-cartesian",
                 "rotating-hoop", "slider-crank", "spherical-pendulum"),
    "oscillators": ("charged-particle", "driven-oscillator", "harmonic-oscillator", "harmonic-oscillator-2d",
                    "henon-heiles", "linear-double-pendulum", "quadratic-drag", "van-der-pol"),
    "pendulums": ("cart-pole", "damped-driven-pendulum", "double-pendulum", "double-pendulum-chaotic", "pendulum"),
    "tops": ("lagrange-top", "lagrange-top-cusps", "lagrange-top-cusps-reduced"),
}
# fmt: on
_HOMES = {name: module for module, own in _MODULES.items() for name in own}
_DRIVEN = ("cart-pole",)  # with inputs: a run must be given the inputs


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
    return tuple(sorted(_HOMES.keys() - set(_DRIVEN)))


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
    return _DRIVEN


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
    if not isinstance(name, str) or name not in _HOMES:
        near = difflib.get_close_matches(str(name).lower().replace("_", "-").replace(" ", "-"), _HOMES, 3, 0.4)
        raise ValueError(
            f"no problem is called {name!r}. "
            + (f"Did you mean {' or '.join(map(repr, near))}? " if near else "")
            + f"There are {', '.join(sorted(_HOMES))}"
        )
    make = maker(name)
    known = tuple(inspect.signature(make).parameters)
    if unknown := [setting for setting in settings if setting not in known]:
        raise ValueError(f"{name} has no setting {unknown[0]!r}; it has {', '.join(known)}")
    return make(**settings)


def maker(name: str) -> Callable[..., Problem]:
    """The function that makes a problem of the catalogue."""
    module = importlib.import_module(f"leastaction.problems.{_HOMES[name]}")
    made: Callable[..., Problem] = getattr(module, name.replace("-", "_"))
    return made


def _look(system: Any) -> Look | None:
    from leastaction.problems.drawings import find

    return find(system)


looks.finders.append(_look)
