"""What can go wrong with an archive."""

from __future__ import annotations


class StoreError(OSError):
    """An archive cannot be written or read. The message says why, and what is still safe.

    Examples
    --------
    >>> import leastaction as la, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         la.open(folder)
    ...     except la.StoreError:
    ...         print("this folder is no archive")
    this folder is no archive
    """

    def __str__(self) -> str:
        """The message without the number; `errno` is for programs."""
        return str(self.args[1] if len(self.args) > 1 else self.args[0] if self.args else "")
