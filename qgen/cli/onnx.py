"""`qgen onnx`: a kernel for every quantizing and dequantizing node of a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from qgen.cli.arguments import add_choices, add_glue, add_quiet, one_of, read_glue
from qgen.cli.list import align
from qgen.cli.terminal import count, warn

if TYPE_CHECKING:
    from qgen.importer import Bundle

SUMMARY: Final = "compile every quantizing and dequantizing node of a model"
USAGE: Final = (
    "qgen onnx MODEL.onnx -o DIR [--shapes baked|uniform] [--any-scale] [--numerics M] [--target T]\n"
    "                 [--profile FILE] [--glue L,...] [--dry-run]"
)
DESCRIPTION: Final = """\
Compiles a kernel for each QuantizeLinear and DequantizeLinear node of an ONNX model, of ai.onnx and
com.microsoft, and for each DynamicQuantizeLinear node; in the main graph, in subgraphs and in functions,
equal kernels once. DIR/index.json maps each node to its kernel, with the reason for each node that was left
out. Prints the same as a table.

Where the model fixes a node's scale and native arithmetic is right with all its values, the node gets a kernel
for such scales alone, `..._plain_...`: without their test, shorter and faster. --any-scale leaves that out.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", metavar="MODEL.onnx", help="the model's file")
    parser.add_argument("-o", "--output", metavar="DIR", help="the folder to write to")
    parser.add_argument(
        "--shapes",
        metavar="S",
        type=one_of("baked", "uniform"),
        default="baked",
        help="baked (default: where inference knows them), or uniform",
    )
    parser.add_argument("--any-scale", action="store_true", help="emit kernels that take any scale, and rely on none of the model's")
    add_choices(parser.add_argument)
    parser.add_argument("--dry-run", action="store_true", help="write nothing, and print what would be emitted")
    add_glue(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Emit the model's kernels."""
    if arguments.output == "-" or (arguments.output is None and not arguments.dry_run):
        arguments.parser.error("a folder is needed: -o DIR (or --dry-run)")
    from qgen.files import save_files  # start-up time
    from qgen.glue import write_glue  # start-up time
    from qgen.importer import load_bundle  # start-up time
    from qgen.profile import read_profile  # start-up time

    languages = read_glue(arguments)
    choices = {name: getattr(arguments, name) for name in ("numerics", "target") if getattr(arguments, name) is not None}
    profile = None if arguments.profile is None else read_profile(arguments.profile)
    bundle = load_bundle(arguments.model, shapes=arguments.shapes, any_scale=arguments.any_scale, profile=profile, **choices)
    if not arguments.dry_run:
        glue = [write_glue(kernel.sidecar, kernel.wgsl, languages) for kernel in bundle.kernels.values()] if languages else []
        save_files(arguments.output, {name: text for texts in glue for name, text in texts.items()} | bundle.files)
    if profile is not None:
        without = sum(profile.find(kernel.request) is None for kernel in bundle.kernels.values())
        if without:
            warn(f"{arguments.profile} has no schedule for {without} of {count(len(bundle.kernels), 'kernel')}", arguments.color)
    if bundle.nodes and not bundle.kernels:
        warn("no node of the model has a kernel", arguments.color)
    for text in warnings_of(bundle):
        warn(text, arguments.color)
    if not arguments.quiet:
        print(print_bundle(bundle))
    return 0


def warnings_of(bundle: Bundle) -> list[str]:
    """Return what a user should hear, about the model and about each node."""
    return [*bundle.warnings, *(f"{node.path}: {text}" for node in bundle.nodes for text in node.warnings)]


def print_bundle(bundle: Bundle) -> str:
    """Return the table of nodes, each with its kernel or the reason why it has none, and a line that counts them."""
    rows = [(node.op, node.path, node.kernel or f"left out, {node.reason}") for node in bundle.nodes]
    left_out = sum(node.kernel is None for node in bundle.nodes)
    counts = f"{count(len(rows), 'node')}, {count(len(bundle.kernels), 'kernel')}, {count(left_out, 'node')} left out"
    plain = sum(node.plain_scale for node in bundle.nodes)
    return "\n".join([*(align(rows) if rows else []), counts + (f", {plain} with a plain scale" if plain else "")])
