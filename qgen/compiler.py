"""The whole compiler on one screen: a request to its WGSL and sidecar.

    formula --check--> CHECKED --passes--> LEGAL --emit--> text, sidecar

Start reading here; `qgen/passes/pipeline.py` has the passes in order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from qgen.dtypes import EXACT, DType, Exact
from qgen.emit.module import ModuleSpec, emit_module
from qgen.errors import QgenError, Span
from qgen.formulas import find_operator
from qgen.frontend.check_op import ENTRY_POINT, Binding, check_op
from qgen.ir.names import snake_case
from qgen.ir.program import Program
from qgen.numerics.library import is_conditional
from qgen.passes.pipeline import Variant, lower_program
from qgen.passes.plan import Plan
from qgen.passes.realise import MODES
from qgen.passes.rename import is_reserved
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, check_shape, make_view, normalize_axis
from qgen.sidecar.build import SidecarSpec, build_sidecar
from qgen.signatures import NEWEST_OPSET, ONNX, Signature, opset_range, resolve_signature
from qgen.target import Target, load_target

Observer = Callable[[str, Program], None]

_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NAME: Final = re.compile(r"[a-z0-9_]{1,128}")
_MAX_GROUP: Final = 3
HASH_DIGITS: Final = 8
_LONGEST_SHAPE: Final = 32


@dataclass(frozen=True, slots=True)
class Request:
    """What to compile; everything is resolved and legal. `shape` None leaves the shape to uniforms."""

    signature: Signature
    granularity: Granularity
    shape: tuple[int, ...] | None
    mode: str
    target: Target
    name: str | None = None
    entry_point: str = ENTRY_POINT
    group: int = 0


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
    given_sidecar: dict[str, Any] | None = None
    """The sidecar that a stored kernel came with."""

    @cached_property
    def sidecar(self) -> dict[str, Any]:
        """How a host binds and dispatches the kernel, made when it is first asked for."""
        if self.given_sidecar is not None:
            return self.given_sidecar
        request = self.request
        signature = request.signature
        spec = SidecarSpec(
            name=self.name,
            checked=self.checked,
            program=self.legal,
            plans=self.plans,
            shape=request.shape,
            mode=request.mode,
            target=request.target,
            group=request.group,
            op=_describe(request),
            division=signature.division if isinstance(signature.division, DType) else None,
            uses_native=_uses_native(self.legal),
            sha256=_digest(self.wgsl),
        )
        return build_sidecar(spec)


def make_request(
    op: str,
    *,
    x: object,
    scale: object = None,
    y: object = None,
    zero_point: bool = False,
    granularity: Granularity | None = None,
    shape: tuple[int, ...] | None = None,
    opset: int = NEWEST_OPSET,
    precision: object = None,
    saturate: bool = True,
    domain: str = "ai.onnx",
    numerics: str = "exact",
    target: str = "webgpu",
    name: str | None = None,
    entry_point: str = ENTRY_POINT,
    group: int = 0,
) -> Request:
    """Return the request that these words mean; raises `QgenError` where the operator, a shape or a choice does not exist."""
    granularity = PerTensor() if granularity is None else granularity
    axis = granularity.axis if isinstance(granularity, PerAxis) else 1
    if shape is not None:
        shape = check_shape(shape)
        make_view(granularity, shape)
        axis = normalize_axis(axis, len(shape)) if isinstance(granularity, PerAxis) else axis
    signature = resolve_signature(
        op,
        x=x,
        scale=scale,
        y=y,
        zero_point=zero_point,
        opset=opset,
        precision=precision,
        saturate=saturate,
        domain=domain,
        granularity_kind=granularity.kind,
        axis=axis,
    )
    if numerics not in MODES:
        raise QgenError("QG104", f"there is no numerics mode `{numerics}`", hint=f"modes are {', '.join(MODES)}")
    if not _IDENTIFIER.fullmatch(entry_point) or is_reserved(entry_point):
        raise QgenError(
            "QG105", f"`{entry_point}` cannot name an entry point", hint="use letters, digits and _, and no reserved word of WGSL"
        )
    if name is not None and not _NAME.fullmatch(name):
        raise QgenError("QG105", f"`{name}` cannot name a kernel", hint="use at most 128 of a-z, 0-9 and _")
    if not 0 <= group <= _MAX_GROUP:
        raise QgenError("QG105", f"bind group {group} does not exist", hint=f"WebGPU's default limits have groups 0 to {_MAX_GROUP}")
    return Request(signature, granularity, shape, numerics, load_target(target), name, entry_point, group)


def compile_kernel(request: Request, observe: Observer | None = None) -> Compiled:
    """Return the kernel of `request`; `observe` is called with the name of each pass and the program it made."""
    request = canonical_request(request)
    signature = request.signature
    checked = check_signature(signature)
    variant = Variant(request.mode, request.granularity, request.shape, request.target)
    try:
        legal, plans = lower_program(_with_entry_point(checked, request.entry_point), variant, observe)
    except QgenError as error:
        if error.source is None and isinstance(error.place, Span):
            error.source = find_operator(signature.op)[0].text
        raise
    spec = ModuleSpec(legal, checked, plans, request.shape, request.mode, _uses_native(legal), request.target, request.group)
    wgsl = emit_module(spec)
    name = request.name or f"{readable_name(request)}_{_digest(wgsl)[:HASH_DIGITS]}"
    return Compiled(name, wgsl, request, checked, legal, plans)


def _uses_native(program: Program) -> bool:
    """Whether native float arithmetic decides bits."""
    return any(is_conditional(function.name) for function in program.functions)


def _digest(wgsl: str) -> str:
    return hashlib.sha256(wgsl.encode()).hexdigest()


def request_of_sidecar(sidecar: dict[str, Any]) -> Request:
    """Return the request that a sidecar of qgen's describes, so that its kernel can be compiled again.

    Raises `QgenError` as `make_request` does, QG106 where the sidecar lacks what it needs.
    """
    try:
        op, buffers, entry = sidecar["op"], sidecar["buffers"], sidecar["passes"][-1]
        attributes = dict(op["attributes"])
        inputs = [buffer["element"]["dtype"] for buffer in buffers if buffer["role"] in {"input", "ignored"}]
        outputs = [buffer["element"]["dtype"] for buffer in buffers if buffer["role"] == "output"]
        axis, block_size = attributes.pop("axis", None), attributes.pop("block_size", None)
        granularity: Granularity = PerTensor() if axis is None else PerAxis(axis) if block_size is None else Blocked(axis, block_size)
        options = ",".join(f"{key}={value}" for key, value in sidecar["target"]["options"].items())
        target = sidecar["target"]["name"] + (f":{options}" if options else "")
        return make_request(
            op["type"],
            x=inputs[0],
            scale=[*inputs[1:], *outputs[1:]][0],
            y=outputs[0],
            zero_point=len(inputs) == len(("x", "scale", "zero point")),
            granularity=granularity,
            shape=None if sidecar["shape"] is None else tuple(sidecar["shape"]),
            opset=op["opset"][1],
            domain=op["domain"],
            numerics=sidecar["numerics"]["mode"],
            target=target,
            name=sidecar["name"],
            entry_point=entry["entry_point"],
            group=entry["bindings"][0]["group"],
            **attributes,
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise QgenError(
            "QG106", f"the sidecar does not say what its kernel computes: {error}", hint="write it anew with `qgen emit`"
        ) from error


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
    return Request(newest, granularity, request.shape, request.mode, request.target, request.name, request.entry_point, request.group)


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


def readable_name(request: Request) -> str:
    """Return the parts of a name that say what a request computes."""
    signature = request.signature
    parts = [snake_case(signature.op), signature.x.short, signature.scale.short, signature.y.short]
    if signature.zero_point:
        parts.append("zp")
    if signature.division is EXACT:
        parts += ["div", "exact"]
    elif signature.precision is not None:
        parts += ["div", signature.precision.short]
    if not signature.saturate:
        parts.append("unsaturated")
    granularity = request.granularity
    match granularity:
        case PerTensor():
            pass
        case PerAxis(axis):
            parts.append(f"axis{_number(axis)}")
        case Blocked(axis, block_size):
            parts.append(f"axis{_number(axis)}_block{block_size}")
    if request.shape is not None:
        dims = "x".join(str(dim) for dim in request.shape) or "scalar"
        parts.append(dims if len(dims) <= _LONGEST_SHAPE else f"rank{len(request.shape)}")
    return "_".join([*parts, request.mode])


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"m{-value}"


def _describe(request: Request) -> dict[str, Any]:
    signature, granularity = request.signature, request.granularity
    attributes: dict[str, Any] = {}
    if not isinstance(granularity, PerTensor):
        attributes["axis"] = granularity.axis
    if isinstance(granularity, Blocked):
        attributes["block_size"] = granularity.block_size
    if signature.precision is not None:
        attributes["precision"] = signature.precision.name
    if not signature.saturate:
        attributes["saturate"] = False
    first, last = opset_range(signature, granularity.kind)
    return {"domain": signature.domain, "type": signature.op, "opset": [first, last], "attributes": attributes}
