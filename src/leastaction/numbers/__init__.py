"""Numbers: how a user may write a number, how it is rounded, and at what precision it is used.

notation      what a user may write for a number, without rounding; and a number as text
expressions   the number that a text such as "sqrt(2)*pi" stands for, with a limit to its size
rounding      Float64 and Digits: the arithmetic of a run; what the user wrote is rounded to it once
precision     the working precision of flint and of mpmath; each has one for the whole process
conversion    the same number as one of mpmath, flint or Python
symbolic      exact numbers for SymPy's algebra, with errors that name them
formulas      the same formula on doubles or on mpmath numbers
"""
