"""The sidecar of a kernel: everything a host needs to bind and dispatch it, as data (the format's rules are in schema.json)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, assert_never

from qgen.ir import nodes as ir
from qgen.ir.program import Kernel, Operand, Program
from qgen.ir.rewrite import walk_body, walk_stmts
from qgen.passes.legalise import PACKED_4X8
from qgen.passes.plan import MAX_ELEMENTS, Plan
from qgen.shapes import Blocked, PerAxis, PerTensor
from qgen.sidecar.assumption import Assumption, assumes
from qgen.sidecar.chunks import build_chunks
from qgen.sidecar.error import fast_error
from qgen.sidecar.formulas import Formula
from qgen.sidecar.plan import FORMAT, FORMAT_VERSION
from qgen.target import Target

NEAREST_EVEN: Final = "f32 operations + - * on normal numbers with a normal result round to nearest even"
DOMAIN: Final = (
    "the scale, and x / scale or x * scale, are normal f32 numbers well inside the range, before and after a conversion to the type of the "
    "division, and the quotient is below 2^16; or x is zero"
)

_WORD_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class SidecarSpec:
    """What a sidecar describes. `checked` has the operands by the formula's names; the bindings are numbered in their order."""

    name: str
    checked: Program
    program: Program
    plans: tuple[Plan, ...]
    shape: tuple[int, ...] | None
    mode: str
    target: Target
    group: int
    op: dict[str, Any]
    uses_native: bool
    """Whether native float arithmetic decides bits."""
    sha256: str
    assumption: Assumption | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the kernel that computes elements, the last."""
        return self.plans[-1]


def build_sidecar(spec: SidecarSpec) -> dict[str, Any]:
    """Return the sidecar; keys are always in the same order, and nothing volatile is among the values."""
    operands = _named_operands(spec)
    buffers = [_buffer(name, operand) for name, operand in operands]
    bound = [(name, operand) for name, operand in operands if not operand.is_ignored]
    bindings = {operand.name: _binding(spec, number, name, operand) for number, (name, operand) in enumerate(bound)}
    params = {
        "group": spec.group,
        "binding": len(bindings),
        "buffer": "params",
        "address_space": "uniform",
        "access": "read",
        "wgsl_type": "Params",
    }
    used_bindings = [_bindings_of(kernel, bindings, params) for kernel in spec.program.kernels]
    structs: dict[str, Any] = {}
    if spec.program.uniforms:
        size = _WORD_BYTES * len(spec.program.uniforms)
        structs["Params"] = {"size": size, "align": _WORD_BYTES, "fields": _fields(spec)}
        buffers.append({"name": "params", "role": "uniform", "struct": "Params", "size_bytes": size})
    target_name, _, options = spec.target.name.partition(":")
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": spec.name,
        "op": spec.op,
        "numerics": _numerics(spec),
        "target": {"name": target_name, "options": dict(_option(option) for option in options.split(",") if option)},
        "shape": None if spec.shape is None else list(spec.shape),
        "buffers": buffers,
        "structs": structs,
        "let": _lets(spec),
        "passes": [
            {
                "wgsl": {"file": f"{spec.name}.wgsl", "sha256": spec.sha256},
                "entry_point": kernel.name,
                "workgroup_size": [plan.workgroup_size, 1, 1],
                "bindings": used,
                "dispatch": [f"{prefix}GX", ["ceil_div", f"{prefix}G", f"{prefix}GX"], 1],
            }
            for kernel, plan, prefix, used in zip(spec.program.kernels, spec.plans, _prefixes(spec), used_bindings, strict=True)
        ],
        "requires": {
            "features": list(spec.target.features),
            "language_features": _language_features(spec.program),
            "limits": {
                "maxComputeInvocationsPerWorkgroup": spec.plan.workgroup_size,
                "maxComputeWorkgroupSizeX": spec.plan.workgroup_size,
                "maxComputeWorkgroupsPerDimension": spec.target.max_workgroups_per_dimension,
                "maxStorageBuffersPerShaderStage": max(sum(binding is not params for binding in used) for used in used_bindings),
            },
        },
        "constraints": _constraints(spec),
        "chunks": _chunks(spec),
        "on_empty": {operand.name: operand.on_empty for operand in spec.checked.outputs if operand.on_empty is not None},
        **assumes(spec.assumption),
    }


def _named_operands(spec: SidecarSpec) -> list[tuple[str, Operand]]:
    """Return the operands of the text with the names that the formula gave them; scratch ones have no other name."""
    names = iter(spec.checked.operands)
    return [(operand.name if operand.is_scratch else next(names).name, operand) for operand in spec.program.operands]


def _bindings_of(kernel: Kernel, bindings: dict[str, dict[str, Any]], params: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the bindings of the buffers that an entry point loads from or stores to, and of the parameters where it reads one."""
    used = {stmt.buffer for stmt in walk_stmts(kernel.body) if isinstance(stmt, ir.Store | ir.StoreVector | ir.AtomicMax)}
    has_params = False
    for node in walk_body(kernel.body):
        if isinstance(node, ir.Load | ir.LoadVector):
            used.add(node.buffer)
        elif isinstance(node, ir.Uniform):
            has_params = True
    found = [binding for name, binding in bindings.items() if name in used]
    return [*found, params] if has_params else found


