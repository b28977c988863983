"""Arrays that stay on disk until they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LazyArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is read a box at a time: indices and slices read what they need, arithmetic and np.asarray all.

    cuts    how long a box is along each of the first axes
    box     (begin, end) along each of these axes ↦ the entries, for a part of one box
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        cuts: tuple[int, ...],
        box: Callable[..., NDArray[Any]],
        dtype: np.dtype[Any] = np.dtype(float),  # noqa: B008
    ) -> None:
        self._name, self.shape, self._cuts, self._box, self.dtype = name, shape, cuts, box, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(k, int | np.integer | slice) for k in keys) or len(keys) > self.ndim:
            return np.asarray(self)[key]
        lazy = len(self._cuts)
        asked = [*keys[:lazy], *[slice(None)] * (lazy - len(keys))]
        places = [range(size)[k] for size, k in zip(self.shape, asked, strict=False)]
        found = self._read([p if isinstance(p, range) else range(p, p + 1) for p in places], keys[lazy:])
        return found[tuple(slice(None) if isinstance(p, range) else 0 for p in places)]

    def _read(self, places: list[range], rest: tuple[Any, ...]) -> NDArray[Any]:
        """The entries at these places; a sparse selection from a long run, or from wide rows, needs little memory."""
        kept = np.broadcast_to(0.0, self.shape[len(places) :])[rest].shape
        found = np.empty((*map(len, places), *kept), self.dtype)
        for parts in product(*map(_boxes, places, self._cuts)):
            values = self._box(*(span for _, span, _ in parts))
            steps = (slice(None, None, step) for _, _, step in parts)
            found[tuple(where for where, _, _ in parts)] = values[(*steps, *rest)]
        return found

    def selected(self, name: str, *keys: Any) -> LazyArray:
        """The same boxes, with a part of each entry: `keys` index the axes after those that are cut into boxes."""
        lazy = len(self._cuts)
        rest = np.broadcast_to(0.0, self.shape[lazy:])[keys].shape
        ahead = (slice(None),) * lazy
        return LazyArray(
            name, (*self.shape[:lazy], *rest), self._cuts, lambda *spans: self._box(*spans)[(*ahead, *keys)], self.dtype
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process may not have the file: it gets an array in memory."""
        return np.asarray, (np.asarray(self),)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, how)(*(np.asarray(x) if isinstance(x, LazyArray) else x for x in inputs), **options)

    def variable(self, dims: tuple[str, ...]) -> Any:
        """An xarray Variable that reads when it is used."""
        xarray = import_xarray()
        from xarray.backends import BackendArray
        from xarray.core import indexing

        class Backend(BackendArray):
            def __init__(self, array: LazyArray) -> None:
                self.array, self.shape, self.dtype = array, array.shape, array.dtype

            def __getitem__(self, key: Any) -> Any:
                support = indexing.IndexingSupport.BASIC
                return indexing.explicit_indexing_adapter(key, self.shape, support, self.array.__getitem__)

        return xarray.Variable(dims, indexing.LazilyIndexedArray(Backend(self)))

    def __repr__(self) -> str:
        return f"LazyArray({self._name}, shape {self.shape})"


def import_xarray() -> Any:
    try:
        import xarray
    except ImportError:
        raise ImportError("to_xarray needs xarray: pip install 'leastaction[xarray]'") from None
    return xarray


def _boxes(places: range, cut: int) -> Iterator[tuple[slice, tuple[int, int], int]]:
    """Equidistant places, box by box: their slice of the result, the span to read, and the stride within the span."""
    at, step = 0, abs(places.step)
    while at < len(places):
        first = places[at]
        ahead = cut - 1 - first % cut if places.step > 0 else first % cut  # to the end of the box
        end = min(len(places), at + ahead // step + 1)
        low, high = sorted((first, places[end - 1]))
        yield slice(at, end), (low, high + 1), step if places.step > 0 else -step
        at = end
