"""What a host without glue writes: the formulas of a sidecar in a few lines, and with them the plan, part by part where a tensor is large.

Nothing of qgen is used, so that what agrees with this has read the sidecar as its schema says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

Shapes = Mapping[str, Sequence[int]]

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floor_div": lambda a, b: a // b,
    "ceil_div": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "eq": lambda a, b: int(a == b),
    "le": lambda a, b: int(a <= b),
    "and": lambda a, b: int(bool(a and b)),
    "or": lambda a, b: int(bool(a or b)),
}
SHAPES: dict[str, Callable[..., int]] = {
    "numel": math.prod,
    "rank": len,
    "dim": lambda shape, index: shape[index],
    "prod_dims": lambda shape, start, end: math.prod(shape[start:end]),
}


def value(formula: Any, let: Mapping[str, Any], shapes: Shapes) -> int:  # noqa: ANN401 - JSON
    """Return the value of a formula."""
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return value(let[formula], let, shapes)
    operation, *operands = formula
    if operation in SHAPES:
        return SHAPES[operation](shapes[operands[0]], *(value(operand, let, shapes) for operand in operands[1:]))
    return reduce(OPERATIONS[operation], (value(operand, let, shapes) for operand in operands))


def plan(sidecar: Mapping[str, Any], shapes: Shapes, limit: int) -> list[int] | None:
    """Return the numbers of a plan as `numbers_of_run` lists them: how many runs, then the first and the last; None for what is refused."""
    let = dict(sidecar["let"])
    on_shapes = [constraint for constraint in sidecar["constraints"] if reads_shapes(constraint)]
    first = next(buffer["name"] for buffer in sidecar["buffers"] if buffer["role"] == "input")
    if sidecar["shape"] not in (None, list(shapes[first])) or not all(value(constraint, let, shapes) for constraint in on_shapes):
        return None
    sizes = measure(sidecar, let, shapes)
    if any(sizes[buffer["name"]] == 0 for buffer in sidecar["buffers"] if buffer["role"] == "output"):
        return [0]
    way = next((way for way in sidecar["chunks"] if value(way["when"], let, shapes)), None)
    parts = (
        []
        if way is None
        else [(name, value(cut["elements"], let, shapes), cut["multiple"], cut["most"]) for cut in way["cut"] for name in cut["buffers"]]
    )
    counts = {buffer["name"]: value(buffer["count"], let, shapes) for buffer in sidecar["buffers"] if "count" in buffer}
    if way is None or all(sizes[name] <= limit and counts[name] <= most for name, _, _, most in parts):
        run = numbers_of_run(sidecar, let, shapes, dict.fromkeys(sizes, 0), limit)
        return None if run is None else [1, *run, *run]
    steps = math.lcm(*(multiple // math.gcd(multiple, elements) for _, elements, multiple, _ in parts))
    whole, along = value(let[way["along"]], let, shapes), way["along"]
    length = greatest_length(sidecar, let, shapes, limit, (along, way["step"] * steps))
    if length == 0:
        return None
    count = -(-whole // length)
    found = [count]
    for index in (0, count - 1):
        start = index * length
        begin = measure(sidecar, let | {along: start}, shapes)  # as many bytes as the elements before the part have
        offsets = {name: begin[name] if name in {part[0] for part in parts} else 0 for name in sizes}
        run = numbers_of_run(sidecar, let | {along: min(length, whole - start)}, shapes, offsets, limit)
        if run is None:
            return None
        found += run
    return found


def greatest_length(sidecar: Mapping[str, Any], let: dict[str, Any], shapes: Shapes, limit: int, cut: tuple[str, int]) -> int:
    """Return the greatest multiple of the unit in `cut` of which a part fits, by trying; 0 where not even one does."""
    along, unit = cut
    most = {name: part["most"] for way in sidecar["chunks"] if way["along"] == along for part in way["cut"] for name in part["buffers"]}

    def fits(times: int) -> bool:
        small = let | {along: times * unit}
        sizes = measure(sidecar, small, shapes)
        counts = {buffer["name"]: value(buffer["count"], small, shapes) for buffer in sidecar["buffers"] if "count" in buffer}
        return all(sizes[name] <= limit and counts[name] <= most[name] for name in most)

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * unit


def measure(sidecar: Mapping[str, Any], let: Mapping[str, Any], shapes: Shapes) -> dict[str, int]:
    """Return the sizes of the tensors that passes bind."""
    buffers = [buffer for buffer in sidecar["buffers"] if buffer["role"] not in {"ignored", "uniform"}]
    return {buffer["name"]: value(buffer["size_bytes"], let, shapes) for buffer in buffers}


def numbers_of_run(
    sidecar: Mapping[str, Any], let: Mapping[str, Any], shapes: Shapes, offsets: Mapping[str, int], limit: int
) -> list[int] | None:
    """Return offsets, sizes, the fields of the uniforms and the workgroups of one run; None for what is refused."""
    sizes = measure(sidecar, let, shapes)
    checks = [constraint for constraint in sidecar["constraints"] if not reads_shapes(constraint)]
    if not all(0 < size <= limit for size in sizes.values()) or not all(value(check, let, shapes) for check in checks):
        return None
    structs = [sidecar["structs"][buffer["struct"]] for buffer in sidecar["buffers"] if buffer["role"] == "uniform"]
    fields = [value(field["value"], let, shapes) for struct in structs for field in struct["fields"]]
    dispatches = [value(count, let, shapes) for step in sidecar["passes"] for count in step["dispatch"]]
    return [*(offsets[name] for name in sizes), *sizes.values(), *fields, *dispatches]


def reads_shapes(formula: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether a formula reads a shape itself, and not by a name of `let`."""
    return isinstance(formula, list) and (formula[0] in SHAPES or any(reads_shapes(operand) for operand in formula[1:]))
