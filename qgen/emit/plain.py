"""A LEGAL program that no formula stands behind, as a module: the self-test's kernel, built from nodes by hand."""

from __future__ import annotations

from collections.abc import Sequence

from qgen.emit.wgsl import emit_entry_point
from qgen.errors import InternalError
from qgen.ir.program import Program, Stage


def emit_plain(program: Program, header: Sequence[str]) -> str:
    """Return the text of a program of entry points alone, its operands bound in order in group 0, under `header` as a comment.

    Raises `InternalError` for a program that is not LEGAL, and for one with functions or uniforms.
    """
    if program.stage is not Stage.LEGAL or program.functions or program.uniforms:
        raise InternalError(f"`{program.name}` is not a program of entry points alone")
    comment = [f"// {line}".rstrip() for line in header]
    bindings = [
        f"@group(0) @binding({number}) var<storage, {'read_write' if operand.is_output else 'read'}> {operand.name}: array<u32>;"
        for number, operand in enumerate(program.operands)
    ]
    entry_points = [emit_entry_point(kernel, frozenset()) for kernel in program.kernels]
    return "\n\n".join(("\n".join(comment), "\n".join(bindings), *entry_points)) + "\n"
