"""The format that a file's ending means: .csv is a table of t, q and p; .npz, or no ending, is the whole path."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any, BinaryIO

from leastaction import disk
from leastaction.reading import contents, entry, unpacked

TABLE, WHOLE = "csv", "npz"
_KNOWN = {".csv": TABLE, ".npz": WHOLE, "": WHOLE}
_INSTEAD = {
    ".zarr": "la.integrate(…, store=…) streams a run to a Zarr archive",
    ".nc": "path.to_xarray().to_netcdf(…) writes NetCDF",
    ".h5": "path.to_xarray().to_netcdf(…) writes NetCDF, which is HDF5",
    ".hdf5": "path.to_xarray().to_netcdf(…) writes NetCDF, which is HDF5",
    ".mat": "scipy.io.savemat writes path.t, path.q and path.p",
    ".parquet": "path.to_pandas().to_parquet(…) writes it",
    **dict.fromkeys((".xls", ".xlsx", ".ods"), "save a .csv, which spreadsheets read"),
    **dict.fromkeys((".txt", ".dat", ".tsv", ".json"), "save a .csv"),
    **dict.fromkeys((".npy", ".pkl", ".pickle", ".zip"), "save a .npz"),
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst"), "save a .npz or a .csv, and pack that"),
    **dict.fromkeys((".png", ".pdf", ".svg"), "path.plot() draws"),
    ".html": "path.to_html(…) writes a page",
    **dict.fromkeys((".mp4", ".gif"), "path.animate(…) films it"),
}


def kind(file: str | os.PathLike[str]) -> str:
    """The format that a file's ending asks for. Any other ending is refused: it may be a slip, such as .cvs."""
    ending = FilePath(file).suffix.lower()
    if ending in _KNOWN:
        return _KNOWN[ending]
    instead = _INSTEAD.get(ending, f"the ending {ending} is not known. To keep it in the name, add .npz to it")
    raise ValueError(
        f"{os.fspath(file)}: a path is saved as .npz, with its system, or as .csv, t, q and p alone; "
        f"{f'not as {ending}: ' if ending in _INSTEAD else ''}{instead}"
    )


@contextmanager
def replacing(file: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file in a folder that exists; an existing file is replaced only by a whole one."""
    target = FilePath(file)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to")
    with disk.replacing(target) as stream:
        yield stream


def loaded(file: str | os.PathLike[str], made: Callable[[Mapping[str, Any], Any, int], Any]) -> Any:
    """What is made of the arrays of a saved file, its header and its length in bytes; a file may come from anybody."""
    if FilePath(file).is_dir():
        raise ValueError(f"{os.fspath(file)} is a folder, not a path saved by leastaction; la.open opens an archive")
    try:
        data = contents(FilePath(file))
        _require_whole(data)
        arrays = unpacked(data)
        return made(arrays, json.loads(str(entry(arrays, "header"))), len(data))
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        raise ValueError(f"{os.fspath(file)} is not a path saved by leastaction, or is damaged: {error}") from error


def _require_whole(data: bytes) -> None:
    """Refuse, in plain words, what cannot be a saved path: a saved path is NPZ, a kind of ZIP file."""
    begin = data[:256]
    if begin.startswith(b"PK"):
        return
    what = "empty" if not begin else "a text file" if b"\0" not in begin and _is_text(begin) else "in another format"
    raise ValueError(f"it is {what}. la.Path.load reads what path.save has written as .npz")


def _is_text(begin: bytes) -> bool:
    try:
        begin.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(begin) - 4  # the text is cut inside a character
    return True
