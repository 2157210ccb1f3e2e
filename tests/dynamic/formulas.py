"""A user's formula, taken through the compiler's layers by hand: what `qgen.compile` does for the built-in operators."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import pack_words, unpack_words
from qgen.dtypes import DTYPES
from qgen.emit.module import ModuleSpec, emit_module
from qgen.evaluate import evaluate_program
from qgen.frontend.check_op import Binding, check_op
from qgen.frontend.parse import parse_source
from qgen.ir.program import Program
from qgen.kernel import CPU
from qgen.numerics.library import is_conditional
from qgen.oracle import evaluate_reference
from qgen.passes.pipeline import Variant, lower_program
from qgen.shapes import Granularity, scale_shape
from qgen.sidecar.build import SidecarSpec, build_sidecar
from qgen.sidecar.plan import plan_dispatch
from qgen.target import load_target
from tests.runtime.stacks import open_stack

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula under a binding, compiled for a granularity, and perhaps a shape."""

    granularity: Granularity
    checked: Program
    legal: Program
    wgsl: str
    sidecar: dict[str, Any]

    def run(self, inputs: Mapping[str, Array], device: str) -> dict[str, Array]:
        plan = plan_dispatch(self.sidecar, {name: array.shape for name, array in inputs.items()})
        words = {name: pack_words(array, self.checked.operand(name).dtype) for name, array in inputs.items()}
        if device == CPU:
            outputs = [operand.name for operand in self.legal.operands if operand.is_output]
            values = [int(value) for data in plan.uniforms.values() for value in np.frombuffer(data, "<u4")]
            uniforms = dict(zip(self.legal.uniforms, values, strict=True))
            sizes = {name: plan.sizes[name] // 4 for name in outputs}
            found = evaluate_program(self.legal, words, sizes, uniforms, [step.dispatch for step in plan.passes])
        else:
            given = {name: array.tobytes() for name, array in words.items()}
            results = open_stack(device).run(self.wgsl, self.sidecar, plan, given, canaries=True)
            found = {name: np.frombuffer(data, np.uint32) for name, data in results.items()}
        shape = inputs["x"].shape
        groups = scale_shape(self.granularity, shape)
        return {
            operand.name: unpack_words(found[operand.name], operand.dtype, groups if operand.per_group else shape)
            for operand in self.checked.outputs
        }

    def reference(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return evaluate_reference(self.checked, self.granularity, inputs)


def compile_formula(
    text: str, dtypes: Mapping[str, str], granularity: Granularity, shape: tuple[int, ...] | None = None, mode: str = "exact"
) -> Formula:
    """Return the one operator of `text`."""
    source = parse_source(text, "user.qg")
    (op,) = source.ops
    checked = check_op(source, op, Binding({name: DTYPES[dtype] for name, dtype in dtypes.items()}, {}))
    target = load_target("webgpu")
    legal, plans = lower_program(checked, Variant(mode, granularity, shape, target))
    native = any(is_conditional(function.name) for function in legal.functions)
    wgsl = emit_module(ModuleSpec(legal, checked, plans, shape, mode, native, target, 0))
    digest = hashlib.sha256(wgsl.encode()).hexdigest()
    description = {"domain": "user", "type": op.name, "opset": [1, 1], "attributes": {}}
    spec = SidecarSpec("user", checked, legal, plans, shape, mode, target, 0, description, native, digest)
    return Formula(granularity, checked, legal, wgsl, build_sidecar(spec))
