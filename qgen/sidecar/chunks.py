"""How a host computes a tensor in several runs where it is larger than a device binds: the `chunks` of a sidecar.

A run has `count` elements from element `start` on, wherever a binding may begin. Its scales and zero points are bound from a group at or
before its own on, where a binding may begin too, and `axis_start` is how many elements lie between that group's first and the run's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, assert_never

from qgen.ir.program import Operand
from qgen.passes.plan import Plan
from qgen.shapes import Blocked, PerAxis, PerTensor
from qgen.sidecar.formulas import Formula

_OFFSET_BITS: Final = 8 * 256
"""The alignment of a binding's offset that every device has."""
_MOST_LIMIT: Final = 1 << 40
"""No device binds as many bytes; with a greater limit, formulas would leave the integers that doubles hold."""
_MOST_START: Final = 1 << 31
"""The most elements of one run of several, and of its `axis_start`: their sum is an index in a u32."""


def build_chunks(plan: Plan, operands: Sequence[Operand], most: int) -> dict[str, Any]:
    """Return how a kernel of one dispatch, with its shape in uniforms, computes at most `most` elements a run.

    The formulas are over the names of the sidecar's `let`, of which `N` is the count here, and `start` and `limit`.
    """
    elements = [operand for operand in operands if not operand.per_group]
    groups = [operand for operand in operands if operand.per_group]
    multiple = math.lcm(plan.lanes, *map(_multiple, elements))
    group_multiple = math.lcm(*map(_multiple, groups))
    widest = max(operand.dtype.bits for operand in elements)
    most_of_several = min(most, _MOST_START) // multiple * multiple
    lets: dict[str, Formula] = {
        "limit_words": ["floor_div", ["min", "limit", _MOST_LIMIT], 4],
        "fitting": ["mul", multiple, ["floor_div", "limit_words", multiple * widest // 32]],
    }
    bind: list[dict[str, Any]] = [{"buffers": [operand.name for operand in elements], "first": "start", "count": "N"}]
    length: Formula = ["min", most // multiple * multiple, "fitting"]
    match plan.granularity:
        case PerTensor():
            bind += [{"buffers": [operand.name for operand in groups], "first": 0, "count": "S"}] if groups else []
        case PerAxis() | Blocked() if groups:
            widest_group = max(operand.dtype.bits for operand in groups)
            lets |= _axis_lets(group_multiple) if isinstance(plan.granularity, PerAxis) else _block_lets(plan.granularity, group_multiple)
            lets |= {
                "all_groups_fit": ["le", ["ceil_div", ["mul", widest_group, "S"], 32], "limit_words"],
                # A run has at most the groups of one unit more than are in its elements, and `steps` before these.
                "units": ["min", ["floor_div", ["floor_div", ["mul", 32, "limit_words"], widest_group], "unit_groups"], "all_units"],
                "unit_length": ["mul", ["max", ["sub", "units", "steps"], 0], "unit_rows", "inner"],
                "length_by_groups": [
                    "max",
                    ["mul", "all_groups_fit", most_of_several],
                    ["mul", multiple, ["floor_div", "unit_length", multiple]],
                ],
            }
            bind.append({"buffers": [operand.name for operand in groups], "first": "first_group", "count": "run_groups"})
            length = ["mul", ["le", "reach", _MOST_START], ["min", "fitting", "length_by_groups"]]
        case PerAxis() | Blocked():
            pass  # no operand has a group, and where a run begins makes no difference
        case _:
            assert_never(plan.granularity)
    return {
        "count": "N",
        "multiple": multiple,
        "most": most,
        "length": length,
        "let": lets,
        "bind": bind,
    }


def _axis_lets(multiple: int) -> dict[str, Formula]:
    """Return what follows for a scale an index along the axis: a run that comes to the axis's end and goes on at its beginning has all.

    `index` is that of the run's first row. A unit is one row; parts of the scales are bound where they begin at a multiple of `steps`.
    """
    return {
        "row": ["floor_div", "start", "inner"],
        "rows": ["sub", ["ceil_div", ["add", "start", "N"], "inner"], "row"],
        "index": ["mod", "row", "axis"],
        "end_index": ["add", "index", "rows"],
        "first_group": ["mul", ["le", "end_index", "axis"], ["sub", "index", ["mod", "index", multiple]]],
        "run_groups": ["sub", ["min", "axis", "end_index"], "first_group"],
        "axis_start": ["add", ["mul", ["sub", "index", "first_group"], "inner"], ["mod", "start", "inner"]],
        "unit_rows": 1,
        "unit_groups": 1,
        "all_units": ["mul", ["eq", "outer", 1], "axis"],
        "steps": multiple,
        "reach": ["min", "N", ["mul", "inner", ["max", multiple, ["mul", ["le", 2, "outer"], "axis"]]]],
    }


def _block_lets(granularity: Blocked, multiple: int) -> dict[str, Formula]:
    """Return what follows for a scale a block: a unit is the rows of a block, or of a whole axis where blocks are ragged and axes several.

    Scales are bound from a unit on whose number is a multiple of `steps`.
    """
    return {
        "size": ["min", granularity.block_size, "axis"],
        "is_ragged": ["and", ["le", 2, "outer"], ["le", 1, ["mod", "axis", "size"]]],
        "unit_rows": ["min", "axis", ["add", "size", ["mul", "is_ragged", "axis"]]],
        "unit_groups": ["mul", "inner", ["max", 1, ["mul", "is_ragged", "blocks"]]],
        "all_units": ["ceil_div", ["mul", "outer", "axis"], "unit_rows"],
        "steps": ["max", 1, ["mul", multiple, ["le", 1, ["mod", "unit_groups", multiple]]]],
        "step_rows": ["mul", "steps", "unit_rows"],
        "step": ["floor_div", ["floor_div", "start", "inner"], "step_rows"],
        "first_group": ["mul", "step", "steps", "unit_groups"],
        "axis_start": ["sub", "start", ["mul", "step", "step_rows", "inner"]],
        "end_row": ["ceil_div", ["add", "axis_start", "N"], "inner"],
        "run_blocks": ["add", ["mul", ["floor_div", "end_row", "axis"], "blocks"], ["ceil_div", ["mod", "end_row", "axis"], "size"]],
        "run_groups": ["mul", "run_blocks", "inner"],
        "reach": ["min", "N", ["mul", "step_rows", "inner"]],
    }


def _multiple(operand: Operand) -> int:
    """Return how many elements lie from one place where a binding may begin to the next: whole periods in a multiple of 256 bytes."""
    return math.lcm(operand.dtype.layout.elements, _OFFSET_BITS // math.gcd(_OFFSET_BITS, operand.dtype.bits))
