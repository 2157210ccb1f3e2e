"""The options that describe a kernel, shared by `emit` and `show`, and the words of their values."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from qgen.request import Request

_DIMENSION: Final = re.compile(r"-?[0-9]+")

SIGNED_OPTIONS: Final = frozenset({"--blocked", "--per-axis", "--shape", "--group", "--opset"})
"""Options whose value may start with a minus."""

PLAIN: Final = (
    "x",
    "scale",
    "y",
    "zero_point",
    "shape",
    "opset",
    "precision",
    "domain",
    "numerics",
    "target",
    "name",
    "entry_point",
    "group",
    "plain_scale",
)
"""The options that `make_request` takes under their own names."""


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that say what they did."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors and warnings only")


def add_glue(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that write glue beside kernels."""
    parser.add_argument("--glue", metavar="L,...", help="write host code beside each kernel: js, python, c, rust, ort-template")


def read_glue(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the languages to write glue in; raises `QgenError` QG450 for one there is none for."""
    if arguments.glue is None:
        return ()
    from qgen.glue import parse_languages  # start-up time

    return parse_languages(arguments.glue)


def add_choices(add_argument: Callable[..., object]) -> None:
    """Add the options of how kernels are made, by a parser's or a group's `add_argument`; each is None where it is not given."""
    add_argument("--numerics", metavar="M", help="exact (default), strict or fast (`qgen explain QG104`)")
    add_argument("--target", metavar="T", help="webgpu (default), with options as webgpu:workgroup_size=128 (`qgen list targets`)")
    add_argument("--profile", metavar="FILE", help="take lanes and workgroup from this profile (`qgen tune`)")


def add_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the operator and the options that describe one kernel; each is None where it is not given."""
    parser.add_argument("op", metavar="OP", nargs="?", help="QuantizeLinear, DequantizeLinear or DynamicQuantizeLinear")
    group = parser.add_argument_group("the operator")
    group.add_argument("--x", metavar="T", help="dtype of x (`qgen list dtypes`)")
    group.add_argument("--scale", metavar="T", help="dtype of the scale (default: that of x, or of y for DequantizeLinear)")
    group.add_argument("--y", metavar="T", help="dtype of y (default: uint8, or the scale's for DequantizeLinear)")
    group.add_argument("--zero-point", action="store_true", default=None, help="there is a zero point")
    granularity = group.add_mutually_exclusive_group()
    granularity.add_argument("--per-axis", metavar="A", type=int, help="one scale for each index along axis A")
    granularity.add_argument("--blocked", metavar="A:B", type=parse_blocked, help="one scale for each B elements along axis A, as -1:32")
    group.add_argument(
        "--shape", metavar="DIMS", type=parse_shape, help="bake this shape of x, as 2,3,4 (scalar: rank 0); default: uniforms"
    )
    group.add_argument("--opset", metavar="N", type=int, help="the opset that the model imports (default: the newest known)")
    group.add_argument("--domain", metavar="D", help="ai.onnx (default) or com.microsoft")
    group.add_argument("--precision", metavar="T", help="the type QuantizeLinear divides in")
    group.add_argument("--no-saturate", action="store_true", default=None, help="do not saturate (float8 outputs alone)")
    group = parser.add_argument_group("the kernel")
    add_choices(group.add_argument)
    group.add_argument(
        "--plain-scale",
        action="store_true",
        default=None,
        help="every scale is plain: no test of them, no code for others (`qgen explain QG113`)",
    )
    group.add_argument("--name", metavar="N", help="the kernel's name (default: readable parts and a hash of the text)")
    group.add_argument("--entry-point", metavar="N", help="the entry point's name (default: main)")
    group.add_argument("--group", metavar="N", type=int, help="the bind group (default: 0)")


def read_request(arguments: argparse.Namespace) -> Request:
    """Return the request that the options mean; a missing operator or x is a usage error, anything illegal a `QgenError`."""
    from qgen.request import make_request  # start-up time
    from qgen.shapes import blocked, per_axis  # start-up time

    if arguments.op is None or arguments.x is None:
        arguments.parser.error("the operator and --x are needed")
    words: dict[str, Any] = {name: getattr(arguments, name) for name in PLAIN if getattr(arguments, name) is not None}
    if arguments.per_axis is not None:
        words["granularity"] = per_axis(arguments.per_axis)
    if arguments.blocked is not None:
        words["granularity"] = blocked(*arguments.blocked)
    return _apply_profile(arguments, make_request(arguments.op, saturate=not arguments.no_saturate, **words))


def _apply_profile(arguments: argparse.Namespace, request: Request) -> Request:
    """Return the request with the schedule that the profile has for it; without one it is as it was, and the user is told.

    Raises `QgenError` QG114 where there is no profile, QG108 where it is one for another target.
    """
    if arguments.profile is None:
        return request
    from qgen.cli.terminal import warn  # start-up time
    from qgen.profile import read_profile  # start-up time

    profile = read_profile(arguments.profile)
    if profile.find(request) is None:
        warn(f"{arguments.profile} has no schedule for this kernel, which has its target's", arguments.color)
    return profile.apply(request)


def one_of(*names: str) -> Callable[[str], str]:
    """Return the reader of a word that is one of `names`; it suggests the nearest for another."""

    def read(text: str) -> str:
        if text in names:
            return text
        near = difflib.get_close_matches(text, names, n=1)
        suggestion = f"did you mean `{near[0]}`?" if near else f"choose from {', '.join(names)}"
        raise argparse.ArgumentTypeError(f"there is no `{text}` ({suggestion})")

    return read


def parse_blocked(text: str) -> tuple[int, int]:
    """Return the axis and the block size of `A:B`."""
    axis, _, size = text.partition(":")
    try:
        return int(axis), int(size)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is not AXIS:SIZE, as -1:32") from None


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the dimensions of `2,3,4`; of `scalar` there are none. An empty text, as of a variable that is not set, is refused."""
    if text.strip() == "scalar":
        return ()
    dims = text.replace(" ", "").split(",")
    if not all(_DIMENSION.fullmatch(dim) for dim in dims):
        raise argparse.ArgumentTypeError(f"`{text}` is not a shape, as 2,3,4, or scalar")
    return tuple(map(int, dims))
