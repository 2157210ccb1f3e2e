"""Holds kernels against the oracle, bit for bit, on random and edge inputs.

`inputs` makes the inputs and `shapes` the shapes, `compare` runs one kernel on one device, `matrix` lists every kernel before shapes, and
`sweep` checks all of them.
"""

from qgen.check.compare import CheckResult, CounterExample, check_kernel
from qgen.check.edges import edge_codes
from qgen.check.inputs import make_inputs
from qgen.check.matrix import kernel_variants, matrix_requests
from qgen.check.resume import ResumeFile
from qgen.check.shapes import check_shapes
from qgen.check.sweep import Outcome, Shard, Summary, check_text, parse_outcome, parse_shard, sweep

__all__ = [
    "CheckResult",
    "CounterExample",
    "Outcome",
    "ResumeFile",
    "Shard",
    "Summary",
    "check_kernel",
    "check_shapes",
    "check_text",
    "edge_codes",
    "kernel_variants",
    "make_inputs",
    "matrix_requests",
    "parse_outcome",
    "parse_shard",
    "sweep",
]
