"""What the groups of a piece decide: a scalar where they are one, else a vector for each four of its elements.

let group: vec4<u32> = …
let scales: vec4<u32> = vec4<u32>(x_scale[group.x], x_scale[group.y], x_scale[group.z], x_scale[group.w])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qgen.dtypes import WORD_BITS, DType
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.program import Program
from qgen.ir.rewrite import map_expr, walk_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.plan import Plan
from qgen.passes.vectors import codes_of_words
from qgen.passes.widen import Widener, all_lanes, spread
from qgen.passes.words import at_word, binary, let, load_code, name, u32

_U32X4 = Vector(Scalar.U32)


@dataclass(slots=True)
class Groups:
    """What the groups of a piece decide: statements, and the names of vectors, one for each of its quads."""

    stmts: list[ir.Stmt] = field(default_factory=list)
    quads: dict[str, tuple[ir.Expr, ...]] = field(default_factory=dict)

    def wide(self, widener: Widener, expr: ir.Expr, reads: dict[str, list[ir.Expr]], quad: int) -> ir.Expr:
        """Return an expression for the four elements of a quad, of which `reads` has the codes."""

        def leaf(node: ir.Expr) -> ir.Expr | None:
            match node:
                case ir.Read(operand, _):
                    return reads[operand][quad]
                case ir.Name(text, _):
                    return self.quads[text][quad] if text in self.quads else node
                case _:
                    return None

        return widener.expr(expr, leaf)


class GroupDecoder:
    """Decodes the groups of pieces of one kernel, under names that `fresh` makes."""

    def __init__(self, program: Program, plan: Plan, fresh: Callable[[str], str], widener: Widener) -> None:
        """Decode as `plan` says."""
        self._program = program
        self._plan = plan
        self._fresh = fresh
        self._widener = widener
        self._size = plan.round
        self._quads = plan.round // LANES

    def codes(self, operand: str, piece: ir.Expr) -> tuple[list[ir.Stmt], list[ir.Expr]]:
        """Return what to name first, and the codes of the elements of round `piece` of the tensor, by quads."""
        dtype = self._program.operand(operand).dtype
        count = self._size * dtype.bits // WORD_BITS
        if count == 0:
            return [], [self._part_of_word(operand, dtype, piece)]
        stmts: list[ir.Stmt] = []
        words: list[ir.Expr] = []
        if operand in self._plan.wide:
            for number in range(count // LANES):
                vector = ir.Name(self._fresh(f"{operand}_words"), _U32X4)
                stmts.append(ir.Let(vector.name, ir.LoadVector(operand, at_word(piece, count // LANES, number))))
                words += [ir.Component(vector, part, Scalar.U32) for part in range(LANES)]
        else:
            for number in range(count):
                word = name(self._fresh(f"{operand}_word"))
                stmts.append(let(word, ir.Load(operand, at_word(piece, count, number))))
                words.append(word)
        lets, codes = codes_of_words(dtype, words, lambda: self._fresh(f"{operand}_nibbles"))
        return [*stmts, *lets], codes

    def _part_of_word(self, operand: str, dtype: DType, quad: ir.Expr) -> ir.Expr:
        """Return the codes of four elements that are a part of a word."""
        each = u32(dtype.layout.elements // LANES)
        word = ir.Load(operand, binary("/", quad, each))
        bit = binary("*", u32(dtype.bits * LANES), binary("%", quad, each))
        bits = ir.Binary("+", spread(bit), ir.Compose(tuple(u32(dtype.bits * lane) for lane in range(LANES)), _U32X4), _U32X4)
        return ir.Binary("&", ir.Binary(">>", spread(word), bits, _U32X4), spread(u32(dtype.mask)), _U32X4)

    def decode(self, groups: list[ir.Stmt], piece: ir.Expr) -> Groups:
        """Return what the group of all elements of a piece decides."""
        found = Groups()
        number = name(self._fresh("group"))
        first = binary("*", u32(self._size), piece)
        found.stmts.append(let(number, map_expr(self._plan.group_of(first), self._of_piece)))
        for stmt in _lets(groups):
            lets, value = self._with_loads(stmt.value, number)
            found.stmts += [*lets, ir.Let(stmt.name, value)]
        return found

    def decode_each(self, groups: list[ir.Stmt], stmts: list[ir.Stmt], numbers: list[ir.Expr]) -> Groups:
        """Return what groups decide, whose `numbers` are vectors that `stmts` name."""
        found = Groups(stmts)
        reads: dict[str, list[ir.Expr]] = {}
        for stmt in _lets(groups):
            for node in walk_expr(stmt.value):
                if isinstance(node, ir.Read) and node.operand not in reads:
                    reads[node.operand] = [self._gathered(node.operand, number, found.stmts) for number in numbers]
            values = [found.wide(self._widener, stmt.value, reads, quad) for quad in range(self._quads)]
            if values[0].type == Vector(Scalar.BOOL):
                found.stmts.append(ir.Let(stmt.name, all_lanes(values)))
                continue
            names = [self._fresh(f"{stmt.name}s") for _ in values]
            found.stmts += [ir.Let(text, value) for text, value in zip(names, values, strict=True)]
            found.quads[stmt.name] = tuple(ir.Name(text, value.type) for text, value in zip(names, values, strict=True))
        return found

    def _of_piece(self, node: ir.Expr) -> ir.Expr:
        """Return `piece * p / n` as `p / (n / piece)`, where that is a whole number: an element's number is not computed to be divided."""
        match node:
            case ir.Binary("/", ir.Binary("*", ir.Literal(int(size), _), piece, _), ir.Literal(int(by), _), _) if by % size == 0:
                return binary("/", piece, u32(by // size))
            case _:
                return node

    def _with_loads(self, value: ir.Expr, index: ir.Expr) -> tuple[list[ir.Stmt], ir.Expr]:
        lets: list[ir.Stmt] = []

        def load(node: ir.Expr) -> ir.Expr:
            if not isinstance(node, ir.Read):
                return node
            more, code = load_code(node.operand, self._program.operand(node.operand).dtype, index, self._fresh)
            lets.extend(more)
            return code

        return lets, map_expr(value, load)

    def _gathered(self, operand: str, number: ir.Expr, stmts: list[ir.Stmt]) -> ir.Expr:
        """Return the codes of the groups whose numbers are a vector, wherever they lie."""
        dtype = self._program.operand(operand).dtype
        lanes = [ir.Component(number, lane, Scalar.U32) for lane in range(LANES)]
        each = spread(u32(dtype.layout.elements))
        if dtype.layout.words > 1:
            codes: list[ir.Expr] = []
            for lane in lanes:
                more, code = load_code(operand, dtype, lane, self._fresh)
                stmts += more
                codes.append(code)
            return ir.Compose(tuple(codes), _U32X4)
        if dtype.layout.elements == 1:
            return ir.Compose(tuple(ir.Load(operand, lane) for lane in lanes), _U32X4)
        words = ir.Compose(tuple(ir.Load(operand, binary("/", lane, u32(dtype.layout.elements))) for lane in lanes), _U32X4)
        bits = ir.Binary("*", spread(u32(dtype.bits)), ir.Binary("%", number, each, _U32X4), _U32X4)
        return ir.Binary("&", ir.Binary(">>", words, bits, _U32X4), spread(u32(dtype.mask)), _U32X4)


def _lets(groups: list[ir.Stmt]) -> list[ir.Let]:
    lets = [stmt for stmt in groups if isinstance(stmt, ir.Let)]
    if len(lets) != len(groups):
        raise InternalError("what a group decides is named")
    return lets
