"""Two fragments in a matrix-vector product that someone wrote by hand."""

from __future__ import annotations

import numpy as np
import pytest

import qgen
from qgen.arrays import from_codes
from qgen.fragment import Fragment
from qgen.validate import validate_texts
from tests.fragment.cases import Array, declarations, words_of
from tests.fragment.devices import STACKS, run_shader

ROWS, COLUMNS = 48, 256
GEMV = """
@group(0) @binding(5) var<storage, read_write> result: array<f32>;

const ROWS = 48u;
const QUADS = 64u;  // fours of columns

var<workgroup> partial: array<f32, 16>;

// One workgroup a row: each invocation multiplies four fours, then one adds up.
@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    var sum = 0.0;
    for (var quad = lane; quad < QUADS; quad += 16u) {
        sum += dot(weight_load4(row * QUADS + quad), input_load4(quad));
    }
    partial[lane] = sum;
    workgroupBarrier();
    if (lane == 0u) {
        var total = 0.0;
        for (var i = 0u; i < 16u; i++) { total += partial[i]; }
        result[row] = total;
    }
}
"""


def fragments() -> tuple[Fragment, Fragment]:
    granularity = qgen.blocked(axis=-1, block_size=32)
    weight = qgen.compile_function(
        "DequantizeLinear",
        x="int4",
        scale="float16",
        y="float32",
        zero_point=True,
        granularity=granularity,
        shape=(ROWS, COLUMNS),
        prefix="weight",
    )
    return weight, qgen.compile_function("DequantizeLinear", x="int8", scale="float32", shape=(COLUMNS,), prefix="input")


def text() -> str:
    """Return the shader: the fragments' bindings, what was written by hand, the fragments."""
    pasted = fragments()
    names = [operand.name for fragment in pasted for operand in fragment.legal.operands]
    return "\n".join([declarations(names), GEMV, *(fragment.wgsl for fragment in pasted)])


def make_inputs() -> tuple[dict[str, Array], dict[str, Array]]:
    """Return inputs whose products and sums are all exact in float32, in whatever order they are added: the scales are powers of two."""
    rng = np.random.default_rng(7)
    groups = (ROWS, COLUMNS // 32)
    weight = {
        "x": from_codes(rng.integers(0, 16, ROWS * COLUMNS), "int4", (ROWS, COLUMNS)),
        "x_scale": (2.0 ** rng.integers(-4, 0, groups)).astype(np.float16),
        "x_zero_point": from_codes(rng.integers(0, 16, ROWS * COLUMNS // 32), "int4", groups),
    }
    return weight, {"x": rng.integers(-128, 128, COLUMNS).astype(np.int8), "x_scale": np.array(0.25, np.float32)}


@pytest.mark.parametrize("stack", STACKS)
def test_the_product_is_that_of_numpy(stack: str) -> None:
    weight, vector = make_inputs()
    buffers = [
        words for fragment, inputs in zip(fragments(), (weight, vector), strict=True) for words in words_of(fragment, inputs).values()
    ]
    found = run_shader(stack, text(), buffers, ROWS, ROWS).view(np.float32)

    def by_column(values: Array) -> Array:
        return np.repeat(values.astype(np.float64), 32, axis=1)

    matrix = (weight["x"].astype(np.float64) - by_column(weight["x_zero_point"])) * by_column(weight["x_scale"])
    want = matrix @ (vector["x"].astype(np.float64) * vector["x_scale"].astype(np.float64))
    assert (np.abs(matrix) @ np.abs(vector["x"].astype(np.float64))).max() < 1 << 18  # in steps of 2^-6: 24 bits hold every partial sum
    np.testing.assert_array_equal(found, want.astype(np.float32))


def test_naga_and_tint_accept_it() -> None:
    assert not [report.raw for report in validate_texts([("gemv", text())], "all") if not report.ok]
