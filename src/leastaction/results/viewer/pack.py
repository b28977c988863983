"""Numbers for the browser: 16 bits each if a picture needs no more, and one JSON text that describes them."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

MISSING = 65535  # stands for NaN
LEVELS = 65534


class Pack:
    """Arrays in buffers, referred to by their numbers from a scene of plain data."""

    def __init__(self) -> None:
        self.buffers: list[bytes] = []

    def coarse(self, values: ArrayLike) -> dict[str, Any]:
        """Columns (M, C) in 65,535 levels between the least and the largest of each."""
        X = np.asarray(values, float)
        X = X.reshape(len(X), -1)
        there = np.isfinite(X)
        lo = np.where(there, X, np.inf).min(axis=0, initial=np.inf)
        hi = np.where(there, X, -np.inf).max(axis=0, initial=-np.inf)
        lo, hi = np.where(np.isfinite(lo), lo, 0.0), np.where(np.isfinite(hi), hi, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            levels = np.rint((X - lo) / np.where(hi > lo, hi - lo, 1.0) * LEVELS)
        data = np.where(there, levels, MISSING).astype("<u2")
        return {"rows": X.shape[0], "cols": X.shape[1], "lo": lo.tolist(), "hi": hi.tolist(), "u2": self._add(data)}

    def fine(self, values: ArrayLike) -> dict[str, Any]:
        """A vector of doubles."""
        data = np.asarray(values, "<f8").ravel()
        return {"rows": data.size, "cols": 1, "f8": self._add(data)}

    def _add(self, data: Any) -> int:
        self.buffers.append(np.ascontiguousarray(data).tobytes())
        return len(self.buffers) - 1

    def to_text(self, scene: Any) -> str:
        """Scene and buffers as one JSON text that may stand in an HTML script element."""
        coded = [base64.b64encode(buffer).decode() for buffer in self.buffers]
        return dump({"scene": scene, "buffers": coded}).replace("<", "\\u003c").replace("&", "\\u0026")

    def to_bytes(self, scene: Any) -> bytes:
        """Scene and buffers as a message: the length of the JSON, JSON, buffers, each filled up to 8 bytes."""
        text = dump({"scene": scene, "lengths": [len(buffer) for buffer in self.buffers]}).encode()
        text += b" " * (-(len(text) + 8) % 8)
        parts = [struct.pack("<Q", len(text)), text]
        for buffer in self.buffers:
            parts += [buffer, bytes(-len(buffer) % 8)]
        return b"".join(parts)


def dump(data: Any) -> str:
    """JSON that every browser reads: numbers that are not finite become null."""
    return json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, np.generic):
        data = data.item()
    if isinstance(data, float) and not np.isfinite(data):
        return None
    return data
