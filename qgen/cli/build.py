"""`qgen build`: the kernels that a project keeps as a list; writes what changed and nothing else."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from qgen.cli.arguments import add_quiet
from qgen.cli.emit import warn_of_request
from qgen.cli.files import is_current, write_if_changed

SUMMARY: Final = "compile the kernels that a project keeps as a list"
USAGE: Final = "qgen build KERNELS.toml -o DIR [--check] [--depfile FILE]"
DESCRIPTION: Final = """\
Compiles every [[kernel]] table of a TOML file and writes the files of DIR that changed; it removes none.
With --check it writes nothing, prints the files that would change, and exits with 1 if there are any: for a
project that keeps the emitted texts under version control.
"""
EPILOG: Final = """\
The keys of a table are the options of `qgen emit` in snake case; `op` and `x` are needed:

  [[kernel]]
  op = "QuantizeLinear"
  x = "float32"
  y = "uint4"
  zero_point = true
  blocked = "-1:32"        # or per_axis = 1
  shape = [64, 100]        # leave it out for uniforms
  name = "quantize_weights"

and scale, opset, domain, precision, saturate, numerics, plain_scale, target, entry_point, group.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("list", metavar="KERNELS.toml", help="the list of kernels")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder to write to")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 and print which files would change")
    parser.add_argument("--depfile", metavar="FILE", help="write a dependency file for make or ninja")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Build the list."""
    from qgen.cli.manifest import load_manifest  # start-up time

    if arguments.output == "-":
        arguments.parser.error("the kernels go into a folder, so `-o -` has no meaning")
    folder = Path(arguments.output)
    texts: dict[Path, str] = {}
    for entry in load_manifest(arguments.list):
        kernel = entry.compile()
        warn_of_request(entry.request(), arguments.color)
        for name, text in kernel.files.items():
            if texts.setdefault(folder / name, text) != text:
                hint = "give each a name of its own, or leave `name` out"
                raise entry.error("QG911", f"two kernels of the list are called `{kernel.name}`", hint, "name")
    return _check(texts) if arguments.check else _write(texts, arguments)


def _check(texts: Mapping[Path, str]) -> int:
    stale = [path for path, text in texts.items() if not is_current(path, text)]
    for path in stale:
        print(path)
    return 1 if stale else 0


def _write(texts: Mapping[Path, str], arguments: argparse.Namespace) -> int:
    for path, text in texts.items():
        if write_if_changed(path, text) and not arguments.quiet:
            print(path)
    if arguments.depfile is not None:
        targets = " ".join(escape_make(str(path)) for path in texts)
        write_if_changed(Path(arguments.depfile), f"{targets}: {escape_make(arguments.list)}\n")
    return 0


def escape_make(path: str) -> str:
    """Return a path as makefiles spell it."""
    return re.sub(r"([ #\\])", r"\\\1", path).replace("$", "$$")
