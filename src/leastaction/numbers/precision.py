"""Working precision of flint and of mpmath. Each has one for the whole process: one thread at a time may set it.

Both share one lock, since code that uses one library may call the other, in either order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import flint
import mpmath

_precision = threading.RLock()


@contextmanager
def _flint(setting: str, value: int) -> Iterator[None]:
    with _precision:
        before = getattr(flint.ctx, setting)
        setattr(flint.ctx, setting, value)
        try:
            yield
        finally:
            setattr(flint.ctx, setting, before)


def flint_bits(bits: int) -> AbstractContextManager[None]:
    """Inside, flint works with this many bits."""
    return _flint("prec", bits)


def flint_terms(count: int) -> AbstractContextManager[None]:
    """Inside, flint cuts series after this many terms."""
    return _flint("cap", count)


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
