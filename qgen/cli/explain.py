"""`qgen explain`: the paragraph behind an error code."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "the paragraph behind an error code"
USAGE: Final = "qgen explain CODE"
DESCRIPTION: Final = "Prints what an error code means, why it is an error, and the way out."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("code", metavar="CODE", help="the code that an error prints in brackets, as QG101")


def run(arguments: argparse.Namespace) -> int:
    """Print the title and the paragraph."""
    from qgen.codes import find_explanation  # start-up time

    found = find_explanation(arguments.code)
    print(f"{found.code}: {found.title}\n\n{found.text}")
    return 0
