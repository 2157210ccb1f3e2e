"""`qgen show`: a compilation from the inside, as WGSL or as IR after any pass."""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import TYPE_CHECKING, Final

from qgen.cli.arguments import add_kernel_arguments, read_request
from qgen.cli.emit import warn_of_request
from qgen.errors import QgenError

if TYPE_CHECKING:
    from qgen.ir.program import Program

SUMMARY: Final = "print a kernel's WGSL, or its IR after any pass"
USAGE: Final = "qgen show OP --x T [--scale T] [--y T] [options] [--ir | --print-ir-after PASS|all]"
DESCRIPTION: Final = """\
Compiles one operator signature and prints what it becomes, without writing a file: the WGSL, unless --ir or
--print-ir-after asks for the IR.
"""

ALL: Final = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_kernel_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--ir", action="store_true", help="the IR that the WGSL is printed from")
    what.add_argument("--print-ir-after", metavar="PASS", help="the IR after this pass, or after each (all); `qgen list passes` names them")


def run(arguments: argparse.Namespace) -> int:
    """Print the WGSL or the IR."""
    from qgen.compiler import compile_kernel  # start-up time
    from qgen.ir.print import print_program  # start-up time

    wanted = arguments.print_ir_after
    if wanted is not None:
        _check_pass(wanted)
    request = read_request(arguments)
    warn_of_request(request, arguments.color)
    stages: list[tuple[str, Program]] = []
    compiled = compile_kernel(request, lambda name, program: stages.append((name, program)))
    if arguments.ir:
        sys.stdout.write(print_program(compiled.legal))
    elif wanted is None:
        sys.stdout.write(compiled.wgsl)
    elif wanted == ALL:
        sys.stdout.write("\n".join(_print_stage(stages, index) for index in range(len(stages))))
    else:
        sys.stdout.write(print_program(dict(stages)[wanted]))
    return 0


def _check_pass(name: str) -> None:
    from qgen.passes.pipeline import PASSES  # start-up time

    if name == ALL or name in PASSES:
        return
    near = difflib.get_close_matches(name, (*PASSES, ALL), n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"passes are {', '.join(PASSES)}, and `all` prints after each"
    raise QgenError("QG901", f"there is no pass `{name}`", hint=hint)


def _print_stage(stages: list[tuple[str, Program]], index: int) -> str:
    from qgen.ir.print import print_program  # start-up time

    name, program = stages[index]
    if index and program is stages[index - 1][1]:
        return f"// after {name}: unchanged\n"
    return f"// after {name}\n{print_program(program)}"
