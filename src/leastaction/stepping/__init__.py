"""Stepping: the native loops and what Python needs to run them."""
