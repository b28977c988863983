"""Subjects: what the lab can show. The problems of the catalogue, and at most one system of the user's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from leastaction import problems
from leastaction.printing import freedom
from leastaction.results.looks import Look, look, subscript
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import require_lagrangian

OWN = "own"  # the key of the user's system
METHODS = (
    *("simpson", "midpoint", "stormer-verlet", "P2N2Q4Gau", "P3N3Q6Gau", "P3N4Q6Lob"),
    *("P4N4Q8Gau", "P8N8Q16Gau", "rk4"),
)


# Bodies that nearly meet: with equal steps their motion is lost at once. For each, the h of its pace, and the periods
# shown.
PACED = {
    "arenstorf": (0.002, 2),
    "butterfly": (0.05, 2),
    "moth": (0.05, 2),
    "pythagorean": (0.05, 70),
    "yin-yang": (0.05, 2),
}
# The same without a pace, where a hundredth of the period is too long a step: a mechanism with dead points.
SHORT = {"andrews-squeezer": (3e-5, 1)}


@dataclass(frozen=True, eq=False)
class Subject:
    """A system with a start."""

    key: str  # its name in links: a problem's name, or "own"
    title: str
    about: str
    system: Lagrangian
    q0: Any
    v0: Any
    draw: Any = None
    period: float = 1.0  # the time by which spans are measured; 1 where none is known
    file: str | None = None  # where the user's own system comes from, as Python code would find it

    @cached_property
    def look(self) -> Look:
        return look(self.system)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The parameters that are single numbers, which have sliders."""
        return {name: value for name, value in self.system.params.items() if isinstance(value, float)}

    @cached_property
    def held(self) -> dict[str, tuple[str, int]]:
        """Sliders of the inputs that drive the system; each slider is one entry of an input: its name and place."""
        found: dict[str, tuple[str, int]] = {}
        for name, shape in self.system.inputs.items():
            size = math.prod(shape)
            found |= {name if size == 1 else f"{name}{subscript(j)}": (name, j) for j in range(size)}
        return found

    def describe(self) -> dict[str, Any]:
        """All that the page's controls need."""
        n, seen = self.system.n, self.look
        h, periods = (PACED | SHORT).get(self.key, (float(f"{self.period / 100:.3g}"), 20))
        return {
            "key": self.key,
            "title": self.title,
            "about": self.about,
            "params": [_control(name, name, value, *_around(value)) for name, value in self.numbers.items()]
            + [_control(name, f"{name}, held", 0.0, -5.0, 5.0) for name in self.held],
            "q0": [
                _control(str(j), seen.name(j), float(x), *((-math.pi, math.pi) if j in seen.angles else _both(x)))
                for j, x in enumerate(self.q0)
            ],
            "v0": [_control(str(j), f"d{seen.name(j)}/dt", float(x), *_both(x, 2.0)) for j, x in enumerate(self.v0)],
            "period": self.period,
            "method": "P4N4Q8Gau" if self.key in PACED else "simpson",
            "h": h,
            "paced": self.key in PACED,
            "paces": not (self.system.inputs or self.system.m),
            "constrained": bool(self.system.m),
            "span": float(f"{periods * self.period:.6g}"),
            "unit": seen.unit("t"),
            "coordinates": [seen.name(j) for j in range(n)],
            "section": "strobe" if n == 1 and seen.period else "plane" if n >= 2 else "",
        }


def _control(key: str, name: str, value: float, low: float, high: float) -> dict[str, Any]:
    return {"key": key, "name": name, "value": value, "low": low, "high": high}


def _around(x: float) -> tuple[float, float]:
    return (-1.0, 1.0) if x == 0 else (0.1 * x, 3 * x) if x > 0 else (3 * x, 0.1 * x)


def _both(x: Any, least: float = 1.5) -> tuple[float, float]:
    reach = max(least, 2 * abs(float(x)))
    return -reach, reach


def of_problem(name: str) -> Subject:
    """A problem of the catalogue."""
    problem = problems.get(name)
    period = problem.period if problem.period is not None and math.isfinite(problem.period) else 1.0
    v0 = problem.system.velocity(problem.q0, problem.p0)
    return Subject(name, problem.title, problem.description, problem.system, problem.q0, v0, None, period)


def of_system(
    system: Any, q0: Any, p0: Any = None, v0: Any = None, draw: Any = None, name: str = "", file: str | None = None
) -> Subject:
    """A system of the user's own."""
    system = require_lagrangian(system, "the lab")
    if (p0 is None) == (v0 is None):
        raise ValueError("give p0 or v0, and not both")
    q = np.array(q0, float)
    v = system.velocity(q, np.array(p0, float)) if v0 is None else np.array(v0, float)
    if q.shape != (system.n,) or v.shape != (system.n,):
        raise ValueError(f"q0 and v0 must have {system.n} numbers each; got {q.shape} and {v.shape}")
    title = name or system.name
    return Subject(OWN, title, f"{system.name}, {freedom(system.n)}", system, q, v, draw, 1.0, file)


class Subjects:
    """The subjects at hand, made when they are asked for."""

    def __init__(self, own: Subject | None = None) -> None:
        self._made: dict[str, Subject] = {} if own is None else {OWN: own}

    @property
    def keys(self) -> list[str]:
        return [*([OWN] if OWN in self._made else []), *problems.names()]

    def get(self, key: Any) -> Subject:
        if key not in self._made:
            if not isinstance(key, str) or key not in problems.names():
                raise ValueError(f"there is no system {str(key)[:60]!r} here")
            self._made[key] = of_problem(key)
        return self._made[key]

    def titles(self) -> list[list[str]]:
        return [[key, self._made[OWN].title if key == OWN else _title(key)] for key in self.keys]


@cache
def _title(name: str) -> str:
    return problems.get(name).title