def _prefixes(spec: SidecarSpec) -> list[str]:
    """Return what each kernel's names in `let` begin with: `R` where elements are reduced, `S` where it works on groups."""
    roles = {"reduce_units": "R", "group_units": "S"}
    return [roles.get(plan.names.units, "") for plan in spec.plans]


def _numerics(spec: SidecarSpec) -> dict[str, Any]:
    """Return what the kernel relies on, and how far it may be off, in steps from one code of the result to the next."""
    if not spec.uses_native:
        return {"mode": spec.mode, "relies_on": [], "max_error": 0}
    if spec.mode == "fast":
        return {"mode": spec.mode, "relies_on": [NEAREST_EVEN, DOMAIN], "max_error": fast_error(spec.checked, spec.program)}
    return {"mode": spec.mode, "relies_on": [NEAREST_EVEN], "max_error": 0}


def _option(text: str) -> tuple[str, int]:
    key, _, value = text.partition("=")
    return key, int(value)


def _buffer(name: str, operand: Operand) -> dict[str, Any]:
    dtype = operand.dtype
    count = "S" if operand.per_group else "N"
    role = "scratch" if operand.is_scratch else "output" if operand.is_output else "ignored" if operand.is_ignored else "input"
    element = {"dtype": dtype.name, "bits": dtype.bits, "period": [dtype.layout.elements, dtype.layout.words], "order": "lsb_first"}
    if operand.is_scratch:
        element["dtype"] = "uint32"
    size: Formula = ["mul", _WORD_BYTES, ["ceil_div", ["mul", dtype.bits, count], 32]]
    return {"name": name, "role": role, "element": element, "count": count, "size_bytes": size}


def _binding(spec: SidecarSpec, number: int, name: str, operand: Operand) -> dict[str, Any]:
    return {
        "group": spec.group,
        "binding": number,
        "buffer": name,
        "address_space": "storage",
        "access": "read_write" if operand.is_output else "read",
        "wgsl_type": _words_type(spec, operand),
    }


def _words_type(spec: SidecarSpec, operand: Operand) -> str:
    if operand.is_scratch:
        return "array<atomic<u32>>"
    return "array<vec4u>" if operand.name in spec.program.wide else "array<u32>"


def _first_input(spec: SidecarSpec) -> str:
    return next(operand.name for operand in spec.checked.operands if not operand.per_group)


