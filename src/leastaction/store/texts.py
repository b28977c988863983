"""Numbers of many digits on disk: each is text in a row of bytes, 0x1a2bp-52, filled up with zeros.

Other readers of Zarr find ASCII; every bit is kept. Numbers that are not finite have no text.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.notation import BINARY_NUMBER, to_text
from leastaction.numbers.rounding import Digits, Reals

ROOM = 16  # for sign, 0x, p and exponent


def width(reals: Reals) -> int:
    """Bytes of each number's text."""
    assert isinstance(reals, Digits)
    return -(-reals.bits // 4) + ROOM


def written(values: NDArray[Any], reals: Reals) -> NDArray[Any]:
    """Numbers of a run as they are kept on disk: floats and integers as they are, mpmath numbers as text."""
    if values.dtype != object:
        return values
    size = width(reals)
    # A place that no trajectory has filled is the integer 0.
    numbers = (x if isinstance(x, mpmath.mpf) else mpmath.mpf(x) for x in values.flat)
    texts = [to_text(x).encode() if mpmath.isfinite(x) else b"" for x in numbers]
    if texts and max(map(len, texts)) > size:
        raise OverflowError(f"a number has more than the {reals.digits} digits of its run, or is too large to be kept")
    found = np.frombuffer(b"".join(text.ljust(size, b"\0") for text in texts), np.uint8)
    return found.reshape(*values.shape, size).copy()


def read(values: NDArray[Any]) -> NDArray[Any]:
    """Read what `written` has written. The file may come from a stranger: any other text is refused."""
    if values.dtype != np.uint8:
        return values
    found = np.empty(values.shape[:-1], object)
    flat = values.reshape(-1, values.shape[-1])
    found.reshape(-1)[:] = [_number(row.tobytes().rstrip(b"\0")) for row in flat]
    return found


def _number(text: bytes) -> Any:
    if not text:
        return mpmath.nan
    if not BINARY_NUMBER.fullmatch(shown := text.decode("ascii", "replace")):
        raise ValueError(f"expected a binary number as text, such as 0x1a2bp-52; got {shown[:60]!r}")
    mantissa, _, exponent = shown.partition("p")
    return mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(int(mantissa, 16), int(exponent)))
