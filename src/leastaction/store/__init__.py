"""Runs that survive: streamed to a Zarr archive while they run, opened while they run, continued after they end."""

from leastaction.store.errors import StoreError
from leastaction.store.run import resume, store_run
from leastaction.store.stored import StoredPath
from leastaction.store.stored import open_run as open

__all__ = ["StoreError", "StoredPath", "open", "resume", "store_run"]
