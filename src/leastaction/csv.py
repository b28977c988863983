"""A path as comma-separated values, with every digit it has."""

from __future__ import annotations

import csv
import os
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

if TYPE_CHECKING:
    from leastaction.path import Path

BLOCK = 1 << 14  # rows written at once


def write_path(path: Path, file: str | os.PathLike[str]) -> None:
    """t, q0, q1, …, p0, p1, … and energy, a row for each stored state; reading them back gives the same bits."""
    target = FilePath(file)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to")
    dofs = range(path.q.shape[1]) if path.output is None else [int(j) for j in path.output]
    header = ["t", *(f"q{j}" for j in dofs), *(f"p{j}" for j in dofs)]
    energy = path.energy() if path.output is None else None
    with path.reals.working(), open(target, "w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow([*header, "energy"] if energy is not None else header)
        for k in range(0, len(path), BLOCK):
            part = slice(k, k + BLOCK)
            columns = [np.asarray(path.t[part])[:, None], np.asarray(path.q[part]), np.asarray(path.p[part])]
            if energy is not None:
                columns.append(energy[part, None])
            table = np.concatenate(columns, axis=1)
            rows.writerows([_text(x, path.digits) for x in row] for row in table.tolist())


def _text(x: Any, digits: int | None) -> str:
    return repr(x) if digits is None else str(mpmath.nstr(x, mpmath.mp.dps + 3))  # enough to read the same number back
