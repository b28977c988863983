"""What a file's ending promises: .csv is a table of t, q and p; every other name that no other format owns is NPZ."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, BinaryIO

from leastaction.exact import to_text

if TYPE_CHECKING:
    from leastaction.path import Path

TABLE, WHOLE = "csv", "npz"
_INSTEAD = {
    ".zarr": "la.integrate(…, store=…) streams a run to a Zarr archive",
    ".nc": "path.to_xarray().to_netcdf(…) writes NetCDF",
    ".h5": "path.to_xarray().to_netcdf(…) writes NetCDF, which is HDF5",
    ".hdf5": "path.to_xarray().to_netcdf(…) writes NetCDF, which is HDF5",
    ".mat": "scipy.io.savemat writes path.t, path.q and path.p",
    ".parquet": "path.to_xarray().to_dataframe() gives a table to write",
    ".xlsx": "save a .csv, which spreadsheets read",
    **dict.fromkeys((".txt", ".dat", ".tsv", ".json"), "save a .csv"),
    **dict.fromkeys((".npy", ".pkl", ".pickle", ".zip"), "save a .npz"),
    **dict.fromkeys((".png", ".pdf", ".svg"), "path.plot() draws"),
}


def kind(file: str | os.PathLike[str]) -> str:
    """The format that a file's ending asks for; the ending of another format is refused."""
    ending = FilePath(file).suffix.lower()
    if ending in _INSTEAD:
        raise ValueError(
            f"{os.fspath(file)}: a path is saved as .npz, with its system, or as .csv, t, q and p alone; "
            f"not as {ending}: {_INSTEAD[ending]}"
        )
    return TABLE if ending == ".csv" else WHOLE


def write_table(path: Path, stream: BinaryIO) -> None:
    """t, q and p, a row for each stored time, every digit of them."""
    dofs = range(path.system.n) if path.output is None else path.output
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text)
    writer.writerow(["t", *(f"q{i}" for i in dofs), *(f"p{i}" for i in dofs)])
    for t, q, p in zip(path.t, path.q, path.p, strict=True):
        writer.writerow([_digits(x) for x in (t, *q, *p)])
    text.flush()
    text.detach()


def _digits(x: Any) -> str:
    return repr(float(x)) if isinstance(x, float) else to_text(x)


def require_whole(file: str | os.PathLike[str]) -> None:
    """Refuse, in plain words, what cannot be a saved path: it is NPZ, a kind of ZIP file."""
    with open(file, "rb") as stream:
        begin = stream.read(256)
    if begin.startswith(b"PK"):
        return
    what = "empty" if not begin else "a text file" if b"\0" not in begin and _is_text(begin) else "in another format"
    raise ValueError(
        f"{os.fspath(file)} is not a path saved by leastaction, or is damaged: it is {what}. la.Path.load reads what "
        "path.save has written as .npz"
    )


def _is_text(begin: bytes) -> bool:
    try:
        begin.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(begin) - 4  # cut in a character
    return True
