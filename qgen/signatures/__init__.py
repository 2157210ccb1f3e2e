"""The operators' opset tables, and the resolution of a request into one legal signature.

`tables` holds what each version of an operator allows, `resolve` turns a request into a `Signature` or says why not, `matrix` walks all of
them and tells which ones are the same kernel.
"""

from qgen.signatures.matrix import DistinctKey, distinct_key, enumerate_signatures, opset_range
from qgen.signatures.resolve import Signature, resolve_signature, signature_warnings
from qgen.signatures.tables import (
    NEWEST_OPSET,
    OLDEST_OPSET,
    ONNX,
    TABLES,
    Division,
    GranularityKind,
    Row,
    find_rows,
)

__all__ = [
    "NEWEST_OPSET",
    "OLDEST_OPSET",
    "ONNX",
    "TABLES",
    "DistinctKey",
    "Division",
    "GranularityKind",
    "Row",
    "Signature",
    "distinct_key",
    "enumerate_signatures",
    "find_rows",
    "opset_range",
    "resolve_signature",
    "signature_warnings",
]
