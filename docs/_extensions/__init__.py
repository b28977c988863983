"""Sphinx extensions of this site."""
