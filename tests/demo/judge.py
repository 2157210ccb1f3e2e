"""The demo's work on one bundle: every kernel before both compilers, every node's kernel run and held against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper

from qgen.arrays import to_codes
from qgen.importer import Bundle, NodeRecord
from qgen.kernel import Kernel
from qgen.validate import Report, validate_texts
from tests.demo.model import seeded_input

Array = NDArray[Any]
Progress = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a model for one input: initialisers, and what ONNX Runtime computed for the operands and results of the nodes."""

    arrays: Mapping[str, Array]

    def inputs(self, node: NodeRecord, kernel: Kernel) -> dict[str, Array]:
        """Return the inputs of a node's kernel."""
        return {operand: self.arrays[node.tensors[operand]] for operand in kernel.inputs}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running nodes showed: how many, their elements, those that differ from the oracle, and those where ONNX Runtime does."""

    nodes: int = 0
    elements: int = 0
    mismatches: int = 0
    runtime_differs: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.nodes + other.nodes,
            self.elements + other.elements,
            self.mismatches + other.mismatches,
            self.runtime_differs + other.runtime_differs,
        )


def compute_values(path: Path, nodes: Iterable[NodeRecord]) -> Values:
    """Return every operand and result of `nodes`, in the main graph of a model, for one seeded input, as ONNX Runtime has them."""
    model = onnx.load(path)
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    (image,) = model.graph.input
    arrays[image.name] = seeded_input()
    wanted = sorted({name for node in nodes for name in node.tensors.values()} - arrays.keys())
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    options = onnxruntime.SessionOptions()
    # The nodes as they stand: optimisation would fuse them into integer kernels.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(wanted, {image.name: arrays[image.name]})
    return Values(arrays | dict(zip(wanted, results, strict=True)))


def validate_kernels(kernels: Iterable[Kernel], progress: Progress) -> dict[str, list[Report]]:
    """Return the reports on every distinct text, by the text: naga's, then Tint's."""
    names = {kernel.wgsl: kernel.name for kernel in kernels}
    reports = {}
    for wgsl, name in names.items():
        reports[wgsl] = validate_texts([(f"{name}.wgsl", wgsl)], engine="all")
        progress()
    return reports


def run_node(node: NodeRecord, kernel: Kernel, values: Values, device: str) -> Outcome:
    """Run a node's kernel on `device` and compare it with the oracle, and the oracle with ONNX Runtime, code by code."""
    inputs = values.inputs(node, kernel)
    (result,) = kernel.run(inputs, device=device).values()
    (right,) = kernel.reference(inputs).values()
    y = kernel.request.signature.y
    wanted = to_codes(right, y)
    mismatches = int(np.count_nonzero(to_codes(result, y) != wanted))
    differs = int(np.count_nonzero(to_codes(values.arrays[node.tensors["y"]], y) != wanted))
    return Outcome(1, right.size, mismatches, differs)


def run_nodes(bundle: Bundle, values: Values, device: str, progress: Progress) -> Outcome:
    """Run every node of a bundle that has a kernel."""
    outcome = Outcome()
    for node in bundle.nodes:
        if node.kernel is not None:
            outcome += run_node(node, bundle.kernels[node.kernel], values, device)
        progress()
    return outcome
