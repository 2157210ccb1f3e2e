"""The operators' formulas against the second reading in `programs`: checked under a binding, both are one expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from qgen.dtypes import DType, Exact
from qgen.formulas import find_operator
from qgen.frontend.check_op import Binding, check_op
from qgen.ir.nodes import Expr, Let, Name, Stmt, Typed, Write
from qgen.ir.program import Program
from qgen.signatures import Signature, distinct_key, enumerate_signatures
from tests.oracle.programs import build_program


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_a_formula_is_what_semantics_says(op: str) -> None:
    signatures = {distinct_key(signature, "per_tensor"): signature for signature, _ in enumerate_signatures() if signature.op == op}
    assert len(signatures) > 100
    for signature in signatures.values():
        formula, reading = _check(signature), build_program(signature)
        assert formula.operands == reading.operands
        assert _written(formula.kernels[0].body) == _written(reading.kernels[0].body)


def _check(signature: Signature) -> Program:
    source, op = find_operator(signature.op)
    absent = frozenset[str]() if signature.zero_point else frozenset({op.operands[2].name})
    attributes: dict[str, DType | Exact | bool] = {}
    if signature.division is not None:
        attributes = {"precision": signature.division, "saturate": signature.saturate}
    return check_op(source, op, Binding({"X": signature.x, "S": signature.scale, "Y": signature.y}, attributes, absent))


def _written(body: tuple[Stmt, ...]) -> dict[str, Expr]:
    """Return what a body writes, with the names that it gives replaced by their values."""
    names: dict[str, Expr] = {}
    written: dict[str, Expr] = {}
    for statement in body:
        match statement:
            case Let(name, value):
                names[name] = _inline(value, names)
            case Write(operand, value):
                written[operand] = _inline(value, names)
            case _:
                raise TypeError(statement)
    return written


def _inline(expr: Expr, names: Mapping[str, Expr]) -> Expr:
    match expr:
        case Name(name):
            return names[name]
        case Typed(_, args):
            return replace(expr, args=tuple(_inline(arg, names) for arg in args))
        case _:
            return expr
