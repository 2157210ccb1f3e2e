"""Functions on four elements at a time: every kind of statement, and for each function of the library what it gives for each alone."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgen.evaluate import evaluate_function
from qgen.frontend.check_fn import Declarations, check_fn
from qgen.frontend.parse import parse_source
from qgen.ir import nodes as ir
from qgen.ir.print import print_program
from qgen.ir.program import Function, Kernel, Operand, Program, Stage
from qgen.ir.rewrite import called_functions, reachable_functions, walk_body
from qgen.ir.types import LANES, Scalar, Struct, Vector
from qgen.ir.verify import verify
from qgen.passes.guard import guard_quick
from qgen.passes.widen import NotWidenableError, Widener, is_widenable, spread
from tests.goldens import Goldens
from tests.ir.every_node import OPERANDS
from tests.numerics.clauses import Clause, Codes, library_clauses
from tests.numerics.samples import arguments

CLAUSES = library_clauses()
STATEMENTS = """
fn pair(x: u32, s: u32) -> u32 {
    let shared = s >> 3;
    if s == 0 { return shared; }
    let each = x ^ shared;
    if each > s {
        let less = each - s;
        if less < 5 { return helper(less, s); }
    } else {
        let less = s - each;
        if shared > 4 && less > 2 { return helper(s, less); }
        return if shared == less then helper(less, less) else shared;
    }
    return clz(each) + shared;
}

