"""The number formats of ONNX, as one table: a new dtype is a row here and its values in the tests.

Names are ONNX's (`TensorProto.DataType`, in lower case). The formats' limits and special codes are those of the ONNX operator `Cast`
(opset 28), IEEE 754-2019 and the OCP Microscaling specification 1.0; the choice of one NaN code a format is SEMANTICS 1.6.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from qgen.errors import QgenError

WORD_BITS: Final = 32


class Exact(Enum):
    """The type of an exact rational, or an infinity or NaN: what a quotient is before it is rounded. No format holds it."""

    EXACT = "exact"

    __hash__ = object.__hash__


EXACT: Final = Exact.EXACT


class Family(Enum):
    """How the code of an element is read."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: 1 sign bit (unless `is_unsigned`), then exponent and mantissa.

    Codes are magnitudes, that is with the sign bit clear.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    max_code: int
    """The greatest finite magnitude."""
    nan_code: int | None
    """The one NaN this project writes (sign bit included for the FNUZ formats); None where the format has none."""
    overflow_code: int
    """What a magnitude that rounds beyond `max_code` becomes when it does not saturate."""
    has_infinity: bool = False
    has_negative_zero: bool = True
    is_unsigned: bool = False

    def __post_init__(self) -> None:
        """Hold the row against itself: codes fit the format, and an infinity is the code after the greatest finite one."""
        width = self.exponent_bits + self.mantissa_bits
        if not 0 < self.max_code < 1 << width:
            raise ValueError("max_code does not fit the format")
        if self.has_infinity and self.overflow_code != self.max_code + 1:
            raise ValueError("infinity is the code after max_code")


@dataclass(frozen=True)
class Layout:
    """How elements lie in u32 words: `elements` of them in `words` words, first element in the lowest bits (ONNX's packing)."""

    elements: int
    words: int


