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
from typing import TYPE_CHECKING, Any

from leastaction.problems.large import Bodies, lattice, n_body
from leastaction.results import looks

if TYPE_CHECKING:
    from leastaction.problems.problem import Problem
    from leastaction.results.looks import Look

__all__ = ["Bodies", "driven", "get", "lattice", "n_body", "names"]

# name → module and function; imported only when asked for
_PROBLEMS = {
    "andrews-squeezer": ("andrews_squeezer", "andrews_squeezer"),
    "arenstorf": ("arenstorf", "arenstorf"),
    "butterfly": ("three_bodies", "butterfly"),
    "chain": ("chain", "chain"),
    "charged-particle": ("charged_particle", "charged_particle"),
    "damped-driven-pendulum": ("damped_driven_pendulum", "damped_driven_pendulum"),
    "double-pendulum": ("double_pendulum", "double_pendulum"),
    "double-pendulum-chaotic": ("double_pendulum", "double_pendulum_chaotic"),
    "driven-oscillator": ("driven_oscillator", "driven_oscillator"),
    "falling-chain": ("chain", "falling_chain"),
    "figure-eight": ("three_bodies", "figure_eight"),
    "four-bar-linkage": ("four_bar_linkage", "four_bar_linkage"),
    "harmonic-oscillator": ("harmonic_oscillator", "harmonic_oscillator"),
    "harmonic-oscillator-2d": ("harmonic_oscillator", "harmonic_oscillator_2d"),
    "henon-heiles": ("henon_heiles", "henon_heiles"),
    "kepler": ("kepler", "kepler"),
    "kepler-3d": ("kepler", "kepler_3d"),
    "kepler-galerkin": ("kepler", "kepler_galerkin"),
    "lagrange-top": ("lagrange_top", "lagrange_top"),
    "lagrange-top-cusps": ("lagrange_top_cusps", "lagrange_top_cusps"),
    "lagrange-top-cusps-reduced": ("lagrange_top_cusps", "lagrange_top_cusps_reduced"),
    "linear-double-pendulum": ("linear_double_pendulum", "linear_double_pendulum"),
    "moth": ("three_bodies", "moth"),
    "n-four-bar": ("n_four_bar", "n_four_bar"),
    "outer-solar-system": ("outer_solar_system", "outer_solar_system"),
    "pendulum": ("pendulum", "pendulum"),
    "pendulum-cartesian": ("pendulum_cartesian", "pendulum_cartesian"),
    "pleiades": ("pleiades", "pleiades"),
    "pythagorean": ("three_bodies", "pythagorean"),
    "quadratic-drag": ("quadratic_drag", "quadratic_drag"),
    "rotating-hoop": ("rotating_hoop", "rotating_hoop"),
    "slider-crank": ("slider_crank", "slider_crank"),
    "spherical-pendulum": ("spherical_pendulum", "spherical_pendulum"),
    "van-der-pol": ("van_der_pol", "van_der_pol"),
    "yin-yang": ("three_bodies", "yin_yang"),
}


# The problems with inputs: a run must be given the inputs.
_DRIVEN = {"cart-pole": ("cart_pole", "cart_pole")}


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
    module, function = known_names[name]
    make = getattr(importlib.import_module(f"leastaction.problems.{module}"), function)
    known = tuple(inspect.signature(make).parameters)
    if unknown := [setting for setting in settings if setting not in known]:
        raise ValueError(f"{name} has no setting {unknown[0]!r}; it has {', '.join(known)}")
    return make(**settings)


def _look(system: Any) -> Look | None:
    from leastaction.problems.looks import find

    return find(system)


looks.finders.append(_look)
