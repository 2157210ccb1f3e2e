"""Statements into closures that change the frame, and kernels and functions into units.

A block on which few lanes are left runs on a frame of those lanes alone, so that rare paths cost what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never, cast

import numpy as np

from qgen.evaluate.compile_expr import compile_expr, compile_scalar
from qgen.evaluate.machine import Frame, Ids, Machine, Mask, Value, choose, intersect, unite
from qgen.evaluate.model import Array
from qgen.evaluate.scope import Needs, Scope
from qgen.ir.nodes import Accumulate, Assign, AtomicMax, For, If, Let, Literal, Require, Return, Stmt, Store, StoreVector, Var, Write
from qgen.ir.program import Function, Kernel
from qgen.ir.types import Machine as MachineType
from qgen.ir.types import Scalar

Code = Callable[[Frame], None]
NARROW_LANES: Final = 256
NARROW_WEIGHT: Final = 16
NARROW_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in order; `assigned` are the slots of enclosing blocks that they set, `weight` counts their nodes."""

    codes: tuple[Code, ...]
    assigned: tuple[int, ...]
    weight: int

    def run(self, frame: Frame) -> None:
        """Run the statements until no lane is active."""
        self._run_from(0, frame)

    def _run_from(self, start: int, frame: Frame) -> None:
        considered: Mask = True
        for number in range(start, len(self.codes)):
            if frame.mask is not considered:
                considered = frame.mask
                if self._is_worth_narrowing(frame):
                    index = np.flatnonzero(frame.mask)
                    narrow = frame.narrow(index)
                    self._run_from(number, narrow)
                    frame.widen(narrow, index, self.assigned)
                    return
            self.codes[number](frame)
            if frame.mask is False:
                return

    def _is_worth_narrowing(self, frame: Frame) -> bool:
        if frame.lanes < NARROW_LANES or self.weight < NARROW_WEIGHT or isinstance(frame.mask, bool):
            return False
        return int(np.count_nonzero(frame.mask)) * NARROW_SHARE <= frame.lanes


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """A function whose first slots are its parameters."""

    needs: Needs
    block: Block

    def call(self, frame: Frame, args: list[Value]) -> Value:
        """Return the result on the active lanes of the caller's frame; a `Require` that fails shows in its `held`."""
        slots = [*args, *[None] * (self.needs.slots - len(args))]
        inner = Frame(frame.machine, frame.machine.model.within(self.needs.owner), frame.ids, slots, frame.mask)
        self.block.run(inner)
        frame.held = intersect(frame.held, inner.held)
        return inner.returned()


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """An entry point whose first slots are the global invocation id's x and y."""

    needs: Needs
    block: Block

    def run(self, machine: Machine, ids: Ids) -> None:
        """Run the invocations with these linear ids."""
        x, y = ids % machine.width, ids // machine.width % machine.height
        slots: list[Value | None] = [x.astype(np.uint32), y.astype(np.uint32), *[None] * (self.needs.slots - 2)]
        self.block.run(Frame(machine, machine.model.within(self.needs.owner), ids, slots, mask=True))


def compile_function(function: Function) -> CompiledFunction:
    """Compile a function; raises `EvaluationError` where its text cannot be LEGAL, or a path has no `Return`."""
    scope = Scope(Needs(function.name, is_kernel=False))
    for param in function.params:
        scope.declare(param.name, param.type)
    scope.require(_always_returns(function.body), "a Return is missing on a path")
    return CompiledFunction(scope.needs, _compile_block(function.body, Scope(scope.needs, scope), function.result))


def compile_kernel(kernel: Kernel) -> CompiledKernel:
    """Compile an entry point; raises `EvaluationError` where its text cannot be LEGAL."""
    needs = Needs(kernel.name, is_kernel=True, slots=2)
    return CompiledKernel(needs, _compile_block(kernel.body, Scope(needs), None))


def _always_returns(body: tuple[Stmt, ...]) -> bool:
    for stmt in body:
        match stmt:
            case Return():
                return True
            case If() if _always_returns(stmt.then) and _always_returns(stmt.otherwise):
                return True
            case _:
                pass
    return False


def _compile_block(body: tuple[Stmt, ...], scope: Scope, result: MachineType | None) -> Block:
    before = scope.needs.weight
    codes = tuple(_compile_stmt(stmt, scope, result) for stmt in body)
    outer = scope.assigned - {slot.number for slot in scope.names.values()}
    if scope.parent is not None:
        scope.parent.assigned |= outer
    return Block(codes, tuple(sorted(outer)), scope.needs.weight - before)


def _compile_stmt(stmt: Stmt, scope: Scope, result: MachineType | None) -> Code:
    match stmt:
        case Let():
            return _declaration(stmt, scope)
        case Var():
            return _declaration(stmt, scope)
        case Assign():
            return _assign(stmt, scope)
        case Return():
            return _return(stmt, scope, result)
        case If():
            return _if(stmt, scope, result)
        case For():
            return _for(stmt, scope, result)
        case Require():
            return _require(stmt, scope)
        case Store():
            return _store(stmt, scope)
        case AtomicMax():
            return _atomic_max(stmt, scope)
        case Write() | Accumulate() | StoreVector():
            raise scope.fail(f"{type(stmt).__name__} is not a node of the LEGAL stage")
        case _:
            assert_never(stmt)


