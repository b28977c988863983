"""Look: how a system is shown. Names and units of its coordinates, a drawing, and what it conserves.

A look belongs to a system and is found when a picture is wanted, so that paths read back from a file have a look too. A
module that knows looks (the catalogue of problems, the search for symmetries) adds a finder; pictures ask
`look(system)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leastaction.linear.matrices import chosen_dofs

Invariant = Callable[[Any, Any, Mapping[str, Any]], Any]  # q (K, n), p (K, n), parameters by name ↦ (K,)
Momenta = Callable[[Any, Mapping[str, Any]], Mapping[str, Invariant]]


def change(values: Any) -> tuple[Any, bool]:
    """The change of a quantity from its first value, and whether the change is relative to that value.

    The change is absolute if it is larger than the first value, for instance if the first value is zero up to rounding.
    """
    moved, size = values - values[0], abs(values[0])
    relative = bool(size > 0 and size >= abs(moved).max())
    return (moved / size if relative else moved), relative


@dataclass(frozen=True, eq=False)
class Look:
    """How a system is shown.

    title        its name in words
    names        of the coordinates; q₀, q₁, … where none are given
    momenta      names of the momenta; p₀, p₁, … where none are given
    angles       which coordinates are angles: a Poincaré section takes them modulo 2π
    units        of "t", "energy", and lists for "q" and "p", where they are known
    draw         a state to points and links, as `path.to_html(draw=…)` takes it
    trails       the points whose way is drawn; None: the last one, or all where nothing links them
    invariants   what the motion conserves, besides the energy
    period       of a driving force: a section is then taken once in a period
    unknown      True for the look of a system that no finder knows
    """

    title: str = ""
    names: tuple[str, ...] = ()
    momenta: tuple[str, ...] = ()
    angles: tuple[int, ...] = ()
    units: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[..., Any] | None = None
    trails: tuple[int, ...] | None = None
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    period: Callable[[Mapping[str, Any]], float] | None = None
    unknown: bool = False

    def name(self, j: int) -> str:
        """Coordinate j's name."""
        return self.names[j] if j < len(self.names) else f"q{subscript(j)}"

    def momentum(self, j: int) -> str:
        """The name of the momentum that belongs to coordinate j."""
        return self.momenta[j] if j < len(self.momenta) else f"p{subscript(j)}"

    def unit(self, what: str, j: int | None = None) -> str:
        """The unit of "t" or "energy", or of "q" or "p" of coordinate j; "" where none is known."""
        unit = self.units.get(what, "")
        return unit if j is None or isinstance(unit, str) else unit[j]


finders: list[Callable[[Any], Look | None]] = []
momenta: list[Momenta] = []  # finders of conserved momenta, for systems whose look names none


def look(system: Any) -> Look:
    """The look of a system: the catalogue's if the system is one of its problems, else a plain one."""
    found = (finder(system) for finder in finders)
    return next((one for one in found if one is not None), _plain(system))


def _plain(system: Any) -> Look:
    """The look of a system that no finder knows: with the names that the system itself brings."""
    return Look(system.name, system.names, tuple(f"p_{name}" for name in system.names), unknown=True)


def stored_places(run: Any, dofs: Any = None) -> tuple[list[int], list[int]]:
    """Degrees of freedom, all that are stored or those asked for, and the columns of q and p where they stand."""
    stored = list(range(run.system.n)) if run.output is None else [int(dof) for dof in run.output]
    chosen = stored if dofs is None else [int(dof) for dof in chosen_dofs(dofs, run.system.n)]
    places = {dof: place for place, dof in enumerate(stored)}
    if missing := [dof for dof in chosen if dof not in places]:
        raise ValueError(f"the degrees of freedom {missing} are not stored; give them in output=")
    return chosen, [places[dof] for dof in chosen]


def invariants(system: Any, params: Mapping[str, Any]) -> Mapping[str, Invariant]:
    """What a system conserves besides its energy, by name: known for a problem, else found from symmetries of L."""
    known = look(system)
    if not known.unknown:
        return known.invariants
    return {name: f for find in momenta for name, f in find(system, params).items()}


def conserves_energy(system: Any) -> bool:
    """Whether the exact motion keeps E = p·v − L: then a change of E is an error, else it is a part of the motion."""
    return not system.depends_on_time and not system.forced


def subscript(j: int) -> str:
    """
    >>> subscript(12)
    '₁₂'
    """
    return str(j).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def with_unit(name: str, unit: str) -> str:
    """
    >>> with_unit("time t", "s"), with_unit("time t", "")
    ('time t (s)', 'time t')
    """
    return f"{name} ({unit})" if unit else name
