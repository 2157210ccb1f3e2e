"""What a host does with a sidecar: from the shapes of the tensors to the sizes of buffers, the bytes of uniforms and the dispatches.

Nothing but the sidecar is read, so what works here works in any host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from qgen.errors import QgenError
from qgen.sidecar.formulas import Formula, Scope, print_formula

FORMAT: Final = "qgen.kernel"
FORMAT_VERSION: Final = 1

_WORD_BYTES: Final = 4
_MAX_UINT32: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Binding:
    """One resource of a pass; `access` is `read` or `read_write`, and `read` for a uniform."""

    group: int
    binding: int
    buffer: str
    address_space: str
    access: str


@dataclass(frozen=True, slots=True)
class PassPlan:
    """One dispatch: workgroups in x, y and z."""

    entry_point: str
    workgroup_size: tuple[int, int, int]
    bindings: tuple[Binding, ...]
    dispatch: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class DispatchPlan:
    """All that a host needs for these shapes.

    `sizes` are the bytes of each buffer that a pass may bind, uniforms included and ignored ones not; `uniforms` are the contents of the
    uniform buffers. An output of no elements leaves nothing to dispatch: then `passes` is empty, and other outputs
    have the constants of `on_empty`.
    """

    sizes: Mapping[str, int]
    uniforms: Mapping[str, bytes]
    passes: tuple[PassPlan, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to dispatch."""
        return not self.passes


def plan_dispatch(sidecar: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> DispatchPlan:
    """Return sizes, uniforms and dispatches of the kernel that `sidecar` describes, for tensors of these logical shapes.

    `shapes` has each tensor that the formulas of the sidecar name; for qgen's own, that is each input. Raises `QgenError`: QG600 for a
    formula without a value, QG601 for what is no sidecar, QG602 for a constraint that does not hold, QG603 for a shape that is missing or
    is not the baked one, QG604 for a value that WebGPU does not take.
    """
    try:
        return _plan(sidecar, shapes)
    except KeyError as error:
        raise _malformed(f"it has no `{error.args[0]}`") from error
    except (IndexError, TypeError, ValueError, AttributeError) as error:
        raise _malformed(f"{type(error).__name__}: {error}") from error


def _plan(sidecar: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> DispatchPlan:
    if sidecar["format"] != FORMAT or sidecar["format_version"] != FORMAT_VERSION:
        raise _malformed(f"it is `{sidecar['format']}` version {sidecar['format_version']}, not `{FORMAT}` version {FORMAT_VERSION}")
    scope = Scope(shapes, sidecar["let"])
    buffers = {buffer["name"]: buffer for buffer in sidecar["buffers"] if buffer["role"] != "ignored"}
    _check_shapes(sidecar, shapes)
    _check_constraints(sidecar["constraints"], scope)
    sizes = {name: _size(name, scope.value(buffer["size_bytes"])) for name, buffer in buffers.items()}
    if any(sizes[name] == 0 for name, buffer in buffers.items() if buffer["role"] == "output"):
        return DispatchPlan(sizes, {}, ())
    uniforms = {
        name: _uniform(sidecar["structs"][buffer["struct"]], sizes[name], scope)
        for name, buffer in buffers.items()
        if buffer["role"] == "uniform"
    }
    passes = tuple(_pass(entry, sizes, scope) for entry in sidecar["passes"])
    return DispatchPlan(sizes, uniforms, passes)


def _check_shapes(sidecar: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        if any(extent < 0 for extent in shape):
            raise QgenError(
                "QG603", f"the shape of `{name}` is {tuple(shape)}", hint="a shape is a tuple of integers that are not negative"
            )
    if sidecar["shape"] is None:
        return
    baked = tuple(sidecar["shape"])
    first = next(buffer["name"] for buffer in sidecar["buffers"] if buffer["role"] == "input")
    if first in shapes and tuple(shapes[first]) != baked:
        raise QgenError(
            "QG603",
            f"the kernel `{sidecar['name']}` is for `{first}` of shape {baked}, not {tuple(shapes[first])}",
            hint="emit it for this shape, or without a shape to serve every one",
        )


def _check_constraints(constraints: list[Formula], scope: Scope) -> None:
    for constraint in constraints:
        if not scope.value(constraint):
            raise QgenError(
                "QG602",
                f"the shapes do not meet the kernel's constraint `{print_formula(constraint)}`",
                hint="the shapes of scale and zero point follow from that of x and from the granularity",
            )


def _size(name: str, nbytes: int) -> int:
    if nbytes < 0 or nbytes % _WORD_BYTES:
        raise _refused(f"the buffer `{name}` would have {nbytes} bytes, which is not a number of words")
    return nbytes


def _uniform(struct: Mapping[str, Any], nbytes: int, scope: Scope) -> bytes:
    content = bytearray(nbytes)
    for field in struct["fields"]:
        value = scope.value(field["value"])
        if not 0 <= value <= _MAX_UINT32:
            raise _refused(f"the uniform `{field['name']}` would be {value}, which is no u32")
        if field["offset"] % _WORD_BYTES or field["offset"] + _WORD_BYTES > nbytes:
            raise _refused(f"the uniform `{field['name']}` at offset {field['offset']} does not lie in its {nbytes} bytes")
        content[field["offset"] : field["offset"] + _WORD_BYTES] = value.to_bytes(_WORD_BYTES, "little")
    return bytes(content)


def _pass(entry: Mapping[str, Any], sizes: Mapping[str, int], scope: Scope) -> PassPlan:
    bindings = tuple(
        Binding(bound["group"], bound["binding"], bound["buffer"], bound["address_space"], bound["access"]) for bound in entry["bindings"]
    )
    for bound in bindings:
        if bound.buffer not in sizes:
            raise _malformed(f"a pass binds `{bound.buffer}`, which no pass may bind")
        if sizes[bound.buffer] == 0:
            raise _refused(f"the buffer `{bound.buffer}` would have no bytes")
    x, y, z = (scope.value(count) for count in entry["dispatch"])
    if min(x, y, z) < 1:
        raise _refused(f"the pass `{entry['entry_point']}` would dispatch {x} × {y} × {z} workgroups")
    width, height, depth = entry["workgroup_size"]
    return PassPlan(entry["entry_point"], (width, height, depth), bindings, (x, y, z))


def _malformed(reason: str) -> QgenError:
    return QgenError("QG601", f"this is not a sidecar that qgen reads: {reason}", hint="write it anew with `qgen emit`")


def _refused(reason: str) -> QgenError:
    return QgenError("QG604", f"the sidecar asks for what WebGPU does not take: {reason}", hint="write it anew with `qgen emit`")