def _lets(spec: SidecarSpec) -> dict[str, Formula]:
    """Return N elements, S groups, and the dispatch: U invocations in G workgroups, GX of them a row.

    Only N (per-tensor), or outer, axis and inner, read shapes; everything else follows from these.
    """
    x = _first_input(spec)
    lets: dict[str, Formula] = {}
    granularity = spec.plan.granularity
    match granularity:
        case PerTensor():
            lets |= {"N": ["numel", x], "S": 1}
        case PerAxis(axis):
            lets |= _view(x, axis) | {"S": "axis"}
        case Blocked(axis, block_size):
            lets |= _view(x, axis) | {"blocks": ["ceil_div", "axis", block_size], "S": ["mul", "outer", "blocks", "inner"]}
        case _:
            assert_never(granularity)
    if "axis_start" in spec.program.uniforms:
        lets["axis_start"] = 0
    for plan, prefix in reversed(list(zip(spec.plans, _prefixes(spec), strict=True))):
        lets[f"{prefix}U"] = ["ceil_div", "S" if prefix == "S" else "N", plan.lanes]
        lets[f"{prefix}G"] = ["ceil_div", f"{prefix}U", plan.workgroup_size]
        lets[f"{prefix}GX"] = ["min", f"{prefix}G", spec.target.max_workgroups_per_dimension]
    return lets


def _language_features(program: Program) -> list[str]:
    """Return the features of WGSL, of those that an implementation may lack, that the text of a program uses."""
    builtins = {node.name for kernel in program.kernels for node in walk_body(kernel.body) if isinstance(node, ir.Builtin)}
    return [PACKED_4X8] if "unpack4xU8" in builtins else []


def _view(x: str, axis: int) -> dict[str, Formula]:
    """Return the extents of x seen as [outer, axis, inner], and N."""
    rank: Formula = ["rank", x]
    start: Formula = axis if axis >= 0 else ["add", rank, axis]
    end: Formula = rank if axis == -1 else axis + 1 if axis >= 0 else ["add", rank, axis + 1]
    return {
        "outer": ["prod_dims", x, 0, start],
        "axis": ["dim", x, axis],
        "inner": ["prod_dims", x, end, rank],
        "N": ["mul", "outer", "axis", "inner"],
    }


def _fields(spec: SidecarSpec) -> list[dict[str, Any]]:
    values = {"n": "N", "groups": "S"}
    for plan, prefix in zip(spec.plans, _prefixes(spec), strict=True):
        values |= {plan.names.units: f"{prefix}U", plan.names.groups_x: f"{prefix}GX"}
    return [
        {"name": name, "type": "u32", "offset": _WORD_BYTES * number, "value": values.get(name, name)}
        for number, name in enumerate(spec.program.uniforms)
    ]


def _constraints(spec: SidecarSpec) -> list[Formula]:
    x = _first_input(spec)
    constraints: list[Formula] = [["le", "N", MAX_ELEMENTS]]
    granularity = spec.plan.granularity
    if not isinstance(granularity, PerTensor):
        least_rank = granularity.axis + 1 if granularity.axis >= 0 else -granularity.axis
        constraints.insert(0, ["le", least_rank, ["rank", x]])
    for operand in spec.checked.operands:
        if not operand.per_group or operand.is_output or operand.is_ignored:
            continue
        constraints.append(["eq", ["numel", operand.name], "S"])
        if isinstance(granularity, Blocked):
            constraints.append(["same_dims_except", operand.name, x, granularity.axis])
            constraints.append(["eq", ["dim", operand.name, granularity.axis], "blocks"])
    for prefix in dict.fromkeys(_prefixes(spec)[::-1]):
        rows: Formula = ["ceil_div", f"{prefix}G", ["max", f"{prefix}GX", 1]]
        constraints.append(["le", rows, spec.target.max_workgroups_per_dimension])
    return constraints


def _chunks(spec: SidecarSpec) -> dict[str, Any] | None:
    """Return how a tensor is computed in several runs; None for baked shapes, and for reductions, which need the whole tensor."""
    if spec.shape is not None or len(spec.plans) > 1:
        return None
    return build_chunks(spec.plan, spec.checked.bound, _most_elements(spec))


def _most_elements(spec: SidecarSpec) -> int:
    """Return how many elements a dispatch computes at most."""
    return min(MAX_ELEMENTS, spec.target.max_workgroups_per_dimension**2 * spec.plan.workgroup_size * spec.plan.lanes)
