"""Numbers: how a user may write a number, how it is rounded, and at what precision it is used."""
