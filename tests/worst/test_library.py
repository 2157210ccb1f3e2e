"""Every function of the numerics library gives what its clause says under every model of its mode, on all lanes whose requires hold."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import numpy as np
import pytest

from qgen.evaluate import ArithmeticModel
from qgen.evaluate.worst import worst_models
from qgen.ir.types import Scalar, Struct
from qgen.numerics.library import candidates, closure
from tests.numerics.clauses import Clause, Codes, library_clauses
from tests.numerics.samples import arguments

CLAUSES = library_clauses()
ANYWHERE = [clause for clause in CLAUSES if clause.pattern.condition is None]
COUNT = 20_000
DIRECTED = worst_models("exact")[:4]


def failures(clause: Clause, args: tuple[Codes, ...], models: Iterable[tuple[ArithmeticModel, ArithmeticModel]]) -> list[str]:
    """Return for each pair of models, one for the value and one for the requires, the first lane that is wrong."""
    wanted = clause.expected(args)
    found = []
    for model, deciding in models:
        value, held = clause.actual(args, model)
        held = held if deciding is model else clause.actual(args, deciding)[1]
        lanes = np.flatnonzero(held & (value.astype(np.int64) != wanted.astype(np.int64)))
        if lanes.size:
            at = int(lanes[0])
            given = ", ".join(hex(int(arg[at])) for arg in args)
            found.append(f"{clause}({given}) is {int(value[at]):#x} under {model.name}, wanted {int(wanted[at]):#x}; {lanes.size} lanes")
    return found


@pytest.mark.parametrize("clause", ANYWHERE, ids=str)
def test_a_function_without_a_condition_is_right_under_every_strict_model(clause: Clause) -> None:
    assert failures(clause, arguments(clause, seed=5, count=COUNT), [(model, model) for model in worst_models("strict")]) == []


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_every_function_is_right_under_every_exact_model(clause: Clause) -> None:
    assert failures(clause, arguments(clause, seed=6, count=COUNT), [(model, model) for model in worst_models("exact")]) == []


@pytest.mark.parametrize("clause", [clause for clause in CLAUSES if clause.is_partial], ids=str)
def test_a_function_is_right_where_its_requires_are_tested_by_other_operations(clause: Clause) -> None:
    """The compiler writes the requires as a function of its own, whose operations need not give the same."""
    assert failures(clause, arguments(clause, seed=7, count=COUNT), permutations(DIRECTED, 2)) == []


def test_no_f32_passes_between_functions() -> None:
    """What the models rewrite, they rewrite within one function: an f32 that passed on could be fused elsewhere."""
    for found in candidates().values():
        for candidate in found:
            for function in closure(candidate.name, candidate.format):
                types = [function.result, *(param.type for param in function.params)]
                fields = [type_ for struct in types if isinstance(struct, Struct) for _, type_ in struct.fields]
                assert Scalar.F32 not in [*types, *fields]


def hard_float16_quotients() -> tuple[Codes, Codes]:
    """Return float16 operands whose quotient lies within 2^-20 of the middle between an integer and a half and the float16 beside it.

    With significands of 11 bits: odd M of 12 bits, the middle, and Y with M * Y = X * 2^s ± 1 or 2, so that X / Y is beside M / 2^s.
    """
    found = []
    divisors = np.arange(1024, 2048)
    for exponent in range(10):
        step = 1 << (9 - exponent)
        for tie in range(1024, 2048):
            if tie % (2 * step) != step:
                continue
            for middle in (2 * tie - 1, 2 * tie + 1):
                products = middle * divisors
                for places in (11, 12, 13):
                    dividends = (products + (1 << (places - 1))) >> places
                    near = (np.abs(products - (dividends << places)) <= 2) & (dividends >= 1024) & (dividends < 2048)
                    found += [
                        (dividend, places + exponent - 21, divisor)
                        for dividend, divisor in zip(dividends[near], divisors[near], strict=True)
                    ]
    dividend, power, divisor = np.array(found).T
    x, y = np.ldexp(dividend.astype(np.float64), power), np.ldexp(divisor.astype(np.float64), -10)
    codes = [value.astype(np.float16).view(np.uint16).astype(np.uint32) for value in (x, y)]
    return np.concatenate([codes[0], codes[0] | 0x8000]), np.tile(codes[1], 2)


@pytest.mark.parametrize("clause", [clause for clause in CLAUSES if clause.name == "rint_quotient_f16"], ids=str)
def test_float16_quotients_that_are_rounded_twice_are_right(clause: Clause) -> None:
    args = hard_float16_quotients()
    assert args[0].size > 1000
    models = worst_models("exact")
    assert failures(clause, args, [*((model, model) for model in models), *permutations(DIRECTED, 2)]) == []
    assert np.count_nonzero(~clause.actual(args)[1]) > 1000
