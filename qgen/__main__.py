"""`python -m qgen`: the command line."""

import sys

from qgen.cli import main

if __name__ == "__main__":
    sys.exit(main())
