"""ONNX models in, kernels out: every QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear node of a model, wherever it stands.

`read` makes a checked model of a file, `infer` types its values, `walk` finds the nodes, `nodes` says what each one means, `bundle` holds
the kernels and saves them. A file that is at fault is one `QgenError`; a node that is at fault is left out with its reason.
"""

from qgen.importer.bundle import Bundle, NodeRecord, Reason
from qgen.importer.load import load_bundle

__all__ = ["Bundle", "NodeRecord", "Reason", "load_bundle"]
