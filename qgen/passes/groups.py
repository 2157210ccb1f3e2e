"""What the groups of a piece decide, named for each four of its elements: decoded once, twice, side by side or one by one.

let group: u32 = 16u * piece / 1011u
let scale: u32 = x_scale[group]
…
let group_2: u32 = (16u * piece + 15u) / 1011u
let scale_2: u32 = x_scale[group_2]
…
let scale_of_each: vec4<u32> = if vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(left) then vec4<u32>(scale) else vec4<u32>(scale_2)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qgen.dtypes import WORD_BITS
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.program import Program
from qgen.ir.rewrite import map_expr, walk_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.lay import GroupLevel
from qgen.passes.plan import Plan
from qgen.passes.stepper import Stepper
from qgen.passes.vectors import codes_of_words
from qgen.passes.widen import Widener, spread
from qgen.passes.words import all_of, at_word, binary, code_of_word, let, load_code, name, u32

_U32X4 = Vector(Scalar.U32)


@dataclass(slots=True)
class Groups:
    """What the groups of a piece decide: statements, then a name for each of its quads, and the conditions that hold of all.

    Where one piece goes on from the one before, `before` and `after` are what stands before the loop and after the last use of `stmts`.
    """

    stmts: list[ir.Stmt] = field(default_factory=list)
    quads: dict[str, tuple[ir.Expr, ...]] = field(default_factory=dict)
    conditions: dict[str, ir.Expr] = field(default_factory=dict)
    before: list[ir.Stmt] = field(default_factory=list)
    after: list[ir.Stmt] = field(default_factory=list)

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
        self._quads = plan.piece // LANES

    def codes(self, operand: str, piece: ir.Expr) -> tuple[list[ir.Stmt], list[ir.Expr]]:
        """Return what to name first, and the codes of elements (of an operand of groups: groups) `plan.piece * piece` on, by quads."""
        dtype = self._program.operand(operand).dtype
        count = self._plan.piece * dtype.bits // WORD_BITS
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

    def decode(self, groups: list[ir.Stmt], unit: ir.Expr, piece: ir.Expr, walks: ir.Expr | None = None) -> Groups:
        """Return what the groups of a piece decide."""
        first = binary("*", u32(self._plan.piece), piece)
        match self._plan.group_level:
            case GroupLevel.PIECE:
                return self._one_group(groups, first)
            case GroupLevel.PAIR:
                return self._two_groups(groups, first)
            case GroupLevel.RUN:
                return self._run(groups, first)
            case GroupLevel.ALIKE if walks is not None:
                return self._alike(groups, first, walks)
            case GroupLevel.ELEMENT:
                return self._each(groups, first if self._plan.columns is not None else binary("*", u32(self._plan.lanes), unit))
            case _:
                raise InternalError("what an invocation shares is decoded before its pieces")

    def _group_of(self, index: ir.Expr) -> ir.Expr:
        group = map_expr(self._plan.group, lambda node: index if node == ir.Name("i", Scalar.U32) else node)
        return map_expr(group, self._of_piece)

    def _of_piece(self, node: ir.Expr) -> ir.Expr:
        """Return `piece * p / n` as `p / (n / piece)`, where that is a whole number: an element's number is not computed to be divided."""
        match node:
            case ir.Binary("/", ir.Binary("*", ir.Literal(int(size), _), piece, _), ir.Literal(int(by), _), _) if by % size == 0:
                return binary("/", piece, u32(by // size))
            case _:
                return node

    def _named_group(self, index: ir.Expr) -> tuple[ir.Stmt, ir.Expr]:
        number = name(self._fresh("group"))
        return let(number, self._group_of(index)), number

    def _one_group(self, groups: list[ir.Stmt], first: ir.Expr) -> Groups:
        found = Groups()
        named, number = self._named_group(first)
        found.stmts.append(named)
        for stmt in _lets(groups):
            lets, value = self._with_loads(stmt.value, number)
            found.stmts += [*lets, ir.Let(stmt.name, value)]
        return found

    def _with_loads(self, value: ir.Expr, index: ir.Expr) -> tuple[list[ir.Stmt], ir.Expr]:
        lets: list[ir.Stmt] = []

        def load(node: ir.Expr) -> ir.Expr:
            if not isinstance(node, ir.Read):
                return node
            more, code = load_code(node.operand, self._program.operand(node.operand).dtype, index, self._fresh)
            lets.extend(more)
            return code

        return lets, map_expr(value, load)

    def _two_groups(self, groups: list[ir.Stmt], first: ir.Expr) -> Groups:
        """Decode the groups of the first and the last element: there are no others, and `left` elements have the first one's."""
        found = Groups()
        left = name(self._fresh("left"))
        found.stmts.append(let(left, _required(self._plan.left, first)))
        sides: list[dict[str, ir.Expr]] = []
        for index in (first, binary("+", first, u32(self._plan.piece - 1))):
            named, number = self._named_group(index)
            found.stmts.append(named)
            names: dict[str, ir.Expr] = {}
            for stmt in _lets(groups):
                lets, value = self._with_loads(_renamed(stmt.value, names), number)
                names[stmt.name] = ir.Name(stmt.name if not sides else self._fresh(stmt.name), value.type)
                found.stmts += [*lets, let(names[stmt.name], value)]
            sides.append(names)
        for text, ours in sides[0].items():
            theirs = sides[1][text]
            if ours.type is Scalar.BOOL:
                found.conditions[text] = all_of([ours, theirs])
                continue
            found.quads[text] = tuple(self._choice(found, ours, theirs, left, quad) for quad in range(self._quads))
        return found

    def _choice(self, found: Groups, ours: ir.Expr, theirs: ir.Expr, left: ir.Expr, quad: int) -> ir.Expr:
        numbers = ir.Compose(tuple(u32(LANES * quad + lane) for lane in range(LANES)), _U32X4)
        is_ours = ir.Binary("<", numbers, spread(left), Vector(Scalar.BOOL))
        ours, theirs = spread(ours), spread(theirs)
        if not isinstance(ours, ir.Compose) or not isinstance(ours.args[0], ir.Name):
            raise InternalError("what a group decides has a name")
        chosen = ir.Name(self._fresh(f"{ours.args[0].name}_of_each"), ours.type)
        found.stmts.append(ir.Let(chosen.name, ir.Select(is_ours, ours, theirs, ours.type)))
        return chosen

    def _run(self, groups: list[ir.Stmt], first: ir.Expr) -> Groups:
        """Decode as many groups as the piece has elements: they lie side by side."""
        run = name(self._fresh("group_piece"))
        start = binary("/", self._group_of(first), u32(self._plan.piece))
        return self._vectors(groups, [let(run, start)], lambda operand: self.codes(operand, run))

    def _alike(self, groups: list[ir.Stmt], first: ir.Expr, walks: ir.Expr) -> Groups:
        """Decode the group that all elements of the invocation have, or those of its columns, which begin at a whole word."""
        step = name(self._fresh("step"))
        named, number = self._named_group(first)

        def load(operand: str) -> tuple[list[ir.Stmt], list[ir.Expr]]:
            dtype = self._program.operand(operand).dtype
            each = dtype.layout.elements
            words = [name(self._fresh(f"{operand}_word")) for _ in range(self._plan.piece // each)]
            start = number if each == 1 else binary("/", number, u32(each))
            lets = [
                let(word, ir.Load(operand, start if at == 0 else binary("+", start, binary("*", u32(at), step))))
                for at, word in enumerate(words)
            ]
            more, side_by_side = codes_of_words(dtype, words, lambda: self._fresh(f"{operand}_nibbles"))
            if each == 1:
                return [*lets, *more], side_by_side
            code = name(self._fresh(f"{operand}_code"))
            only = let(code, code_of_word(dtype, words[0], number))
            return [*lets, *more, only], [ir.Select(walks, codes, spread(code), _U32X4) for codes in side_by_side]

        return self._vectors(groups, [let(step, ir.Convert(walks, Scalar.U32)), named], load)

    def _each(self, groups: list[ir.Stmt], first: ir.Expr) -> Groups:
        """Decode the group of each element by itself, stepping from one to the next; piece after piece where these lie side by side."""
        is_once = self._plan.columns is not None
        stepper = Stepper(self._plan, self._fresh)
        before = stepper.start(first, is_once=is_once)
        stmts: list[ir.Stmt] = before if is_once else []
        numbers: list[ir.Expr] = []
        for lane in range(self._plan.piece):
            number = stepper.group()
            if not isinstance(number, ir.Name):
                group, number = number, name(self._fresh("group"))
                stmts.append(let(number, group))
            stmts += [] if is_once and lane == self._plan.piece - 1 else stepper.step()
            numbers.append(number)
        found = self._gathered(groups, stmts, numbers)
        if not is_once:
            found.before, found.after = before, stepper.keep()
        return found

    def _gathered(self, groups: list[ir.Stmt], stmts: list[ir.Stmt], numbers: list[ir.Expr]) -> Groups:
        def gather(operand: str) -> tuple[list[ir.Stmt], list[ir.Expr]]:
            lets: list[ir.Stmt] = []
            codes: list[ir.Expr] = []
            for number in numbers:
                more, code = load_code(operand, self._program.operand(operand).dtype, number, self._fresh)
                lets += more
                codes.append(code)
            return lets, [ir.Compose(tuple(codes[start : start + LANES]), _U32X4) for start in range(0, len(codes), LANES)]

        return self._vectors(groups, stmts, gather)

    def _vectors(self, groups: list[ir.Stmt], stmts: list[ir.Stmt], load: Callable[[str], tuple[list[ir.Stmt], list[ir.Expr]]]) -> Groups:
        """Decode groups as vectors, one for each quad."""
        found = Groups(stmts)
        reads: dict[str, list[ir.Expr]] = {}
        for stmt in _lets(groups):
            for node in walk_expr(stmt.value):
                if isinstance(node, ir.Read) and node.operand not in reads:
                    lets, reads[node.operand] = load(node.operand)
                    found.stmts += lets
            values = [found.wide(self._widener, stmt.value, reads, quad) for quad in range(self._quads)]
            if values[0].type == Vector(Scalar.BOOL):
                result = values[0]
                for value in values[1:]:
                    result = ir.Binary("&", result, value, Vector(Scalar.BOOL))
                held = ir.Name(self._fresh(stmt.name) if self._plan.group_level is GroupLevel.ALIKE else stmt.name, Scalar.BOOL)
                found.stmts.append(let(held, ir.Builtin("all", (result,), Scalar.BOOL)))
                found.conditions[stmt.name] = held
                continue
            names = [self._fresh(f"{stmt.name}s") for _ in values]
            found.stmts += [ir.Let(text, value) for text, value in zip(names, values, strict=True)]
            found.quads[stmt.name] = tuple(ir.Name(text, value.type) for text, value in zip(names, values, strict=True))
        return found


def _lets(groups: list[ir.Stmt]) -> list[ir.Let]:
    lets = [stmt for stmt in groups if isinstance(stmt, ir.Let)]
    if len(lets) != len(groups):
        raise InternalError("what a group decides is named")
    return lets


def _required(expr: ir.Expr | None, first: ir.Expr) -> ir.Expr:
    if expr is None:
        raise InternalError("a plan of pieces with two groups says where the second begins")
    return map_expr(expr, lambda node: first if node == ir.Name("i", Scalar.U32) else node)


def _renamed(value: ir.Expr, names: dict[str, ir.Expr]) -> ir.Expr:
    return map_expr(value, lambda node: names.get(node.name, node) if isinstance(node, ir.Name) else node)
