"""What is finite, tried whole: every float16, every code of at most 8 bits, every float32; and the two bit-exact modes compared.

A task is a sequence of pieces that know nothing of each other, so that they can be run in any order, anywhere, and gone on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes, pack_words, unpack_words
from qgen.check import make_inputs, matrix_requests
from qgen.check.compare import describe_mismatch, find_mismatches, find_reference, run_kernel
from qgen.conform.hard import hard_scales, hard_zero_points
from qgen.dtypes import DTYPES
from qgen.errors import InternalError, QgenError
from qgen.evaluate import EvaluationError
from qgen.kernel import Kernel, compile_request
from qgen.request import Request
from qgen.shapes import PerAxis, PerTensor

Inputs = dict[str, NDArray[Any]]

TASKS: Final = {
    "f16": "every float16 x, with hard scales and zero points, to every type",
    "bf16": "every bfloat16 x, with hard scales and zero points, to every type",
    "codes": "every code of every type of at most 8 bits, with hard scales and zero points, to every type",
    "f32": "every float32 x, with scale 1, to every float of at most 8 bits",
    "modes": "`exact` against `strict`, on 2^27 elements beside ties and at extremes",
}

_ROWS: Final = PerAxis(0)
"""One scale a row: so one run has them all."""
_PART_BITS: Final = 21
"""A piece of float32 has so many bits' worth."""
_PARTS: Final = 1 << (32 - _PART_BITS)
_OFFERED: Final = 256
"""Of so many kernels those are drawn whose modes may differ."""
_DRAWS: Final = 128
_DRAWN: Final = (4096, 256)
"""Rows with a scale of their own, and elements in each."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a task: one kernel, and which part of its inputs."""

    task: str
    request: Request
    part: int
    shape: tuple[int, ...] = _DRAWN
    """Of x, in the task `modes` alone."""


@dataclass(frozen=True, slots=True)
class PieceResult:
    """What came of a piece: how many elements were compared, how many differ and the first of them, or why there is no result."""

    piece: str
    device: str
    elements: int
    mismatches: int
    first: str | None
    trap: str | None

    @property
    def ok(self) -> bool:
        """Whether it ran and every bit is right."""
        return self.mismatches == 0 and self.trap is None

    def __str__(self) -> str:
        """Return the result in a line, or the trap's own lines."""
        if self.trap is not None:
            return f"{self.piece} on {self.device}: {self.trap}"
        head = f"{self.piece} on {self.device}: {self.elements - self.mismatches:,} of {self.elements:,} elements are right"
        return head if self.first is None else f"{head}; {self.first}"


