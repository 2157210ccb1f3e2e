"""`qgen emit`: one kernel as WGSL and sidecar, or with `--all` every kernel there is."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qgen.cli.arguments import PLAIN, add_glue, add_kernel_arguments, add_quiet, one_of, read_glue, read_request
from qgen.cli.terminal import warn

if TYPE_CHECKING:
    from qgen.kernel import Kernel
    from qgen.request import Request

SUMMARY: Final = "compile one kernel, or every one there is"
USAGE: Final = "qgen emit OP --x T [--scale T] [--y T] [options] [-o DIR]\n       qgen emit --all [--jobs N] -o DIR"
DESCRIPTION: Final = """\
Compiles one operator signature into DIR/NAME.wgsl and DIR/NAME.json, the sidecar that says how a host binds
and dispatches it, and prints both paths. With a shape all sizes are baked into the text; without one they are
uniforms, and one text serves every shape. --all compiles every distinct kernel, with an index of them.
--form function writes DIR/NAME.wgsl alone: functions that dequantize elements, to paste into another shader.
--also writes the kernel in other languages beside it, each bound by the sidecar's numbers.
"""
EPILOG: Final = """\
examples:
  qgen emit QuantizeLinear --x float32 --y uint4 --zero-point --blocked -1:32 --shape 64,100 -o shaders
  qgen emit DequantizeLinear --x int8 --scale float16 --per-axis 0 -o -
  qgen emit DequantizeLinear --x int4 --scale float16 --blocked 1:32 --shape 64,128 --form function --prefix w -o -
"""


_SHARED: Final = ("numerics", "target", "entry_point", "group")
"""The options that --all takes too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_kernel_arguments(parser)
    parser.add_argument(
        "--all", action="store_true", help="every distinct kernel, shapes in uniforms, axis 1 or blocks of 32 along the last axis"
    )
    parser.add_argument("--jobs", metavar="N", type=int, help="processes for --all (default: one a core)")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="the folder to write to (default: the working folder); `-` writes the WGSL to standard output"
    )
    parser.add_argument("--known-scale", metavar="FILE", help="a .npy file of the scales: where all are plain, emit as with --plain-scale")
    add_glue(parser)
    parser.add_argument(
        "--form", metavar="F", type=one_of("kernel", "function"), help="kernel (default), or function: P_load4, P_at and P_bits of a shape"
    )
    parser.add_argument("--prefix", metavar="P", help="what every name of a function begins with (default: dequantize)")
    parser.add_argument("--also", metavar="L,...", help="translate the kernel too, by naga: spirv, glsl, hlsl, msl")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Emit the kernel, or all of them."""
    if arguments.all:
        return _run_all(arguments)
    if arguments.jobs is not None:
        arguments.parser.error("--jobs goes with --all")
    if arguments.form == "function":
        return _run_function(arguments)
    if arguments.prefix is not None:
        arguments.parser.error("--prefix goes with --form function")
    if arguments.glue is not None and arguments.output == "-":
        arguments.parser.error("glue goes beside the kernel into a folder, so `-o -` has no meaning")
    if arguments.also is not None and arguments.output == "-":
        arguments.parser.error("translations go beside the kernel into a folder, so `-o -` has no meaning")
    from qgen.files import save_files  # start-up time
    from qgen.kernel import compile_request  # start-up time

    request, languages = _read_known(arguments), read_glue(arguments)
    warn_of_request(request, arguments.color)
    kernel = compile_request(request)
    if arguments.output == "-":
        sys.stdout.write(kernel.wgsl)
        return 0
    files: dict[str, str | bytes] = {**kernel.files, **_glue(kernel, languages), **_translate(kernel, arguments.also)}
    for path in save_files(arguments.output or ".", files):
        if not arguments.quiet:
            print(path)
    return 0


def _glue(kernel: Kernel, languages: tuple[str, ...]) -> dict[str, str]:
    """Return the files of `--glue`."""
    if not languages:
        return {}
    from qgen.glue import write_glue  # start-up time

    return write_glue(kernel.sidecar, kernel.wgsl, languages)


def _run_function(arguments: argparse.Namespace) -> int:
    """Emit the functions of one signature, without a sidecar: who calls them binds."""
    given = [name for name in ("glue", "also", "entry_point", "group", "profile") if getattr(arguments, name) is not None]
    if given:
        arguments.parser.error(f"a function has no entry point, bindings or schedule, so --{given[0].replace('_', '-')} has no meaning")
    from qgen.files import write_text  # start-up time
    from qgen.fragment import PREFIX, compile_fragment  # start-up time

    request = _read_known(arguments)
    warn_of_request(request, arguments.color)
    fragment = compile_fragment(request, PREFIX if arguments.prefix is None else arguments.prefix)
    if arguments.output == "-":
        sys.stdout.write(fragment.wgsl)
        return 0
    path = Path(arguments.output or ".") / f"{fragment.name}.wgsl"
    write_text(path, fragment.wgsl)
    if not arguments.quiet:
        print(path)
    return 0


def _read_known(arguments: argparse.Namespace) -> Request:
    """Return the request, for plain scales where those of the file are; a warning says where they are not."""
    request = read_request(arguments)
    if arguments.known_scale is None:
        return request
    from qgen.cli.npy import load_array, to_logical  # start-up time
    from qgen.kernel import know_scale  # start-up time
    from qgen.shapes import scale_shape  # start-up time

    shape = None if request.shape is None else scale_shape(request.granularity, request.shape)
    known = know_scale(request, to_logical(load_array(arguments.known_scale), request.signature.scale, shape, arguments.known_scale))
    if not known.plain_scale:
        warn(f"the kernel takes any scale: not all of {arguments.known_scale} are plain, or there is no test to leave out", arguments.color)
    return known


def _translate(kernel: Kernel, targets: str | None) -> dict[str, bytes]:
    """Return the files of `--also`."""
    from qgen.package.translate import parse_targets, translate_kernel  # start-up time

    return translate_kernel(kernel, parse_targets(targets)) if targets is not None else {}


def warn_of_request(request: Request, color: str) -> None:
    """Print what a user should hear about a request that is accepted although the operator's text does not have it."""
    from qgen.signatures import signature_warnings  # start-up time

    for text in signature_warnings(request.signature, request.granularity.kind):
        warn(text, color)


def _run_all(arguments: argparse.Namespace) -> int:
    from qgen.cli.matrix import emit_matrix  # start-up time
    from qgen.request import make_request  # start-up time

    names = ("op", *PLAIN, "per_axis", "blocked", "no_saturate", "profile", "glue", "also", "form", "prefix", "known_scale")
    given = [name for name in names if getattr(arguments, name) is not None and name not in _SHARED]
    if given:
        word = "OP" if given[0] == "op" else f"--{given[0].replace('_', '-')}"
        arguments.parser.error(f"--all emits every kernel, so {word} has no meaning")
    if arguments.output in {None, "-"}:
        arguments.parser.error("--all needs a folder: -o DIR")
    jobs = (os.cpu_count() or 1) if arguments.jobs is None else arguments.jobs
    if jobs < 1:
        arguments.parser.error("--jobs is at least 1")
    shared = {name: getattr(arguments, name) for name in _SHARED if getattr(arguments, name) is not None}
    like = make_request("QuantizeLinear", x="float32", **shared)  # refuses what cannot be shared
    return emit_matrix(Path(arguments.output), like, jobs, is_quiet=arguments.quiet)
