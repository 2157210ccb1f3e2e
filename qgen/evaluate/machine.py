"""The machine: lanes in lockstep under a mask, buffers that know who stored each word, and the trap.

A value is an array of one element a lane, or of one element that every lane shares; a struct is a tuple of them.
A mask is True (every lane), False (no lane), or an array with at least one lane of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from qgen.errors import InternalError
from qgen.evaluate.model import ArithmeticModel, Array, Words
from qgen.ir.types import Scalar

Value = Array | tuple[Array, ...]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.int64]
Mask = bool | Bools

NUMPY: Final[Mapping[Scalar, type[np.generic]]] = {
    Scalar.BOOL: np.bool_,
    Scalar.U32: np.uint32,
    Scalar.I32: np.int32,
    Scalar.F32: np.float32,
}
NOBODY: Final = -1


class EvaluationError(Exception):
    """A trap: the program does what no LEGAL program may do. A bug of the program, or of what made it.

    `kernel` is the kernel or the function evaluated; `invocation` its global id, or (lane, 0, 0) of a function.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel: str,
        buffer: str | None = None,
        index: int | None = None,
        invocation: tuple[int, int, int] | None = None,
    ) -> None:
        """Keep the parts, and print them after the message."""
        parts = [kernel]
        if buffer is not None:
            parts.append(f"buffer {buffer}")
        if index is not None:
            parts.append(f"index {index}")
        if invocation is not None:
            parts.append(f"invocation {invocation}")
        super().__init__(f"{message} ({', '.join(parts)})")
        self.message = message
        self.kernel = kernel
        self.buffer = buffer
        self.index = index
        self.invocation = invocation


@dataclass(slots=True)
class Machine:
    """What one run shares: the model, the compiled functions, buffers and uniforms, and the size of the grid of invocations.

    `owners` has, for each buffer that the kernel stores to, the invocation that stored each word.
    """

    name: str
    model: ArithmeticModel
    functions: Mapping[str, Callable[[Frame, list[Value]], Value]]
    buffers: Mapping[str, Words] = field(default_factory=dict)
    owners: Mapping[str, Ids] = field(default_factory=dict)
    uniforms: Mapping[str, Array] = field(default_factory=dict)
    width: int = 1 << 40
    height: int = 1

    def invocation(self, identity: int) -> tuple[int, int, int]:
        """Return the global invocation id of a linear one."""
        rest, x = divmod(identity, self.width)
        z, y = divmod(rest, self.height)
        return x, y, z


