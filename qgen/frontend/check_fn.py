"""A `fn` of the numerics library to a function on machine values, and its `is` clauses to patterns.

A parameter typed by a format holds that format's bits in a u32; `int<n>` is an i32 of n bits. Number literals take the type of what they
meet. A generic `<F: class>` is checked once for each format it is used with; a generic function that it calls has the same F.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from qgen.dtypes import DTYPES, DType
from qgen.errors import QgenError, Span
from qgen.frontend import ast
from qgen.frontend.check_expr import Absent, Scope, check_condition, check_expr
from qgen.frontend.check_op import value_types
from qgen.frontend.kinds import format_property
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Param
from qgen.ir.types import Int, Machine, Scalar, Struct, Type, Value, machine_type, print_type

_BUILTINS: Final = {
    "min": ("min", 2),
    "max": ("max", 2),
    "clamp": ("clamp", 3),
    "abs": ("abs", 1),
    "clz": ("countLeadingZeros", 1),
    "round": ("round", 1),
}
"""Each built-in of the language: its WGSL name and how many arguments it takes."""
_SCALARS: Final = {scalar.value: scalar for scalar in Scalar} | {"float": Scalar.F32}
_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LOGIC: Final = frozenset({"&&", "||"})


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a function computes, as a CHECKED expression over its parameters, and the numerics mode that may rely on it (None: all)."""

    expr: ir.Expr
    params: tuple[tuple[str, Value], ...]
    condition: str | None


def instance_name(name: str, format_: DType | None) -> str:
    """Return the name of a function for one format of its generic parameter."""
    return name if format_ is None else f"{name}_{format_.name}"


def split_instance(name: str, fns: Mapping[str, ast.FnDecl]) -> tuple[str, DType | None] | None:
    """Return the function and the format that `name` means: a function's own name, or that of a generic one with `_` and a dtype."""
    if name in fns:
        return name, None
    stem, _, suffix = name.rpartition("_")
    return (stem, DTYPES[suffix]) if stem in fns and suffix in DTYPES else None


@dataclass(frozen=True, slots=True)
class Declarations:
    """The functions and structs that bodies may name."""

    fns: Mapping[str, ast.FnDecl]
    structs: Mapping[str, Struct]


def struct_of(decl: ast.StructDecl) -> Struct:
    """Return the struct type that a declaration means; the fields are machine scalars."""
    return Struct(decl.name, tuple((field.name, _SCALARS[field.type.name]) for field in decl.fields))


def check_fn(source: ast.SourceFile, decl: ast.FnDecl, known: Declarations, format_: DType | None) -> Function:
    """Return `decl` for the format of its generic parameter. Raises `QgenError` QG030 to QG037 at the place that has no meaning."""
    checker = _FnChecker(source, decl, known, format_)
    params = tuple(Param(param.name, *checker.declared(param.type)) for param in decl.params)
    result, of = checker.declared(decl.result)
    names: dict[str, Type] = {param.name: param.type for param in params}
    body = checker.block(decl.body, names, result)
    if not _returns(body):
        raise checker.fail("QG030", f"`{decl.name}` does not return on every path", "end it with `return …;`", decl.span)
    return Function(instance_name(decl.name, format_), params, result, body, of, decl.doc)


def check_clause(source: ast.SourceFile, decl: ast.FnDecl, clause: ast.Clause, format_: DType | None) -> Pattern:
    """Return what the clause says `decl` computes; raises `QgenError` as `check_expr` does."""
    checker = _FnChecker(source, decl, Declarations({}, {}), format_)
    params: dict[str, Value] = {}
    for param in decl.params:
        of = checker.declared(param.type)[1]
        if of is None:
            raise checker.fail(
                "QG031", f"`{param.name}` has no format", "parameters of a fn with a clause are formats or `int<n>`", param.span
            )
        params[param.name] = of
    dtypes = {} if format_ is None or decl.generic is None else {decl.generic[0]: format_}
    scope = Scope(value_types(params), dtypes, checker.fail)
    if checker.declared(decl.result)[0] is Scalar.BOOL:
        return Pattern(check_condition(clause.value, scope), tuple(params.items()), clause.condition)
    value = check_expr(clause.value, scope)
    if isinstance(value, Absent):
        raise TypeError(decl.name)
    return Pattern(value.expr, tuple(params.items()), clause.condition)


def _returns(body: tuple[ir.Stmt, ...]) -> bool:
    match body[-1] if body else None:
        case ir.Return():
            return True
        case ir.If(_, then, otherwise):
            return _returns(then) and _returns(otherwise)
        case _:
            return False


