"""`python -m leastaction`: the command line."""

import sys

from leastaction.cli import main

if __name__ == "__main__":
    sys.exit(main())
