"""LEGAL to LEGAL: replaces what the target lacks, holds the program to its limits, and refuses with the reason what it cannot run.

On a target without the language feature that `unpack4xU8` is of, `unpack4xU8(word)` becomes

    vec4u(word) >> vec4u(0u, 8u, 16u, 24u) & vec4u(0xffu)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qgen.dtypes import DType
from qgen.errors import QgenError
from qgen.ir import nodes as ir
from qgen.ir.program import Program
from qgen.ir.rewrite import map_body, map_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.plan import UNIFORM_HINT, Plan, group_count
from qgen.target import Target

PACKED_4X8: Final = "packed_4x8_integer_dot_product"
"""The language feature of WGSL that has `unpack4xU8`."""

_BYTE: Final = 8
_U32X4: Final = Vector(Scalar.U32)


def legalise(program: Program, plan: Plan, target: Target) -> Program:
    """Return the program as the target can run it. Raises `QgenError` QG303 where it needs more than `target` has."""
    _hold(target, "maxStorageBuffersPerShaderStage", len(program.bound), "storage buffers", "use a formula with fewer operands")
    for name in ("maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX"):
        _hold(target, name, plan.workgroup_size, "invocations a workgroup", "set the target's option `workgroup_size`")
    if PACKED_4X8 not in target.language_features:
        program = _without_unpack(program)
    if plan.view is None:
        return program
    groups = group_count(plan.granularity, plan.view)
    for operand in program.bound:
        nbytes = _binding_size(operand.dtype, groups if operand.per_group else plan.view.count)
        for name in ("maxStorageBufferBindingSize", "maxBufferSize"):
            _hold(target, name, nbytes, f"bytes of `{operand.name}`", UNIFORM_HINT)
    return program


def _without_unpack(program: Program) -> Program:
    kernels = tuple(replace(kernel, body=map_body(kernel.body, lambda expr: map_expr(expr, _shift_apart))) for kernel in program.kernels)
    if all(new.body is old.body for new, old in zip(kernels, program.kernels, strict=True)):
        return program
    return replace(program, kernels=kernels)


def _shift_apart(node: ir.Expr) -> ir.Expr:
    if not isinstance(node, ir.Builtin) or node.name != "unpack4xU8":
        return node
    counts = ir.Compose(tuple(ir.Literal(_BYTE * number, Scalar.U32) for number in range(LANES)), _U32X4)
    shifted = ir.Binary(">>", ir.Compose((node.args[0],), _U32X4), counts, _U32X4)
    return ir.Binary("&", shifted, ir.Compose((ir.Literal((1 << _BYTE) - 1, Scalar.U32),), _U32X4), _U32X4)


def _binding_size(dtype: DType, count: int) -> int:
    return 4 * dtype.words(count)


def _hold(target: Target, limit: str, needed: int, what: str, hint: str) -> None:
    if needed > target.limit(limit):
        raise QgenError("QG303", f"the kernel needs {needed} {what}; target {target.name} has {limit} = {target.limit(limit)}", hint=hint)
