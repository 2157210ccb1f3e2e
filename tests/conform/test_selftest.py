"""The self-test: it asks for no more than `exact` relies on, finds each way to be less, and can be emitted for other hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from jsonschema import Draft202012Validator

from qgen.conform.bounds import OPERATIONS
from qgen.conform.operands import make_operands
from qgen.conform.selftest import Verdict, emit_selftest, judge_results, run_selftest, selftest_kernel
from qgen.emit.plain import emit_plain
from qgen.errors import InternalError
from qgen.evaluate import ArithmeticModel
from qgen.evaluate.worst import worst_models
from qgen.ir.program import Program, Stage
from qgen.sidecar.plan import plan_dispatch
from qgen.validate import validate_texts
from tests.goldens import Goldens
from tests.runtime.stacks import STACKS

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


def operands() -> tuple[F32, F32]:
    a, b = (np.array(words, np.uint32).view(np.float32) for words in zip(*make_operands(), strict=True))
    return a, b


def ieee() -> dict[str, F32]:
    a, b = operands()
    with np.errstate(all="ignore"):
        return {"sum": a + b, "difference": a - b, "product": a * b, "quotient": a / b}


def judge(**changed: F32) -> Verdict:
    return judge_results("a device", {name: result.view(np.uint32) for name, result in (ieee() | changed).items()})


def test_operands_are_many_and_distinct() -> None:
    pairs = make_operands()
    assert len(pairs) == len(set(pairs)) > 20_000
    assert make_operands() == pairs


def test_ieee_arithmetic_passes() -> None:
    verdict = judge()
    assert verdict.ok
    assert verdict.first is None
    assert min(verdict.tested.values()) > 10_000
    assert "\n" not in str(verdict)


@pytest.mark.parametrize("device", ["cpu", *STACKS])
def test_every_stack_passes(device: str) -> None:
    verdict = run_selftest(device)
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("model", worst_models("exact"), ids=lambda model: str(model.name))
def test_it_asks_for_no_more_than_exact_relies_on(model: ArithmeticModel) -> None:
    verdict = run_selftest("cpu", model)
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("model", worst_models("strict"), ids=lambda model: str(model.name))
def test_what_rounds_to_either_neighbour_fails(model: ArithmeticModel) -> None:
    verdict = run_selftest("cpu", model)
    assert not verdict.ok
    assert min(verdict.wrong[name] for name in ("sum", "difference", "product")) > 1000
    assert verdict.wrong["quotient"] == 0
    assert "take `strict`" in str(verdict)


def exact(name: str) -> F64:
    """Return sums and products in float64, exact up to a bit far below the last one of an f32."""
    a, b = (value.astype(np.float64) for value in operands())
    return {"sum": a + b, "difference": a - b, "product": a * b}[name]


def half_away(value: F64) -> F32:
    nearest = value.astype(np.float32)
    away = np.nextafter(nearest, np.where(value > 0, np.float32(np.inf), np.float32(-np.inf)).astype(np.float32))
    is_tie = np.abs(nearest.astype(np.float64) - value) == np.abs(away.astype(np.float64) - value)
    return np.where(is_tie & (np.abs(away) > np.abs(nearest)), away, nearest)


def toward_zero(value: F64) -> F32:
    nearest = value.astype(np.float32)
    return np.where(np.abs(nearest.astype(np.float64)) > np.abs(value), np.nextafter(nearest, np.float32(0)), nearest)


def without_sticky(value: F64) -> F32:
    """Round from three bits below the last, as without a sticky bit."""
    significand, exponent = np.frexp(value)
    whole: F64 = np.ldexp(np.trunc(significand * 2.0**27), exponent - 27)
    return whole.astype(np.float32)


@pytest.mark.parametrize("wrong", [half_away, toward_zero, without_sticky])
@pytest.mark.parametrize("name", ["sum", "difference", "product"])
def test_other_roundings_are_found(name: str, wrong: Callable[[F64], F32]) -> None:
    with np.errstate(all="ignore"):
        verdict = judge(**{name: wrong(exact(name))})
    assert not verdict.ok
    assert verdict.wrong[name] > 50
    assert sum(verdict.wrong.values()) == verdict.wrong[name]


def reciprocal() -> F32:
    a, b = operands()
    with np.errstate(all="ignore"):
        return a * (np.float32(1) / b)


def ulps_off(count: int) -> F32:
    found = ieee()["quotient"]
    with np.errstate(all="ignore"):
        for _ in range(count):
            found = np.nextafter(found, np.float32(np.inf))
    return found


@pytest.mark.parametrize(("found", "is_right"), [(ulps_off(1), True), (reciprocal(), True), (ulps_off(3), False), (ulps_off(4), False)])
def test_quotients_may_be_two_and_a_half_ulp_off(found: F32, is_right: bool) -> None:  # noqa: FBT001 - a parameter of the table
    assert judge(quotient=found).ok is is_right


def test_nan_and_a_wrong_sign_are_wrong() -> None:
    for wrong in (np.full_like(ieee()["product"], np.nan), -ieee()["product"]):
        assert judge(product=wrong).wrong["product"] > 10_000


def test_a_failure_has_its_bits() -> None:
    product = ieee()["product"].copy()
    product[5] = np.nextafter(product[5], np.float32(np.inf))
    a, b = make_operands()[5]
    verdict = judge(product=product)
    assert verdict.wrong == {"sum": 0, "difference": 0, "product": 1, "quotient": 0}
    assert f"{a:#010x} * {b:#010x} gives {product.view(np.uint32)[5]:#010x} instead of {ieee()['product'].view(np.uint32)[5]:#010x}" in str(
        verdict
    )


def test_the_kernel_is_accepted_and_as_it_was(golden: Goldens) -> None:
    probe = selftest_kernel()
    reports = validate_texts([("selftest", probe.wgsl)], engine="all")
    assert {report.engine for report in reports if report.ok} == {"naga-wasm", "tint"}
    golden.check("conform/selftest.wgsl", probe.wgsl)


def test_only_entry_points_are_emitted_plain() -> None:
    with pytest.raises(InternalError, match="entry points alone"):
        emit_plain(Program("p", Stage.CHECKED, (), ()), [])


def test_emitted_files_are_enough_for_another_host(tmp_path: Path) -> None:
    wgsl, sidecar_path, vectors_path = emit_selftest(tmp_path)
    sidecar = json.loads(sidecar_path.read_text(encoding="utf-8"))
    schema = Path(__file__).parents[2] / "qgen" / "sidecar" / "schema.json"
    Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(sidecar)
    vectors = json.loads(vectors_path.read_text(encoding="utf-8"))
    assert vectors["kernel"] == sidecar_path.name
    assert sidecar["passes"][0]["wgsl"]["file"] == wgsl.name
    words = vectors["words"]
    count = len(words["a"])
    assert plan_dispatch(sidecar, {"a": (count,), "b": (count,)}).passes[0].dispatch == (-(-count // 64), 1, 1)
    for name, result in ieee().items():
        least, greatest = (
            np.array([np.nan if word is None else np.uint32(word).view(np.float32) for word in words[f"{name}.{end}"]])
            for end in ("least", "greatest")
        )
        assert np.all(np.isnan(least) | ((least <= result) & (result <= greatest)))
        assert np.count_nonzero(~np.isnan(least)) > 10_000
    assert set(words) == {"a", "b", *(f"{name}.{end}" for name in OPERATIONS for end in ("least", "greatest"))}
