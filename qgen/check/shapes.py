"""The shapes that a kernel is checked on: small and large, every rank, a ragged last block, an incomplete last word."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from qgen.kernel import Kernel
from qgen.shapes import Blocked, Granularity, PerTensor, scale_shape

_RANKS: Final = 4
_MANY_WORKGROUPS: Final = 2
_LARGE: Final = 1 << 14
"""Elements beyond which a shape is run once: the oracle computes each of them exactly."""

ROUNDS: Final = 4
"""Runs of a kernel on each shape, one of them with calm inputs."""
_LONGEST_BLOCKED_AXIS: Final = 2049
_ODD: Final = {1: (129,), 2: (3, 43), 3: (5, 7, 11), 4: (3, 3, 3, 19)}
"""By rank, a shape with one element more than a multiple of 128, which every number of lanes divides."""
_EVEN: Final = (16, 128)
"""The last dimensions of a shape whose rows, columns and groups are multiples of all that a kernel asks about on uniforms."""


def check_shapes(kernel: Kernel) -> tuple[tuple[int, ...], ...]:
    """Return the shapes to check `kernel` on: its own where it is baked, else five.

    Ranks go from the least that the granularity's axis allows, 1 at best, to at least 4. One shape has one element more than a multiple of
    the lanes, one takes more than a workgroup, the blocked axis ends in a part of a block, and one is even in every way.
    """
    if kernel.request.shape is not None:
        return (kernel.request.shape,)
    granularity = kernel.request.granularity
    least = least_rank(granularity)
    small, odd, wide, deep = (max(least, rank) for rank in range(1, _RANKS + 1))
    lanes_and_one = _ODD[odd] if odd in _ODD else (*(1,) * (odd - _RANKS), *_ODD[_RANKS])
    return (
        _ragged(granularity, small, 3),
        lanes_and_one,
        _widened(kernel, _ragged(granularity, wide, 7)),
        _ragged(granularity, deep, 2),
        ((1,) * max(0, odd - 2) + _EVEN)[-odd:],
    )


def small_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the shapes without those that are large to have many workgroups, which the evaluator does not tell apart; one at least."""
    return tuple(shape for shape in shapes if math.prod(shape) <= _LARGE) or tuple(shapes)


def check_runs(shapes: Sequence[tuple[int, ...]], rounds: int, seed: int) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    """Yield the seed, the shape and whether inputs are calm, for each run of a kernel: every shape in each round, a large one in the first.

    The seed is one greater each time. In four rounds each shape has calm inputs once.
    """
    for turn in range(rounds):
        for place, shape in enumerate(shapes):
            if turn == 0 or math.prod(shape) <= _LARGE:
                yield seed + turn * len(shapes) + place, shape, (seed + turn + place) % ROUNDS == ROUNDS - 1


def least_rank(granularity: Granularity) -> int:
    """Return the least rank that has the granularity's axis; 1 where it has none."""
    if isinstance(granularity, PerTensor):
        return 1
    return granularity.axis + 1 if granularity.axis >= 0 else -granularity.axis


def _ragged(granularity: Granularity, rank: int, dim: int) -> tuple[int, ...]:
    """Return a shape of `rank`, its dimensions `dim`, `dim` + 1, …; the blocked axis has two blocks and one element."""
    dims = [dim + index % _RANKS for index in range(rank)]
    if isinstance(granularity, Blocked):
        dims[granularity.axis] = min(2 * granularity.block_size + 1, _LONGEST_BLOCKED_AXIS)
    return tuple(dims)


def _widened(kernel: Kernel, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with one dimension grown until each pass takes a second workgroup; not the blocked axis if there is another."""
    granularity = kernel.request.granularity
    at = (granularity.axis + 1) % len(shape) if isinstance(granularity, Blocked) else 0
    dims = list(shape)
    while _workgroups(kernel, tuple(dims)) < _MANY_WORKGROUPS:
        dims[at] += 1 + dims[at] // 8
    return tuple(dims)


def _workgroups(kernel: Kernel, shape: tuple[int, ...]) -> int:
    shared = scale_shape(kernel.request.granularity, shape)
    plan = kernel.plan(dict.fromkeys(kernel.inputs[1:], shared) | {kernel.inputs[0]: shape})
    # A pass that reads no elements computes one for each group, of which there may be few whatever the shape.
    of_elements = [step for step in plan.passes if any(binding.buffer == kernel.inputs[0] for binding in step.bindings)]
    return min(math.prod(step.dispatch) for step in of_elements)
