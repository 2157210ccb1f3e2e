"""An `op` under a binding to a CHECKED program.

`if T is class`, attributes and absent operands are decided here, so CHECKED is monomorphic.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from qgen.dtypes import DTYPES, DType, Exact
from qgen.errors import InternalError, QgenError, Span
from qgen.frontend import ast
from qgen.frontend.check_expr import ABSENT, Absent, Result, Scope, Value, check_expr
from qgen.frontend.kinds import KINDS
from qgen.ir import nodes as ir
from qgen.ir.names import free_name
from qgen.ir.program import Kernel, Operand, Program, Stage
from qgen.ir.rewrite import children, walk_body, walk_expr
from qgen.ir.types import Value as ValueType
from qgen.ir.types import print_type

ENTRY_POINT: Final = "main"


@dataclass(frozen=True, slots=True)
class Binding:
    """What an operator is checked under: dtypes of its type variables, attributes given, and operands that are absent."""

    dtypes: Mapping[str, DType]
    attributes: Mapping[str, DType | Exact | bool]
    absent: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Return the binding as errors name it."""
        parts = [f"{name} = {dtype.name}" for name, dtype in self.dtypes.items()]
        for name, value in self.attributes.items():
            parts.append(f"{name} = {str(value).lower() if isinstance(value, bool) else print_type(value)}")
        parts += [f"no {name}" for name in sorted(self.absent)]
        return ", ".join(parts)


def check_op(source: ast.SourceFile, op: ast.OpDecl, binding: Binding) -> Program:
    """Return the CHECKED program of `op` under `binding`; raises `QgenError` QG010 to QG026 with the place and the binding."""
    checker = _Checker(source, op, binding)
    try:
        return checker.run()
    except RecursionError:
        hint = "name parts of it with `let`"
        raise QgenError("QG002", "an expression is nested too deeply", hint=hint, place=op.span, source=source.text) from None


