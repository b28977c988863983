"""A path or an ensemble as a table, with every digit it has: comma-separated values, or a pandas DataFrame.

Columns are t, positions, momenta, and the energy where the whole state is stored; of an ensemble the number of the
trajectory stands in front. Reading the numbers back gives the same bits.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.results import files
from leastaction.results.looks import stored_places
from leastaction.store.lazy import LazyArray, import_xarray

if TYPE_CHECKING:
    import pandas
    import xarray

    from leastaction.results.path import Path
    from leastaction.results.paths import Paths

BLOCK = 1 << 14  # rows written at once

Names = Mapping[int, str] | Sequence[str] | None


def write(run: Path | Paths, file: str | os.PathLike[str], dofs: Any = None, names: Names = None) -> None:
    """Write a table with the energy if the whole state is stored; only a whole file replaces an existing one."""
    with files.replacing(file) as stream:
        write_table(run, stream, run.output is None, dofs, names)


def write_table(
    run: Path | Paths, stream: BinaryIO, with_energy: bool = False, dofs: Any = None, names: Names = None
) -> None:
    """Write the columns' heads, and a row for each stored state."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    rows = csv.writer(text)
    rows.writerow(heads(run, with_energy, dofs, names))
    for number, path in _paths(run):
        with path.reals.working():
            for block in _blocks(path, with_energy, dofs):
                rows.writerows([*number, *(_text(x, path.digits) for x in row)] for row in block.tolist())
    text.flush()
    text.detach()


def frame(run: Path | Paths, dofs: Any = None, names: Names = None) -> pandas.DataFrame:
    """The table as a DataFrame, whose index is t, or the trajectory and t."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install 'leastaction[pandas]'") from None
    columns, whole = heads(run, run.output is None, dofs, names), run.output is None
    parts = [(number, np.concatenate([*_blocks(path, whole, dofs)])) for number, path in _paths(run)]
    found = pandas.DataFrame(np.concatenate([part for _, part in parts]), columns=columns[len(parts[0][0]) :])
    if columns[0] == "t":
        return found.set_index("t")
    found.insert(0, columns[0], np.repeat([number[0] for number, _ in parts], [len(part) for _, part in parts]))
    return found.set_index(columns[:2])


def heads(run: Path | Paths, with_energy: bool, dofs: Any = None, names: Names = None) -> list[str]:
    """The heads of the columns: names given here, the system's, or q0, q1, … and p0, p1, …"""
    chosen, _ = stored_places(run, dofs)
    given = names if isinstance(names, Mapping) else dict(zip(chosen, names or (), strict=names is not None))
    words = dict(enumerate(run.system.names)) | dict(given)
    q = [words.get(dof, f"q{dof}") for dof in chosen]
    p = [f"p_{words[dof]}" if dof in words else f"p{dof}" for dof in chosen]
    return [*([] if run.q.ndim == 2 else ["trajectory"]), "t", *q, *p, *(["energy"] if with_energy else [])]


def dataset(run: Path | Paths, dims: tuple[str, ...], coords: Mapping[str, Any], **further: Any) -> xarray.Dataset:
    """The states as an xarray Dataset, with names of the degrees of freedom or their numbers. Arrays on disk are read
    when they are used; they come without the energy, which would read all of them.
    """
    xarray, lazy = import_xarray(), isinstance(run.q, LazyArray)
    states = {name: getattr(run, name) for name in ("q", "p")}
    found = {name: x.variable(dims) if isinstance(x, LazyArray) else (dims, x) for name, x in states.items()}
    if not lazy and run.output is None:
        found["energy"] = (dims[:-1], run.energy())
    chosen, _ = stored_places(run)
    labels = [run.system.names[dof] for dof in chosen] if run.system.names else chosen
    about = {"method": run.method.name, "h": run.h, "every": run.every, "system": run.system.name}
    return xarray.Dataset(found | further, coords={**coords, "dof": labels}, attrs=about)


def _paths(run: Path | Paths) -> Iterator[tuple[list[int], Path]]:
    """Each path with the numbers that stand in front of its rows."""
    if run.q.ndim == 2:
        yield [], cast("Path", run)
    else:
        yield from (([i], path) for i, path in enumerate(cast("Paths", run)))


def _blocks(path: Path, with_energy: bool, dofs: Any) -> Iterator[NDArray[Any]]:
    _, places = stored_places(path, dofs)
    energy = [path.energy()[:, None]] if with_energy else []
    for k in range(0, len(path), BLOCK):
        part = slice(k, k + BLOCK)
        q, p = (np.asarray(z[part])[:, places] for z in (path.q, path.p))
        yield np.concatenate([np.asarray(path.t[part])[:, None], q, p, *(E[part] for E in energy)], axis=1)


def _text(x: Any, digits: int | None) -> str:
    return repr(x) if digits is None else str(mpmath.nstr(x, mpmath.mp.dps + 3))  # enough to read the same number back
