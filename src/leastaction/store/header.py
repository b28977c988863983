"""What zarr.json says of a run: signed against damage, and checked, since it may come from anybody."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import StoreError
from leastaction.methods import Method, method
from leastaction.reading import MOST_LETTERS, MOST_STEPS, entry, integer, listing, mapping, text

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


def check_layouts(header: Mapping[str, Any]) -> None:
    """Check that every array of a header has a possible type, and chunks of a possible size."""
    for name, layout in mapping(entry(header, "arrays"), "arrays").items():
        dtype, chunks = listing(layout, f"the layout of {name}", 2)
        if dtype not in ("<f8", "<i8", "|i1", "|u1"):
            raise ValueError(f"the array {name} must hold floats, integers or text; got {dtype!r}")
        rows, *rest = [integer(k, f"the chunks of {name}", 1) for k in listing(chunks, f"the chunks of {name}")]
        size = 8 * math.prod(rest)
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
