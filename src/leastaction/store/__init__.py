"""The files of a run: a Zarr archive, checkpoints, and arrays that are read when they are asked for."""

from leastaction.store.errors import StoreError

__all__ = ["StoreError"]
