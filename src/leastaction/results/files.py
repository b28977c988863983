"""Files of a path, by their endings: .csv is a table of t, q and p; .npz, or no ending, is the whole path."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, BinaryIO

import mpmath
import numpy as np

from leastaction import disk

if TYPE_CHECKING:
    from leastaction.results.path import Path

TABLE, WHOLE = "csv", "npz"
BLOCK = 1 << 14  # rows of a table that are written at once


def kind(file: str | os.PathLike[str]) -> str:
    """The format that a file's ending asks for. Any other ending is refused: it may be a slip, such as .cvs."""
    ending = FilePath(file).suffix.lower()
    if ending in (".npz", ""):
        return WHOLE
    if ending == ".csv":
        return TABLE
    raise ValueError(
        f"{os.fspath(file)}: the ending {ending} is not known. A path is saved as .npz, with its system, or as .csv, "
        "t, q and p alone; to keep the ending in the name, add .npz to it. Other files: la.integrate(…, store=…) for "
        "Zarr, path.to_xarray().to_netcdf(…), path.plot(), path.to_html(…), path.animate(…)"
    )


@contextmanager
def replacing(file: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file in a folder that exists; an existing file is replaced only by a whole one."""
    target = FilePath(file)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to")
    with disk.replacing(target) as stream:
        yield stream


def write_table(path: Path, file: str | os.PathLike[str], energy: bool) -> None:
    """Write t, q0, q1, …, p0, p1, … and, if wanted, the energy, a row for each stored state; reading the numbers back
    gives the same bits.
    """
    dofs = range(path.q.shape[1]) if path.output is None else [int(j) for j in path.output]
    header = ["t", *(f"q{j}" for j in dofs), *(f"p{j}" for j in dofs), *(["energy"] if energy else [])]
    E = path.energy()[:, None] if energy else None
    with replacing(file) as stream, path.reals.working():
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        rows = csv.writer(text)
        rows.writerow(header)
        for k in range(0, len(path), BLOCK):
            part = slice(k, k + BLOCK)
            columns = [np.asarray(path.t[part])[:, None], np.asarray(path.q[part]), np.asarray(path.p[part])]
            table = np.concatenate(columns if E is None else [*columns, E[part]], axis=1)
            rows.writerows([_text(x, path.digits) for x in row] for row in table.tolist())
        text.flush()
        text.detach()


def _text(x: Any, digits: int | None) -> str:
    return repr(x) if digits is None else str(mpmath.nstr(x, mpmath.mp.dps + 3))  # enough to read the same number back