class _Checker:
    """One check; collects the statements in `body`."""

    def __init__(self, source: ast.SourceFile, op: ast.OpDecl, binding: Binding) -> None:
        self._source = source
        self._op = op
        self._binding = binding
        self._values: dict[str, Result] = {}
        self._dtypes: dict[str, DType | Exact] = dict(binding.dtypes)
        self._flags: dict[str, bool] = {}
        self._written: dict[str, None] = {}
        self._body: list[ir.Stmt] = []

    def run(self) -> Program:
        unknown = self._binding.attributes.keys() - {attribute.name for attribute in self._op.attributes}
        unknown |= self._binding.absent - {operand.name for operand in self._op.operands}
        if unknown:
            hint = f"it has {', '.join(attribute.name for attribute in self._op.attributes) or 'no attributes'}"
            raise self._fail("QG020", f"`{self._op.name}` has no `{min(unknown)}`", hint, self._op.span)
        for attribute in self._op.attributes:
            self._bind_attribute(attribute)
        operands = []
        for decl in self._op.operands:
            dtype = self._dtype(decl)
            if decl.name in self._binding.absent:
                if decl.default is None:
                    raise self._fail("QG020", f"`{decl.name}` is not optional", "only an operand with a default may be absent", decl.span)
                self._values[decl.name] = ABSENT
                continue
            self._values[decl.name] = Value(ir.Read(decl.name, dtype))
            operands.append(Operand(decl.name, dtype, per_group=decl.per_group))
        results = [self._result(decl) for decl in self._op.results]
        elementwise = [decl for decl in self._op.results if not decl.per_group]
        if len(elementwise) != 1:
            message = f"an operator has one result for each element, this has {len(elementwise)}"
            raise self._fail("QG029", message, "mark what a group shares `per group`; make an operator of each other result", self._op.span)
        self._block(self._op.body)
        for decl in self._op.results:
            if decl.name not in self._written:
                raise self._fail("QG021", f"`{decl.name}` gets no value", "assign it in every case the binding allows", decl.span)
        body = tuple(self._body)
        read = {node.operand for node in walk_body(body) if isinstance(node, ir.Read)}
        inputs = (replace(operand, is_ignored=operand.name not in read) for operand in operands)
        return Program(self._op.name, Stage.CHECKED, (*inputs, *results), (Kernel(ENTRY_POINT, body),))

    def _fail(self, code: str, message: str, hint: str, span: Span) -> QgenError:
        return QgenError(code, f"{message} (with {self._binding})", hint=hint, place=span, source=self._source.text)

    def _result(self, decl: ast.OperandDecl) -> Operand:
        dtype = self._dtype(decl)
        on_empty = None if decl.default is None else _code_of(decl.default, dtype)
        return Operand(decl.name, dtype, is_output=True, per_group=decl.per_group, on_empty=on_empty)

    def _dtype(self, decl: ast.OperandDecl) -> DType:
        dtype = self._dtypes.get(decl.type_name) or DTYPES.get(decl.type_name)
        if not isinstance(dtype, DType):
            raise self._fail("QG015", f"`{decl.type_name}` is not a type", "bind it, or name a dtype", decl.span)
        return dtype

    def _bind_attribute(self, decl: ast.AttributeDecl) -> None:
        given = self._binding.attributes.get(decl.name)
        match decl.kind:
            case "dtype":
                dtype = given if isinstance(given, DType | Exact) else self._dtypes.get(decl.default) or DTYPES.get(decl.default)
                if dtype is None:
                    raise self._fail("QG015", f"`{decl.default}` is not a type", "the default of a dtype attribute is a type", decl.span)
                self._dtypes[decl.name] = dtype
            case "bool":
                if decl.default not in {"true", "false"}:
                    raise self._fail("QG022", f"`{decl.default}` is not a bool", "write `true` or `false`", decl.span)
                self._flags[decl.name] = given if isinstance(given, bool) else decl.default == "true"
            case _:
                raise self._fail(
                    "QG022", f"an attribute is a dtype or a bool, not `{decl.kind}`", "write `attr name: bool = true`", decl.span
                )

    def _block(self, stmts: tuple[ast.Stmt, ...]) -> None:
        outer = dict(self._values)
        for stmt in stmts:
            match stmt:
                case ast.Let(name, value, span):
                    if name in self._values:
                        raise self._fail("QG023", f"`{name}` is defined already", "choose another name", span)
                    self._let(name, self._expr(value), span)
                case ast.Assign():
                    self._assign(stmt)
                case ast.Branch(condition, then, otherwise, _):
                    self._block(then if self._decide(condition) else otherwise)
                case ast.Return() | ast.Require():
                    raise self._fail("QG013", "this statement belongs to library functions", "an op assigns its results", stmt.span)
        self._values = outer

    def _expr(self, expr: ast.Expr) -> Result:
        return check_expr(expr, Scope(self._values, self._dtypes, self._fail))

    def _let(self, name: str, value: Result, span: Span) -> None:
        if isinstance(value, Absent):
            self._values[name] = value
            return
        self._check_reductions(value.expr, span)
        # Blocks become one body, in which two of them may have named a value alike.
        taken = {stmt.name for stmt in self._body if isinstance(stmt, ir.Let)}
        own = free_name(name, taken)
        self._body.append(ir.Let(own, value.expr))
        self._values[name] = Value(ir.Name(own, value.type), value.clamp)

    def _assign(self, stmt: ast.Assign) -> None:
        decl = next((result for result in self._op.results if result.name == stmt.name), None)
        if decl is None:
            names = ", ".join(result.name for result in self._op.results)
            hint = f"the results are: {names}; name other values with `let`"
            raise self._fail("QG024", f"`{stmt.name}` is not a result", hint, stmt.span)
        if stmt.name in self._written:
            raise self._fail("QG023", f"`{stmt.name}` has a value already", "assign each result once", stmt.span)
        value, dtype = self._expr(stmt.value), self._dtype(decl)
        if isinstance(value, Absent) or value.type != dtype:
            found = "an absent operand" if isinstance(value, Absent) else print_type(value.type)
            raise self._fail(
                "QG011", f"`{stmt.name}` is {dtype.name}, the value is {found}", f"convert it: `… as {decl.type_name}`", stmt.span
            )
        self._check_reductions(value.expr, stmt.span)
        self._written[stmt.name] = None
        self._body.append(ir.Write(stmt.name, value.expr))
        if decl.per_group and self._reads_elements(value.expr):
            hint = "reduce what is read of elements over the group: `reduce max over group (…)`"
            raise self._fail("QG028", f"`{stmt.name}` is one for a group, its value differs from element to element", hint, stmt.span)

    def _check_reductions(self, expr: ir.Expr, span: Span) -> None:
        """Refuse to reduce what a reduction finds: kernels go through the elements once for all reductions."""
        if any(isinstance(node, ir.Reduce) and self._reduces(node.value) for node in walk_expr(expr)):
            hint = "reduce what is computed of elements and of operands of the group alone"
            raise self._fail("QG038", "a reduction of what a reduction finds", hint, span)

    def _reduces(self, expr: ir.Expr) -> bool:
        """Whether a reduction takes part in the value of an expression."""
        lets = {stmt.name: stmt.value for stmt in self._body if isinstance(stmt, ir.Let)}
        return any(
            isinstance(node, ir.Reduce) or (isinstance(node, ir.Name) and node.name in lets and self._reduces(lets[node.name]))
            for node in walk_expr(expr)
        )

    def _reads_elements(self, expr: ir.Expr) -> bool:
        """Whether the value of an expression may differ between the elements of a group."""
        match expr:
            case ir.Reduce():
                return False
            case ir.Read(operand, _):
                return not next(decl.per_group for decl in self._op.operands if decl.name == operand)
            case ir.Name(name, _):
                return any(isinstance(stmt, ir.Let) and stmt.name == name and self._reads_elements(stmt.value) for stmt in self._body)
            case _:
                return any(self._reads_elements(child) for child in children(expr))

    def _decide(self, condition: ast.Expr) -> bool:
        match condition:
            case ast.Truth(value, _):
                return value
            case ast.Name(name, _) if name in self._flags:
                return self._flags[name]
            case ast.KindTest(name, kind, span):
                dtype = self._dtypes.get(name)
                if not isinstance(dtype, DType) or kind not in KINDS:
                    raise self._fail("QG025", f"`{name} is {kind}` means nothing", f"classes are {', '.join(KINDS)}", span)
                return KINDS[kind](dtype)
            case ast.Unary("!", operand, _):
                return not self._decide(operand)
            case ast.Binary("&&", lhs, rhs, _):
                return self._decide(lhs) and self._decide(rhs)
            case ast.Binary("||", lhs, rhs, _):
                return self._decide(lhs) or self._decide(rhs)
            case _:
                hint = "an `if` of an op tests `T is class` and bool attributes"
                raise self._fail("QG026", "this is not known when the formula is checked", hint, condition.span)


def _code_of(value: int, dtype: DType) -> int:
    """Return the code of a whole number that is a result on an empty x."""
    if dtype == DTYPES["float32"]:
        return int.from_bytes(struct.pack(">f", value))
    if dtype.is_float:
        raise InternalError(f"no result of {dtype.name} has a value on an empty x yet")
    return value & dtype.mask


def value_types(params: Mapping[str, ValueType]) -> dict[str, Result]:
    """Return the values of a fn's parameters, as its `is` clause sees them."""
    return {name: Value(ir.Name(name, type_)) for name, type_ in params.items()}
