"""The evaluator: runs the LEGAL stage with NumPy, in lockstep, and traps what a WebGPU implementation would hide.

One array element is one invocation, a boolean mask is the control flow. It knows neither the oracle nor the passes,
so that either can be held against it.
"""

from qgen.evaluate.kernel import SLAB, FunctionResult, evaluate_function, evaluate_kernel, evaluate_program
from qgen.evaluate.machine import EvaluationError
from qgen.evaluate.model import IEEE, ArithmeticModel, Ieee
from qgen.evaluate.worst import Worst, worst_models

__all__ = [
    "IEEE",
    "SLAB",
    "ArithmeticModel",
    "EvaluationError",
    "FunctionResult",
    "Ieee",
    "Worst",
    "evaluate_function",
    "evaluate_kernel",
    "evaluate_program",
    "worst_models",
]
