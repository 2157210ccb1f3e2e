"""Every `is` clause is a property: the clause computed exactly by the oracle, the function by the evaluator, the same codes."""

from __future__ import annotations

import pytest

from qgen.dtypes import DType
from qgen.frontend.check_fn import check_clause, instance_name
from qgen.ir.nodes import Op, Typed
from qgen.ir.types import Scalar
from qgen.numerics import library
from qgen.numerics.normalise import normalise
from tests.numerics.clauses import Clause, clause_of, library_clauses, library_texts, mismatches
from tests.numerics.samples import arguments

CLAUSES = library_clauses()


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_the_function_computes_what_its_clause_says(clause: Clause) -> None:
    args = arguments(clause, seed=1, count=300_000)
    assert mismatches(clause, args) == []


def test_every_clause_is_held_for_every_format_of_its_class() -> None:
    declared = [
        (instance_name(fn.name, format_), normalise(check_clause(source, fn, clause, format_).expr))
        for source in library.sources()
        for fn in source.fns
        for format_ in library.formats(fn)
        for clause in fn.clauses
    ]
    assert len(declared) > 80
    held = [(str(clause), clause.pattern.expr) for clause in CLAUSES]
    assert sorted(held, key=repr) == sorted(declared, key=repr)


CONDITIONS = [clause for clause in CLAUSES if clause.pattern.expr.type is Scalar.BOOL]


def test_the_conditions_are_those_of_the_language() -> None:
    assert {clause.pattern.expr.op for clause in CONDITIONS if isinstance(clause.pattern.expr, Typed)} == {Op.EQUAL, Op.IS_NAN}


@pytest.mark.parametrize("clause", CONDITIONS, ids=str)
def test_a_condition_is_held_where_it_is_true_and_where_it_is_false(clause: Clause) -> None:
    decided = clause.expected(arguments(clause, seed=1, count=300_000))
    assert 500 < decided.sum() < decided.size - 500


def test_sixteen_bit_arguments_are_exhaustive() -> None:
    sixteen = [clause for clause in CLAUSES if [of.bits for _, of in clause.pattern.params if isinstance(of, DType)] == [16]]
    assert len(sixteen) >= 4
    for clause in sixteen:
        (codes,) = arguments(clause, seed=0, count=100)
        assert codes.size == 1 << 16


def test_the_second_reading_of_the_texts_finds_the_same_functions() -> None:
    """What the seeded faults are inserted into is the library itself, but for the folding of constants."""
    texts = library_texts()
    for clause in CLAUSES:
        read = clause_of(texts, str(clause))
        assert read.pattern.params == clause.pattern.params
        assert read.function.params == clause.function.params
        assert read.functions.keys() == clause.functions.keys()
