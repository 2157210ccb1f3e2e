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
    "same_dims_except": lambda a, b, k: len(a) == len(b) and all(i in {k, k + len(a)} or a[i] == b[i] for i in range(len(a))),
}


def value(formula: Any, let: Mapping[str, Any], shapes: Shapes) -> int:  # noqa: ANN401 - JSON
    """Return the value of a formula."""
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return value(let[formula], let, shapes)
    operation, *operands = formula
    if operation in SHAPES:
        count = 2 if operation == "same_dims_except" else 1
        tensors = (shapes[name] for name in operands[:count])
        return SHAPES[operation](*tensors, *(value(operand, let, shapes) for operand in operands[count:]))
    return reduce(OPERATIONS[operation], (value(operand, let, shapes) for operand in operands))


def plan(sidecar: Mapping[str, Any], shapes: Shapes, limit: int) -> list[int] | None:
    """Return the numbers of a plan: how many runs, then as `numbers_of_run` lists them those of `some_runs`; None for what is refused."""
    let, chunks = sidecar["let"], sidecar["chunks"]
    on_shapes = [constraint for constraint in sidecar["constraints"] if reads_shapes(constraint)]
    first = next(buffer["name"] for buffer in sidecar["buffers"] if buffer["role"] == "input")
    if sidecar["shape"] not in (None, list(shapes[first])) or not all(value(constraint, let, shapes) for constraint in on_shapes):
        return None
    tensors = [buffer for buffer in sidecar["buffers"] if buffer["role"] not in {"ignored", "uniform"}]
    sizes = [value(buffer["size_bytes"], let, shapes) for buffer in tensors]
    if any(size == 0 for buffer, size in zip(tensors, sizes, strict=True) if buffer["role"] == "output"):
        return [0]
    if chunks is None:
        run = numbers_of_run(sidecar, let, shapes, [0] * len(sizes), sizes, limit)
        return None if run is None else [1, *run, *run, *run]
    let = let | chunks["let"] | {"limit": limit, "start": 0}
    count, bits = value(let[chunks["count"]], let, shapes), [buffer["element"]["bits"] for buffer in tensors]
    fits = count <= chunks["most"] and max(sizes) <= limit
    length = count if fits else value(chunks["length"], let, shapes)
    if length == 0:
        return None
    binds = [next(bind for bind in chunks["bind"] if buffer["name"] in bind["buffers"]) for buffer in tensors]
    found = [-(-count // length)]
    for index in some_runs(found[0]):
        own = let | {"start": index * length, chunks["count"]: min(length, count - index * length)}
        offsets = [value(bind["first"], own, shapes) * each // 8 for bind, each in zip(binds, bits, strict=True)]
        sizes = [4 * -(-value(bind["count"], own, shapes) * each // 32) for bind, each in zip(binds, bits, strict=True)]
        run = numbers_of_run(sidecar, own, shapes, offsets, sizes, limit)
        if run is None:
            return None
        found += run
    return found


def some_runs(count: int) -> tuple[int, ...]:
    """Return the first, one amid and the last of so many runs, by number."""
    return 0, count // 2, count - 1


def numbers_of_run(  # noqa: PLR0917 - what a run follows from, and the limit
    sidecar: Mapping[str, Any], let: Mapping[str, Any], shapes: Shapes, offsets: Sequence[int], sizes: Sequence[int], limit: int
) -> list[int] | None:
    """Return offsets, sizes, the fields of the uniforms and the workgroups of one run; None for what is refused."""
    checks = [constraint for constraint in sidecar["constraints"] if not reads_shapes(constraint)]
    if not all(0 < size <= limit for size in sizes) or not all(value(check, let, shapes) for check in checks):
        return None
    structs = [sidecar["structs"][buffer["struct"]] for buffer in sidecar["buffers"] if buffer["role"] == "uniform"]
    fields = [value(field["value"], let, shapes) for struct in structs for field in struct["fields"]]
    dispatches = [value(count, let, shapes) for step in sidecar["passes"] for count in step["dispatch"]]
    return [*offsets, *sizes, *fields, *dispatches]


def reads_shapes(formula: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether a formula reads a shape itself, and not by a name of `let`."""
    return isinstance(formula, list) and (formula[0] in SHAPES or any(reads_shapes(operand) for operand in formula[1:]))
