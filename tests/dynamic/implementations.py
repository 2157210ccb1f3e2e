"""The two other implementations: onnx.reference and ONNX Runtime on the CPU with graph optimisation off."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnxruntime
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from tests.dynamic.kernels import OP

RESULTS = ("y", "y_scale", "y_zero_point")


def run_onnx_reference(x: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    with np.errstate(all="ignore"):
        return _named(list(ReferenceEvaluator(_model()).run(None, {"x": x})))


def run_onnxruntime(x: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    return _named(_session().run(None, {"x": x}))


def _named(values: list[Any]) -> dict[str, NDArray[Any]]:
    return {name: np.asarray(value) for name, value in zip(RESULTS, values, strict=True)}


def _model() -> onnx.ModelProto:
    types = (onnx.TensorProto.UINT8, onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8)
    outputs = [onnx.helper.make_tensor_value_info(name, type_, None) for name, type_ in zip(RESULTS, types, strict=True)]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([onnx.helper.make_node(OP, ["x"], list(RESULTS))], "node", [x], outputs)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 11)], ir_version=10)


@cache
def _session() -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(_model().SerializeToString(), options, providers=["CPUExecutionProvider"])
