"""The two other implementations of the operators: onnx.reference and ONNX Runtime on the CPU with graph optimisation off."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnxruntime
from onnx.reference import ReferenceEvaluator

from qgen.arrays import numpy_dtype
from qgen.dtypes import DTYPES, DType
from qgen.shapes import Granularity, PerTensor
from qgen.signatures import Signature
from tests.oracle.nodes import Array, name_inputs

_IR_VERSION = 10


def run_onnx_reference(signature: Signature, granularity: Granularity, arrays: list[Array]) -> Array:
    model = _make_model(signature, granularity, arrays, signature.y)
    with np.errstate(all="ignore"):
        (y,) = ReferenceEvaluator(model).run(None, {})
    return np.asarray(y)


def run_onnxruntime(signature: Signature, granularity: Granularity, arrays: list[Array]) -> Array:
    """Run on ONNX Runtime, whose Python interface lacks the narrow types: the model casts those to a type it has, which is exact."""
    model = _make_model(signature, granularity, arrays, _carrier(signature.y))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {})
    return np.asarray(y).astype(numpy_dtype(signature.y))


def _carrier(dtype: DType) -> DType:
    if dtype.is_float8:
        return DTYPES["float32"]
    if dtype.bits < 8:
        return DTYPES["int8" if dtype.min < 0 else "uint8"]
    return dtype


def _make_model(signature: Signature, granularity: Granularity, arrays: list[Array], result: DType) -> onnx.ModelProto:
    named = name_inputs(signature.op, arrays)
    domain = "" if signature.domain == "ai.onnx" else signature.domain
    node = onnx.helper.make_node(signature.op, list(named), ["y"], domain=domain)
    node.attribute.extend(onnx.helper.make_attribute(*attribute) for attribute in _attributes(signature, granularity).items())
    cast = onnx.helper.make_node("Cast", ["y"], ["result"], to=result.onnx) if result != signature.y else None
    output = onnx.helper.make_tensor_value_info("result" if cast else "y", result.onnx, arrays[0].shape)
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in named.items()]
    graph = onnx.helper.make_graph([node, *([cast] if cast else [])], "node", [], [output], constants)
    # com.microsoft has version 1 alone; its models need some version of ONNX beside it.
    imports = [("", 21), (domain, signature.version)] if domain else [("", signature.version)]
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(*pair) for pair in imports], ir_version=_IR_VERSION)


def _attributes(signature: Signature, granularity: Granularity) -> dict[str, int]:
    attributes = {}
    if not isinstance(granularity, PerTensor):
        attributes["axis"] = granularity.axis
    if granularity.kind == "blocked":
        attributes["block_size"] = granularity.block_size
    if signature.precision is not None:
        attributes["precision"] = signature.precision.onnx
    default = (DTYPES["uint8"] if not signature.zero_point else signature.y) if signature.is_quantize else signature.scale
    if signature.y != default:
        attributes["output_dtype"] = signature.y.onnx
    if not signature.saturate:
        attributes["saturate"] = 0
    return attributes
