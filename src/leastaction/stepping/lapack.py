"""Addresses of LAPACK's routines, as SciPy ships them."""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def address(routine: str) -> int:
    """Where e.g. "dgetrf" is, with Fortran's calling convention and 32-bit integers."""
    from scipy.linalg import cython_lapack

    capsule = cython_lapack.__pyx_capi__[routine]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer_of(capsule, name_of(capsule)))
