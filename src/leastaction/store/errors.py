"""What can go wrong with an archive."""

from __future__ import annotations


class StoreError(OSError):
    """An archive cannot be written or read; the message says why, and what is still safe."""
