"""Fragments of many kinds, their inputs, and the shader and the kernel that ask each of their functions for every element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import qgen
from qgen.arrays import from_codes, numpy_dtype, pack_words, to_codes
from qgen.check import make_inputs
from qgen.fragment import Fragment
from qgen.ir import nodes as ir
from qgen.ir.program import Kernel, Operand, Program
from qgen.ir.types import Scalar, Vector
from qgen.oracle import evaluate_reference
from qgen.shapes import Granularity, blocked, per_axis

Array = NDArray[Any]
WORKGROUP: Final = 64


@dataclass(frozen=True, slots=True)
class Case:
    """One fragment. The first four are those whose x has all codes."""

    name: str
    x: str
    shape: tuple[int, ...]
    scale: str = "float32"
    y: str = "float32"
    zero_point: bool = False
    granularity: Granularity | None = None
    numerics: str = "exact"


CASES: Final = (
    Case("int4_blocked", "int4", (40, 100), "float16", "float16", zero_point=True, granularity=blocked(-1, 32)),
    Case("uint8_per_axis", "uint8", (41, 256), zero_point=True, granularity=per_axis(0)),
    Case("float8", "float8e4m3fn", (41, 256), granularity=per_axis(0)),
    Case("float4_e8m0", "float4e2m1", (128, 64), "float8e8m0", granularity=blocked(-1, 32)),
    Case("uint8_strict", "uint8", (41, 256), zero_point=True, granularity=per_axis(0), numerics="strict"),
    Case("int4_strict", "int4", (40, 100), "float16", "float16", zero_point=True, granularity=blocked(-1, 32), numerics="strict"),
    Case("int2_axis_between", "int2", (3, 7, 5), granularity=per_axis(1), zero_point=True),
    Case("int8_last_axis", "int8", (9, 40), granularity=per_axis(1), zero_point=True),
    Case("int16_ragged", "int16", (3, 37), granularity=per_axis(1), zero_point=True),
    Case("int32_rows", "int32", (4, 64), granularity=blocked(0, 2)),
    Case("float6", "float6e2m3", (5, 33), granularity=per_axis(0)),
    Case("float8_bfloat16", "float8e5m2", (8, 256), "bfloat16", "bfloat16", granularity=per_axis(0)),
    Case("int8_tensor", "int8", (7, 11)),
    Case("scalar", "uint8", (), zero_point=True),
)


@cache
def fragment_of(case: Case, prefix: str = "w") -> Fragment:
    """Return the fragment of a case."""
    return qgen.compile_function(
        "DequantizeLinear",
        x=case.x,
        scale=case.scale,
        y=case.y,
        zero_point=case.zero_point,
        granularity=case.granularity,
        shape=case.shape,
        numerics=case.numerics,
        name=case.name,
        prefix=prefix,
    )


@cache
def inputs_of(case: Case) -> Mapping[str, Array]:
    """Return inputs of a case: scales and zero points at edges, x with every code as often as the next where there is room."""
    kernel = qgen.compile(
        "DequantizeLinear",
        x=case.x,
        scale=case.scale,
        y=case.y,
        zero_point=case.zero_point,
        granularity=case.granularity,
        shape=case.shape,
    )
    arrays = make_inputs(kernel, case.shape, 3)
    dtype = kernel.request.signature.x
    if arrays["x"].size >= 1 << dtype.bits:
        codes = np.arange(arrays["x"].size, dtype=np.uint32) & np.uint32(dtype.mask)
        arrays["x"] = from_codes(codes, dtype, case.shape)
    return arrays


def words_of(fragment: Fragment, inputs: Mapping[str, Array]) -> dict[str, NDArray[np.uint32]]:
    """Return the words of each buffer that the fragment has declared, by its name."""
    operands = [operand for operand in fragment.checked.bound if not operand.is_output]
    names = [operand.name for operand in fragment.legal.operands]
    return {name: pack_words(inputs[operand.name], operand.dtype) for name, operand in zip(names, operands, strict=True)}


def bits_of(fragment: Fragment, inputs: Mapping[str, Array]) -> NDArray[np.uint32]:
    """Return the bits of every element, from the oracle."""
    (result,) = fragment.checked.outputs
    y = evaluate_reference(fragment.checked, fragment.request.granularity, inputs)[result.name]
    return to_codes(y, result.dtype).reshape(-1)


def values_of(fragment: Fragment, bits: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return the values that elements of these bits have."""
    (result,) = fragment.checked.outputs
    narrow = from_codes(bits, result.dtype, bits.shape)
    assert narrow.dtype == numpy_dtype(result.dtype)
    return narrow.astype(np.float32)


