"""Every function of the numerics library gives what its clause says under every model of its mode, on all lanes whose requires hold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from qgen.evaluate import ArithmeticModel, evaluate_function
from qgen.evaluate.worst import worst_models
from qgen.ir.types import Scalar
from tests.numerics.clauses import Clause, Codes, library_clauses
from tests.numerics.samples import arguments

CLAUSES = library_clauses()
ANYWHERE = [clause for clause in CLAUSES if clause.pattern.condition is None]
COUNT = 20_000


def failures(clause: Clause, args: tuple[Codes, ...], models: Iterable[ArithmeticModel]) -> list[str]:
    """Return for each model under which the function is wrong the first lane where it is: arguments, found and wanted code."""
    wanted = clause.expected(args)
    found = []
    for model in models:
        result = evaluate_function(clause.function, clause.callees, args, model)
        assert isinstance(result.value, np.ndarray)
        lanes = np.flatnonzero(result.held & (result.value.astype(np.int64) != wanted.astype(np.int64)))
        if lanes.size:
            at = int(lanes[0])
            given = ", ".join(hex(arg[at]) for arg in args)
            found.append(f"{clause}({given}) = {hex(result.value[at])} under {model.name}, wanted {hex(wanted[at])}; {lanes.size} lanes")
    return found


@pytest.mark.parametrize("clause", ANYWHERE, ids=str)
def test_a_function_without_a_condition_is_right_under_every_strict_model(clause: Clause) -> None:
    assert failures(clause, arguments(clause, seed=5, count=COUNT), worst_models("strict")) == []


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_every_function_is_right_under_every_exact_model(clause: Clause) -> None:
    assert failures(clause, arguments(clause, seed=6, count=COUNT), worst_models("exact")) == []


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_no_f32_passes_between_functions(clause: Clause) -> None:
    """What the models rewrite, they rewrite within one function: an f32 that passed on could be fused elsewhere."""
    for function in clause.callees.values():
        types = [function.result, *(param.type for param in function.params)]
        fields = [type_ for struct in types if not isinstance(struct, Scalar) for _, type_ in struct.fields]
        assert Scalar.F32 not in [*types, *fields]
