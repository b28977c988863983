"""The loops that run natively: free functions over arrays, workspace passed in, nothing allocated.

They are the only modules that import Numba, and are themselves imported only to be translated.
"""
