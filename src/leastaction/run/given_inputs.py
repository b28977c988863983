"""The inputs that a run was given, checked against its system and its method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Composition, Galerkin, Method
from leastaction.numbers.rounding import Reals
from leastaction.step.inputs import Inputs, read_inputs
from leastaction.systems.protocol import System


def given_inputs(
    given: Mapping[str, Any] | None,
    system: System,
    method: Method,
    reals: Reals,
    t0: Any,
    h: Any,
    steps: int,
    many: bool,
) -> Inputs | None:
    """What a run was given, checked; None where the system has no inputs."""
    if given:
        system.check_inputs()
    shapes = system.inputs
    if given is None and not shapes:
        return None
    return read_inputs(given, shapes, system.name, reals, t0, h, steps, *points_of(method, reals), many)


def points_of(method: Method, reals: Reals) -> tuple[NDArray[Any], NDArray[Any] | str]:
    """The places in a step, in parts of h, that a method evaluates; the nodes that may have own values, or why none."""
    if isinstance(method, Composition):
        parts = np.array([float(x) for x in method.parts])
        begins = np.concatenate([[0.0], np.cumsum(parts)[:-1]])
        points = (begins[:, None] + parts[:, None] * method.root.table.c).ravel()
        return points, (
            f"{method.name} is a composition, whose steps go forth and back over each other. Give values that are held "
            "in each whole step, or la.Samples"
        )
    if not isinstance(method, Galerkin):
        return np.array([0.0, 0.5, 1.0]), (
            f"the stages of {method.name} are at the start, twice in the middle and at the end of a step, so that each "
            "step would share values with the next. Give values that are held in each step, or la.Samples"
        )
    if reals.digits is None:
        return method.table.c, method.table.c
    c = np.array(method.exact_table(reals.digits + 10)["c"], dtype=object)
    return c, c