class Frame:
    """The slots of a kernel or of one call of a function, for the lanes of a slab or for some of another frame's.

    These are its `origin`: the other frame and the indices of the lanes. A slot that is None is that frame's, gathered when first read.
    """

    __slots__ = ("held", "ids", "lanes", "machine", "mask", "model", "origin", "result", "slots")

    def __init__(self, machine: Machine, model: ArithmeticModel, ids: Ids, slots: list[Value | None], mask: Mask) -> None:
        """Start with these slots, nothing returned and every `Require` held; `model` is the machine's within this text."""
        self.machine = machine
        self.model = model
        self.ids = ids
        self.lanes = len(ids)
        self.slots = slots
        self.mask = mask
        self.result: Value | None = None
        self.held: Mask = True
        self.origin: tuple[Frame, Ids] | None = None

    def slot(self, number: int) -> Value:
        """Return the value of a slot, from the parent's where this frame has not set it."""
        value = self.slots[number]
        if value is None:
            if self.origin is None:
                raise InternalError(f"{self.machine.name}: slot {number} is read before it is set")
            frame, index = self.origin
            value = gather(frame.slot(number), index)
            self.slots[number] = value
        return value

    def returned(self) -> Value:
        """Return the function's result."""
        if self.result is None:
            raise InternalError(f"{self.machine.name}: a function ends without a result")
        return self.result

    def narrow(self, index: Ids) -> Frame:
        """Return a frame of the active lanes alone, which are those at `index`; `widen` brings back what it did."""
        frame = Frame(self.machine, self.model, self.ids[index], [None] * len(self.slots), mask=True)
        frame.origin = (self, index)
        return frame

    def widen(self, frame: Frame, index: Ids, assigned: tuple[int, ...]) -> None:
        """Take over the slots assigned, the results, the mask and the failed `Require`s of a frame that `narrow` made."""
        for number in assigned:
            value = frame.slots[number]
            if value is not None:
                self.slots[number] = scatter(self.slot(number), index, value, self.lanes)
        if frame.result is not None:
            base = zeros_like(frame.result) if self.result is None else self.result
            self.result = scatter(base, index, frame.result, self.lanes)
        self.mask = _spread(frame.mask, index, self.lanes, elsewhere=False)
        if frame.held is not True:
            self.held = intersect(self.held, _spread(frame.held, index, self.lanes, elsewhere=True))

    def load(self, name: str, index: Array) -> Array:
        """Return the words of a buffer at these indices, and 0 on inactive lanes that are out of bounds.

        Traps where an index is out of bounds, or where the kernel stores to the buffer and the invocation has not stored that word.
        """
        words = self.machine.buffers[name]
        outside = index >= words.size
        if outside.any():
            return self._load_outside(name, index, outside)
        self._check_own(name, index)
        return words[index]

    def _load_outside(self, name: str, index: Array, outside: Bools) -> Array:
        words = self.machine.buffers[name]
        loaded = np.zeros(index.size, np.uint32)
        if not outside.all():
            inside = np.where(outside, index[~outside][0], index)
            self._check_own(name, inside)
            loaded = np.where(outside, np.uint32(0), words[inside])
        if self.first(outside) is not None:
            found = self.machine.model.load_outside(words, index[outside])
            if found is None:
                self.trap(f"a load outside the {words.size} words", outside, buffer=name, index=index)
            else:
                loaded[outside] = found
        return loaded

    def _check_own(self, name: str, index: Array) -> None:
        owners = self.machine.owners.get(name)
        if owners is not None:
            self.trap("a load of a word that the invocation has not stored", owners[index] != self.ids, buffer=name, index=index)

    def store(self, name: str, index: Array, value: Array) -> None:
        """Store a word on each active lane; traps where an index is out of bounds or another invocation has stored that word."""
        words, owners = self.machine.buffers[name], self.machine.owners[name]
        active = np.broadcast_to(self.mask, self.lanes)
        at, ids = np.broadcast_to(index, self.lanes)[active], self.ids[active]
        outside = at >= words.size
        if outside.any():
            moved = self.machine.model.store_outside(words.size, at[outside])
            if moved is None:
                self.trap(f"a store outside the {words.size} words", index >= words.size, buffer=name, index=index)
            else:
                at[outside] = moved
        taken = owners[at]
        owners[at] = np.where(taken == NOBODY, ids, taken)
        if (owners[at] != ids).any():
            clash = np.zeros(self.lanes, np.bool_)
            clash[active] = owners[at] != ids
            self.trap("a store to a word that another invocation stores", clash, buffer=name, index=index)
        words[at] = np.broadcast_to(value, self.lanes)[active]

    def atomic_max(self, name: str, index: Array, value: Array) -> None:
        """Raise a word to `value` on each active lane, in an order that does not matter; traps where an index is out of bounds."""
        words = self.machine.buffers[name]
        active = np.broadcast_to(self.mask, self.lanes)
        at = np.broadcast_to(index, self.lanes)[active]
        outside = at >= words.size
        if outside.any():
            moved = self.machine.model.store_outside(words.size, at[outside])
            if moved is None:
                self.trap(f"an atomic operation outside the {words.size} words", index >= words.size, buffer=name, index=index)
            else:
                at = np.where(outside, 0, at)
                at[outside] = moved
        np.maximum.at(words, at, np.broadcast_to(value, self.lanes)[active])

    def give(self, value: Value) -> None:
        """Return `value` on the active lanes and stop them."""
        self.result = value if self.result is None or self.mask is True else choose(self.mask, value, self.result)
        self.mask = False

    def first(self, bad: Array) -> int | None:
        """Return the first active lane on which `bad` holds, or None."""
        lanes = np.flatnonzero(np.broadcast_to(bad & self.mask, self.lanes))
        return int(lanes[0]) if lanes.size else None

    def trap(self, message: str, bad: Array, *, buffer: str | None = None, index: Array | None = None) -> None:
        """Raise `EvaluationError` for the first active lane on which `bad` holds, if there is one."""
        lane = self.first(bad)
        if lane is None:
            return
        at = None if index is None else int(np.broadcast_to(index, self.lanes)[lane])
        invocation = self.machine.invocation(int(self.ids[lane]))
        raise EvaluationError(message, kernel=self.machine.name, buffer=buffer, index=at, invocation=invocation)


def settle(mask: Bools) -> Mask:
    """Return the mask, as True or False where all lanes agree."""
    count = np.count_nonzero(mask)
    if count == 0:
        return False
    return True if count == mask.size else mask


def intersect(lhs: Mask, rhs: Mask) -> Mask:
    """Return the lanes of both masks."""
    if lhs is True or rhs is False:
        return rhs
    if rhs is True or lhs is False:
        return lhs
    return settle(np.logical_and(lhs, rhs))


def unite(lhs: Mask, rhs: Mask) -> Mask:
    """Return the lanes of either mask."""
    if lhs is True or rhs is False:
        return lhs
    if rhs is True or lhs is False:
        return rhs
    return settle(np.logical_or(lhs, rhs))


def choose(condition: Mask, then: Value, otherwise: Value) -> Value:
    """Return the one value where the condition holds and the other elsewhere."""
    if isinstance(then, tuple):
        return tuple(np.where(condition, a, b) for a, b in zip(then, otherwise, strict=True))
    return np.where(condition, then, cast("Array", otherwise))


def gather(value: Value, index: Ids) -> Value:
    """Return the value on the lanes at `index`."""
    if isinstance(value, tuple):
        return tuple(item if item.size == 1 else item[index] for item in value)
    return value if value.size == 1 else value[index]


def zeros_like(value: Value) -> Value:
    """Return a value of the same type that every lane shares."""
    return tuple(np.zeros(1, item.dtype) for item in value) if isinstance(value, tuple) else np.zeros(1, value.dtype)


def scatter(base: Value, index: Ids, value: Value, lanes: int) -> Value:
    """Return `base` with the lanes at `index` set to `value`."""
    if isinstance(base, tuple):
        return tuple(_scatter(b, index, v, lanes) for b, v in zip(base, value, strict=True))
    return _scatter(base, index, cast("Array", value), lanes)


def _scatter(base: Array, index: Ids, value: Array, lanes: int) -> Array:
    full = np.broadcast_to(base, lanes).copy()
    full[index] = value
    return full


def _spread(mask: Mask, index: Ids, lanes: int, *, elsewhere: bool) -> Mask:
    full = np.full(lanes, elsewhere)
    full[index] = mask
    return settle(full)
