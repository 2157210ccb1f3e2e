"""`qgen run`: one kernel on arrays from `.npy` files."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from qgen.cli.arguments import add_quiet, parse_shape
from qgen.errors import QgenError

if TYPE_CHECKING:
    from qgen.cli.npy import Array, Shape
    from qgen.kernel import Kernel

SUMMARY: Final = "run a kernel on .npy files"
USAGE: Final = "qgen run KERNEL.json --in NAME=FILE... --out NAME=FILE... [--shape-of NAME=DIMS] [--device D]"
DESCRIPTION: Final = """\
Runs the kernel of a sidecar on arrays from .npy files and writes its results. Names are ONNX's: x, y_scale,
y_zero_point and y for QuantizeLinear; x, x_scale, x_zero_point and y for DequantizeLinear.
"""
EPILOG: Final = """\
An input is an array of the kernel's type, or one of two forms of it:
  |V1, |V2       codes, one element an item: so numpy.save writes the types of ml_dtypes
  uint8, 1-D     packed bytes, ceil(bits * N / 8) of them, first element in the lowest bits
The shape of packed bytes is the one baked into the kernel, or it follows from the inputs before them: that of a
zero point from the scale, that of a scale from x. Otherwise --shape-of gives it.
Results are written as numpy.save writes them, so those of ml_dtypes types as |V1 or |V2.

Devices are auto (an adapter, else the CPU), cpu (the evaluator), gpu, or a part of an adapter's name. The CPU
runs what this qgen compiles from the sidecar, and refuses a text that differs from it.

example:
  qgen run quantize_linear.json --in x=x.npy y_scale=s.npy y_zero_point=z.npy --out y=y.npy
"""

T = TypeVar("T")
Named = tuple[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("kernel", metavar="KERNEL.json", help="the kernel's sidecar; its text lies beside it")
    parser.add_argument(
        "--in", dest="inputs", metavar="NAME=FILE", type=parse_named, nargs="+", action="extend", default=[], help="an input and its file"
    )
    parser.add_argument(
        "--out",
        dest="outputs",
        metavar="NAME=FILE",
        type=parse_named,
        nargs="+",
        action="extend",
        default=[],
        help="an output and its file",
    )
    parser.add_argument(
        "--shape-of", metavar="NAME=DIMS", type=parse_named_shape, action="append", default=[], help="the shape of packed bytes, as x=2,3"
    )
    parser.add_argument("--device", metavar="D", default="auto", help="where to run it (default: auto)")
    add_quiet(parser)


def parse_named(text: str) -> Named:
    """Return name and file of `NAME=FILE`."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise argparse.ArgumentTypeError(f"`{text}` is not NAME=FILE, as x=x.npy")
    return name, file


def parse_named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return name and shape of `NAME=DIMS`."""
    name, equals, shape = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"`{text}` is not NAME=DIMS, as x=2,3")
    return name, parse_shape(shape)


def run(arguments: argparse.Namespace) -> int:
    """Run the kernel and write its results."""
    if not arguments.outputs:
        arguments.parser.error("an output is needed: --out y=y.npy")
    from qgen.cli.npy import dump_array  # start-up time
    from qgen.cli.stored import load_kernel  # start-up time
    from qgen.files import write_bytes  # start-up time

    stored = load_kernel(Path(arguments.kernel))
    kernel = stored.kernel
    outputs = tuple(operand.name for operand in kernel.compiled.checked.operands if operand.is_output)
    files, wanted = _by_name(arguments, "in", arguments.inputs), _by_name(arguments, "out", arguments.outputs)
    shapes = _by_name(arguments, "shape-of", arguments.shape_of)
    _check_names(kernel, files, kernel.inputs, "input")
    _check_names(kernel, shapes, kernel.inputs, "input")
    _check_names(kernel, wanted, outputs, "output")
    inputs, device = read_inputs(kernel, files, shapes), stored.resolve_device(arguments.device)
    results = kernel.run(inputs, device)
    for name, path in wanted.items():
        write_bytes(Path(path), dump_array(results[name]))
        if not arguments.quiet:
            print(path)
    return 0


def read_inputs(kernel: Kernel, files: Mapping[str, str], shapes: Mapping[str, Shape]) -> dict[str, Array]:
    """Return the logical arrays of the inputs; the shape of one that is packed may follow from the inputs before it."""
    from qgen.cli.npy import is_packed, load_array, to_logical  # start-up time

    arrays: dict[str, Array] = {}
    for name in kernel.inputs:
        if name in files:
            place = f"input `{name}`, {files[name]}"
            array, dtype = load_array(files[name]), kernel.compiled.checked.operand(name).dtype
            shape = shapes.get(name)
            if shape is None and (is_packed(array, dtype) or name == kernel.inputs[0]):
                shape = _follow_shape(kernel, name, arrays)
            arrays[name] = to_logical(array, dtype, shape, place)
    return arrays


def _follow_shape(kernel: Kernel, name: str, arrays: Mapping[str, Array]) -> Shape | None:
    """Return the shape that follows from the kernel and the inputs before, or None: x's is baked, a zero point has the scale's."""
    from qgen.shapes import scale_shape  # start-up time

    x, *shared = kernel.inputs
    if name == x:
        return kernel.request.shape
    if shared[0] in arrays:
        return tuple(arrays[shared[0]].shape)
    return scale_shape(kernel.request.granularity, arrays[x].shape) if x in arrays else None


def _by_name(arguments: argparse.Namespace, option: str, pairs: Sequence[tuple[str, T]]) -> dict[str, T]:
    found = dict(pairs)
    if len(found) < len(pairs):
        arguments.parser.error(f"--{option} gives a name twice")
    return found


def _check_names(kernel: Kernel, given: Iterable[str], known: Sequence[str], kind: str) -> None:
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"it has {', '.join(known)}"
            raise QgenError("QG908", f"the kernel {kernel.name} has no {kind} `{name}`", hint=hint)
