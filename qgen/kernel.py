"""A kernel as a user holds it: texts to save, a device to run on, an oracle to hold it against."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from qgen.compiler import Compiled, compile_kernel, find_condition
from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.files import save_files
from qgen.ir.program import Program
from qgen.passes.discharge import Condition
from qgen.request import Request
from qgen.shapes import check_operand_shapes, make_view, scale_shape
from qgen.sidecar.plan import DispatchPlan, plan_dispatch
from qgen.sidecar.text import print_sidecar
from qgen.signatures.tables import DYNAMIC

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qgen.evaluate import ArithmeticModel

    Array = NDArray[Any]

CPU: Final = "cpu"
"""The device that is always there: the evaluator of the LEGAL stage."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel. `name` is `[a-z0-9_]+`; `wgsl` the text, `sidecar` how a host binds and dispatches it."""

    compiled: Compiled

    @property
    def name(self) -> str:
        """The kernel's name: readable parts and 8 hex digits of the text's SHA-256, or the name that was asked for."""
        return self.compiled.name

    @property
    def wgsl(self) -> str:
        """The WGSL text."""
        return self.compiled.wgsl

    @property
    def sidecar(self) -> dict[str, Any]:
        """The sidecar (format in `qgen/sidecar/schema.json`)."""
        return self.compiled.sidecar

    @property
    def request(self) -> Request:
        """What the kernel computes, resolved."""
        return self.compiled.request

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the input tensors, ONNX's, in the order of the bindings."""
        return tuple(operand.name for operand in self.compiled.checked.operands if not operand.is_output)

    @property
    def files(self) -> dict[str, str]:
        """The texts that `save` writes, by file name: `<name>.wgsl`, then `<name>.json`."""
        return {f"{self.name}.wgsl": self.wgsl, f"{self.name}.json": print_sidecar(self.sidecar)}

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write `<name>.wgsl` and `<name>.json` into `folder` (made where it is not there) and return their paths.

        Both files appear, or neither. Raises `QgenError` QG110 where the folder cannot be written.
        """
        wgsl, sidecar = save_files(folder, self.files)
        return wgsl, sidecar

    def run(self, inputs: Mapping[str, Array], device: str = "auto") -> dict[str, Array]:
        """Return the outputs by ONNX name, of x's shape, in numpy's or ml_dtypes' type, as `device` computes them.

        `inputs` has the logical arrays by ONNX name (`x`, `y_scale`, …), each of its exact dtype. `device` is `auto` (an adapter, else the
        CPU), `cpu` (the evaluator), `gpu`, or a part of an adapter's name. Raises `QgenError` QG111 for a missing or unknown input, QG112
        for a float8 zero point of DequantizeLinear that is not zero, QG113 for a scale that a kernel for plain scales does not take, QG240
        for a wrong dtype, QG220 to QG228 for shapes that do not go together, QG107 for a device that is no str,
        `UnavailableError` where there is no such device.
        """
        from qgen.arrays import pack_words, unpack_words  # numpy is not needed to emit

        inputs = self._checked(inputs)
        plan = self.plan({name: _shape(array) for name, array in inputs.items()})
        self.hold_scale(inputs)
        operands = self.compiled.checked.operands
        words = {
            operand.name: pack_words(inputs[operand.name], operand.dtype)
            for operand in self.compiled.checked.bound
            if not operand.is_output
        }
        results = self.run_words(words, plan, _device(device))
        shape = _shape(inputs[operands[0].name])
        groups = scale_shape(self.request.granularity, shape)
        return {
            operand.name: unpack_words(results[operand.name], operand.dtype, groups if operand.per_group else shape)
            for operand in self.compiled.checked.outputs
        }

    def plan(self, shapes: Mapping[str, tuple[int, ...]]) -> DispatchPlan:
        """Return buffer sizes, uniforms and dispatches for inputs of these shapes; raises `QgenError` where they do not go together."""
        x, *parameters = (shapes[name] for name in self.inputs)
        if parameters:
            check_operand_shapes(self.request.granularity, x, parameters[0], parameters[1] if len(parameters) > 1 else None)
        else:
            make_view(self.request.granularity, x)
        return plan_dispatch(self.sidecar, shapes)

    def run_words(
        self, words: Mapping[str, NDArray[np.uint32]], plan: DispatchPlan, device: str, model: ArithmeticModel | None = None
    ) -> dict[str, NDArray[np.uint32]]:
        """Return the words of the outputs, given those of the inputs, as `device` computes them; on the CPU under `model`."""
        if plan.is_empty:
            return self._on_empty(plan)
        if device == CPU:
            return _evaluate(self.compiled.legal, words, plan, model)
        import numpy as np  # numpy is not needed to emit

        from qgen.runtime import open_device  # an adapter takes seconds to open

        try:
            adapter = open_device("gpu" if device == "auto" else device)
        except UnavailableError:
            if device != "auto":
                raise
            return _evaluate(self.compiled.legal, words, plan)
        results = adapter.run(self.wgsl, self.sidecar, plan, {name: array.tobytes() for name, array in words.items()})
        return {name: np.frombuffer(data, np.uint32) for name, data in results.items()}

    def _on_empty(self, plan: DispatchPlan) -> dict[str, NDArray[np.uint32]]:
        """Return the outputs where x has no elements: nothing is dispatched, and what is left are constants."""
        import numpy as np  # numpy is not needed to emit

        from qgen.arrays import from_codes, pack_words  # the same

        x = plan.shapes[self.inputs[0]]
        groups = scale_shape(self.request.granularity, x)
        outputs: dict[str, NDArray[np.uint32]] = {}
        for operand in self.compiled.checked.outputs:
            shape = groups if operand.per_group else x
            codes = np.full(shape, operand.on_empty or 0, np.uint32)
            outputs[operand.name] = pack_words(from_codes(codes, operand.dtype, shape), operand.dtype)
        return outputs

    def reference(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the outputs must be, bit for bit, from exact arithmetic and without a GPU; arguments and errors as for `run`."""
        from qgen.oracle import evaluate_reference  # numpy is not needed to emit

        return evaluate_reference(self.compiled.checked, self.request.granularity, self._checked(inputs))

    def hold_scale(self, inputs: Mapping[str, Array]) -> None:
        """Hold the scale to what the kernel relies on; raises `QgenError` QG113 for one that it does not take. Most kernels take any."""
        if not self.request.plain_scale:
            return
        condition = find_condition(self.request)
        if condition is None:
            raise InternalError(f"{self.name} is for plain scales, and there is no condition on them")
        _hold_plain(condition, inputs[condition.scale.name], self.name)

    def _checked(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the inputs as arrays of their types."""
        from qgen.arrays import to_logical  # numpy is not needed to emit

        missing = [name for name in self.inputs if name not in inputs]
        unknown = [name for name in inputs if name not in self.inputs]
        if missing or unknown:
            message = f"the input `{missing[0]}` is missing" if missing else f"there is no input `{unknown[0]}`"
            raise QgenError("QG111", message, hint=f"those of kernel {self.name} are {', '.join(self.inputs)}")
        operand = self.compiled.checked.operand
        arrays = {name: to_logical(inputs[name], operand(name).dtype, f"input `{name}`") for name in self.inputs}
        self._check_ignored(arrays)
        return arrays

    def _check_ignored(self, inputs: Mapping[str, Array]) -> None:
        """Hold a float8 zero point to zero: DequantizeLinear refuses another, QuantizeLinear warns that it takes no part."""
        for operand in self.compiled.checked.operands:
            if not operand.is_ignored or not bool((inputs[operand.name].astype("float32") != 0).any()):
                continue
            message = f"`{operand.name}` of {operand.dtype.name} is not zero"
            if not self.request.signature.is_quantize:
                hint = "shift x before it is quantized: the operator has no zero point for float8"
                raise QgenError("QG112", f"{message}, and is never subtracted", hint=hint, place=self.name)
            warnings.warn(f"{message}, and takes no part in the result", stacklevel=4)


def know_scale(request: Request, scale: Array) -> Request:
    """Return the request for the kernel that need not test these scales, where each meets what quick code asks of it; else `request`.

    `scale` is of the scale's dtype and shape. Raises `QgenError` QG111 where the operator takes no scale, QG240 for another dtype, QG220 to
    QG228 for a shape that does not go with a baked one, QG113 where `request` is for plain scales and one of these is not.
    """
    from qgen.arrays import to_codes  # numpy is not needed to emit

    signature = request.signature
    if signature.op == DYNAMIC:
        raise QgenError("QG111", f"{DYNAMIC} takes no scale", hint="its scale is a result, and not known before it is run")
    codes = to_codes(scale, signature.scale)
    if request.shape is not None:
        check_operand_shapes(request.granularity, request.shape, _shape(scale), None)
    condition = find_condition(request)
    if condition is not None and request.plain_scale:
        _hold_plain(condition, scale, "the kernel")
    return know_codes(request, codes)


def know_codes(request: Request, codes: NDArray[np.uint32]) -> Request:
    """Return the request for the kernel that need not test scales of these codes, where each meets what is asked of it; else `request`."""
    from qgen.plain import are_plain  # numpy is not needed to emit

    condition = find_condition(request)
    is_plain = condition is not None and bool(are_plain(condition, codes).all())
    return replace(request, plain_scale=True) if is_plain else request


def _hold_plain(condition: Condition, scale: Array, place: str) -> None:
    """Raise `QgenError` QG113 where a scale is not plain."""
    from qgen.arrays import to_codes  # numpy is not needed to emit
    from qgen.plain import are_plain, describe_condition  # the same

    codes = to_codes(scale, condition.scale.dtype).reshape(-1)
    wrong = (~are_plain(condition, codes)).nonzero()[0]
    if not len(wrong):
        return
    name, at = condition.scale.name, int(wrong[0])
    message = f"element {at} of `{name}` is {scale.reshape(-1)[at]}, and the kernel relies on this: {describe_condition(condition)}"
    raise QgenError("QG113", message, hint="emit the kernel without known or plain scales: it takes any", place=place)


def _device(device: object) -> str:
    if not isinstance(device, str):
        message = f"`device` cannot be of type `{type(device).__name__}`"
        raise QgenError("QG107", message, hint="give `auto`, `gpu`, `cpu`, or a part of an adapter's name")
    return device.strip().lower()


def compile_request(request: Request) -> Kernel:
    """Return the kernel of a request."""
    return Kernel(compile_kernel(request))


def _evaluate(
    program: Program, words: Mapping[str, NDArray[np.uint32]], plan: DispatchPlan, model: ArithmeticModel | None = None
) -> dict[str, NDArray[np.uint32]]:
    import numpy as np  # numpy is not needed to emit

    from qgen.evaluate import IEEE, evaluate_program  # numpy is not needed to emit

    outputs = [operand.name for operand in program.operands if operand.is_output]
    uniforms: dict[str, int] = {}
    for data in plan.uniforms.values():
        uniforms = dict(zip(program.uniforms, (int(value) for value in np.frombuffer(data, "<u4")), strict=True))
    sizes = {name: plan.sizes[name] // 4 for name in outputs}
    return evaluate_program(program, words, sizes, uniforms, [step.dispatch for step in plan.passes], model or IEEE)


def _shape(array: Array) -> tuple[int, ...]:
    return tuple(int(dim) for dim in array.shape)
