"""LEGAL to LEGAL: holds a program to its target's limits, and refuses with the reason what the target cannot run. Changes nothing."""

from __future__ import annotations

from qgen.dtypes import DType
from qgen.errors import QgenError
from qgen.ir.program import Program
from qgen.passes.plan import Plan, group_count
from qgen.target import Target


def legalise(program: Program, plan: Plan, target: Target) -> Program:
    """Return the program. Raises `QgenError` QG303 where it needs more than `target` has."""
    _hold(target, "maxStorageBuffersPerShaderStage", len(program.bound), "storage buffers", "use a formula with fewer operands")
    for name in ("maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX"):
        _hold(target, name, plan.workgroup_size, "invocations a workgroup", "set the target's option `workgroup_size`")
    if plan.view is None:
        return program
    groups = group_count(plan.granularity, plan.view)
    for operand in program.bound:
        nbytes = _binding_size(operand.dtype, groups if operand.per_group else plan.view.count)
        hint = "leave the shape out (`--shapes uniform`): a kernel with uniforms runs on parts of a tensor"
        for name in ("maxStorageBufferBindingSize", "maxBufferSize"):
            _hold(target, name, nbytes, f"bytes of `{operand.name}`", hint)
    return program


def _binding_size(dtype: DType, count: int) -> int:
    return 4 * dtype.words(count)


def _hold(target: Target, limit: str, needed: int, what: str, hint: str) -> None:
    if needed > target.limit(limit):
        raise QgenError("QG303", f"the kernel needs {needed} {what}; target {target.name} has {limit} = {target.limit(limit)}", hint=hint)
