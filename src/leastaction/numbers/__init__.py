"""Numbers: what may be written for one, how it is rounded, and at what precision it is worked with.

notation      what a user may write for a number, without rounding; and a number as text
expressions   the number that a text such as "sqrt(2)*pi" stands for, with an end to its size
rounding      Float64 and Digits: the arithmetic of a run, to which what was written is rounded once
precision     the working precision of flint and of mpmath, one for the whole process each
conversion    the same number in the hands of mpmath, flint or Python
symbolic      exact numbers for SymPy's algebra, with errors that name them
formulas      the same formula on doubles or on mpmath numbers
"""
