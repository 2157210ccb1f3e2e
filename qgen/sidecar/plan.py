"""What a host does with a sidecar: from the shapes of the tensors to the sizes of buffers, the bytes of uniforms and the dispatches.

Nothing but the sidecar is read, so what works here works in any host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    have the constants of `on_empty`. `shapes` are those that the plan is for.
    """

    sizes: Mapping[str, int]
    uniforms: Mapping[str, bytes]
    passes: tuple[PassPlan, ...]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to dispatch."""
        return not self.passes


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A part of the tensors: where it begins in each of them, in bytes, and what is bound from there on and dispatched."""

    offsets: Mapping[str, int]
    plan: DispatchPlan


def plan_dispatch(sidecar: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> DispatchPlan:
    """Return sizes, uniforms and dispatches of the kernel that `sidecar` describes, for tensors of these logical shapes.

    `shapes` has each tensor that the formulas of the sidecar name; for qgen's own, that is each input. Raises `QgenError`: QG600 for a
    formula without a value, QG601 for what is no sidecar, QG602 for a constraint that does not hold, QG603 for a shape that is missing or
    is not the baked one, QG604 for a value that WebGPU does not take.
    """
    with _reading():
        return _plan(sidecar, shapes)


def plan_runs(sidecar: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], limit: int) -> tuple[RunPlan, ...] | None:
    """Return the runs that compute tensors of these shapes, which `plan_dispatch` takes, with bindings of at most `limit` bytes.

    They are None where the kernel computes tensors as a whole only, or no part is small enough. Raises as `plan_dispatch` does.
    """
    with _reading():
        whole, chunks = _plan(sidecar, shapes), sidecar["chunks"]
        if chunks is None:
            return None
        if whole.is_empty:
            return ()
        let = sidecar["let"] | chunks["let"] | {"limit": limit, "start": 0}
        count = Scope(shapes, let).value(chunks["count"])
        is_one = count <= chunks["most"] and all(size <= limit for size in whole.sizes.values())
        length = count if is_one else Scope(shapes, let).value(chunks["length"])
        if length == 0:
            return None
        starts = range(0, count, length)
        own = [{"start": start, chunks["count"]: min(length, count - start)} for start in starts]
        return tuple(_run(sidecar, whole, Scope(shapes, let | values)) for values in own)


@contextmanager
def _reading() -> Iterator[None]:
    """Raise what a malformed sidecar leads to as an error of ours."""
    try:
        yield
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
        return DispatchPlan(sizes, {}, (), shapes)
    return DispatchPlan(sizes, _uniforms(sidecar, sizes, scope), _passes(sidecar, sizes, scope), shapes)


def _run(sidecar: Mapping[str, Any], whole: DispatchPlan, scope: Scope) -> RunPlan:
    """Return the run whose first element and count `scope` has."""
    bits = {buffer["name"]: buffer["element"]["bits"] for buffer in sidecar["buffers"] if "element" in buffer}
    offsets, sizes = dict.fromkeys(whole.sizes, 0), dict(whole.sizes)
    for bind in sidecar["chunks"]["bind"]:
        first, count = scope.value(bind["first"]), scope.value(bind["count"])
        for name in bind["buffers"]:
            offsets[name] = first * bits[name] // 8
            sizes[name] = _size(name, _WORD_BYTES * -(-count * bits[name] // 32))
    return RunPlan(offsets, DispatchPlan(sizes, _uniforms(sidecar, sizes, scope), _passes(sidecar, sizes, scope), whole.shapes))


def _uniforms(sidecar: Mapping[str, Any], sizes: Mapping[str, int], scope: Scope) -> dict[str, bytes]:
    structs, uniforms = sidecar["structs"], [buffer for buffer in sidecar["buffers"] if buffer["role"] == "uniform"]
    return {buffer["name"]: _uniform(structs[buffer["struct"]], sizes[buffer["name"]], scope) for buffer in uniforms}


def _passes(sidecar: Mapping[str, Any], sizes: Mapping[str, int], scope: Scope) -> tuple[PassPlan, ...]:
    return tuple(_pass(entry, sizes, scope) for entry in sidecar["passes"])


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
