"""`qgen check`: kernels against the oracle, bit for bit."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from qgen.cli.arguments import add_quiet
from qgen.cli.terminal import Progress, count, warn
from qgen.errors import InternalError, QgenError

SUMMARY: Final = "hold kernels against the oracle, bit for bit"
USAGE: Final = "qgen check DIR|KERNEL.json... [--device D]\n       qgen check --all [--shard I/N] [--resume FILE] [--device D]"
DESCRIPTION: Final = """\
Runs kernels on random and edge inputs and compares every bit of what they give with the oracle's exact
arithmetic. A kernel whose shape is left to uniforms is run on several shapes, one with a baked shape on that
one. --all checks every distinct kernel, with the shape in uniforms and with three baked ones. Exits with 1
where a bit differs.
"""
EPILOG: Final = """\
Devices are auto (an adapter, else the CPU), cpu (the evaluator), gpu, or a part of an adapter's name.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("paths", metavar="DIR|KERNEL.json", nargs="*", help="sidecars, and folders of them")
    parser.add_argument("--device", metavar="D", default="auto", help="where to run the kernels (default: auto)")
    parser.add_argument("--all", action="store_true", help="check every distinct kernel there is")
    parser.add_argument("--shard", metavar="I/N", help="of these, the I-th of N parts")
    parser.add_argument("--resume", metavar="FILE", help="keep in FILE what is done, and go on from there")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the kernels and say how many of what."""
    if bool(arguments.paths) == arguments.all:
        arguments.parser.error("either sidecars or --all is needed")
    if not arguments.all and (arguments.shard is not None or arguments.resume is not None):
        arguments.parser.error("--shard and --resume go with --all")
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # of inputs that a kernel takes no notice of: they are the check's own, and no one's fault
        return _check_matrix(arguments) if arguments.all else _check_stored(arguments)


def _check_matrix(arguments: argparse.Namespace) -> int:
    from qgen.check import Shard, parse_shard, sweep  # start-up time
    from qgen.cli.stored import describe_device, resolve_device  # start-up time

    shard = Shard() if arguments.shard is None else parse_shard(arguments.shard)
    device = resolve_device(arguments.device)
    resume = None if arguments.resume is None else Path(arguments.resume)
    with Progress("kernels", is_quiet=arguments.quiet) as progress:
        summary = sweep(device, shard, resume, progress.show)
    for outcome in summary.failures:
        print(outcome)
    if not arguments.quiet or summary.failures:
        before = f" ({summary.resumed:,} of them checked before)" if summary.resumed else ""
        what = f"{count(summary.kernels, 'kernel')} as {count(summary.texts, 'text')}{before}, {count(summary.elements, 'element')}"
        print(f"{what} on {describe_device(device)}: {_verdict(len(summary.failures), 'text')}")
    return 0 if summary.ok else 1


def _check_stored(arguments: argparse.Namespace) -> int:
    from qgen.check import check_kernel, check_shapes  # start-up time
    from qgen.cli.stored import describe_device, load_kernel  # start-up time
    from qgen.evaluate import EvaluationError  # start-up time

    kernels = elements = wrong = 0
    device = "cpu"
    for path in find_sidecars(arguments.paths, arguments.color):
        stored = load_kernel(path)
        device = stored.resolve_device(arguments.device)
        shapes = check_shapes(stored.kernel)
        kernels += 1
        try:
            result = check_kernel(stored.kernel, device, shapes)
        except (InternalError, EvaluationError) as error:
            wrong += 1
            print(f"{path} on {device}: {error}")
            continue
        elements += result.elements
        wrong += not result.ok
        if not result.ok:
            print(f"{path}: {result}")
        elif not arguments.quiet:
            print(f"{path}: {count(result.elements, 'element')} in {count(len(shapes), 'shape')}")
    if not arguments.quiet or wrong:
        what = f"{count(kernels, 'kernel')}, {count(elements, 'element')}"
        print(f"{what} on {describe_device(device)}: {_verdict(wrong, 'kernel')}")
    return 1 if wrong else 0


def _verdict(wrong: int, noun: str) -> str:
    return f"{count(wrong, noun)} wrong" if wrong else "every bit as the oracle's"


def find_sidecars(paths: Sequence[str], color: str) -> Iterator[Path]:
    """Yield the sidecars that are named, and those in the folders that are named, in the order of their names.

    Other JSON files of a folder are passed over, with a warning where they are not qgen's; but one that stands beside a text of its name is
    what a sidecar was, and whoever reads it will say so. Raises `QgenError` QG902 for a file that cannot be read, QG912 for a folder
    without a sidecar.
    """
    from qgen.cli.stored import read_format  # start-up time
    from qgen.sidecar.plan import FORMAT  # start-up time

    for name in paths:
        path = Path(name)
        if not path.is_dir():
            yield path
            continue
        found = {file: read_format(file) for file in sorted(path.glob("*.json"))}
        sidecars = [file for file, kind in found.items() if kind == FORMAT or (kind is None and file.with_suffix(".wgsl").exists())]
        if not sidecars:
            raise QgenError("QG912", f"there is no kernel in {path}", hint="name a folder that `qgen emit`, `onnx` or `build` wrote to")
        for file, kind in found.items():
            if kind is None and file not in sidecars:
                warn(f"{file} is no sidecar of a kernel", color)
        yield from sidecars
