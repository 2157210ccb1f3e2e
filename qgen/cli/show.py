"""`qgen show`: a compilation from the inside, as WGSL or as IR after any pass."""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import TYPE_CHECKING, Final

from qgen.cli.arguments import add_kernel_arguments, read_request
from qgen.cli.emit import warn_of_request
from qgen.cli.list import align
from qgen.cli.terminal import count
from qgen.errors import QgenError

if TYPE_CHECKING:
    from qgen.cost import Counts, KernelCost
    from qgen.ir.program import Program

SUMMARY: Final = "print a kernel's WGSL, its IR after any pass, or what it costs"
USAGE: Final = "qgen show OP --x T [--scale T] [--y T] [options] [--ir | --print-ir-after PASS|all | --cost]"
DESCRIPTION: Final = """\
Compiles one operator signature and prints what it becomes, without writing a file: the WGSL, unless --ir or
--print-ir-after asks for the IR, or --cost for what an element costs.
"""
EPILOG: Final = """\
--cost counts accesses and operations of one invocation, and prints them for an element (or a group, in a pass
over groups): those that are always done, and those that are redone where a condition on data fails. `tensor`
has the bytes that the tensor itself has for an element, the least there is to move. A division is one by a
value that is not in the text; both sides of an `if` count; what a compiler or a cache merges counts each time.
"""

ALL: Final = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_kernel_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--ir", action="store_true", help="the IR that the WGSL is printed from")
    what.add_argument("--print-ir-after", metavar="PASS", help="the IR after this pass, or after each (all); `qgen list passes` names them")
    what.add_argument("--cost", action="store_true", help="bytes and operations an element, by buffer and by kind")


def run(arguments: argparse.Namespace) -> int:
    """Print the WGSL, the IR or the cost."""
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
    elif arguments.cost:
        from qgen.cost import count_costs  # start-up time

        print("\n\n".join(print_cost(cost) for cost in count_costs(compiled.legal, compiled.plans)))
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


def print_cost(cost: KernelCost) -> str:
    """Return two tables: accesses by buffer, and operations by kind; all but accesses and words for one item of the kernel."""
    from qgen.cost import KINDS  # start-up time

    noun = cost.domain.value.removesuffix("s")
    paths = [("always", cost.computed), *([("redone", cost.redone)] if cost.redone is not None else [])]
    accesses = [(*row, _number(cost.least_bytes[row[1]])) for label, counts in paths for row in _accesses(label, counts, cost)]
    operations = [
        (label, *(_number(counts["operation", kind] / cost.items) for kind in KINDS), _number(_operations(counts) / cost.items))
        for label, counts in paths
    ]
    return "\n".join(
        [
            f"{cost.name}: {count(cost.items, noun)} an invocation",
            "",
            *align([("", "buffer", "access", "times", "words", f"bytes / {noun}", "tensor"), *accesses]),
            "",
            *align([(f"operations / {noun}", *KINDS, "all"), *operations]),
        ]
    )


def _accesses(label: str, counts: Counts, cost: KernelCost) -> list[tuple[str, str, str, str, str, str]]:
    return [
        (label, name, access, str(counts[access, name]), str(counts["words", name]), _number(4 * counts["words", name] / cost.items))
        for name in cost.least_bytes
        for access in ("load", "store")
        if counts[access, name]
    ]


def _operations(counts: Counts) -> int:
    return sum(number for (what, _), number in counts.items() if what == "operation")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")