@dataclass(frozen=True, eq=False)
class DType:
    """One element type of ONNX: a row of the table, equal to itself alone.

    `short` is its name inside kernel names, `numpy` the attribute of numpy or ml_dtypes that holds one element a byte or more.
    """

    name: str
    short: str
    bits: int
    family: Family
    onnx: int
    numpy: str
    format: FloatFormat | None = None

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.family is Family.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers."""
        return self.family is not Family.FLOAT

    @property
    def is_float8(self) -> bool:
        """Whether this is one of the four float8 formats that quantize (e8m0 is a scale, not one of them)."""
        return self.name.startswith("float8") and self.mantissa_bits > 0

    @property
    def is_small_float(self) -> bool:
        """Whether this is a float4 or float6 format, which have neither infinity nor NaN."""
        return self.is_float and self.bits < 8

    @property
    def mask(self) -> int:
        """All bits of a code set."""
        return (1 << self.bits) - 1

    @property
    def min(self) -> int:
        """The least integer; for a float format there is none."""
        self._require_integer()
        return -(1 << (self.bits - 1)) if self.family is Family.SIGNED else 0

    @property
    def max(self) -> int:
        """The greatest integer; for a float format there is none."""
        self._require_integer()
        return (1 << (self.bits - 1)) - 1 if self.family is Family.SIGNED else self.mask

    @property
    def mantissa_bits(self) -> int:
        """The stored bits of the significand of a float format; 0 for an integer."""
        return self.format.mantissa_bits if self.format else 0

    @cached_property
    def layout(self) -> Layout:
        """Elements to words: the least whole number of words that holds a whole number of elements."""
        words = 1
        while words * WORD_BITS % self.bits:
            words += 1
        return Layout(words * WORD_BITS // self.bits, words)

    def nbytes(self, count: int) -> int:
        """Bytes of `count` packed elements, as ONNX's `raw_data` and files hold them: `ceil(bits * count / 8)`."""
        return -(-self.bits * count // 8)

    def words(self, count: int) -> int:
        """U32 words of `count` packed elements, as a kernel binds them: `ceil(bits * count / 32)`."""
        return -(-self.bits * count // WORD_BITS)

    def __reduce__(self) -> tuple[Callable[[object], DType], tuple[str]]:
        """Travel between processes by name, and arrive as the row that is there."""
        return parse_dtype, (self.name,)

    def _require_integer(self) -> None:
        if self.is_float:
            raise ValueError(f"{self.name} has no least or greatest integer")


def _integer(name: str, short: str, bits: int, onnx: int) -> DType:
    family = Family.SIGNED if short.startswith("i") else Family.UNSIGNED
    return DType(name, short, bits, family, onnx, name)


_TABLE: Final = (
    _integer("int2", "i2", 2, 26),
    _integer("uint2", "u2", 2, 25),
    _integer("int4", "i4", 4, 22),
    _integer("uint4", "u4", 4, 21),
    _integer("int8", "i8", 8, 3),
    _integer("uint8", "u8", 8, 2),
    _integer("int16", "i16", 16, 5),
    _integer("uint16", "u16", 16, 4),
    _integer("int32", "i32", 32, 6),
    DType("float32", "f32", 32, Family.FLOAT, 1, "float32", FloatFormat(8, 23, 127, 0x7F7FFFFF, 0x7FC00000, 0x7F800000, has_infinity=True)),
    DType("float16", "f16", 16, Family.FLOAT, 10, "float16", FloatFormat(5, 10, 15, 0x7BFF, 0x7E00, 0x7C00, has_infinity=True)),
    DType("bfloat16", "bf16", 16, Family.FLOAT, 16, "bfloat16", FloatFormat(8, 7, 127, 0x7F7F, 0x7FC0, 0x7F80, has_infinity=True)),
    DType("float8e4m3fn", "e4m3fn", 8, Family.FLOAT, 17, "float8_e4m3fn", FloatFormat(4, 3, 7, 0x7E, 0x7F, 0x7F)),
    DType(
        "float8e4m3fnuz", "e4m3fnuz", 8, Family.FLOAT, 18, "float8_e4m3fnuz",
        FloatFormat(4, 3, 8, 0x7F, 0x80, 0x80, has_negative_zero=False),
    ),
    DType("float8e5m2", "e5m2", 8, Family.FLOAT, 19, "float8_e5m2", FloatFormat(5, 2, 15, 0x7B, 0x7E, 0x7C, has_infinity=True)),
    DType(
        "float8e5m2fnuz", "e5m2fnuz", 8, Family.FLOAT, 20, "float8_e5m2fnuz",
        FloatFormat(5, 2, 16, 0x7F, 0x80, 0x80, has_negative_zero=False),
    ),
    DType("float4e2m1", "e2m1", 4, Family.FLOAT, 23, "float4_e2m1fn", FloatFormat(2, 1, 1, 0x7, None, 0x7)),
    DType("float6e2m3", "e2m3", 6, Family.FLOAT, 27, "float6_e2m3fn", FloatFormat(2, 3, 1, 0x1F, None, 0x1F)),
    DType("float6e3m2", "e3m2", 6, Family.FLOAT, 28, "float6_e3m2fn", FloatFormat(3, 2, 3, 0x1F, None, 0x1F)),
    DType(
        "float8e8m0", "e8m0", 8, Family.FLOAT, 24, "float8_e8m0fnu",
        FloatFormat(8, 0, 127, 0xFE, 0xFF, 0xFF, has_negative_zero=False, is_unsigned=True),
    ),
)  # fmt: skip

DTYPES: Final[dict[str, DType]] = {dtype.name: dtype for dtype in _TABLE}
"""Every dtype by its ONNX name."""

BY_ONNX: Final[dict[int, DType]] = {dtype.onnx: dtype for dtype in _TABLE}
"""Every dtype by its number in `onnx.TensorProto.DataType`."""

_ALIASES: Final = {alias: dtype for dtype in _TABLE for alias in (dtype.name, dtype.numpy, dtype.short)} | {
    "float": DTYPES["float32"],
    "float4e2m1fn": DTYPES["float4e2m1"],
    "float6e2m3fn": DTYPES["float6e2m3"],
    "float6e3m2fn": DTYPES["float6e3m2"],
    "float8e8m0fnu": DTYPES["float8e8m0"],
}


def parse_dtype(spec: object) -> DType:
    """Return the dtype that `spec` names.

    `spec` is a `DType`, an ONNX name (`uint4`), a short name (`u4`), or a numpy or ml_dtypes type, dtype or name (`np.float16`,
    `ml_dtypes.int4`, `float8_e4m3fn`). Raises `QgenError` QG101 with the nearest name otherwise.
    """
    if isinstance(spec, DType):
        return spec
    text = spec if isinstance(spec, str) else getattr(spec, "name", None) or getattr(spec, "__name__", None) or str(spec)
    found = _ALIASES.get(str(text).strip().lower())
    if found is None:
        near = difflib.get_close_matches(str(text).lower(), list(DTYPES), n=1)
        hint = f"did you mean `{near[0]}`?" if near else "`qgen list dtypes` prints the names"
        raise QgenError("QG101", f"there is no dtype `{text}`", hint=hint)
    return found