def has_promise(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return where WGSL lets no implementation change an f32: zeros of either sign may be changed, as NaN, infinity and subnormals may."""
    return np.isfinite(values) & (np.abs(values) >= np.finfo(np.float32).tiny)


def asking_text(fragment: Fragment, count: int) -> str:
    """Return a shader that stores what each function says of each element: the bits, those of the f32, and those of it in the four."""
    prefix, names = fragment.prefix, [operand.name for operand in fragment.legal.operands]
    return f"""
{declarations(names)}
@group(0) @binding({len(names)}) var<storage, read_write> out: array<u32>;

@compute @workgroup_size({WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3u) {{
    let i = id.x;
    if (i >= {count}u) {{ return; }}
    out[3u * i] = {prefix}_bits(i);
    out[3u * i + 1u] = bitcast<u32>({prefix}_at(i));
    out[3u * i + 2u] = bitcast<u32>({prefix}_load4(i / 4u)[i % 4u]);
}}

{fragment.wgsl}"""


def declarations(names: list[str]) -> str:
    """Return the declarations of buffers, numbered in order."""
    return "\n".join(f"@group(0) @binding({number}) var<storage, read> {name}: array<u32>;" for number, name in enumerate(names))


def asking_program(fragment: Fragment, count: int) -> Program:
    """Return the same as a program for the evaluator; four elements are asked for where there are four, for what is beyond them traps."""
    index = ir.Invocation("x")

    def call(stem: str, type_: Scalar | Vector, arg: ir.Expr) -> ir.Expr:
        return ir.Call(f"{fragment.prefix}_{stem}", (arg,), type_)

    def at(factor: int, number: int) -> ir.Expr:
        return ir.Binary("+", ir.Binary("*", index, _u32(factor), Scalar.U32), _u32(number), Scalar.U32)

    def stored(name: str, place: ir.Expr, value: ir.Expr) -> ir.Stmt:
        return ir.Store(name, place, ir.Bitcast(value, Scalar.U32))

    vector = Vector(Scalar.F32)
    four = ir.Name("four", vector)
    body: list[ir.Stmt] = [
        ir.If(ir.Binary(">=", index, _u32(count), Scalar.BOOL), (ir.Return(None),)),
        ir.Store("bits", index, call("bits", Scalar.U32, index)),
        stored("ones", index, call("at", Scalar.F32, index)),
        ir.If(ir.Binary(">=", index, _u32(count // 4), Scalar.BOOL), (ir.Return(None),)),
        ir.Let(four.name, call("load4", vector, index)),
        *(stored("fours", at(4, number), ir.Component(four, number, Scalar.F32)) for number in range(4)),
    ]
    dtype = fragment.checked.outputs[0].dtype
    outputs = tuple(Operand(name, dtype, is_output=True) for name in ("bits", "ones", "fours")[: 3 if count >= 4 else 2])
    kernel = Kernel("main", tuple(body if count >= 4 else body[:3]), WORKGROUP)
    return replace(fragment.legal, operands=(*fragment.legal.operands, *outputs), kernels=(kernel,))


def _u32(value: int) -> ir.Expr:
    return ir.Literal(value, Scalar.U32)
