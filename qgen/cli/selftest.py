"""`qgen selftest`: whether this machine's adapter does what the mode `exact` relies on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from qgen.cli.arguments import add_quiet

SUMMARY: Final = "confirm on an adapter what the mode `exact` relies on"
USAGE: Final = "qgen selftest [--device D] [--emit DIR]"
DESCRIPTION: Final = """\
Runs one small kernel over operands at which a wrong rounding shows (results on and beside ties, cancellation,
exponents at both ends) and says in one line whether f32 + - * of normal numbers with a normal result round to
nearest even, and whether / is within 2.5 ULP. Exits with 1 where they do not, with the first counter-example.
"""
EPILOG: Final = """\
--emit writes the kernel for other hosts instead of running it: selftest.wgsl and its sidecar selftest.json, and
selftest.vectors.json with the words of the operands and, for each result, the least and the greatest f32 that
is right (null where nothing is relied on).

Devices are auto (an adapter, else the CPU), cpu (the evaluator), gpu, or a part of an adapter's name.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--device", metavar="D", default="auto", help="the adapter to test (default: auto)")
    parser.add_argument("--emit", metavar="DIR", help="write the kernel and its operands into DIR instead of running it")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the self-test, or write it."""
    from qgen.cli.stored import resolve_device  # start-up time
    from qgen.conform.selftest import emit_selftest, run_selftest  # start-up time

    if arguments.emit is not None:
        for path in emit_selftest(Path(arguments.emit)):
            if not arguments.quiet:
                print(path)
        return 0
    verdict = run_selftest(resolve_device(arguments.device))
    if not (verdict.ok and arguments.quiet):
        print(verdict)
    return 0 if verdict.ok else 1
