"""A request: what to compile, from a user's words or from a sidecar, resolved and legal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final

from qgen.dtypes import EXACT
from qgen.errors import QgenError
from qgen.frontend.check_op import ENTRY_POINT
from qgen.ir.names import snake_case
from qgen.passes.realise import MODES
from qgen.passes.rename import is_reserved
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, check_shape, make_view, normalize_axis
from qgen.signatures import NEWEST_OPSET, Signature, opset_range, resolve_signature
from qgen.target import Target, load_target

_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NAME: Final = re.compile(r"[a-z0-9_]{1,128}")
_MAX_GROUP: Final = 3
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
    plain_scale: bool = False
    """Whether every scale meets what quick code asks of it, so that the kernel need not test it."""


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
    plain_scale: bool = False,
) -> Request:
    """Return the request that these words mean; raises `QgenError` where the operator, a shape or a choice does not exist."""
    granularity = PerTensor() if granularity is None else granularity
    _check_type("granularity", granularity, Granularity, "`per_tensor()`, `per_axis(axis)` or `blocked(axis, block_size)`")
    for argument, flag in (("zero_point", zero_point), ("saturate", saturate), ("plain_scale", plain_scale)):
        _check_type(argument, flag, bool, "True or False")
    for argument, text in (("numerics", numerics), ("target", target), ("entry_point", entry_point)):
        _check_type(argument, text, str, "a str")
    _check_type("name", name, str | None, "a str, or None")
    _check_type("group", group, int, "an int")
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
    return Request(signature, granularity, shape, numerics, load_target(target), name, entry_point, group, plain_scale)


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
            plain_scale=bool(sidecar.get("assumes")),
            **attributes,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        what = f"there is no `{error.args[0]}`" if isinstance(error, KeyError) else "a value is of another kind than it should be"
        raise QgenError(
            "QG106", f"the sidecar does not say what its kernel computes: {what}", hint="write it anew with `qgen emit`"
        ) from error


def _check_type(argument: str, value: object, wanted: type | UnionType, spelled: str) -> None:
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):  # a bool is an int, and no number of a group
        raise QgenError("QG107", f"`{argument}` cannot be of type `{type(value).__name__}`", hint=f"give {spelled}")


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
    return "_".join([*parts, request.mode, *(["plain"] if request.plain_scale else [])])


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"m{-value}"


def describe_request(request: Request) -> dict[str, Any]:
    """Return the operator as a sidecar has it."""
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
