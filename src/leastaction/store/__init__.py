"""Runs that survive: streamed to a Zarr archive while they run, opened while they run, continued after they end."""

from leastaction.store.errors import StoreError
from leastaction.store.run import store_run
from leastaction.store.stored import StoredPath

__all__ = ["StoreError", "StoredPath", "store_run"]
