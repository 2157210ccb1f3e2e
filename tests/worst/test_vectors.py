"""The models know scalars alone: they are applied to texts without vectors, and use every freedom there."""

from __future__ import annotations

import numpy as np
import pytest

from qgen.check import make_inputs
from qgen.evaluate import Ieee, evaluate_function
from qgen.evaluate.model import Array, Text
from qgen.evaluate.worst import worst_models
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Param
from qgen.ir.rewrite import walk_body
from qgen.ir.types import Scalar, Vector
from qgen.kernel import compile_request
from tests.passes.test_pieces import CASES
from tests.worst.harness import check_under_models, evaluate_under

F32X4 = Vector(Scalar.F32)


class Watched(Ieee):
    """A model that refuses vectors."""

    def __init__(self) -> None:
        self.regrouped: set[str] = set()

    def regroup(self, text: Text) -> Text:
        assert not any(isinstance(node.type, Vector) for node in walk_body(text.body))
        self.regrouped.add(text.name)
        return text

    def adjust(self, node: ir.Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
        assert isinstance(node.type, Scalar)
        assert len(operands) == len(node.operands)
        return ieee


@pytest.mark.parametrize("title", CASES)
def test_models_see_no_vectors(title: str) -> None:
    kernel = compile_request(CASES[title].request)
    model = Watched()
    evaluate_under(kernel, model, make_inputs(kernel, CASES[title].shape or (3, 20), 1, calm=True))
    assert model.regrouped >= {function.name for function in kernel.compiled.legal.functions}


@pytest.mark.parametrize("title", [title for title, case in CASES.items() if case.mode == "exact"])
def test_quick_loops_of_every_kind_give_the_same_bits_under_every_model(title: str) -> None:
    kernel = compile_request(CASES[title].request)
    for seed in range(4):
        inputs = make_inputs(kernel, CASES[title].shape or (3, 20), seed, calm=seed % 2 == 1)
        assert check_under_models(kernel, worst_models("exact"), inputs) == []


def test_a_sum_of_products_in_vectors_may_be_fused() -> None:
    """As for scalars: under some model the product is not rounded before the sum, on every element."""
    params = tuple(Param(name, F32X4) for name in "abc")
    a, b, c = (ir.Name(name, F32X4) for name in "abc")
    total = ir.Binary("+", ir.Binary("*", a, b, F32X4), c, F32X4)
    function = Function("f", params, Vector(Scalar.U32), (ir.Return(ir.Bitcast(total, Vector(Scalar.U32))),))
    near_one = np.array([1 + 2.0**-23], np.float32)
    args = [*[near_one] * 8, *[-np.square(near_one)] * 4]
    assert any(_is_moved(evaluate_function(function, (), args, model).value) for model in worst_models("exact"))
    assert not _is_moved(evaluate_function(function, (), args).value)


def _is_moved(value: object) -> bool:
    assert isinstance(value, dict)
    return all(int(part[0]) & 0x7FFFFFFF != 0 for part in value.values())
