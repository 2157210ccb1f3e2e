"""The classes of formats that `T is class` and `<F: class>` name, and the properties `F.name` of a format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qgen.dtypes import DType, Family, FloatFormat


def _is_compact(dtype: DType) -> bool:
    """Whether every finite number of the format is a normal number, or zero, of float32."""
    return dtype.format is not None and dtype.format.exponent_bits < 8 and dtype.mantissa_bits > 0


def _has_negative_zero(format_: FloatFormat | None) -> bool:
    return format_ is not None and format_.has_negative_zero


def _ends_in_nan(format_: FloatFormat) -> bool:
    """Whether NaN is the code after the greatest finite one, where other formats have infinity."""
    return not format_.has_infinity and format_.has_negative_zero


KINDS: Final[dict[str, Callable[[DType], bool]]] = {
    "integer": lambda dtype: dtype.is_integer,
    "signed": lambda dtype: dtype.family is Family.SIGNED,
    "unsigned": lambda dtype: dtype.family is Family.UNSIGNED,
    "float": lambda dtype: dtype.is_float,
    "float8": lambda dtype: dtype.is_float8,
    "small_float": lambda dtype: dtype.is_small_float,
    "narrow_float": lambda dtype: dtype.is_float and dtype.bits < 32 and dtype.mantissa_bits > 0,
    "compact_signed_zero_float": lambda dtype: _is_compact(dtype) and _has_negative_zero(dtype.format),
    "minifloat": lambda dtype: dtype.bits <= 8 and dtype.mantissa_bits > 0 and _has_negative_zero(dtype.format),
    "ieee_float": lambda dtype: dtype.bits < 32 and dtype.format is not None and dtype.format.has_infinity,
    "compact_ieee_float": lambda dtype: _is_compact(dtype) and dtype.format is not None and dtype.format.has_infinity,
    "fn_float": lambda dtype: dtype.is_float8 and dtype.format is not None and _ends_in_nan(dtype.format),
    "fnuz_float": lambda dtype: dtype.is_float8 and dtype.format is not None and not dtype.format.has_negative_zero,
    "compact_float": _is_compact,
}
"""Each class by name."""


def format_property(dtype: DType, name: str) -> int | None:
    """Return the integer that `F.name` means for a format F, or None where the format has no such property.

    `first` is the biased exponent, as float32 counts it, of the format's least normal number. `overflow` is the code of a magnitude beyond
    `max`.
    """
    if name in {"bits", "mask"}:
        return int(getattr(dtype, name))
    if dtype.is_integer:
        return int(getattr(dtype, name)) if name in {"min", "max"} else None
    form = dtype.format
    if form is None:
        return None
    return {
        "mantissa": form.mantissa_bits,
        "first": 128 - form.bias,
        "max": form.max_code,
        "nan": form.nan_code if form.nan_code is not None else form.max_code,
        "overflow": form.overflow_code,
    }.get(name)
