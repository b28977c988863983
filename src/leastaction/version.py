"""The version, here so that every module may ask."""

__version__ = "0.1.0"
