"""The papers, one module each, and their registry."""

from __future__ import annotations

from importlib import import_module

from leastaction.papers.model import Paper

# In the order in which a report shows them.
_MODULES = ("galerkin2014", "pendulum2023", "quadratic2024", "top2025")


def papers() -> dict[str, Paper]:
    """Every paper, by key."""
    found = (import_module(f"leastaction.papers.{name}").PAPER for name in _MODULES)
    return {paper.key: paper for paper in found}
