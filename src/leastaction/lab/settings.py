"""Settings: what a page asks for, checked. A request has numbers, and names that are looked up; nothing is executed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.lab.subjects import Subject, Subjects
from leastaction.methods import Method, method
from leastaction.numbers.arrays import FloatArray

MOST_STEPS = 3_000_000
MOST_RUNS = 2
LONGEST_NAME = 40


@dataclass(frozen=True)
class RunSettings:
    """A method with its step, or with the tolerance from which the step follows; `paced`: steps follow the motion."""

    name: str
    method: Method
    h: float | None
    tol: float | None
    paced: bool = False

    @property
    def pace(self) -> str | None:
        """The pace, as `la.integrate` takes it."""
        return "auto" if self.paced else None


@dataclass(frozen=True, eq=False)
class Settings:
    """A start, parameters, inputs held at a value, and the runs wanted: shown for `span`, after a time `after`."""

    subject: Subject
    params: Mapping[str, float]
    inputs: Mapping[str, FloatArray]
    q0: FloatArray
    v0: FloatArray
    runs: tuple[RunSettings, ...]
    after: float
    span: float


def settings(subjects: Subjects, asked: Any) -> Settings:
    """What a page asks for; ValueError says what is wrong with it, in words for the page."""
    if not isinstance(asked, Mapping):
        raise ValueError("expected an object of settings")
    subject = subjects.get(asked.get("subject"))
    given = asked.get("params", {})
    if not isinstance(given, Mapping):
        raise ValueError("params must be an object of numbers")
    if unknown := [name for name in given if name not in subject.numbers and name not in subject.held]:
        raise ValueError(f"{subject.title} has no parameter {str(unknown[0])[:LONGEST_NAME]!r}")
    told = {name: number(value, str(name)) for name, value in given.items()}
    inputs = {name: np.zeros(shape) for name, shape in subject.system.inputs.items()}
    for control, (name, place) in subject.held.items():
        inputs[name].flat[place] = told.get(control, 0.0)
    runs = asked.get("runs")
    if not isinstance(runs, Sequence) or isinstance(runs, str) or not 1 <= len(runs) <= MOST_RUNS:
        raise ValueError(f"expected one or {MOST_RUNS} runs")
    after = number(asked.get("after", 0.0), "the time before")
    span = number(asked.get("span"), "the time shown")
    if after < 0 or span <= 0:
        raise ValueError("the time shown must be positive, and the time before it not negative")
    return Settings(
        subject=subject,
        params={name: told.get(name, value) for name, value in subject.numbers.items()},
        inputs=inputs,
        q0=vector(asked.get("q0"), "q₀", subject.system.n),
        v0=vector(asked.get("v0"), "the initial velocity", subject.system.n),
        runs=tuple(_run(one, after + span) for one in runs),
        after=after,
        span=span,
    )


def _run(asked: Any, length: float) -> RunSettings:
    if not isinstance(asked, Mapping):
        raise ValueError("a run is a method with h or tol")
    name = asked.get("method")
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        raise ValueError("a method is given by its name, such as simpson or P3N4Q6Lob")
    chosen = method(name)
    s = getattr(chosen, "s", 1)
    if s > 32 or getattr(getattr(chosen, "rule", None), "r", 1) > 40:
        raise ValueError(f"{name} is too large for the lab: s up to 32, r up to 40")
    paced = asked.get("paced", False)
    if not isinstance(paced, bool):
        raise ValueError("a run is paced or not: true or false")
    if asked.get("tol") is not None:
        tol = number(asked["tol"], "the tolerance")
        if not 1e-13 <= tol <= 1:
            raise ValueError(f"the tolerance must be between 1e-13 and 1; got {tol:g}")
        if paced:
            raise ValueError("steps by pace take h, not a tolerance")
        return RunSettings(name, chosen, None, tol)
    h = number(asked.get("h"), "the step h")
    if h <= 0:
        raise ValueError(f"the step h must be positive; got {h:g}")
    check_steps(length, h)
    return RunSettings(name, chosen, h, None, paced)


def check_steps(length: float, h: float) -> None:
    if length / h > MOST_STEPS:
        raise ValueError(f"{length / h:.3g} steps are too many for the lab: at most {MOST_STEPS:,}. Take a larger h")


def number(value: Any, name: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a number; got {str(value)[:LONGEST_NAME]!r}")
    return float(value)


def vector(values: Any, name: str, n: int) -> FloatArray:
    """A vector of this number of finite numbers."""
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != n:
        raise ValueError(f"{name} must be {n} numbers")
    return np.array([number(value, name) for value in values])


def whole(value: Any, name: str, below: int) -> int:
    """One of 0 … below − 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise ValueError(f"{name} must be one of 0 … {below - 1}; got {str(value)[:LONGEST_NAME]!r}")
    return value
