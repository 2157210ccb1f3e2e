"""Names that WGSL keeps for itself: formulas may use them, emitted text does not, and no two names become one."""

from __future__ import annotations

import re

import pytest

from qgen.errors import QgenError
from qgen.ir import nodes as ir
from qgen.ir.rewrite import walk_body
from qgen.passes.rename import RESERVED, _safe, is_reserved
from qgen.shapes import PerAxis
from qgen.validate import validate_texts
from tests.passes.build import DTYPES_OF_FORMULA, FORMULA, lower

FOREIGN = """
    NULL Self abstract alignas alignof and as asm assert async atomic auto await become bitand bitcast bool boolean box break buffer
    byte case catch centroid char class co_await co_return co_yield coherent column_major compl concept const const_assert
    const_cast consteval constexpr constinit continue continuing crate debugger decltype default delete demote device diagnostic
    discard do double dyn dynamic dynamic_cast else enable enum exec explicit export extends extern external false filter final
    finally fixed flat float fn for friend from function global goto groupshared half highp hvec if impl implements import in inline
    inout input instanceof int interface invariant kernel layout let linear local long loop lowp macro main match mediump meta mod
    module move mut mutable namespace native new nil noexcept noinline nointerpolation noperspective not null nullptr of op_
    operator or out output override package packoffset pass patch pixelfragment point precise precision premerge priv private
    protected ptr pub public pure readonly ref register reinterpret_cast require requires resource restrict return sample sampler
    self set shared short signed sizeof smooth snorm static static_assert static_cast std storage str struct subroutine super switch
    target template texture this thread thread_local threadgroup throw trait triangle true try type typedef typeid typename typeof
    uint uniform union unless unorm unsafe unsigned unsized use using var varying vec3u vector virtual void volatile where while
    with workgroup writeonly xor yield
"""
"""Words of C++, Rust, JavaScript, HLSL, GLSL and MSL, from which WGSL took those it reserves."""

AWKWARD = """
op Override(loop: X, var: S per group, array: X per group = 0) -> vec3u: Y
{
    let params = (loop as int) - (array as int);
    let min = params as float32;
    let target = min * var;
    let target_ = target * var;
    let __x = target_ * var;
    let _x = __x * var;
    let _ = _x * var;
    vec3u = _;
}
"""


HIDING = """
op Scale(x: X, x_scale: S per group, x_first: S per group, x_i: S per group, x_round_pack: S per group) -> y: Y
{
    y = (x as float32) * x_scale * x_first * x_i * x_round_pack;
}
"""
"""What a group decides is named by its operand without `x_`: like a function of formula or library, or a name of the entry point."""


def declared(text: str) -> list[str]:
    """Return what an emitted text declares: functions, parameters, buffers, values, loops."""
    return re.findall(r"(?:\blet|\bvar(?:<[^>]*>)?|\bfn)\s+(\w+)|[(,]\s*(\w+): ", text)


def test_every_word_that_a_compiler_refuses_is_reserved() -> None:
    words = sorted({*FOREIGN.split(), *RESERVED})
    texts = [(word, f"fn f() -> u32 {{ let {word} = 1u; return {word}; }}") for word in words]
    refused = {report.label for report in validate_texts(texts, engine="all") if not report.ok}
    assert refused <= RESERVED
    # The rest of RESERVED may be declared, but would hide what emitted text uses, or may not for ever.
    predeclared = {
        "abs",
        "clamp",
        "countLeadingZeros",
        "max",
        "min",
        "round",
        "select",
        "Params",
        "params",
        "id",
        "array",
        "bool",
        "bitcast",
    }
    types = {"f16", "f32", "i32", "u32", "vec2u", "vec3u", "vec4u", "binding_array"}
    assert RESERVED - refused <= predeclared | types | {"partial"}


def test_a_formula_may_use_reserved_names() -> None:
    texts = []
    for shape, granularity in ((None, None), ((3, 4), PerAxis(1))):
        for mode in ("strict", "exact"):
            text = lower(AWKWARD, granularity=granularity, shape=shape, mode=mode).wgsl
            texts.append((f"{shape} {mode}", text))
            names = {name for pair in declared(text) for name in pair if name} - {"id", "params"}
            assert {name for name in names if is_reserved(name)} == set()
    for report in validate_texts(texts, engine="all"):
        assert report.ok, f"{report.label}: {report.raw}"


def test_what_a_group_decides_hides_no_function_and_nothing_of_the_entry_point() -> None:
    texts = [(str(shape), lower(HIDING, granularity=PerAxis(0), shape=shape).wgsl) for shape in (None, (8, 4), (3, 5))]
    for report in validate_texts(texts, engine="all"):
        assert report.ok, f"{report.label}: {report.raw}"


def test_the_bindings_follow_their_operands() -> None:
    lowered = lower(AWKWARD, shape=(8,))
    assert [operand.name for operand in lowered.legal.operands] == ["loop_", "var_", "array_", "vec3u_"]
    loads = {node.buffer for kernel in lowered.legal.kernels for node in walk_body(kernel.body) if isinstance(node, ir.Load)}
    assert loads == {"loop_", "var_", "array_"}


def test_the_program_stays_the_same_object_where_nothing_is_reserved() -> None:
    stages = lower(FORMULA, shape=(8,)).stages
    assert stages["rename-reserved"] is stages["legalise"]
    awkward = lower(AWKWARD, shape=(8,)).stages
    assert awkward["rename-reserved"] is not awkward["legalise"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("x", "x"),
        ("_x", "_x"),
        ("target", "target_"),
        ("target_", "target__"),
        ("__x", "u__x"),
        ("u__x", "uu__x"),
        ("_", "u_"),
        ("u_", "uu_"),
        ("x_", "x_"),
    ],
)
def test_no_two_names_become_one(name: str, safe: str) -> None:
    assert _safe(name) == safe
    assert not is_reserved(safe)


@pytest.mark.parametrize("name", ["mul_f32", "Parts", "x", "x_scale", "scale"])
def test_an_entry_point_may_not_take_a_name_of_the_text(name: str) -> None:
    with pytest.raises(QgenError, match=f"`{name}` cannot name an entry point: it names something else in the text") as caught:
        lower(FORMULA, {**DTYPES_OF_FORMULA, "X": "uint16"}, entry_point=name)
    assert caught.value.code == "QG105"


def test_an_entry_point_has_the_name_that_was_asked_for() -> None:
    lowered = lower(FORMULA, entry_point="compute_scale")
    assert "fn compute_scale(@builtin(global_invocation_id)" in lowered.wgsl
    assert [kernel.name for kernel in lowered.legal.kernels] == ["compute_scale"]
