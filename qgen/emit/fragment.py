"""Functions to paste into a shader: a header that says what to declare and what there is to call, then the functions, callees last."""

from __future__ import annotations

from qgen.emit.module import PROMISES, ModuleSpec, assumption_lines, emit_functions, formula_lines, operand_lines


def emit_fragment(spec: ModuleSpec, prefix: str) -> str:
    """Return the text of a program of functions alone, whose names begin with `prefix`; ends with one newline, holds nothing volatile."""
    header = "\n".join(f"// {line}".rstrip() for line in _header(spec, prefix))
    return "\n\n".join((header, *emit_functions(spec.program))) + "\n"


def _header(spec: ModuleSpec, prefix: str) -> list[str]:
    operands = spec.program.bound
    (result,) = spec.checked.outputs
    return [
        *formula_lines(spec.checked),
        "",
        *operand_lines(spec, operands),
        "",
        "Declare these, in a group and with numbers of your own:",
        "",
        *(f"  @group(0) @binding({number}) var<storage, read> {operand.name}: array<u32>;" for number, operand in enumerate(operands)),
        "",
        "and call these; what lies beyond the last element has no meaning:",
        "",
        f"  {prefix}_load4(i4: u32) -> vec4f  elements 4 * i4 to 4 * i4 + 3",
        f"  {prefix}_at(i: u32) -> f32        element i",
        f"  {prefix}_bits(i: u32) -> u32      the bits of element i, a {result.dtype.name}",
        "",
        f"Numerics: {spec.mode}, {PROMISES[spec.mode if spec.uses_native else 'strict']}.",
        f"That is said of {prefix}_bits. The others have the same values as f32, of which WGSL lets an implementation flush",
        "subnormals to zero, choose the sign of zero, and take NaN and infinity for any value.",
        *assumption_lines(spec),
    ]
