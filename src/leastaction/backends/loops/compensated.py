"""Sums and products of vectors with what rounding leaves of them."""

from __future__ import annotations

from leastaction.backends.loops.machine import add, fused, mul, native, splat, sub


@native
def sum_with_rest(a, b):
    """a + b, and what rounding leaves over (Knuth's two-sum)."""
    total = add(a, b)
    rounded = sub(total, a)
    return total, add(sub(a, sub(total, rounded)), sub(b, rounded))


@native
def product_with_rest(a, b):
    """a b, and what rounding leaves over; the compiler cannot fuse such a product with a sum."""
    product = fused(a, b, splat(0.0))
    return product, fused(a, b, mul(splat(-1.0), product))
