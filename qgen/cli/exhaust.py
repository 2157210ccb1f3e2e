"""`qgen exhaust`: what is finite, tried whole, in pieces."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from qgen.cli.arguments import add_quiet, one_of
from qgen.cli.terminal import Progress, count

SUMMARY: Final = "try everything where that is finite, in pieces"
USAGE: Final = "qgen exhaust TASK [--device D] [--mode exact|strict] [--workers W] [--shard I/N] [--resume FILE]"
DESCRIPTION: Final = """\
Runs kernels on all of a finite set of inputs and compares every bit with the oracle's exact arithmetic (in the
task `modes`, of one mode with the other). A task is cut into pieces, which can be spread over processes and
machines, and gone on with where a run was stopped. Exits with 1 where a bit differs.
"""
EPILOG: Final = """\
tasks:
  f16          every float16 x, with hard scales and zero points, to every type
  bf16         every bfloat16 x, likewise
  codes        every code of every type of at most 8 bits, with hard scales and zero points, to every type
  f32          every float32 x, with scale 1, to every float of at most 8 bits (5.6e10 elements: hours)
  modes        exact against strict, on 1.3e8 elements beside ties and at extremes

workers:
  here         this process (default)
  processes:N  N processes on this machine; without a number, one a processor
  dask         a Dask cluster on this machine; dask:ADDRESS, that of a scheduler (pip install qgen[dask])
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("task", metavar="TASK", type=one_of("f16", "bf16", "codes", "f32", "modes"), help="f16, bf16, codes, f32 or modes")
    parser.add_argument("--device", metavar="D", default="auto", help="where to run the kernels (default: auto)")
    parser.add_argument(
        "--mode", metavar="M", type=one_of("exact", "strict"), default="exact", help="numerics mode: exact (default), strict"
    )
    parser.add_argument("--workers", metavar="W", default="here", help="who runs the pieces (default: here)")
    parser.add_argument("--shard", metavar="I/N", help="of the pieces, the I-th of N parts")
    parser.add_argument("--resume", metavar="FILE", help="keep in FILE what is done, and go on from there")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the task and say how much of what."""
    from qgen.check import ResumeFile, parse_shard  # start-up time
    from qgen.cli.stored import describe_device, resolve_device  # start-up time
    from qgen.conform.exhaust import PieceResult, piece_name, select_pieces, task_pieces  # start-up time
    from qgen.conform.workers import check_workers, run_pieces  # start-up time

    check_workers(arguments.workers)
    device = resolve_device(arguments.device)
    where = describe_device(device)
    pieces = task_pieces(arguments.task, arguments.mode)
    if arguments.shard is not None:
        shard = parse_shard(arguments.shard)
        pieces = select_pieces(pieces, shard.index, shard.count)
    log = None if arguments.resume is None else ResumeFile(Path(arguments.resume), lambda fields: PieceResult(**fields))
    known = {} if log is None else {result.piece: result for result in log.entries if result.device == device}
    results = [known[name] for piece in pieces if (name := piece_name(piece)) in known]
    resumed = len(results)
    left = [piece for piece in pieces if piece_name(piece) not in known]
    with Progress("pieces", is_quiet=arguments.quiet) as progress:
        for result in run_pieces(left, device, arguments.workers):
            results.append(result)
            if log is not None:
                log.add(result)
            progress.show(len(results), len(pieces))
    failures = [result for result in results if not result.ok]
    for failure in failures:
        print(failure)
    if failures or not arguments.quiet:
        before = f" ({resumed:,} of them run before)" if resumed else ""
        what = f"{count(len(results), 'piece')}{before}, {count(sum(result.elements for result in results), 'element')}"
        right = "exact and strict agree on every bit" if arguments.task == "modes" else "every bit as the oracle's"
        verdict = f"{count(len(failures), 'piece')} wrong" if failures else right
        print(f"{arguments.task} on {where}: {what}: {verdict}")
    return 1 if failures else 0
