"""Every `is` clause is a property: the clause computed exactly by the oracle, the function by the evaluator, the same codes."""

from __future__ import annotations

import pytest

from qgen.dtypes import DType
from qgen.frontend.check_fn import check_clause, instance_name
from qgen.ir.nodes import Typed
from qgen.numerics import library
from tests.numerics.clauses import Clause, clause_of, library_clauses, library_texts, mismatches
from tests.numerics.samples import arguments

CLAUSES = library_clauses()


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_the_function_computes_what_its_clause_says(clause: Clause) -> None:
    args = arguments(clause, seed=1, count=300_000)
    assert mismatches(clause, args) == []


def test_every_function_with_a_clause_is_held_for_every_format_of_its_class() -> None:
    declared = {
        instance_name(fn.name, format_)
        for source in library.sources()
        for fn in source.fns
        for format_ in library.formats(fn)
        if any(isinstance(check_clause(source, fn, clause, format_).expr, Typed) for clause in fn.clauses)
    }
    assert {str(clause) for clause in CLAUSES} == declared


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
