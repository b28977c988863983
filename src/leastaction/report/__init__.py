"""Tables and figures → one self-contained page, and the same as data."""

from leastaction.report.build import Outcome, reproduce

__all__ = ["Outcome", "reproduce"]
