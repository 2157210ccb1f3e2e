"""The verifier: which node may stand in which stage, and that names and types agree. Runs after every pass, in production too."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, assert_never

from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.print import print_expr, print_program
from qgen.ir.program import ById, Function, Operand, Program, Stage, is_fragment
from qgen.ir.rewrite import callees, children
from qgen.ir.types import LANES, Machine, Scalar, Struct, Type, Vector, element_of, print_type
from qgen.ir.typing import INTEGERS, NUMBERS, binary_agrees, is_uniform, is_within, literal_fits, typed_agrees

_CHECKED: Final = frozenset(
    {ir.Literal, ir.Name, ir.Typed, ir.Read, ir.Let, ir.Write, ir.Reduce, ir.Accumulate, ir.Select, ir.Unary, ir.Binary}
)
_EXPRESSIONS: Final = {
    ir.Literal,
    ir.Name,
    ir.Unary,
    ir.Binary,
    ir.Select,
    ir.Builtin,
    ir.Convert,
    ir.Bitcast,
    ir.Call,
    ir.Field,
    ir.Construct,
}
_MACHINE: Final = frozenset(_EXPRESSIONS | {ir.Let})
_VECTORS: Final = frozenset({ir.Compose, ir.Component})
_WORDS: Final = frozenset({ir.Load, ir.Store, ir.LoadVector, ir.StoreVector, ir.AtomicMax}) | _VECTORS
_KERNEL: Final = {
    Stage.CHECKED: _CHECKED,
    Stage.REALISED: _MACHINE | {ir.Read, ir.Write, ir.Accumulate},
    Stage.LEGAL: _MACHINE | _WORDS | {ir.Uniform, ir.Invocation, ir.Var, ir.Assign, ir.For, ir.If, ir.Return},
}
_FUNCTION: Final = {
    Stage.CHECKED: frozenset[type](),
    Stage.REALISED: _MACHINE | {ir.If, ir.Return, ir.Require},
    Stage.LEGAL: _MACHINE | _VECTORS | {ir.If, ir.Return},
}
_UNARY: Final = {"-": frozenset({Scalar.I32, Scalar.F32}), "~": INTEGERS, "!": frozenset({Scalar.BOOL})}
_BUILTINS: Final = {
    "min": (2, NUMBERS),
    "max": (2, NUMBERS),
    "clamp": (3, NUMBERS),
    "abs": (1, NUMBERS),
    "countLeadingZeros": (1, INTEGERS),
    "round": (1, frozenset({Scalar.F32})),
}


class _InvalidIRError(Exception):
    """What is wrong; `verify` adds the program."""


def verify(program: Program, after: str) -> Program:
    """Return the program, which the pass named `after` made.

    Raises `InternalError`, with the IR in its message, where the program is not valid for its stage.
    """
    try:
        _verify(program)
    except _InvalidIRError as error:
        raise InternalError(f"after {after}: {error}\n\n{print_program(program)}") from error
    return program


def _verify(program: Program) -> None:
    names = [function.name for function in program.functions]
    if len(set(names)) != len(names):
        raise _InvalidIRError(f"two functions share a name: {names}")
    if (program.stage is Stage.CHECKED) and program.functions:
        raise _InvalidIRError("a checked program has no functions")
    table = {function.name: function for function in program.functions}
    places = {name: position for position, name in enumerate(names)}
    for position, function in enumerate(program.functions):
        called = callees(ById(function))
        for callee in called:
            if callee not in table:
                raise _InvalidIRError(f"`{function.name}` calls `{callee}`, which is not in the program")
            if places[callee] <= position:
                raise _InvalidIRError(f"`{function.name}` stands after `{callee}`, which it calls")
        if is_fragment(program):
            scope = _Scope(_FUNCTION[program.stage] | {ir.Load}, table, program, function.result)
            scope.block(function.body, {param.name: param.type for param in function.params})
        else:
            _verify_function(ById(function), program.stage, tuple(ById(table[callee]) for callee in called))
    for kernel in program.kernels:
        scope = _Scope(_KERNEL[program.stage], table, program, None)
        scope.block(kernel.body, {})
        if program.stage is not Stage.LEGAL:
            written = [stmt.operand for stmt in kernel.body if isinstance(stmt, ir.Write)]
            if len(written) != len(set(written)):
                raise _InvalidIRError("a result is written twice")


@lru_cache(maxsize=2048)
def _verify_function(function: ById[Function], stage: Stage, callees: tuple[ById[Function], ...]) -> None:
    found = function.value
    table = {callee.value.name: callee.value for callee in callees}
    scope = _Scope(_FUNCTION[stage], table, None, found.result)
    scope.block(found.body, {param.name: param.type for param in found.params})


class _Scope:
    """What may stand in one body."""

    def __init__(
        self, allowed: frozenset[type], functions: Mapping[str, Function], program: Program | None, result: Machine | None
    ) -> None:
        self._allowed = allowed
        self._functions = functions
        self._program = program
        self._result = result
        self._is_checked = program is not None and program.stage is Stage.CHECKED

    def block(self, body: tuple[ir.Stmt, ...], outer: Mapping[str, Type], variables: frozenset[str] = frozenset()) -> None:
        names = dict(outer)
        for stmt in body:
            if type(stmt) not in self._allowed:
                raise _InvalidIRError(f"a {type(stmt).__name__} may not stand here")
            match stmt:
                case ir.Let(name, value):
                    self._define(name, value, names)
                case ir.Var(name, value):
                    self._define(name, value, names)
                    variables |= {name}
                case ir.Assign(name, value):
                    if name not in variables or self.expr(value, names) != names[name]:
                        raise _InvalidIRError(f"`{name}` is not a variable of this type")
                case ir.Return(None):
                    if self._result is not None:
                        raise _InvalidIRError("a function returns a value")
                case ir.Return(ir_value) if ir_value is not None:
                    self._expect(ir_value, self._result, names)
                case ir.If(condition, then, otherwise):
                    self._expect(condition, Scalar.BOOL, names)
                    self.block(then, names, variables)
                    self.block(otherwise, names, variables)
                case ir.Require(condition):
                    self._expect(condition, Scalar.BOOL, names)
                case ir.Write(operand, value, quick):
                    self._write(operand, value, names)
                    if quick is not None:
                        self._write(operand, quick.value, names)
                        self._expect(quick.holds or ir.Literal(value=True, type=Scalar.BOOL), Scalar.BOOL, names)
                case ir.Accumulate(operand, value):
                    scratch = self._scratch_operand(operand)
                    self._expect(value, scratch.dtype if self._is_checked else Scalar.U32, names)
                case ir.AtomicMax(buffer, index, value):
                    self._scratch_operand(buffer)
                    self._expect(index, Scalar.U32, names)
                    self._expect(value, Scalar.U32, names)
                case ir.Store() | ir.StoreVector():
                    self._store(stmt, names)
                case ir.For(name, start, stop, step, inner):
                    self._expect(start, Scalar.U32, names)
                    loop = {**names, name: Scalar.U32}
                    self._expect(stop, Scalar.U32, loop)
                    if name in names or step <= 0:
                        raise _InvalidIRError(f"the loop over `{name}` hides a name or does not advance")
                    self.block(inner, loop, variables)
                case ir.Return():
                    raise _InvalidIRError("a return without a value")
                case _:
                    assert_never(stmt)

    def _operand(self, name: str) -> Operand | None:
        operands = () if self._program is None else self._program.operands
        return next((operand for operand in operands if operand.name == name), None)

    def _result_operand(self, name: str) -> Operand:
        operand = self._operand(name)
        if operand is None or not operand.is_output:
            raise _InvalidIRError(f"`{name}` is not a result")
        return operand

    def _store(self, stmt: ir.Store | ir.StoreVector, names: Mapping[str, Type]) -> None:
        self._result_operand(stmt.buffer)
        if isinstance(stmt, ir.StoreVector):
            self._wide_operand(stmt.buffer)
        self._expect(stmt.index, Scalar.U32, names)
        self._expect(stmt.value, Vector(Scalar.U32) if isinstance(stmt, ir.StoreVector) else Scalar.U32, names)

    def _wide_operand(self, name: str) -> None:
        if self._program is None or name not in self._program.wide:
            raise _InvalidIRError(f"`{name}` is not a buffer of vectors")

    def _scratch_operand(self, name: str) -> Operand:
        operand = self._result_operand(name)
        if not operand.is_scratch:
            raise _InvalidIRError(f"`{name}` is not a scratch operand")
        return operand

    def _define(self, name: str, value: ir.Expr, names: dict[str, Type]) -> None:
        if name in names:
            raise _InvalidIRError(f"`{name}` is defined twice")
        names[name] = self.expr(value, names)

    def _write(self, operand: str, value: ir.Expr, names: Mapping[str, Type]) -> None:
        result = self._result_operand(operand)
        self._expect(value, result.dtype if self._is_checked else Scalar.U32, names)

    def _expect(self, expr: ir.Expr, type_: Type | None, names: Mapping[str, Type]) -> None:
        if self.expr(expr, names) != type_:
            wanted = "nothing" if type_ is None else print_type(type_)
            raise _InvalidIRError(f"{print_expr(expr)} is {print_type(expr.type)}, wanted is {wanted}")

    def expr(self, expr: ir.Expr, names: Mapping[str, Type]) -> Type:
        """Return the type of a valid expression."""
        if type(expr) not in self._allowed:
            raise _InvalidIRError(f"a {type(expr).__name__} may not stand here: {print_expr(expr)}")
        types = [self.expr(child, names) for child in children(expr)]
        if not self._agrees(expr, types, names):
            raise _InvalidIRError(f"types do not agree: {print_expr(expr)} of ({', '.join(print_type(type_) for type_ in types)})")
        return expr.type

    def _agrees(self, expr: ir.Expr, types: list[Type], names: Mapping[str, Type]) -> bool:
        match expr:
            case ir.Literal():
                return literal_fits(expr)
            case ir.Name(name, type_):
                return names.get(name) == type_
            case ir.Unary(op, _, type_):
                return types == [type_] and element_of(type_) in _UNARY.get(op, ())
            case ir.Binary(op, _, _, type_):
                is_scalar_only = op in {"&&", "||"}
                if not is_uniform(type_, types) or (is_scalar_only and isinstance(type_, Vector)):
                    return False
                return binary_agrees(op, *(element_of(found) for found in (*types, type_)))
            case ir.Select(_, _, _, type_):
                condition, *branches = types
                wanted = Vector(Scalar.BOOL) if isinstance(type_, Vector) and isinstance(condition, Vector) else Scalar.BOOL
                return condition == wanted and all(is_within(found, type_) for found in branches)
            case ir.Builtin(name, args, type_):
                if name == "unpack4xU8":
                    return types == [Scalar.U32] and type_ == Vector(Scalar.U32)
                if name in {"all", "any"}:
                    return types == [Vector(Scalar.BOOL)] and type_ is Scalar.BOOL
                arity, accepted = _BUILTINS.get(name, (0, frozenset()))
                return len(args) == arity and element_of(type_) in accepted and all(found == type_ for found in types)
            case ir.Convert(_, type_):
                return is_uniform(type_, types) and element_of(types[0]) in {Scalar.BOOL, *NUMBERS} and types[0] != type_
            case ir.Bitcast(_, type_):
                return is_uniform(type_, types) and element_of(types[0]) in NUMBERS and types[0] != type_
            case ir.LoadVector(buffer, _):
                self._wide_operand(buffer)
                return types == [Scalar.U32]
            case ir.Compose(args, type_):
                return len(args) in {1, LANES} and all(found is type_.element for found in types)
            case ir.Component(_, number, type_):
                return types == [Vector(type_)] and 0 <= number < LANES
            case ir.Call(name, _, type_):
                callee = self._functions.get(name)
                return callee is not None and callee.result == type_ and types == [param.type for param in callee.params]
            case ir.Field(_, name, type_):
                return isinstance(types[0], Struct) and types[0].field_type(name) is type_
            case ir.Construct(_, struct):
                return types == [type_ for _, type_ in struct.fields]
            case ir.Typed():
                return typed_agrees(expr, types)
            case ir.Read(name, type_):
                operand = self._operand(name)
                return operand is not None and type_ == (operand.dtype if self._is_checked else Scalar.U32)
            case ir.Reduce(op, _, type_):
                return op in {ir.Op.MIN, ir.Op.MAX} and types == [type_]
            case ir.Load(buffer, _):
                return self._operand(buffer) is not None and types == [Scalar.U32]
            case ir.Uniform(name):
                return self._program is not None and name in self._program.uniforms
            case ir.Invocation(component):
                return component in {"x", "y"}
            case _:
                assert_never(expr)
