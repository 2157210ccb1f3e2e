"""The words of the errors of formulas and functions, one golden a code; each from the shortest text that has the fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from qgen.dtypes import DTYPES, DType
from qgen.errors import QgenError, Span
from qgen.frontend.check_fn import Declarations, check_clause, check_fn, struct_of
from qgen.frontend.check_op import Binding, check_op
from qgen.frontend.parse import parse_source
from qgen.ir.program import Function, Program
from tests.goldens import Goldens

BINDING = {"X": DTYPES["float32"], "S": DTYPES["float32"], "Y": DTYPES["uint8"]}


def check_formula(
    body: str,
    head: str = "x: X, s: S per group, z: Y per group = 0",
    *,
    results: str = "y: Y",
    attrs: str = "",
    absent: tuple[str, ...] = (),
    **dtypes: str,
) -> Program:
    """Return the program of an operator, checked under BINDING and `dtypes`."""
    source = parse_source(f"op Test({head}) -> {results}\n{attrs}{{\n    {body}\n}}\n", "test.qg")
    bound = BINDING | {name: DTYPES[dtype] for name, dtype in dtypes.items()}
    return check_op(source, source.ops[0], Binding(bound, {}, frozenset(absent)))


def check_function(text: str, format_: DType | None = None) -> Function:
    """Return the first function of a text, checked together with the others."""
    source = parse_source(text, "test.qg")
    known = Declarations({fn.name: fn for fn in source.fns}, {struct.name: struct_of(struct) for struct in source.structs})
    fn = source.fns[0]
    for clause in fn.clauses:
        check_clause(source, fn, clause, format_)
    return check_fn(source, fn, known, format_)


@dataclass(frozen=True, slots=True)
class Case:
    """What is refused, with which code, and what the caret marks."""

    code: str
    run: Callable[[], object]
    marked: str


def refuse(code: str, marked: str, body: str, *args: str, **kwargs: Any) -> Case:  # noqa: ANN401 - what check_formula takes
    return Case(code, lambda: check_formula(body, *args, **kwargs), marked)


def refuse_fn(code: str, marked: str, text: str, format_: DType | None = None) -> Case:
    return Case(code, lambda: check_function(text, format_), marked)


ROUNDED = "round_even(x / s)"

FORMULAS: Mapping[str, Case] = {
    "unknown name": refuse("QG010", "scale", "y = (x / scale) as Y saturating;"),
    "mixed float types": refuse("QG011", "x / s", "y = round_even(x / s) as Y saturating;", S="float16"),
    "round an integer": refuse("QG011", "round_even(z as int)", "y = round_even(z as int) as Y saturating;"),
    "integers divided": refuse("QG011", "(z as int) / (z as int)", "y = ((z as int) / (z as int)) as Y saturating;"),
    "minus of a float": refuse("QG011", "-x", "y = round_even(-x) as Y saturating;"),
    "result of another type": refuse("QG011", "y = x;", "y = x;"),
    "absent result": refuse("QG011", "y = z;", "y = z;", absent=("z",)),
    "too many arguments": refuse("QG037", "round_even(x, s)", "y = round_even(x, s) as Y saturating;"),
    "too few arguments": refuse("QG037", "max(x)", "y = round_even(max(x)) as Y saturating;"),
    "int with bounds": refuse("QG019", "z as int saturating", "y = (z as int saturating) as Y saturating;"),
    "exact that wraps": refuse("QG019", "x as exact wrapping", "y = round_even(x as exact wrapping) as Y saturating;"),
    "a float that wraps": refuse("QG019", "x as float16 wrapping", "y = round_even(x as float16 wrapping) as Y saturating;"),
    "unknown function": refuse("QG012", "floor(x)", "y = floor(x) as Y saturating;"),
    "bits": refuse("QG013", "x & s", "y = x & s;"),
    "comparison": refuse("QG013", "x < s", "y = x < s;"),
    "not a condition": refuse("QG027", "true", "y = if true then z else z;"),
    "a comparison of order": refuse("QG027", "x < s", "y = if x < s then z else z;"),
    "two dtypes compared": refuse("QG011", "x == z", "y = if x == z then z else z;"),
    "is an integer NaN": refuse("QG011", "is_nan(z)", "y = if is_nan(z) then z else z;"),
    "branches of two types": refuse("QG011", "if x == s then z else x", "y = if x == s then z else x;"),
    "greatest of two types": refuse("QG011", "max(x, z)", "y = max(x, z);"),
    "greatest of integers": refuse("QG011", "max(z, z)", "y = max(z, z);"),
    "reduction of an integer": refuse("QG011", "reduce max over group (z)", "y = reduce max over group (z);"),
    "unknown reduction": refuse("QG012", "reduce sum over group (x)", "y = (reduce sum over group (x)) as Y;"),
    "reduction of a reduction": refuse(
        "QG038",
        "let a = reduce max over group (reduce min over group (x));",
        "let a = reduce max over group (reduce min over group (x)); y = z;",
    ),
    "reduction of a named reduction": refuse(
        "QG038",
        "let c = reduce max over group (x / b);",
        "let a = reduce min over group (x); let b = a / s; let c = reduce max over group (x / b); y = c as Y;",
    ),
    "a group's result that is an element's": refuse(
        "QG028", "t = x;", "y = z; t = x;", "x: X, z: Y", results="y: Y, t: X per group"
    ),
    "two results for an element": refuse(
        "QG029", "op Test(x: X, z: Y) -> y: Y, t: X", "y = z; t = x;", "x: X, z: Y", results="y: Y, t: X"
    ),
    "an attribute that is neither true nor false": refuse("QG022", "attr a: bool = maybe", "y = z;", attrs="attr a: bool = maybe\n"),
    "decimal": refuse("QG013", "0.5", "y = round_even(x * 0.5) as Y saturating;"),
    "return": refuse("QG013", "return x;", "return x;"),
    "require": refuse("QG013", "require x;", "require x;"),
    "absent factor": refuse("QG014", "z as float32", "y = ((x / s) * (z as float32)) as Y saturating;", absent=("z",)),
    "absent subtrahend's minus": refuse("QG014", "-(z as int)", "y = -(z as int) as Y saturating;", absent=("z",)),
    "absent minuend": refuse("QG014", "z as int", "y = ((z as int) - 1) as Y saturating;", absent=("z",)),
    "unknown type": refuse("QG015", "x as real", "y = round_even(x as real) as Y saturating;"),
    "unknown type of an operand": refuse("QG015", "x: T", "y = z;", "x: T, z: Y"),
    "unknown default of an attribute": refuse("QG015", "attr p: dtype = T", "y = z;", attrs="attr p: dtype = T\n"),
    "float to int": refuse("QG016", "x as int", "y = ((x as int) + (z as int)) as Y saturating;"),
    "rounded to float": refuse("QG017", f"{ROUNDED} as float32", f"y = ({ROUNDED} as float32) as Y saturating;"),
    "rounded wraps": refuse("QG017", f"{ROUNDED} as int32 wrapping", f"y = ({ROUNDED} as int32 wrapping) as Y saturating;"),
    "rounded subtracted": refuse("QG017", f"(z as int) - {ROUNDED}", f"y = ((z as int) - {ROUNDED}) as Y saturating;"),
    "rounded negated": refuse("QG017", f"-{ROUNDED}", f"y = -{ROUNDED} as Y saturating;"),
    "rounded twice": refuse("QG017", f"{ROUNDED} + {ROUNDED}", f"y = ({ROUNDED} + {ROUNDED}) as Y saturating;"),
    "rounded multiplied": refuse("QG017", f"{ROUNDED} * 2", f"y = ({ROUNDED} * 2) as Y saturating;"),
    "rounded saturates wide": refuse("QG018", f"{ROUNDED} as Y saturating", f"y = {ROUNDED} as Y saturating;", Y="int32"),
    "rounded shifted far": refuse("QG018", f"({ROUNDED} + 262145) as Y saturating", f"y = ({ROUNDED} + 262145) as Y saturating;"),
    "may not fit": refuse("QG019", "((z as int) + 1) as Y", "y = ((z as int) + 1) as Y;"),
    "rounded without saturating": refuse("QG019", f"{ROUNDED} as Y", f"y = {ROUNDED} as Y;"),
    "wraps to a byte": refuse("QG019", "((z as int) + 1) as Y wrapping", "y = ((z as int) + 1) as Y wrapping;"),
    "absent but not optional": refuse("QG020", "s: S", "y = z;", "x: X, s: S, z: Y", absent=("s",)),
    "no value": refuse("QG021", "y: Y", "if Y is float { y = z; }"),
    "attribute of another kind": refuse("QG022", "attr axis: int = true", "y = z;", attrs="attr axis: int = true\n"),
    "defined twice": refuse("QG023", "let q = s;", "let q = x; let q = s; y = z;"),
    "an operand's name": refuse("QG023", "let x = s;", "let x = s; y = z;"),
    "assigned twice": refuse("QG023", "y = z;", "y = z; y = z;"),
    "no result": refuse("QG024", "q = s;", "let q = x; q = s; y = z;"),
    "unknown class": refuse("QG025", "Y is whole", "if Y is whole { y = z; }"),
    "class of no type": refuse("QG025", "x is integer", "if x is integer { y = z; }"),
    "not known when checked": refuse("QG026", "x < s", "if x < s { y = z; }"),
}  # fmt: skip

FUNCTIONS: Mapping[str, Case] = {
    "unknown name in a function": refuse_fn("QG010", "y", "fn f(x: u32) -> u32 { return y; }"),
    "unknown type of a parameter": refuse_fn("QG015", "word", "fn f(x: word) -> u32 { return x; }"),
    "defined twice in a function": refuse_fn("QG023", "let x = 1;", "fn f(x: u32) -> u32 { let x = 1; return x; }"),
    "no return": refuse_fn("QG030", "fn f(x: bool) -> u32 {", "fn f(x: bool) -> u32 {\n    if x { return 1; }\n}"),
    "no format": refuse_fn("QG031", "x: u32", "fn f(x: u32) -> u32 is x { return x; }"),
    "assigns": refuse_fn("QG032", "x = 1;", "fn f(x: u32) -> u32 { x = 1; return x; }"),
    "another type": refuse_fn("QG033", "x", "fn f(x: int<8>) -> u32 { return x + 1; }"),
    "operands of two types": refuse_fn("QG033", "y", "fn f(x: u32, y: i32) -> u32 { return x + y; }"),
    "no condition": refuse_fn("QG033", "x", "fn f(x: u32) -> u32 { if x { return 1; } return 2; }"),
    "no field": refuse_fn("QG034", "p.t", "struct P { s: u32 }\nfn f(p: P) -> u32 { return p.t; }"),
    "no property": refuse_fn("QG034", "F.mantissa", "fn f<F: signed>(x: F) -> F { return F.mantissa; }", DTYPES["int8"]),
    "formula's words": refuse_fn("QG035", "x as uint8", "fn f(x: u32) -> u32 { return x as uint8; }"),
    "no function": refuse_fn("QG036", "sqrt(x)", "fn f(x: u32) -> u32 { return sqrt(x); }"),
    "arity": refuse_fn("QG037", "g(x, x)", "fn f(x: u32) -> u32 { return g(x, x); }\nfn g(x: u32) -> u32 { return x; }"),
    "arity of a struct": refuse_fn("QG037", "P(x)", "struct P { s: u32, t: u32 }\nfn f(x: u32) -> P { return P(x); }"),
}  # fmt: skip

CASES = {**FORMULAS, **FUNCTIONS}
SHOWN = {case.code: title for title, case in reversed(CASES.items())} | {"QG019": "may not fit", "QG037": "arity"}
"""The case that is the golden of its code: the first, but for two."""


def fail(case: Case) -> QgenError:
    with pytest.raises(QgenError) as caught:
        case.run()
    assert caught.value.code == case.code
    return caught.value


@pytest.mark.parametrize("title", CASES)
def test_each_fault_has_its_code_and_the_caret_marks_it(title: str) -> None:
    error = fail(CASES[title])
    assert isinstance(error.place, Span)
    assert error.source is not None
    line = error.source.splitlines()[error.place.line - 1]
    assert line[error.place.column - 1 : error.place.end_column - 1] == CASES[title].marked
    assert error.hint


@pytest.mark.parametrize("title", FORMULAS)
def test_errors_of_formulas_say_under_which_binding(title: str) -> None:
    error = fail(FORMULAS[title])
    assert "(with X = float32, S = float" in error.message
    assert ("no z" in error.message) == ("absent" in title and "optional" not in title)


@pytest.mark.parametrize("title", SHOWN.values(), ids=SHOWN)
def test_errors_read_well(title: str, golden: Goldens) -> None:
    error = fail(CASES[title])
    golden.check(f"errors/{error.code}.err", f"{error}\n")


@pytest.mark.parametrize("binding", [Binding(BINDING, {"saturat": True}), Binding(BINDING, {}, frozenset({"zero_point"}))], ids=str)
def test_what_a_binding_names_must_be_there(binding: Binding) -> None:
    source = parse_source("op Test(x: X, z: Y) -> y: Y { y = z; }", "test.qg")
    with pytest.raises(QgenError, match=r"has no `(saturat|zero_point)`") as caught:
        check_op(source, source.ops[0], binding)
    assert caught.value.code == "QG020"


@pytest.mark.parametrize("depth", [400, 1500, 20_000])
def test_what_is_nested_too_deeply_is_refused(depth: int, golden: Goldens) -> None:
    text = f"op Test(x: X) -> y: X {{\n    y = {'(' * depth}x{' as float16 as float32)' * depth};\n}}\n"
    with pytest.raises(QgenError) as caught:
        check_op(parse_source(text, "test.qg"), parse_source(text, "test.qg").ops[0], Binding(BINDING, {}))
    golden.check("errors/QG002.err", f"{caught.value}\n")


def test_the_binding_of_an_error_names_types_attributes_and_what_is_absent() -> None:
    binding = Binding({"X": DTYPES["uint8"]}, {"precision": DTYPES["float16"], "saturate": False}, frozenset({"z", "a"}))
    assert str(binding) == "X = uint8, precision = float16, saturate = false, no a, no z"