def _declaration(stmt: Let | Var, scope: Scope) -> Code:
    value = compile_expr(stmt.value, scope)
    number = scope.declare(stmt.name, stmt.value.type, is_variable=isinstance(stmt, Var))

    def run(frame: Frame) -> None:
        frame.slots[number] = value(frame)

    return run


def _assign(stmt: Assign, scope: Scope) -> Code:
    slot = scope.find(stmt.name)
    scope.require(slot.is_variable and slot.type == stmt.value.type, f"{stmt.name} is not a variable of that type")
    value = compile_expr(stmt.value, scope)
    number = slot.number
    scope.assigned.add(number)

    def run(frame: Frame) -> None:
        new = value(frame)
        frame.slots[number] = new if frame.mask is True else choose(frame.mask, new, frame.slot(number))

    return run


def _return(stmt: Return, scope: Scope, result: MachineType | None) -> Code:
    found = None if stmt.value is None else stmt.value.type
    scope.require(found == result, "a Return whose value is not the result")
    if stmt.value is None:
        return _stop
    value = compile_expr(stmt.value, scope)

    def run(frame: Frame) -> None:
        frame.give(value(frame))

    return run


def _stop(frame: Frame) -> None:
    frame.mask = False


def _require(stmt: Require, scope: Scope) -> Code:
    scope.require(not scope.needs.is_kernel, "Require is not a statement of an entry point")
    condition = compile_scalar(stmt.condition, scope, Scalar.BOOL)

    def run(frame: Frame) -> None:
        # Lanes that are masked off count as held.
        failed = np.broadcast_to(~condition(frame) & frame.mask, frame.lanes)
        if failed.any():
            frame.held = intersect(frame.held, _mask(~failed))

    return run


def _store(stmt: Store, scope: Scope) -> Code:
    scope.needs.stores.add(stmt.buffer)
    index, value = compile_scalar(stmt.index, scope, Scalar.U32), compile_scalar(stmt.value, scope, Scalar.U32)
    name = stmt.buffer

    def run(frame: Frame) -> None:
        frame.store(name, index(frame), value(frame))

    return run


def _atomic_max(stmt: AtomicMax, scope: Scope) -> Code:
    scope.require(scope.needs.is_kernel, "AtomicMax is not a statement of a function")
    scope.needs.atomics.add(stmt.buffer)
    index, value = compile_scalar(stmt.index, scope, Scalar.U32), compile_scalar(stmt.value, scope, Scalar.U32)
    name = stmt.buffer

    def run(frame: Frame) -> None:
        frame.atomic_max(name, index(frame), value(frame))

    return run


def _mask(condition: Array) -> Mask:
    """Return the lanes on which a condition holds; a single element answers for every lane."""
    count = np.count_nonzero(condition)
    if count == 0:
        return False
    return True if count == condition.size else condition


def _if(stmt: If, scope: Scope, result: MachineType | None) -> Code:
    condition = compile_scalar(stmt.condition, scope, Scalar.BOOL)
    then = _compile_block(stmt.then, Scope(scope.needs, scope), result)
    otherwise = _compile_block(stmt.otherwise, Scope(scope.needs, scope), result)

    def run(frame: Frame) -> None:
        holds = condition(frame)
        outer = frame.mask
        first = intersect(outer, _mask(holds))
        second = intersect(outer, _mask(~holds))
        left: Mask = False
        for mask, block in ((first, then), (second, otherwise)):
            if mask is not False:
                frame.mask = mask
                block.run(frame)
                left = unite(left, frame.mask)
        frame.mask = left

    return run


def _for(stmt: For, scope: Scope, result: MachineType | None) -> Code:
    scope.require(stmt.step != Literal(0, Scalar.U32), "a loop with step 0")
    step = compile_scalar(stmt.step, scope, Scalar.U32)
    start = compile_scalar(stmt.start, scope, Scalar.U32)
    inner = Scope(scope.needs, scope)
    number = inner.declare(stmt.name, Scalar.U32)
    stop = compile_scalar(stmt.stop, inner, Scalar.U32)
    block = _compile_block(stmt.body, Scope(scope.needs, inner), result)
    scope.assigned |= inner.assigned

    def run(frame: Frame) -> None:
        frame.slots[number] = start(frame)
        ended: Mask = False
        while frame.mask is not False:
            now = cast("Array", frame.slots[number])
            goes = now < stop(frame)
            ended = unite(ended, intersect(frame.mask, _mask(~goes)))
            frame.mask = intersect(frame.mask, _mask(goes))
            if frame.mask is False:
                break
            block.run(frame)
            after = now + step(frame)
            if (after < now).any():
                frame.trap("a loop variable passes 2^32", after < now)
            if (after == now).any():
                frame.trap("a loop does not advance", after == now)
            frame.slots[number] = after
        frame.mask = ended

    return run
