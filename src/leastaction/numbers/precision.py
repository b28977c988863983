"""Working precision of flint and of mpmath. Each has one for the whole process: one thread at a time may set it.

Both share one lock, since code that uses one library may call the other, in either order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import flint
import mpmath

_precision = threading.RLock()


@contextmanager
def flint_bits(bits: int) -> Iterator[None]:
    """Inside, flint works with this many bits."""
    with _precision:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


@contextmanager
def flint_terms(count: int) -> Iterator[None]:
    """Inside, flint cuts series after this many terms."""
    with _precision:
        before = flint.ctx.cap
        flint.ctx.cap = count
        try:
            yield
        finally:
            flint.ctx.cap = before


@contextmanager
def mpmath_bits(bits: int) -> Iterator[None]:
    """Inside, mpmath works with this many bits."""
    with _precision, mpmath.workprec(bits):
        yield


@contextmanager
def mpmath_digits(digits: int) -> Iterator[None]:
    """Inside, mpmath works with this many decimal digits."""
    with _precision, mpmath.workdps(digits):
        yield


def libraries() -> str:
    """What decides the last bits of numbers of many digits."""
    return f"python-flint {flint.__version__}, FLINT {flint.__FLINT_VERSION__}, mpmath {mpmath.__version__}"
