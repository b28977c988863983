"""What all runs need: a progress bar, Ctrl-C, checked counts, and the words for a step that failed."""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from leastaction.backends import status
from leastaction.backends.status import Failure
from leastaction.errors import StepFailed
from leastaction.linear import Quadratic

if TYPE_CHECKING:
    from leastaction.path import Path


@contextmanager
def interruptible(stop: Callable[[], None], finished: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C, in the main thread, asks the run to stop between two pieces; a second one is an ordinary interrupt.

    An interrupt is never lost: where it came during the last piece, so that the run is `finished` all the same, a
    warning says so.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        asked = True
        stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked and finished():
        warnings.warn("interrupted in the last moments of the run: all of its steps were done", RuntimeWarning, 5)


@contextmanager
def preparing(rest: str = "nothing was computed, and no archive was begun") -> Iterator[None]:
    """Ctrl-C before the first step is an ordinary interrupt, which says what it ended."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted while the run was prepared, before its first step: {rest}") from None


@contextmanager
def progress_bar(total: int, wanted: bool) -> Iterator[Any]:
    """A bar with the rate and the time left, if wanted."""
    from tqdm import tqdm

    with tqdm(total=total, unit=" steps", unit_scale=True, disable=not wanted) as bar:
        yield bar


def positive(name: str, value: Any) -> int:
    """A positive integer, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}")
    return int(value)


_REASONS = {
    status.NOT_CONVERGED: "Newton's iteration did not converge",
    status.NOT_FINITE: "the Lagrangian or a derivative became infinite or not a number",
    status.BRANCH_ENDS: "no solution of this size of step is connected with the motion",
    status.SINGULAR: "the equations became singular",
}


# A linear system's equations can be solved always: only the size of its numbers can end a run.
LINEAR_REASON = "the state became infinite or not a number"


def raise_failure(path: Path, failure: Failure, step: int, now: float) -> NoReturn:
    """StepFailed, with what is known of it and what to try."""
    h = float(path.h)
    halvings = 1
    reason = LINEAR_REASON if isinstance(path.system, Quadratic) else _REASONS[failure.status]
    message = f"step {step} at t = {now:.6g} could not be solved with h = {h:g}: {reason}"
    if failure.iterations:
        message += f" ({failure.iterations} iterations, last increment {failure.residual:.1e} of the step)"
    if 0 < failure.reach < 1:
        reach = failure.reach * h
        halvings = math.ceil(-math.log2(failure.reach))
        message += f". The branch of solutions that begins at h = 0 could be followed up to about h = {reach:.3g}"
    if isinstance(path.system, Quadratic):
        message += (
            ". An unstable step grows without bound: compare h with system.stable_step(method); else look at the start "
            "and the load for what is too large"
        )
    else:
        message += (
            f". Try a smaller step, h = {h / 2**halvings:g}, or a method with more nodes; near a singularity of L (a "
            "collision, a chart's pole) other coordinates help"
        )
    message += f". The {len(path)} states before are in the exception's .path"
    raise StepFailed(
        message,
        path=path,
        step=step,
        time=now,
        h=path.h,
        residual=failure.residual,
        iterations=failure.iterations,
    )
