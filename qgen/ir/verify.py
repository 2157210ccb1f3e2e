"""The verifier: which node may stand in which stage, and that names and types agree. Runs after every pass, in production too."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Final, assert_never

from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.print import print_expr, print_program
from qgen.ir.program import Function, Operand, Program, Stage, is_fragment, kept
from qgen.ir.rewrite import callees
from qgen.ir.stages import FUNCTION_NODES, KERNEL_NODES
from qgen.ir.types import LANES, Machine, Scalar, Struct, Type, Vector, element_of, print_type
from qgen.ir.typing import INTEGERS, NUMBERS, binary_agrees, is_uniform, is_within, literal_fits, typed_agrees

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


_Known = dict[int, tuple[ir.Expr, tuple[ir.Name, ...]]]
"""Valid expressions by their identity, each with the names in it: where these are in scope, it is valid again."""


class Verifier:
    """Verifies the programs that passes make of one another, and what several of them have only once."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._last: Program | None = None
        self._known: _Known = {}

    def verify(self, program: Program, after: str) -> Program:
        """Return the program, which the pass named `after` made.

        Raises `InternalError`, with the IR in its message, where the program is not valid for its stage.
        """
        try:
            if self._last is None or not _is_same_scope(program, self._last):
                self._known = {}
                _verify_functions(program)
            _verify_kernels(program, self._known)
        except _InvalidIRError as error:
            raise InternalError(f"after {after}: {error}\n\n{print_program(program)}") from error
        self._last = program
        return program


def verify(program: Program, after: str) -> Program:
    """Return the program, which the pass named `after` made; raises as a `Verifier` does."""
    return Verifier().verify(program, after)


def _is_same_scope(program: Program, other: Program) -> bool:
    """Whether statements mean the same in both programs: the stage, the operands, and the very functions."""
    return (
        program.stage is other.stage
        and program.functions is other.functions
        and (program.operands, program.uniforms, program.wide) == (other.operands, other.uniforms, other.wide)
    )


def _verify_functions(program: Program) -> None:
    names = [function.name for function in program.functions]
    if len(set(names)) != len(names):
        raise _InvalidIRError(f"two functions share a name: {names}")
    if (program.stage is Stage.CHECKED) and program.functions:
        raise _InvalidIRError("a checked program has no functions")
    table = {function.name: function for function in program.functions}
    places = {name: position for position, name in enumerate(names)}
    is_whole = is_fragment(program)
    for position, function in enumerate(program.functions):
        called = callees(function)
        for callee in called:
            if callee not in table:
                raise _InvalidIRError(f"`{function.name}` calls `{callee}`, which is not in the program")
            if places[callee] <= position:
                raise _InvalidIRError(f"`{function.name}` stands after `{callee}`, which it calls")
        if is_whole:
            _Scope(FUNCTION_NODES[program.stage] | {ir.Load}, table, program, function.result, {}).function(function)
            continue
        verified = _verified(function)
        known = verified.get(program.stage)
        used = [table[callee] for callee in called]
        if known is None or any(map(operator.is_not, known, used)):
            _Scope(FUNCTION_NODES[program.stage], {callee.name: callee for callee in used}, None, function.result, {}).function(function)
            verified[program.stage] = used


def _verify_kernels(program: Program, known: _Known) -> None:
    scope = _Scope(KERNEL_NODES[program.stage], {function.name: function for function in program.functions}, program, None, known)
    for kernel in program.kernels:
        scope.block(kernel.body, {})
        if program.stage is not Stage.LEGAL:
            written = [stmt.operand for stmt in kernel.body if isinstance(stmt, ir.Write)]
            if len(written) != len(set(written)):
                raise _InvalidIRError("a result is written twice")


@kept
def _verified(_function: Function) -> dict[Stage, list[Function]]:
    """Return the stages that a function is known to be valid at, each with the functions that it calls there."""
    return {}


class _Scope:
    """What may stand in one body."""

    def __init__(
        self,
        allowed: frozenset[type],
        functions: Mapping[str, Function],
        program: Program | None,
        result: Machine | None,
        known: _Known,
    ) -> None:
        self._allowed = allowed
        self._functions = functions
        self._program = program
        self._result = result
        self._known = known
        self._is_checked = program is not None and program.stage is Stage.CHECKED

    def function(self, function: Function) -> None:
        self.block(function.body, {param.name: param.type for param in function.params})

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
                    self._expect(step, Scalar.U32, names)
                    if name in names or step == ir.Literal(0, Scalar.U32):
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
        known = self._known.get(id(expr))
        if known is not None:
            for name in known[1]:
                if names.get(name.name) != name.type:
                    break
            else:
                return expr.type
        used: list[ir.Name] = []
        pending = [expr]
        while pending:
            node = pending.pop()
            if type(node) not in self._allowed:
                raise _InvalidIRError(f"a {type(node).__name__} may not stand here: {print_expr(node)}")
            below = node.operands
            if isinstance(node, ir.Name):
                used.append(node)
                is_valid = names.get(node.name) == node.type
            elif isinstance(node, ir.Binary):
                is_valid = binary_agrees(node.op, node.lhs.type, node.rhs.type, node.type)
            else:
                is_valid = self._agrees(node, [child.type for child in below])
            if not is_valid:
                types = ", ".join(print_type(child.type) for child in below)
                raise _InvalidIRError(f"types do not agree: {print_expr(node)} of ({types})")
            pending += below
        self._known[id(expr)] = expr, tuple(used)
        return expr.type

    def _agrees(self, expr: ir.Expr, types: list[Type]) -> bool:
        match expr:
            case ir.Literal():
                return literal_fits(expr)
            case ir.Component():
                (vector,) = types
                return isinstance(vector, Vector) and vector.element is expr.type and 0 <= expr.number < LANES
            case ir.Call():
                callee = self._functions.get(expr.function)
                return callee is not None and callee.result == expr.type and types == [param.type for param in callee.params]
            case ir.Compose():
                return len(types) in {1, LANES} and all(found is expr.type.element for found in types)
            case ir.Unary(op, _, type_):
                return types == [type_] and element_of(type_) in _UNARY.get(op, ())
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
            case ir.Name() | ir.Binary():
                raise TypeError(expr)
            case _:
                assert_never(expr)