fn helper(x: u32, s: u32) -> u32 {
    return min(x, 7) + u32(max(i32(s), -3)) + u32(!(x == s || x < 3));
}
"""


def functions_of(text: str) -> dict[str, Function]:
    source = parse_source(text, "test.qg")
    known = Declarations({fn.name: fn for fn in source.fns}, {})
    return {fn.name: check_fn(source, fn, known, None) for fn in source.fns}


def widened(function: Function, table: dict[str, Function], varies: tuple[bool, ...]) -> tuple[Function, dict[str, Function]]:
    """Return the four-lane version, verified with all that it calls, and those functions by name."""
    widener = Widener(table)
    wide = widener.function(function.name, varies)
    known = table | widener.functions
    verify(Program("Test", Stage.LEGAL, OPERANDS, (), (wide, *reachable_functions([wide.body], known))), "the test")
    return wide, known


def assert_alike(function: Function, table: dict[str, Function], args: tuple[Codes, ...], varies: tuple[bool, ...]) -> None:
    """Hold the four-lane version on the scalar one; `args` have whole quads of elements, and where they do not vary the first of each."""
    wide, known = widened(function, table, varies)
    wide_args: list[Codes] = []
    scalar_args: list[Codes] = []
    for arg, each in zip(args, varies, strict=True):
        quads = arg.reshape(-1, LANES)
        wide_args += [np.ascontiguousarray(column) for column in (quads.T if each else quads[:, :1].T)]
        scalar_args.append(arg if each else np.repeat(quads[:, 0], LANES))
    scalar = evaluate_function(function, table, scalar_args)
    assert scalar.held.all()
    found = evaluate_function(wide, known, wide_args).value
    assert isinstance(found, dict)
    np.testing.assert_array_equal(np.stack(list(found.values()), axis=1).ravel(), scalar.value)


def guarded(clause: Clause) -> dict[str, Function]:
    """Return the functions of a clause as kernels have them: total ones, and those that say where they are right."""
    operands = tuple(Operand(name, OPERANDS[0].dtype) for name, _ in clause.pattern.params)
    reads = tuple(ir.Read(name, Scalar.U32) for name, _ in clause.pattern.params)
    call = ir.Call(clause.function.name, reads, clause.function.result)
    write = ir.Write("y", call, ir.Quick(call, None))
    program = Program(
        "Test", Stage.REALISED, (*operands, OPERANDS[-1]), (Kernel("main", (write,)),), (clause.function, *clause.functions.values())
    )
    unique = replace(program, functions=tuple({function.name: function for function in program.functions}.values()))
    return {function.name: function for function in guard_quick(unique).functions}


def fitted(function: Function, clause: Clause, args: tuple[Codes, ...]) -> tuple[Codes, ...]:
    """Return the arguments of a clause as far as the function has their parameters, in whole quads."""
    of = {name: arg[: arg.size // LANES * LANES] for (name, _), arg in zip(clause.pattern.params, args, strict=True)}
    return tuple(of[param.name] for param in function.params)


WIDENABLE = [clause for clause in CLAUSES if is_widenable([ir.Call(clause.function.name, (), Scalar.U32)], clause.functions)]


def test_every_function_with_a_condition_is_widenable() -> None:
    assert {clause.name for clause in CLAUSES if clause.pattern.condition is not None} <= {clause.name for clause in WIDENABLE}
    assert len(WIDENABLE) < len(CLAUSES)


@pytest.mark.parametrize("clause", WIDENABLE, ids=str)
def test_four_elements_at_a_time_give_what_each_alone_gives(clause: Clause) -> None:
    """With every division into elements and what they share; the evaluator traps where a shift is by 32 or more."""
    table = guarded(clause)
    args = arguments(clause, seed=3, count=4_000)
    names = [clause.function.name, *(name for name in table if name.startswith((f"{clause}_takes", f"{clause}_holds")))]
    for name in names:
        function = table[name]
        count = len(function.params)
        for varies in {(True,) * count, (True, *(False,) * (count - 1)), (*(False,) * (count - 1), True)}:
            assert_alike(function, table, fitted(function, clause, args), varies)


@pytest.mark.parametrize("clause", [clause for clause in CLAUSES if clause not in WIDENABLE], ids=str)
def test_functions_on_structs_are_refused(clause: Clause) -> None:
    nodes = [node for function in clause.functions.values() for node in walk_body(function.body)]
    assert any(isinstance(node.type, Struct) for node in nodes)
    with pytest.raises(NotWidenableError):
        Widener(clause.functions).function(clause.function.name, (True,) * len(clause.function.params))


@pytest.mark.parametrize("varies", [(True, True), (True, False), (False, True)])
def test_every_kind_of_statement(varies: tuple[bool, bool]) -> None:
    table = functions_of(STATEMENTS)
    rng = np.random.default_rng(1)
    args = tuple(rng.integers(0, 90, 8_000, dtype=np.uint32) for _ in varies)
    assert_alike(table["pair"], table, args, varies)


def test_widened_functions_read_well(golden: Goldens) -> None:
    table = functions_of(STATEMENTS)
    parts = []
    for varies in ((True, True), (True, False), (False, True)):
        wide, known = widened(table["pair"], table, varies)
        parts.append(print_program(Program("Test", Stage.LEGAL, (), (), (wide, *reachable_functions([wide.body], known)))))
    golden.check("ir/widen-statements.txt", "\n".join(parts))


def test_what_all_share_stays_a_scalar() -> None:
    table = functions_of(STATEMENTS)
    wide, _ = widened(table["pair"], table, (True, False))
    assert [param.type for param in wide.params] == [Vector(Scalar.U32), Scalar.U32]
    types = {stmt.name: stmt.value.type for stmt in wide.body if isinstance(stmt, ir.Let)}
    assert types["shared"] is Scalar.U32
    assert types["each"] == Vector(Scalar.U32)


def test_a_function_has_a_version_for_each_way_in_which_its_parameters_vary() -> None:
    """`helper` is called with elements for both, and for either: three functions, of three names."""
    table = functions_of(STATEMENTS)
    wide, known = widened(table["pair"], table, (True, False))
    callees = called_functions(wide.body)
    assert len({tuple(param.type for param in known[name].params) for name in callees}) == len(callees) == 3


def test_a_function_called_twice_is_made_once() -> None:
    widener = Widener(functions_of(STATEMENTS))
    assert widener.function("helper", (True, True)) is widener.function("helper", (True, True))
    assert set(widener.functions) == {widener.function("helper", (True, True)).name}


def test_functions_of_one_name_in_two_programs_are_two() -> None:
    """What is kept of one program's functions is not given to another's."""
    first, second = functions_of(STATEMENTS), functions_of(STATEMENTS.replace("min(x, 7)", "min(x, 8)"))
    for table in (first, second, {"pair": first["pair"], "helper": second["helper"]}, first):
        args = tuple(np.random.default_rng(2).integers(0, 90, 800, dtype=np.uint32) for _ in range(2))
        assert_alike(table["pair"], table, args, (True, False))


def test_a_vector_is_spread_as_it_is() -> None:
    vector = ir.Name("v", Vector(Scalar.U32))
    assert spread(vector) is vector
    assert spread(ir.Name("s", Scalar.I32)) == ir.Compose((ir.Name("s", Scalar.I32),), Vector(Scalar.I32))
    with pytest.raises(NotWidenableError):
        spread(ir.Name("p", Struct("Pair", (("code", Scalar.U32),))))


NAMES = {Scalar.U32: ("x", "s"), Scalar.I32: ("k",), Scalar.BOOL: ("p",)}


def random_expr(rng: random.Random, type_: Scalar, depth: int, names: dict[Scalar, tuple[str, ...]]) -> ir.Expr:
    """Return an expression on u32, i32 and bool in which nothing traps."""
    if depth == 0:
        return ir.Name(rng.choice(names[type_]), type_)

    def below(of: Scalar = type_) -> ir.Expr:
        return random_expr(rng, of, depth - 1, names)

    number = rng.choice((Scalar.U32, Scalar.I32))
    other = {Scalar.U32: Scalar.I32, Scalar.I32: Scalar.U32, Scalar.BOOL: number}[type_]
    count = ir.Binary("&", below(Scalar.U32), ir.Literal(31, Scalar.U32), Scalar.U32)
    made: list[ir.Expr] = [ir.Select(below(Scalar.BOOL), below(), below(), type_)]
    if type_ is Scalar.BOOL:
        made += [
            ir.Binary(rng.choice(("&&", "||")), below(), below(), type_),
            ir.Binary(rng.choice(("==", "!=", "<", "<=", ">", ">=")), below(number), below(number), type_),
            ir.Unary("!", below(), type_),
        ]
    else:
        made += [
            ir.Binary(rng.choice("+-*&|^"), below(), below(), type_),
            ir.Binary(rng.choice(("<<", ">>")), below(), count, type_),
            ir.Builtin(rng.choice(("min", "max")), (below(), below()), type_),
            ir.Builtin("countLeadingZeros", (below(),), type_),
            ir.Unary("~", below(), type_),
            ir.Convert(below(rng.choice((other, Scalar.BOOL))), type_),
            ir.Bitcast(below(other), type_),
        ]
    return rng.choice(made)


def random_body(rng: random.Random, depth: int, names: dict[Scalar, tuple[str, ...]]) -> tuple[ir.Stmt, ...]:
    """Return statements that return a u32 on every path; names of one branch may be those of another."""
    body: list[ir.Stmt] = []
    for number in range(rng.randint(0, 2)):
        type_ = rng.choice(tuple(NAMES))
        name = f"{type_.value}_{depth}_{number}"
        body.append(ir.Let(name, random_expr(rng, type_, 2, names)))
        names = names | {type_: (*names[type_], name)}
    if depth:
        then = random_body(rng, depth - 1, names)
        otherwise = random_body(rng, depth - 1, names) if rng.random() < 0.4 else ()
        # A branch that does not return goes on after it.
        then = then[:-1] if rng.random() < 0.3 else then
        body.append(ir.If(random_expr(rng, Scalar.BOOL, 2, names), then, otherwise))
    return (*body, ir.Return(random_expr(rng, Scalar.U32, 2, names)))


@given(seed=st.integers(0, 1 << 32), varies=st.tuples(*[st.booleans()] * 4).filter(any))
def test_random_functions(seed: int, varies: tuple[bool, ...]) -> None:
    rng = random.Random(seed)
    params = tuple(functions_of("fn f(x: u32, s: u32, k: i32, p: bool) -> u32 { return x; }")["f"].params)
    function = Function("f", params, Scalar.U32, random_body(rng, 2, dict(NAMES)))
    table = {"f": function}
    verify(Program("Test", Stage.LEGAL, OPERANDS, (), (function,)), "the test")
    words = np.random.default_rng(seed)
    numbers = [words.integers(0, 1 << 32, 64, dtype=np.uint32) >> words.integers(0, 32, 64, dtype=np.uint32) for _ in range(3)]
    args: tuple[Codes, ...] = (numbers[0], numbers[1], numbers[2].view(np.int32), words.integers(0, 2, 64).astype(np.bool_))
    assert_alike(function, table, args, varies)
