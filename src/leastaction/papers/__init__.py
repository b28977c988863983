"""One file per paper: the numbers it prints, and how each is computed again."""
