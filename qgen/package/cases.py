"""`test.json` and `bench.json`: inputs with the right outputs, bit for bit, and sizes to measure. Both are of qgen's own form."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from itertools import product
from typing import Any, Final

from qgen.arrays import pack
from qgen.check import make_inputs
from qgen.dtypes import DTYPES, DType
from qgen.kernel import Kernel, compile_request
from qgen.package.kernels import OPERATORS, Variant
from qgen.request import make_request
from qgen.shapes import Blocked, Granularity, PerAxis

TEST_FORMAT: Final = "qgen.hf-test"
BENCH_FORMAT: Final = "qgen.hf-bench"

_SHAPES: Final[dict[str, tuple[tuple[int, ...], int, int]]] = {
    "quant-linear-vec4": ((5, 7), 1, 0),
    "quant-linear-scalar": ((2, 5, 3), 1, 0),
    "quant-linear-blocked-axis": ((2, 7, 3), -2, 3),
}
"""For each variant a shape of x, an axis and a block size; no length is a multiple of the elements that an invocation computes."""

_BENCHED: Final = (("uint8", "float32"), ("int8", "float16"), ("int4", "float32"), ("uint16", "float32"), ("float8e4m3fn", "bfloat16"))
_BENCH_SHAPE: Final = (4096, 4096)
_BENCH_BLOCK: Final = 32


def build_tests(op: str, types: dict[str, list[str]], variants: Sequence[Variant], mode: str) -> dict[str, Any]:
    """Return a case for each variant and each pair of a quantized and another type; scales, zero points and attributes take turns."""
    cases = []
    for number, (variant, quantized, real) in enumerate(product(variants, types["TQ"], types["TF"])):
        shape, axis, block_size = _SHAPES[variant.id]
        granularity = _granularity(variant, axis, block_size)
        kernel, attributes = _kernel(op, (quantized, types["TS"][number % len(types["TS"])], real), granularity, mode, number)
        inputs = make_inputs(kernel, shape, seed=number)
        output = kernel.reference(inputs)["y"]
        attributes |= {} if variant.id == "quant-linear-vec4" else {"axis": axis}
        attributes |= {"block_size": block_size} if block_size else {}
        cases.append(
            {
                "name": f"{variant.id} {quantized} {real} {number}",
                "variant": variant.id,
                "attributes": attributes,
                "inputs": {name: _tensor(array, kernel.compiled.checked.operand(name).dtype) for name, array in inputs.items()},
                "outputs": {"y": _tensor(output, kernel.request.signature.y)},
            }
        )
    return {"format": TEST_FORMAT, "compare": "bits", "cases": cases}


def build_bench(op: str, variants: Sequence[Variant]) -> dict[str, Any]:
    """Return a case for each variant and some pairs of types, by shapes alone: any data will do."""
    scale = "y_scale" if op == OPERATORS[0] else "x_scale"
    rows, columns = _BENCH_SHAPE
    shapes = {"quant-linear-vec4": [], "quant-linear-scalar": [columns], "quant-linear-blocked-axis": [rows, columns // _BENCH_BLOCK]}
    cases = []
    for variant, (quantized, real) in product(variants, _BENCHED):
        x, y = (real, quantized) if op == OPERATORS[0] else (quantized, real)
        attributes = {"axis": 1, "block_size": _BENCH_BLOCK if isinstance(variant.granularity, Blocked) else 0}
        attributes |= {"output_dtype": DTYPES[y].onnx}
        inputs = {"x": {"dtype": x, "shape": [rows, columns]}, scale: {"dtype": "float32", "shape": shapes[variant.id]}}
        cases.append({"name": f"{variant.id} {quantized} {real}", "variant": variant.id, "attributes": attributes, "inputs": inputs})
    return {"format": BENCH_FORMAT, "measure": "bytes of all bound tensors a second", "cases": cases}


def _granularity(variant: Variant, axis: int, block_size: int) -> Granularity:
    match variant.granularity:
        case Blocked():
            return Blocked(axis, block_size)
        case PerAxis():
            return PerAxis(axis)
        case other:
            return other


def _kernel(op: str, types: tuple[str, str, str], granularity: Granularity, mode: str, number: int) -> tuple[Kernel, dict[str, Any]]:
    """Return the kernel of a case, with the attributes that it is asked for by."""
    quantized, scale, real = types
    is_quantize = op == OPERATORS[0]
    x, y = (real, quantized) if is_quantize else (quantized, real)
    precisions = (None, "float32", "float16", "bfloat16") if is_quantize else (None,)
    precision = precisions[number % len(precisions)]
    saturate = not (is_quantize and DTYPES[quantized].is_float8 and number % 2)
    has_zero_point = bool(number // 2 % 2) and not DTYPES[quantized].is_float8
    request = make_request(
        op, x=x, scale=scale, y=y, zero_point=has_zero_point, granularity=granularity, precision=precision, saturate=saturate, numerics=mode
    )
    attributes: dict[str, Any] = {"output_dtype": DTYPES[y].onnx}
    attributes |= {"precision": DTYPES[precision].onnx} if precision else {}
    attributes |= {} if saturate else {"saturate": 0}
    return compile_request(request), attributes


def _tensor(array: Any, dtype: DType) -> dict[str, Any]:  # noqa: ANN401 - any array of numpy or ml_dtypes
    return {"dtype": dtype.name, "shape": list(array.shape), "data": b64encode(pack(array, dtype).tobytes()).decode()}
