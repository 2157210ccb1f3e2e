"""The whole compiler on one screen: a request to its WGSL and sidecar.

    formula --check--> CHECKED --passes--> LEGAL --emit--> text, sidecar

Start reading here; `qgen/passes/pipeline.py` has the passes in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from qgen.dtypes import DType, Exact
from qgen.emit.module import ModuleSpec, emit_module
from qgen.errors import QgenError, Span
from qgen.formulas import find_operator
from qgen.frontend.check_op import ENTRY_POINT, Binding, check_op
from qgen.ir.program import Program
from qgen.numerics.library import is_conditional
from qgen.passes.discharge import Condition
from qgen.passes.pipeline import Variant, lower_program, scale_condition
from qgen.passes.plan import Plan
from qgen.request import Request, describe_request, readable_name
from qgen.shapes import Blocked, PerAxis, PerTensor, normalize_axis
from qgen.sidecar.assumption import Assumption
from qgen.sidecar.build import SidecarSpec, build_sidecar
from qgen.signatures import NEWEST_OPSET, ONNX, Signature, opset_range, resolve_signature

Observer = Callable[[str, Program], None]

HASH_DIGITS: Final = 8


@dataclass(frozen=True)
class Compiled:
    """What came out: the texts, and the programs they were made from.

    `request` is canonical: equal texts have equal requests, but for the name.
    """

    name: str
    wgsl: str
    request: Request
    checked: Program
    legal: Program
    plans: tuple[Plan, ...]
    """The plan of each kernel of `legal`."""
    given_sidecar: dict[str, Any] | None = None
    """The sidecar that a stored kernel came with."""

    @cached_property
    def sidecar(self) -> dict[str, Any]:
        """How a host binds and dispatches the kernel, made when it is first asked for."""
        if self.given_sidecar is not None:
            return self.given_sidecar
        request = self.request
        spec = SidecarSpec(
            name=self.name,
            checked=self.checked,
            program=self.legal,
            plans=self.plans,
            shape=request.shape,
            mode=request.mode,
            target=request.target,
            group=request.group,
            op=describe_request(request),
            uses_native=_uses_native(self.legal),
            sha256=_digest(self.wgsl),
            assumption=find_assumption(request),
        )
        return build_sidecar(spec)


def compile_kernel(request: Request, observe: Observer | None = None) -> Compiled:
    """Return the kernel of `request`; `observe` is called with the name of each pass and the program it made."""
    request = canonical_request(request)
    signature = request.signature
    checked = check_signature(signature)
    variant = Variant(request.mode, request.granularity, request.shape, request.target, request.plain_scale)
    try:
        legal, plans = lower_program(_with_entry_point(checked, request.entry_point), variant, observe)
    except QgenError as error:
        if error.source is None and isinstance(error.place, Span):
            error.source = find_operator(signature.op)[0].text
        raise
    assumption = find_assumption(request)
    assumes = None if assumption is None else assumption.condition
    native = _uses_native(legal)
    wgsl = emit_module(ModuleSpec(legal, checked, plans, request.shape, request.mode, native, request.target, request.group, assumes))
    name = request.name or f"{readable_name(request)}_{_digest(wgsl)[:HASH_DIGITS]}"
    return Compiled(name, wgsl, request, checked, legal, plans)


def _uses_native(program: Program) -> bool:
    """Whether native float arithmetic decides bits."""
    return any(is_conditional(function.name) for function in program.functions)


def _digest(wgsl: str) -> str:
    return hashlib.sha256(wgsl.encode()).hexdigest()


def canonical_request(request: Request) -> Request:
    """Return the request by the newest opset that means the same, so that equal kernels have equal sidecars whoever asked for them."""
    given = request.signature
    kind = request.granularity.kind
    last = opset_range(given, kind)[1] if given.domain == ONNX else NEWEST_OPSET

    def resolve(precision: object) -> Signature:
        return resolve_signature(
            given.op,
            x=given.x,
            scale=given.scale,
            y=given.y,
            zero_point=given.zero_point,
            opset=last,
            precision=precision,
            saturate=given.saturate,
            granularity_kind=kind,
        )

    newest = resolve(None)
    if newest.division != given.division:
        newest = resolve(given.division)
    granularity = request.granularity
    if request.shape is not None and not isinstance(granularity, PerTensor):
        axis = normalize_axis(granularity.axis, len(request.shape))
        granularity = PerAxis(axis) if isinstance(granularity, PerAxis) else Blocked(axis, granularity.block_size)
    plain_scale = request.plain_scale and _condition(newest, request.mode) is not None
    return replace(request, signature=newest, granularity=granularity, plain_scale=plain_scale)


def find_condition(request: Request) -> Condition | None:
    """Return what the quick code of a kernel asks of every scale, whatever x is; None where it asks nothing, or there is no quick code."""
    return _condition(canonical_request(request).signature, request.mode)


@lru_cache(maxsize=256)
def _condition(signature: Signature, mode: str) -> Condition | None:
    return scale_condition(check_signature(signature), mode)


@lru_cache(maxsize=256)
def _assumption(signature: Signature, mode: str) -> Assumption | None:
    from qgen.plain import make_assumption  # numpy is not needed to emit a kernel that assumes nothing

    condition = _condition(signature, mode)
    return None if condition is None else make_assumption(condition)


def find_assumption(request: Request) -> Assumption | None:
    """Return what the kernel of a canonical request relies on of an input's values."""
    return _assumption(request.signature, request.mode) if request.plain_scale else None


@lru_cache(maxsize=1024)
def check_signature(signature: Signature) -> Program:
    """Return the CHECKED program of a signature."""
    source, op = find_operator(signature.op)
    absent = frozenset() if signature.zero_point else frozenset(operand.name for operand in op.operands if operand.default is not None)
    attributes: dict[str, DType | Exact | bool] = {}
    if signature.division is not None:
        attributes = {"precision": signature.division, "saturate": signature.saturate}
    dtypes = {"X": signature.x, "S": signature.scale, "Y": signature.y}
    return check_op(source, op, Binding(dtypes, attributes, absent))


def _with_entry_point(program: Program, name: str) -> Program:
    if name == ENTRY_POINT:
        return program
    (kernel,) = program.kernels
    return Program(program.name, program.stage, program.operands, (type(kernel)(name, kernel.body),))
