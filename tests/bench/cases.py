"""The cases that are timed: operator, dtypes and granularity, and the tensor that each is timed on.

A case is timed on two tensors of nearly one size: an even one, whose rows are whole numbers of blocks and of words, and a ragged one, whose
rows end in the middle of both. For each there is a text with the shape baked in and one that has it in uniforms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qgen.api import compile as compile_kernel
from qgen.dtypes import DTYPES, DType
from qgen.kernel import Kernel
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.signatures.tables import DEQUANTIZE, DYNAMIC, QUANTIZE

KNOWN_SCALE: Final = "known scale"
FORMS: Final = ("baked", KNOWN_SCALE, "uniform", "ragged", "ragged uniform")
"""What a kernel knows of the shape (and, beside a baked one, that its scales are plain), and the tensor it is timed on."""


@dataclass(frozen=True, slots=True)
class Case:
    """One operator signature; dtypes by their ONNX names."""

    op: str
    x: str
    scale: str
    y: str
    granularity: Granularity
    zero_point: bool = False

    @property
    def name(self) -> str:
        """The case in words, as tables have it."""
        match self.granularity:
            case PerTensor():
                granularity = "per-tensor"
            case PerAxis(axis):
                granularity = f"per-axis {axis}"
            case Blocked(axis, block_size):
                granularity = f"blocked {block_size} axis {axis}"
        if self.op == DYNAMIC:
            return f"dynamic {self.x} → {self.y}"
        verb = "quantize" if self.is_quantize else "dequantize"
        scale = f" scale {self.scale}" if self.scale not in {self.x, self.y} else ""
        return f"{verb} {self.x} → {self.y} {granularity}{scale}{' zp' if self.zero_point else ''}"

    @property
    def is_quantize(self) -> bool:
        """Whether the case divides by a scale that is given."""
        return self.op == QUANTIZE

    @property
    def has_ort(self) -> bool:
        """Whether ONNX Runtime is a comparison.

        It computes QuantizeLinear on the CPU, and float16 only with a feature that no software adapter has.
        """
        return self.op == DEQUANTIZE and self.quantized.is_integer and self.y == "float32"

    def has_form(self, form: str, numerics: str) -> bool:
        """Whether `form` is another text: only `exact` makes something of a scale that is known, and DynamicQuantizeLinear has none."""
        return form != KNOWN_SCALE or (numerics == "exact" and self.op != DYNAMIC)

    @property
    def quantized(self) -> DType:
        """The dtype on the side of the small numbers."""
        return DTYPES[self.x if self.op == DEQUANTIZE else self.y]

    def compile(self, form: str, shape: tuple[int, ...], numerics: str, target: str) -> Kernel:
        """Return the kernel of this case for a tensor of `shape`, baked into the text or not as `form` says."""
        return compile_kernel(
            self.op,
            x=self.x,
            scale=self.scale,
            y=self.y,
            zero_point=self.zero_point,
            granularity=self.granularity,
            shape=None if "uniform" in form else shape,
            numerics=numerics,
            target=target,
            plain_scale=form == KNOWN_SCALE,
        )


def shape_of(count: int, form: str) -> tuple[int, int]:
    """Return the shape of about `count` elements, a power of two, on which `form` is timed: as square as may be."""
    columns = 1 << (count.bit_length() - 1) // 2
    return (count // columns, columns - 1 if form.startswith("ragged") else columns)


def _dequantize(x: str, granularity: Granularity, y: str = "float32", *, scale: str | None = None, zero_point: bool = False) -> Case:
    return Case(DEQUANTIZE, x, scale or y, y, granularity, zero_point)


def _quantize(y: str, granularity: Granularity, x: str = "float32", *, scale: str | None = None, zero_point: bool = False) -> Case:
    return Case(QUANTIZE, x, scale or x, y, granularity, zero_point)


ONNX_CASES: Final = (
    _dequantize("uint8", PerTensor(), zero_point=True),
    _dequantize("uint4", PerTensor(), zero_point=True),
    _dequantize("uint4", Blocked(1, 32), zero_point=True),
    _dequantize("int4", Blocked(1, 128)),
    _dequantize("int8", PerAxis(1), zero_point=True),
    _dequantize("int8", PerAxis(0)),
    _dequantize("int8", Blocked(0, 32), zero_point=True),
    _dequantize("int32", PerAxis(0)),
)
"""What ONNX Runtime runs on WebGPU."""

_QUANTIZE_CASES: Final = (
    _quantize("uint8", PerTensor(), zero_point=True),
    _quantize("uint4", PerTensor(), zero_point=True),
    _quantize("uint4", Blocked(1, 32), zero_point=True),
    _quantize("int4", Blocked(1, 128)),
    _quantize("int8", PerAxis(1), zero_point=True),
    _quantize("int8", PerAxis(0)),
    _quantize("int8", Blocked(0, 32), zero_point=True),
    _quantize("int16", PerAxis(0)),  # int32 is no output of QuantizeLinear
)

_FLOAT16_CASES: Final = tuple(
    _dequantize(case.x, case.granularity, "float16", zero_point=case.zero_point) for case in ONNX_CASES if case.x != "int32"
)

_OTHER_CASES: Final = (
    _dequantize("int8", PerAxis(0), "bfloat16"),
    _quantize("uint8", PerTensor(), "bfloat16", zero_point=True),
    _quantize("uint8", PerTensor(), "float16", zero_point=True),
    _dequantize("float8e4m3fn", PerTensor()),
    _dequantize("float8e5m2", PerAxis(0)),
    _quantize("float8e4m3fn", PerTensor()),
    _quantize("float8e5m2", PerAxis(0)),
    _dequantize("float4e2m1", Blocked(1, 32), scale="float8e8m0"),
    _quantize("float4e2m1", Blocked(1, 32), scale="float8e8m0"),
    Case(DYNAMIC, "float32", "float32", "uint8", PerTensor()),
)

CASES: Final = (*ONNX_CASES, *_QUANTIZE_CASES, *_FLOAT16_CASES, *_OTHER_CASES)
"""Every case, in the order of tables."""