def task_pieces(task: str, mode: str = "exact") -> tuple[Piece, ...]:
    """Return the pieces of a task of `TASKS`, the kernels in the numerics mode `mode`; `modes` has both."""
    match task:
        case "f16" | "bf16":
            x = DTYPES["float16" if task == "f16" else "bfloat16"]
            requests = [each for each in _by_row(mode) if each.signature.x is x]
            return tuple(Piece(task, request, 0) for request in requests)
        case "codes":
            requests = [each for each in _by_row(mode) if not each.signature.is_quantize and each.signature.x.bits <= 8]
            return tuple(Piece(task, request, 0) for request in requests)
        case "f32":
            requests = _narrowing(mode)
            return tuple(Piece(task, request, part) for part in range(_PARTS) for request in requests)
        case "modes":
            requests = _drawn()
            return tuple(Piece(task, requests[part * len(requests) // _DRAWS], part) for part in range(_DRAWS))
        case _:
            raise ValueError(task)


def _by_row(mode: str) -> list[Request]:
    """Return the matrix's kernels with one scale an index along an axis, that axis being the first."""
    return [replace(request, granularity=_ROWS, mode=mode) for request in matrix_requests() if request.granularity.kind == "per_axis"]


def _narrowing(mode: str) -> list[Request]:
    """Return the kernels from float32 to each float of at most 8 bits, saturating and not, without a zero point that counts."""
    f32 = DTYPES["float32"]
    return [
        replace(request, mode=mode)
        for request in matrix_requests()
        if request.granularity == PerTensor()
        and (request.signature.is_quantize and request.signature.x is f32 and request.signature.scale is f32)
        and (request.signature.y.is_float and request.signature.division is f32)
        and (request.signature.y.is_float8 or not request.signature.zero_point)
    ]


def _drawn() -> list[Request]:
    """Return kernels, spread over the matrix, that quick code computes in `exact`, so that the two modes may differ."""
    offered = _by_row("exact")
    chosen = offered[:: max(1, len(offered) // _OFFERED)]
    return [request for request in chosen if _compile(request).sidecar["numerics"]["relies_on"]]


@lru_cache(maxsize=512)
def _compile(request: Request) -> Kernel:
    return compile_request(request)


def piece_name(piece: Piece) -> str:
    """Return a name that tells a piece from any other, and the texts of its kernel from any other."""
    names = [_compile(piece.request).name]
    if piece.task == "modes":
        names.append(_compile(replace(piece.request, mode="strict")).name)
    return f"{piece.task} {' '.join(names)} part {piece.part}"


def run_piece(piece: Piece, device: str) -> PieceResult:
    """Run a piece on `device`, which is `cpu` or as for `open_device`; every failure is a result."""
    name = piece_name(piece)
    try:
        return _run(piece, name, device)
    except (InternalError, EvaluationError, QgenError) as error:
        return PieceResult(name, device, 0, 0, None, str(error))


def _run(piece: Piece, name: str, device: str) -> PieceResult:
    kernel = _compile(piece.request)
    inputs = piece_inputs(piece, kernel)
    words = run_kernel(kernel, device, inputs)
    if piece.task == "modes":
        other = run_kernel(_compile(replace(piece.request, mode="strict")), device, inputs)
        want = {output: unpack_words(other[output], kernel.compiled.checked.operand(output).dtype, piece.shape) for output in other}
    else:
        want = find_reference(kernel, inputs)
    elements = mismatches = 0
    first = None
    for output, right in want.items():
        dtype = kernel.compiled.checked.operand(output).dtype
        wrong = find_mismatches(words[output], right, dtype)
        elements, mismatches = elements + right.size, mismatches + len(wrong)
        if first is None and len(wrong):
            run = (tuple(right.shape), piece.part, False)
            first = str(describe_mismatch(kernel, inputs, run, int(wrong[0]), (words[output], pack_words(right, dtype), dtype)))
    return PieceResult(name, device, elements, mismatches, first, None)


def piece_inputs(piece: Piece, kernel: Kernel) -> Inputs:
    """Return the inputs of a piece by ONNX name."""
    match piece.task:
        case "f16" | "bf16" | "codes":
            return _every_code(kernel)
        case "f32":
            codes = (np.arange(1 << _PART_BITS, dtype=np.uint32) + np.uint32(piece.part << _PART_BITS)).astype(np.uint32)
            arrays = [from_codes(codes, "float32", codes.shape), np.ones((), np.float32)]
            if len(kernel.inputs) > len(arrays):
                arrays.append(from_codes(np.zeros(1, np.uint32), kernel.request.signature.y, ()))
            return dict(zip(kernel.inputs, arrays, strict=True))
        case _:
            return make_inputs(kernel, piece.shape, piece.part, calm=piece.part % 2 == 0)


def _every_code(kernel: Kernel) -> Inputs:
    """Return every code of x in a row for each pair of a hard scale and a hard zero point; with 16 bits, each scale once, in turn."""
    signature = kernel.request.signature
    quantized = signature.y if signature.is_quantize else signature.x
    scales = hard_scales(signature.scale)
    has_zero_point = len(kernel.inputs) > len(("x", "scale"))
    # DequantizeLinear takes no other zero point of a float8 than zero.
    zero_points = hard_zero_points(quantized) if not quantized.is_float8 and has_zero_point else np.zeros(1, np.uint32)
    if signature.x.bits > 8:
        zero_points = np.resize(zero_points, scales.size)
    else:
        scales, zero_points = (grid.reshape(-1) for grid in np.meshgrid(scales, zero_points))
    codes = np.tile(np.arange(1 << signature.x.bits, dtype=np.uint32), scales.size)
    arrays = [from_codes(codes, signature.x, (scales.size, 1 << signature.x.bits)), from_codes(scales, signature.scale, scales.shape)]
    if has_zero_point:
        arrays.append(from_codes(zero_points, quantized, scales.shape))
    return dict(zip(kernel.inputs, arrays, strict=True))


def select_pieces(pieces: Sequence[Piece], index: int, count: int) -> tuple[Piece, ...]:
    """Return every `count`-th piece, from the `index`-th (from 1) on."""
    return tuple(pieces[index - 1 :: count])
