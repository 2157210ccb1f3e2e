"""What a package holds: the operator, its variants, and the kernel of each combination of dtypes in each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from qgen.check import matrix_requests
from qgen.dtypes import DType
from qgen.errors import QgenError
from qgen.kernel import compile_request
from qgen.package.branches import Key
from qgen.request import Request
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.signatures import Signature
from qgen.signatures.tables import find_rows
from qgen.target import load_target

OPERATORS: Final = ("QuantizeLinear", "DequantizeLinear")
SINCE: Final = 23
"""The opset from which the operators compute as they do today: `precision`, `output_dtype`, the scale's type as that of the division."""

VARIABLES: Final = ("TQ", "TS", "TF", "reads_zero_point", "division", "saturates")
"""The variables of the templates: the quantized type, that of the scale, the other one; the rest is derived."""

WORKGROUP_SIZE: Final = 251
BLOCK_SIZE: Final = 1000003
"""Primes that stand in the texts for what the host sets; no kernel has them by itself, as tests hold for every text."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A template: its name, what it is for in words and as a Jinja test, and the granularity of its kernels."""

    id: str
    priority: int
    summary: str
    when: tuple[str, ...]
    granularity: Granularity


def variants(scale: str) -> tuple[Variant, ...]:
    """Return the variants; `scale` names the operator's scale. The one of the highest priority whose tests hold is taken."""
    return (
        Variant(
            "quant-linear-blocked-axis",
            30,
            "one scale for each block of `block_size` elements along `axis`",
            ("block_size > 0", f"rank({scale}) == rank(x)", "rank(x) >= 1"),
            Blocked(0, BLOCK_SIZE),
        ),
        Variant(
            "quant-linear-vec4",
            20,
            "one scale for the whole tensor; it is read once for all elements that an invocation computes",
            (f"numel({scale}) == 1", f"rank({scale}) <= 1 or block_size == 0"),
            PerTensor(),
        ),
        Variant(
            "quant-linear-scalar",
            10,
            "one scale for each index along `axis`",
            ("block_size == 0", f"rank({scale}) == 1", "rank(x) >= 1"),
            PerAxis(0),
        ),
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel of a variant: what its variables are, its text, and its sidecar."""

    key: Key
    wgsl: str
    sidecar: dict[str, Any]


Progress = Callable[[int, int], None]


def find_operator(name: str) -> str:
    """Return the operator called `name`; raises `QgenError` QG950 where there is none to package."""
    if name not in OPERATORS:
        raise QgenError("QG950", f"there is no package of `{name}`", hint=f"operators are {' and '.join(OPERATORS)}")
    return name


def quantized(signature: Signature) -> DType:
    """Return the type of the quantized tensor."""
    return signature.y if signature.is_quantize else signature.x


def variant_requests(op: str, variant: Variant, mode: str) -> list[Request]:
    """Return the requests of each kernel of a variant."""
    target = load_target(f"webgpu:workgroup_size={WORKGROUP_SIZE}")
    return [
        replace(request, granularity=variant.granularity, mode=mode, target=target)
        for request in matrix_requests()
        if request.signature.op == op and request.granularity.kind == variant.granularity.kind and _is_current(request.signature)
    ]


def _is_current(signature: Signature) -> bool:
    """Whether the newest version of the operator divides so: before `SINCE` the type of x decided, not that of the scale."""
    row = find_rows(signature.domain, signature.op)[-1]
    return signature.division in {row.division(signature.x, signature.scale, precision) for precision in row.precisions}


def compile_rows(requests: list[Request], show: Progress) -> list[Row]:
    """Return a kernel for each key, a zero point that is never read counting as none; `show` is called with how many requests are done."""
    rows: dict[Key, Row] = {}
    for number, request in enumerate(requests):
        kernel = compile_request(request)
        reads_zero_point = request.signature.zero_point and all(buffer["role"] != "ignored" for buffer in kernel.sidecar["buffers"])
        key = _key(request.signature, reads_zero_point=reads_zero_point)
        rows.setdefault(key, Row(key, kernel.wgsl, kernel.sidecar))
        show(number + 1, len(requests))
    return list(rows.values())


def _key(signature: Signature, *, reads_zero_point: bool) -> Key:
    real = signature.x if signature.is_quantize else signature.y
    division = "none" if signature.division is None else signature.division.name.lower()
    zero_point, saturates = ("yes" if flag else "no" for flag in (reads_zero_point, signature.saturate))
    return (quantized(signature).name, signature.scale.name, real.name, zero_point, division, saturates)
