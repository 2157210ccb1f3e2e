"""The kernel of the self-test: the four f32 operations on pairs of operands, each between bitcasts and with nothing around it.

For an invocation `i`:

    store sum[i] = bitcast<u32>(bitcast<f32>(a[i]) + bitcast<f32>(b[i]))

and so for `difference`, `product` and `quotient`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from qgen.conform.bounds import OPERATIONS
from qgen.dtypes import DTYPES
from qgen.emit.plain import emit_plain
from qgen.ir import nodes as ir
from qgen.ir.program import Kernel, Operand, Program, Stage
from qgen.ir.types import Scalar
from qgen.ir.verify import verify
from qgen.sidecar.plan import FORMAT, FORMAT_VERSION

NAME: Final = "selftest"
OPERANDS: Final = ("a", "b")

_WORKGROUP: Final = 64
_HEADER: Final = (
    "What f32 operations of this device give: a and b, and their sum, difference, product and quotient, as words.",
    "The mode `exact` relies on + - * of normal numbers with a normal result rounding to nearest even, and on / within 2.5 ULP.",
)


@dataclass(frozen=True, slots=True)
class Probe:
    """The kernel for pairs of a fixed number: its program, and its texts as those of any kernel."""

    program: Program
    wgsl: str
    sidecar: dict[str, Any]


def build_probe(count: int) -> Probe:
    """Return the kernel for `count` pairs."""
    program = verify(_program(count), "the self-test")
    wgsl = emit_plain(program, (*_HEADER, "", f"Dispatch: {-(-count // _WORKGROUP)} workgroups of {_WORKGROUP}; an invocation has a pair."))
    return Probe(program, wgsl, _sidecar(program, count, hashlib.sha256(wgsl.encode()).hexdigest()))


def _program(count: int) -> Program:
    f32 = DTYPES["float32"]
    index = ir.Invocation("x")
    a, b = (ir.Bitcast(ir.Load(name, index), Scalar.F32) for name in OPERANDS)
    stores = [ir.Store(name, index, ir.Bitcast(ir.Binary(operator, a, b, Scalar.F32), Scalar.U32)) for name, operator in OPERATIONS.items()]
    past = ir.If(ir.Binary(">=", index, ir.Literal(count, Scalar.U32), Scalar.BOOL), (ir.Return(None),))
    operands = (*(Operand(name, f32) for name in OPERANDS), *(Operand(name, f32, is_output=True) for name in OPERATIONS))
    return Program(NAME, Stage.LEGAL, operands, (Kernel("main", (past, *stores), _WORKGROUP),))


def _sidecar(program: Program, count: int, sha256: str) -> dict[str, Any]:
    element = {"dtype": "float32", "bits": 32, "period": [1, 1], "order": "lsb_first"}
    roles = {operand.name: ("output", "read_write") if operand.is_output else ("input", "read") for operand in program.operands}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": NAME,
        "op": {"domain": "qgen", "type": "SelfTest", "opset": [1, 1], "attributes": {}},
        "numerics": {"mode": "fast", "relies_on": [], "max_error": 2.5},
        "target": {"name": "webgpu", "options": {}},
        "shape": [count],
        "buffers": [
            {"name": name, "role": role, "element": element, "count": "N", "size_bytes": ["mul", 4, "N"]}
            for name, (role, _) in roles.items()
        ],
        "structs": {},
        "let": {"N": ["numel", OPERANDS[0]]},
        "passes": [
            {
                "wgsl": {"file": f"{NAME}.wgsl", "sha256": sha256},
                "entry_point": program.kernels[0].name,
                "workgroup_size": [_WORKGROUP, 1, 1],
                "bindings": [
                    {
                        "group": 0,
                        "binding": number,
                        "buffer": name,
                        "address_space": "storage",
                        "access": access,
                        "wgsl_type": "array<u32>",
                    }
                    for number, (name, (_, access)) in enumerate(roles.items())
                ],
                "dispatch": [["ceil_div", "N", _WORKGROUP], 1, 1],
            }
        ],
        "requires": {
            "features": [],
            "language_features": [],
            "limits": {
                "maxComputeInvocationsPerWorkgroup": _WORKGROUP,
                "maxComputeWorkgroupSizeX": _WORKGROUP,
                "maxStorageBuffersPerShaderStage": len(roles),
            },
        },
        "constraints": [["eq", ["numel", OPERANDS[1]], "N"]],
        "chunks": None,
    }
