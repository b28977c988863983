"""Numbers that a user hands over for a run, checked: how long, how far, how often."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.numbers.rounding import FLOAT64, Reals, all_finite

MOST_STEPS = 2**53  # the largest number that float64 and the native loops can count to

FINEST = 64  # parts of a step that the time must resolve where forces depend on t


def positive(name: str, value: Any) -> int:
    """A positive integer, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}")
    return int(value)


def archive_path(name: str, path: Any) -> Path:
    """The place of an archive, checked."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be the path of an archive, such as 'run.zarr'; got {path!r}")
    if not os.fspath(path):
        raise ValueError(f"{name} must be the path of an archive, such as 'run.zarr'; got no name")
    return Path(path)


def number(name: str, value: Any, reals: Reals = FLOAT64) -> Any:
    """One finite number."""
    if reals is FLOAT64 and type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a number; got {value!r}")
    try:
        array = reals.array(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number; got {value!r} ({error})") from None
    if array.shape != ():
        raise TypeError(f"{name} must be one number; got {value!r}")
    if not all_finite(array):
        raise ValueError(f"{name} must be finite; got {value!r}")
    return array.item()


def count_steps(h: Any, steps: int | None, t_end: Any, t0: Any, paced: bool = False) -> tuple[int, Any]:
    """The number of steps and the step, from `steps` or from `t_end`. With a pace the steps h are no times: a run until
    t_end counts as one step.
    """
    if h == 0:
        raise ValueError("h must not be zero; a negative h goes backward in time")
    if steps is None and t_end is None:
        raise ValueError("say how long: give steps= or t_end=")
    if steps is not None and t_end is not None:
        raise ValueError("say how long: give either steps= or t_end=, not both")
    if steps is not None:
        check_count(positive("steps", steps))
        return int(steps), h
    length = t_end - t0
    if length == 0:
        raise ValueError(f"t_end must differ from the start, t0 = {float(t0):g}")
    if (length > 0) != (h > 0):
        raise ValueError(
            f"h = {float(h):g} leads away from t_end = {float(t_end):g} (the run starts at t0 = {float(t0):g}); "
            f"give h = {float(-h):g}"
        )
    if paced:
        return 1, h
    ratio = float(length / h)
    check_count(ratio)
    nearest = round(ratio)
    # A ratio just above a whole number is that number: h need not be representable. The slack is less than a step.
    count = max(1, nearest if ratio - nearest <= 1e-9 * ratio else math.ceil(ratio))
    return count, length / count


def steps_until(t_end: Any, t0: Any, h: Any) -> int:
    """How many steps of a run end at t_end, counted from its start."""
    ratio = float((t_end - t0) / h)
    count = round(ratio) if math.isfinite(ratio) else 0
    if count < 1 or abs(ratio - count) > 1e-9 * max(1.0, ratio):
        begin, step = float(t0), float(h)
        near = f"; {begin + math.floor(ratio) * step:.12g} and {begin + math.ceil(ratio) * step:.12g} are"
        raise ValueError(
            f"t_end = {float(t_end)!r} is no whole number of steps h = {step:g} after the start, t0 = {begin:g}"
            f"{near if ratio >= 1 else ''}. A stored run keeps its step"
        )
    return count


def check_count(count: float) -> None:
    """Refuse more steps than a run can count."""
    if count > MOST_STEPS:
        raise ValueError("a run of more than 2⁵³ ≈ 9·10¹⁵ steps is too long to be counted; take fewer, or a larger h")


def check_times(system: Any, t0: Any, h: Any, count: int) -> None:
    """Refuse times that rounding makes equal if forces depend on t; else warn, since the states are right."""
    farthest = max(t0, t0 + count * h, key=abs)
    least = h / FINEST if system.depends_on_time else h  # the times of nodes must differ, or those of steps
    if farthest + least != farthest and farthest - least != farthest:
        return
    step = f"the step h = {float(h):g} is lost in the rounding of t = {float(farthest):g}"
    if system.depends_on_time:
        raise ValueError(
            f"a part in {FINEST} of {step}, and {system.name} depends on t: measure time from nearer by, or run with "
            "digits="
        )
    warnings.warn(f"{step}: the states are right, their times are not told apart", RuntimeWarning, stacklevel=4)
