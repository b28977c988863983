"""What zarr.json says of a run: signed against damage, and checked, since it may come from anybody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import StoreError
from leastaction.methods import Method, method
from leastaction.numbers.notation import BINARY_NUMBER
from leastaction.numbers.rounding import MOST_DIGITS, reals
from leastaction.reading import MOST_LETTERS, MOST_STEPS, entry, integer, listing, mapping, real, text

LARGEST_CHUNK = 2**26  # the most bytes of a chunk that has more than one row


def to_json(value: Any) -> Any:
    """Plain data, as JSON reads it back."""
    return json.loads(json.dumps(value))


def checksum(header: Mapping[str, Any]) -> str:
    """The checksum of all that a header says, independent of its layout in the file."""
    return hashlib.sha256(json.dumps(header, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@contextmanager
def interpreting(path: Path) -> Iterator[None]:
    """Turn errors from impossible contents of an archive into a StoreError."""
    try:
        yield
    except StoreError:
        raise
    except PermissionError as error:
        raise StoreError(error.errno, f"{path} cannot be read: no permission for {error.filename}") from error
    except Exception as error:
        raise StoreError(f"{path} is damaged, or was not written by leastaction: {error}") from error


def check_header(header: Mapping[str, Any]) -> None:
    """Check that every number of a header has a possible value. The system is checked when it is made."""
    for name in ("version", "machine", "name"):
        text(entry(header, name), name)
    method_of_file(entry(header, "method"))
    digits = entry(header, "digits")
    if digits is not None:
        integer(digits, "digits", 2, MOST_DIGITS)
    _number(entry(header, "t0"), "t0", digits)
    if _number(entry(header, "h"), "h", digits) == 0:
        raise ValueError("h must not be zero")
    n = integer(entry(header, "n"), "n", 1)
    integer(entry(header, "every"), "every")
    if entry(header, "until") is not None:
        t_end, count = listing(header["until"], "until", 2)
        _number(t_end, "until", digits), integer(count, "until", 1)
    if not isinstance(entry(header, "open"), bool):
        raise ValueError("open must be true or false")
    for name, layout in mapping(entry(header, "arrays"), "arrays").items():
        _check_layout(name, layout)
    size = integer(entry(header, "size"), "size", 1, MOST_STEPS if header["kind"] == "ensemble" else 1)
    integer(entry(header, "length"), "length", 1, size)
    integer(entry(header, "rows"), "rows", 1)
    integer(entry(header, "varied"), "varied")
    if entry(header, "output") is not None:
        output = [integer(dof, "output", 0, n - 1) for dof in listing(header["output"], "output")]
        checked_output(np.array(output, np.int64), n)
    if not {"program", "terms"} & set(header) and not isinstance(entry(header, "sparse"), bool):
        raise ValueError("sparse must be true or false")


def _number(value: Any, what: str, digits: int | None) -> Any:
    """A finite binary number, as text."""
    if digits is None:
        return real(value, what)
    if not BINARY_NUMBER.fullmatch(text(value, what)):
        raise ValueError(f"{what} must be a binary number as text, such as 0x1a2bp-52; got {value!r}")
    return reals(digits).array(value).item()


def _check_layout(name: str, layout: Any) -> None:
    dtype, chunks = listing(layout, f"the layout of {name}", 2)
    if dtype not in ("<f8", "<i8", "|i1", "|u1"):
        raise ValueError(f"the array {name} must hold floats, integers or text; got {dtype!r}")
    rows, *rest = [integer(k, f"the chunks of {name}", 1) for k in listing(chunks, f"the chunks of {name}")]
    size = 8
    for k in rest:
        size *= k
    if (rows > 1 and rows * size > LARGEST_CHUNK) or size > 8 * MOST_STEPS:
        raise ValueError(f"a chunk of {name} would have {rows * size} bytes, more than {LARGEST_CHUNK}")


def checked_output(output: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Degrees of freedom that a file says it has stored."""
    if not output.size or output.min() < 0 or output.max() >= n:
        raise ValueError(f"output must hold degrees of freedom from 0 to {n - 1}; got {output}")
    return output


def method_of_file(name: Any) -> Method:
    """The method that a file names."""
    return method(text(name, "method", MOST_LETTERS))
