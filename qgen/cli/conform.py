"""`qgen conform`: the matrix of kernels on one stack or several, with a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qgen.cli.arguments import add_quiet, one_of
from qgen.cli.terminal import Progress, count

if TYPE_CHECKING:
    from qgen.conform.matrix import Conformance

SUMMARY: Final = "run the matrix of kernels on every stack, and report"
USAGE: Final = (
    "qgen conform [--stack S]... [--only FIELD=VALUE]... [--mode M]... [--texts N]\n"
    "                    [--plain-scale] [--shard I/N] [--resume FILE] [--report FILE]..."
)
DESCRIPTION: Final = """\
Runs every distinct kernel on each stack, on random and edge inputs, and compares every bit with the oracle's
exact arithmetic. Prints what differs, with the bits of the first element, and a line for each stack. Exits with
1 where anything differs.
"""
EPILOG: Final = """\
stacks:
  cpu          the evaluator, with IEEE 754 arithmetic
  cpu:worst    the evaluator, under each model of what WGSL allows
  wgpu:NAME    wgpu-native (naga) on the first adapter with NAME in its name; dawn:NAME for Dawn (Tint); gpu for any
  node         Node with the npm package webgpu
  chromium     Chromium, through the npm package playwright-core
  all          everything that is here
Without --stack it is the CPU and the first adapter.

fields of --only: op, x, scale, y, zero_point (yes, no), granularity (per_tensor, per_axis, blocked), division,
saturate. Values after commas are alternatives, and every --only has to be met.

In the modes strict and exact every bit counts; in fast, what is beyond the bound that the sidecar states.
--texts is how many texts of each kernel are run: that for every shape, then up to three baked ones.

examples:
  qgen conform --stack all --only y=uint4 --report report.html
  qgen conform --stack wgpu:nvidia --shard 3/16 --resume done.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--stack", metavar="S", action="append", default=[], help="a stack to run on")
    parser.add_argument("--only", metavar="FIELD=VALUE", action="append", default=[], help="only kernels with this field")
    parser.add_argument(
        "--mode", metavar="M", action="append", type=one_of("exact", "strict", "fast"), help="numerics mode: exact (default), strict, fast"
    )
    parser.add_argument("--texts", metavar="N", type=one_of("1", "2", "3", "4"), help="texts of each kernel, 1 to 4 (default: 4)")
    parser.add_argument("--plain-scale", action="store_true", help="run the texts for plain scales, on such, where a kernel has them")
    parser.add_argument("--shard", metavar="I/N", help="of these kernels, the I-th of N parts")
    parser.add_argument("--resume", metavar="FILE", help="keep in FILE what is done, and go on from there")
    parser.add_argument("--report", metavar="FILE", action="append", default=[], help="write a report: FILE.html or FILE.json")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the matrix and report."""
    from qgen.check import parse_shard  # start-up time
    from qgen.conform.matrix import TEXTS, WHOLE, Plan, run_matrix  # start-up time
    from qgen.conform.report import check_suffix, write_report  # start-up time
    from qgen.conform.stacks import find_stacks  # start-up time

    reports = [Path(name) for name in arguments.report]
    for path in reports:
        check_suffix(path)
    plan = Plan(
        find_stacks(arguments.stack),
        tuple(dict.fromkeys(arguments.mode or ["exact"])),
        tuple(arguments.only),
        WHOLE if arguments.shard is None else parse_shard(arguments.shard),
        int(arguments.texts or TEXTS),
        arguments.plain_scale,
    )
    with Progress("kernels", is_quiet=arguments.quiet) as progress:
        found = run_matrix(plan, None if arguments.resume is None else Path(arguments.resume), progress.show)
    print_findings(found, is_quiet=arguments.quiet)
    for path in reports:
        write_report(found, path)
        if not arguments.quiet:
            print(path)
    return 0 if found.ok else 1


def print_findings(found: Conformance, *, is_quiet: bool) -> None:
    """Print each text that is wrong, and a line for each stack."""
    for cell in found.cells:
        for outcome in cell.failures:
            print(outcome)
    for stack in found.plan.stacks:
        cells = found.on(stack)
        wrong = sum(not cell.ok for cell in cells)
        if is_quiet and not wrong:
            continue
        texts = sum(len(cell.outcomes) for cell in cells)
        elements = sum(cell.elements for cell in cells)
        what = f"{count(len(cells) // len(found.plan.modes), 'kernel')} as {count(texts, 'text')}, {count(elements, 'element')}"
        right = "every one within its bound" if "fast" in found.plan.modes else "every bit as the oracle's"
        verdict = f"{count(wrong, 'kernel')} wrong" if wrong else right
        print(f"{stack.selector} ({stack.device}): {what}: {verdict}")
    if found.resumed and not is_quiet:
        print(f"{count(found.resumed, 'text')} of these had been run before")
