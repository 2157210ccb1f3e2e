"""`qgen package`: the kernels of an operator in the shape that another project publishes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from qgen.cli.arguments import add_quiet, one_of
from qgen.cli.terminal import Progress

SUMMARY: Final = "write an operator's kernels in the layout of the Hugging Face hub"
USAGE: Final = "qgen package hf OP [--numerics M] -o DIR"
DESCRIPTION: Final = """\
Writes every kernel of QuantizeLinear or DequantizeLinear as a package for the Hugging Face hub (hf): a card, and
below build/webgpu the contract (manifest.json), digests (metadata.json), tests with right outputs (test.json),
sizes to measure (bench.json) and a template for each variant, which renders to WGSL for every pair of types.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("layout", metavar="LAYOUT", type=one_of("hf"), help="hf: the Hugging Face hub's WebGPU kernels")
    parser.add_argument("op", metavar="OP", help="QuantizeLinear or DequantizeLinear")
    parser.add_argument("--numerics", metavar="M", default="exact", help="exact (default), strict or fast (`qgen explain QG104`)")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder to write to")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the package."""
    from qgen.package import build_package, write_package  # start-up time

    with Progress("kernels", is_quiet=arguments.quiet) as bar:
        files = build_package(arguments.op, arguments.numerics, bar.show)
    for path in write_package(Path(arguments.output), files):
        if not arguments.quiet:
            print(path)
    return 0