class _FnChecker:
    def __init__(self, source: ast.SourceFile, decl: ast.FnDecl, known: Declarations, format_: DType | None) -> None:
        self._source = source
        self._decl = decl
        self._known = known
        self._format = format_
        self._generic = decl.generic[0] if decl.generic else None

    def fail(self, code: str, message: str, hint: str, span: Span) -> QgenError:
        where = f" (in `{instance_name(self._decl.name, self._format)}`)"
        return QgenError(code, message + where, hint=hint, place=span, source=self._source.text)

    def declared(self, ref: ast.TypeRef) -> tuple[Machine, Value | None]:
        """Return the machine type of a declared type, and the values it holds."""
        if ref.name == "int" and ref.bits is not None:
            return Scalar.I32, Int.of_bits(ref.bits)
        if ref.name == "int":
            return Scalar.I32, Int.of_bits(32)
        if ref.name == self._generic and self._format is not None:
            return Scalar.U32, self._format
        if ref.name in DTYPES:
            return Scalar.U32, DTYPES[ref.name]
        if ref.name in _SCALARS:
            return _SCALARS[ref.name], None
        if ref.name in self._known.structs:
            return self._known.structs[ref.name], None
        raise self.fail("QG015", f"`{ref.name}` is not a type", "types are dtypes, `int<n>`, u32, i32, f32, bool and structs", ref.span)

    def block(self, stmts: tuple[ast.Stmt, ...], outer: Mapping[str, Type], result: Machine) -> tuple[ir.Stmt, ...]:
        names = dict(outer)
        body: list[ir.Stmt] = []
        for stmt in stmts:
            match stmt:
                case ast.Let(name, value, span):
                    if name in names:
                        raise self.fail("QG023", f"`{name}` is defined already", "choose another name", span)
                    expr = self.expr(value, names, None)
                    names[name] = expr.type
                    body.append(ir.Let(name, expr))
                case ast.Return(value, _):
                    body.append(ir.Return(self.expr(value, names, result)))
                case ast.Require(condition, _):
                    body.append(ir.Require(self.expr(condition, names, Scalar.BOOL)))
                case ast.Branch(condition, then, otherwise, _):
                    test = self.expr(condition, names, Scalar.BOOL)
                    body.append(ir.If(test, self.block(then, names, result), self.block(otherwise, names, result)))
                case ast.Assign():
                    raise self.fail("QG032", "a library function assigns nothing", "name the value with `let`", stmt.span)
        return tuple(body)

    def expr(self, expr: ast.Expr, names: Mapping[str, Type], expected: Type | None) -> ir.Expr:
        """Return the typed expression; `expected` is what a literal becomes, and what the result must be."""
        node = self._build(expr, names, expected)
        if expected is not None and node.type != expected:
            raise self.fail(
                "QG033",
                f"this is {print_type(node.type)}, wanted is {print_type(expected)}",
                "convert it: u32(…), i32(…), bits(…)",
                expr.span,
            )
        return node

    def _build(self, expr: ast.Expr, names: Mapping[str, Type], expected: Type | None) -> ir.Expr:
        match expr:
            case ast.Number(value, _):
                return ir.Literal(value, Scalar.I32 if expected is Scalar.I32 else Scalar.U32)
            case ast.FloatNumber(value, _):
                return ir.Literal(value, Scalar.F32)
            case ast.Truth(value, _):
                return ir.Literal(value, Scalar.BOOL)
            case ast.Name(name, span):
                if name not in names:
                    raise self.fail("QG010", f"`{name}` is not defined here", f"defined are: {', '.join(names)}", span)
                return ir.Name(name, names[name])
            case ast.Field(ast.Name(name, _), prop, span) if name == self._generic:
                return self._property(prop, span, expected)
            case ast.Field(operand, prop, span):
                record = self.expr(operand, names, None)
                type_ = record.type.field_type(prop) if isinstance(record.type, Struct) else None
                if type_ is None:
                    raise self.fail("QG034", f"{print_type(record.type)} has no field `{prop}`", "see the struct's declaration", span)
                return ir.Field(record, prop, type_)
            case ast.Unary(op, operand, _):
                inner = self.expr(operand, names, Scalar.BOOL if op == "!" else expected)
                if op == "-" and inner.type is Scalar.U32:
                    raise self.fail("QG033", "unary minus of a u32", "write `0 - x` modulo 2^32, or convert with i32(…)", expr.span)
                return ir.Unary(op, inner, _scalar(inner))
            case ast.Binary():
                return self._binary(expr, names, expected)
            case ast.Conditional(condition, then, otherwise, _):
                test = self.expr(condition, names, Scalar.BOOL)
                first, second = self._pair(then, otherwise, names, expected)
                return ir.Select(test, first, second, machine_type(first.type))
            case ast.Call():
                return self._call(expr, names, expected)
            case ast.Cast() | ast.KindTest() | ast.Reduce():
                raise self.fail(
                    "QG035", "`as`, `is` and `reduce` belong to formulas", "functions convert with u32(…), i32(…), float(…)", expr.span
                )

    def _property(self, name: str, span: Span, expected: Type | None) -> ir.Expr:
        value = format_property(self._format, name) if self._format else None
        if value is None:
            raise self.fail("QG034", f"the format has no property `{name}`", "see qgen/frontend/kinds.py", span)
        return ir.Literal(value, Scalar.I32 if expected is Scalar.I32 else Scalar.U32)

    def _pair(self, lhs: ast.Expr, rhs: ast.Expr, names: Mapping[str, Type], expected: Type | None) -> tuple[ir.Expr, ir.Expr]:
        """Type two expressions alike; the one that has a type of its own gives it to the other."""
        if self._is_literal(lhs) and not self._is_literal(rhs):
            second = self.expr(rhs, names, expected)
            return self.expr(lhs, names, second.type), second
        first = self.expr(lhs, names, expected)
        return first, self.expr(rhs, names, first.type)

    def _is_literal(self, expr: ast.Expr) -> bool:
        match expr:
            case ast.Number():
                return True
            case ast.Field(ast.Name(name, _), _, _):
                return name == self._generic
            case ast.Unary(_, operand, _):
                return self._is_literal(operand)
            case ast.Binary(op, lhs, rhs, _):
                return op not in _COMPARISONS and self._is_literal(lhs) and self._is_literal(rhs)
            case _:
                return False

    def _binary(self, expr: ast.Binary, names: Mapping[str, Type], expected: Type | None) -> ir.Expr:
        op = expr.op
        if op in _LOGIC:
            return ir.Binary(op, self.expr(expr.lhs, names, Scalar.BOOL), self.expr(expr.rhs, names, Scalar.BOOL), Scalar.BOOL)
        if op in _COMPARISONS:
            lhs, rhs = self._pair(expr.lhs, expr.rhs, names, None)
            return ir.Binary(op, lhs, rhs, Scalar.BOOL)
        if op in {"<<", ">>"}:
            lhs = self.expr(expr.lhs, names, expected)
            return ir.Binary(op, lhs, self.expr(expr.rhs, names, Scalar.U32), _scalar(lhs))
        lhs, rhs = self._pair(expr.lhs, expr.rhs, names, expected)
        return ir.Binary(op, lhs, rhs, _scalar(lhs))

    def _call(self, expr: ast.Call, names: Mapping[str, Type], expected: Type | None) -> ir.Expr:
        match expr.function, expr.args:
            case ("u32" | "i32") as name, (arg,):
                value = self.expr(arg, names, None)
                return value if value.type is _SCALARS[name] else ir.Convert(value, _SCALARS[name])
            case "float_of", (arg,):
                return ir.Convert(self.expr(arg, names, Scalar.I32), Scalar.F32)
            case "float", (arg,):
                return ir.Bitcast(self.expr(arg, names, Scalar.U32), Scalar.F32)
            case "bits", (arg,):
                return ir.Bitcast(self.expr(arg, names, Scalar.F32), Scalar.U32)
            case name, args if name in _BUILTINS and len(args) == _BUILTINS[name][1]:
                return self._builtin(expr, names, expected)
            case name, args if name in self._known.structs:
                struct = self._known.structs[name]
                self._arity(expr, len(struct.fields))
                fields = zip(args, struct.fields, strict=True)
                return ir.Construct(tuple(self.expr(arg, names, type_) for arg, (_, type_) in fields), struct)
            case name, args if split_instance(name, self._known.fns) is not None:
                stem, explicit = split_instance(name, self._known.fns) or (name, None)
                callee = self._known.fns[stem]
                self._arity(expr, len(callee.params))
                format_ = (explicit or self._format) if callee.generic else None
                other = _FnChecker(self._source, callee, self._known, format_)
                types = [other.declared(param.type)[0] for param in callee.params]
                values = tuple(self.expr(arg, names, type_) for arg, type_ in zip(args, types, strict=True))
                return ir.Call(instance_name(stem, format_), values, other.declared(callee.result)[0])
            case name, _:
                raise self.fail(
                    "QG036", f"`{name}` is not a function", "there are the library's functions, its structs and the built-ins", expr.span
                )

    def _builtin(self, expr: ast.Call, names: Mapping[str, Type], expected: Type | None) -> ir.Expr:
        lead = next((arg for arg in expr.args if not self._is_literal(arg)), expr.args[0])
        type_ = self.expr(lead, names, expected if self._is_literal(lead) else None).type
        args = tuple(self.expr(arg, names, type_) for arg in expr.args)
        return ir.Builtin(_BUILTINS[expr.function][0], args, _scalar(args[0]))

    def _arity(self, expr: ast.Call, count: int) -> None:
        if len(expr.args) != count:
            raise self.fail("QG037", f"`{expr.function}` takes {count} arguments, not {len(expr.args)}", "see its declaration", expr.span)


def _scalar(expr: ir.Expr) -> Scalar:
    if not isinstance(expr.type, Scalar):
        raise TypeError(expr)
    return expr.type
