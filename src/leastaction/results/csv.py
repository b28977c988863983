"""A path as comma-separated values, with every digit it has."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING, Any, BinaryIO

import mpmath
import numpy as np

from leastaction.results import files

if TYPE_CHECKING:
    from leastaction.results.path import Path

BLOCK = 1 << 14  # rows written at once


def write_path(path: Path, file: str | os.PathLike[str]) -> None:
    """Write t, q, p, and the energy if the whole state is stored; only a whole file replaces an existing one."""
    with files.replacing(file) as stream:
        write_table(path, stream, with_energy=path.output is None)


def write_table(path: Path, stream: BinaryIO, with_energy: bool = False) -> None:
    """Write t, q0, q1, …, p0, p1, …, a row for each stored state; reading the numbers back gives the same bits."""
    dofs = range(path.q.shape[1]) if path.output is None else [int(j) for j in path.output]
    header = ["t", *(f"q{j}" for j in dofs), *(f"p{j}" for j in dofs)]
    energy = path.energy() if with_energy else None
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    with path.reals.working():
        rows = csv.writer(text)
        rows.writerow([*header, "energy"] if energy is not None else header)
        for k in range(0, len(path), BLOCK):
            part = slice(k, k + BLOCK)
            columns = [np.asarray(path.t[part])[:, None], np.asarray(path.q[part]), np.asarray(path.p[part])]
            if energy is not None:
                columns.append(energy[part, None])
            table = np.concatenate(columns, axis=1)
            rows.writerows([_text(x, path.digits) for x in row] for row in table.tolist())
    text.flush()
    text.detach()


def _text(x: Any, digits: int | None) -> str:
    return repr(x) if digits is None else str(mpmath.nstr(x, mpmath.mp.dps + 3))  # enough to read the same number back
