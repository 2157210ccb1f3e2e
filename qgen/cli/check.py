"""`qgen check`: kernels against the oracle, bit for bit."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "hold kernels against the oracle, bit for bit"
USAGE: Final = "qgen check DIR|KERNEL.json... [--device D]\n       qgen check --all [--shard I/N] [--resume FILE] [--device D]"
DESCRIPTION: Final = """\
Runs kernels on random and edge inputs and compares every bit with the oracle's exact arithmetic. --all checks the whole matrix.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("paths", metavar="DIR|KERNEL.json", nargs="*", help="sidecars, or folders of them")


def run(arguments: argparse.Namespace) -> int:
    """Check the kernels."""
    raise NotImplementedError(arguments)
