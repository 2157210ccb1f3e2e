"""A whole WGSL module: header, bindings, entry point first, then the functions it calls, callees last, so that the file reads top-down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, assert_never

import jinja2

from qgen.emit.formula import print_formula
from qgen.emit.wgsl import INDENT, emit_entry_point, emit_function, emit_struct
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Operand, Program, kept
from qgen.ir.rewrite import walk_body
from qgen.ir.types import Struct
from qgen.passes.plan import Plan
from qgen.resources import read_resource
from qgen.shapes import Blocked, PerAxis, PerTensor, scale_shape
from qgen.target import Target

PROMISES: Final = {
    "strict": "bit-exact on every conforming WebGPU implementation",
    "exact": "bit-exact where f32 products of normal numbers round to nearest even, as on every known device",
    "fast": "native arithmetic, with the error that the sidecar states",
}
"""What each numerics mode promises, as the header says it."""


@dataclass(frozen=True, slots=True)
class ModuleSpec:
    """What is emitted: the LEGAL program and its plan, the CHECKED program it came from, and what the user chose."""

    program: Program
    checked: Program
    plans: tuple[Plan, ...]
    shape: tuple[int, ...] | None
    mode: str
    uses_native: bool
    target: Target
    group: int
    assumes: str | None = None
    """What the values of an input must meet, in words; None where any will do."""


def emit_module(spec: ModuleSpec) -> str:
    """Return the text of the module; ends with one newline and holds nothing volatile."""
    program = spec.program
    atomics = frozenset(operand.name for operand in program.operands if operand.is_scratch)
    return _template(spec.target.module).render(
        header=_header(spec),
        bindings=_bindings(spec),
        struct=_params(program.uniforms),
        entry_points=[emit_entry_point(kernel, atomics, program.wide) for kernel in program.kernels],
        functions=emit_functions(program),
    )


def emit_functions(program: Program) -> list[str]:
    """Return the text of each function of a program, and of each struct before the first function that names it."""
    functions: list[str] = []
    declared: set[Struct] = set()
    for function in program.functions:
        structs = [struct for struct in _structs(function) if struct not in declared]
        declared.update(structs)
        functions += [*(emit_struct(struct) for struct in structs), emit_function(function)]
    return functions


@lru_cache(maxsize=16)
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - WGSL is no HTML
    )
    return environment.from_string(read_resource("targets", name))


@kept
def _structs(function: Function) -> tuple[Struct, ...]:
    """Return the structs that a function makes or returns; the first function to name one declares it."""
    found = [function.result, *(node.type for node in walk_body(function.body) if isinstance(node, ir.Construct | ir.Call))]
    return tuple(dict.fromkeys(type_ for type_ in found if isinstance(type_, Struct)))


def _bindings(spec: ModuleSpec) -> list[str]:
    lines: list[str] = []
    for number, operand in enumerate(spec.program.bound):
        access = "read_write" if operand.is_output else "read"
        words = "array<atomic<u32>>" if operand.is_scratch else "array<vec4u>" if operand.name in spec.program.wide else "array<u32>"
        lines.append(f"@group({spec.group}) @binding({number}) var<storage, {access}> {operand.name}: {words};")
    if spec.program.uniforms:
        lines.append(f"@group({spec.group}) @binding({len(lines)}) var<uniform> params: Params;")
    return lines


def _params(uniforms: tuple[str, ...]) -> list[str]:
    return ["struct Params {", *(f"{INDENT}{name}: u32," for name in uniforms), "}"] if uniforms else []


def _header(spec: ModuleSpec) -> list[str]:
    operands = [operand for operand in spec.checked.bound if not operand.is_scratch]
    return [
        *formula_lines(spec.checked),
        "",
        *operand_lines(spec, operands),
        "",
        f"Numerics: {spec.mode}, {PROMISES[spec.mode if spec.uses_native else 'strict']}.",
        *assumption_lines(spec),
        *_dispatches(spec),
    ]


def operand_lines(spec: ModuleSpec, operands: Sequence[Operand]) -> list[str]:
    """Return a line for each operand: name, dtype, shape where it is baked, and how its elements lie."""
    shapes = {operand.name: _shape(operand, spec) for operand in operands}
    name_width = max(len(operand.name) for operand in operands)
    dtype_width = max(len(operand.dtype.name) for operand in operands)
    shape_width = max(len(shape) for shape in shapes.values())
    rows = []
    for operand in operands:
        columns = (f"{operand.name:{name_width}}", f"{operand.dtype.name:{dtype_width}}", f"{shapes[operand.name]:{shape_width}}")
        rows.append("  ".join(("", *(column for column in columns if column), _remark(operand, spec))))
    return rows


def formula_lines(checked: Program) -> list[str]:
    """Return the formula under the operator's name."""
    lines = print_formula(checked)
    return [f"{checked.name}: {lines[0]}"] if len(lines) == 1 else [f"{checked.name}:", *(f"  {line}" for line in lines)]


def assumption_lines(spec: ModuleSpec) -> list[str]:
    """Return the line that says what the kernel relies on of an input's values, where it does."""
    return [] if spec.assumes is None else [f"Relies on: {spec.assumes}. Nothing here tests it."]


def _shape(operand: Operand, spec: ModuleSpec) -> str:
    if spec.shape is None:
        return ""
    return str(list(scale_shape(spec.plans[-1].granularity, spec.shape) if operand.per_group else spec.shape))


def _remark(operand: Operand, spec: ModuleSpec) -> str:
    if not operand.per_group:
        layout = operand.dtype.layout
        words = "a word" if layout.words == 1 else f"{layout.words} words"
        return f"{layout.elements} in {words}, first in the lowest bits" if layout.elements > 1 else "1 a word"
    granularity = spec.plans[-1].granularity
    match granularity:
        case PerTensor():
            return "one for all elements"
        case PerAxis(axis):
            return f"one for each index along axis {axis}"
        case Blocked(axis, block_size):
            return f"one for {block_size} elements along axis {axis}"
        case _:
            assert_never(granularity)


def _dispatches(spec: ModuleSpec) -> list[str]:
    kernels = spec.program.kernels
    if len(kernels) == 1:
        return [f"Dispatch: {_dispatch(kernels[0], spec.plans[0])}"]
    width = max(len(kernel.name) for kernel in kernels)
    lines = [f"  {kernel.name:{width}}  {_dispatch(kernel, plan)}" for kernel, plan in zip(kernels, spec.plans, strict=True)]
    return ["Dispatches, one after the other:", *lines]


def _dispatch(kernel: Kernel, plan: Plan) -> str:
    share = f"an invocation computes {plan.lanes} {kernel.domain.value}"
    if plan.workgroups is None:
        return f"any shape, from the uniform parameters; {share}."
    width, rows = plan.workgroups
    count = f"{width} x {rows}" if rows > 1 else str(width)
    noun = "workgroup" if count == "1" else "workgroups"
    return f"{count} {noun} of {plan.workgroup_size}; {share}."
