"""Files of a path, by their endings: .csv is a table of t, q and p; .npz, or no ending, is the whole path."""

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
        "Zarr, path.to_xarray().to_netcdf(…), path.to_pandas(), path.plot(), path.to_html(…), path.animate(…)"
    )


@contextmanager
def replacing(file: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file in a folder that exists; an existing file is replaced only by a whole one."""
    target = FilePath(file)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to")
    with disk.replacing(target) as stream:
        yield stream


def loaded(file: str | os.PathLike[str], made: Callable[[Mapping[str, Any], Any], Any]) -> Any:
    """What is made of the arrays of a saved file and its header. The file may come from anybody."""
    if FilePath(file).is_dir():
        raise ValueError(f"{os.fspath(file)} is a folder, not a path saved by leastaction; la.open opens an archive")
    try:
        data = contents(FilePath(file))
        if not data.startswith(b"PK"):  # the mark of NPZ, a kind of ZIP file
            raise ValueError("it is no NPZ file, as path.save writes it")
        arrays = unpacked(data)
        return made(arrays, json.loads(str(entry(arrays, "header"))))
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        raise ValueError(f"{os.fspath(file)} is not a path saved by leastaction, or is damaged: {error}") from error
