"""The evaluator's entry points: a kernel, a whole program, or a function, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from qgen.errors import InternalError
from qgen.evaluate.compile_stmt import CompiledFunction
from qgen.evaluate.link import Linked, compiled_function, compiled_kernel, link
from qgen.evaluate.machine import NOBODY, NUMPY, Bools, EvaluationError, Frame, Machine, Value
from qgen.evaluate.model import IEEE, ArithmeticModel, Array, Words
from qgen.ir.program import ById, Function, Kernel, Program
from qgen.ir.scalarise import scalarise_function, scalarise_kernel
from qgen.ir.types import Scalar, Struct, Vector

SLAB: Final = 65_536
"""Invocations, or lanes, that run in lockstep."""
Workgroups = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionResult:
    """`value` has one element a lane (for a struct, each field has); `held` says on which lanes every `Require` met held."""

    value: Array | dict[str, Array]
    held: Bools


def evaluate_kernel(  # noqa: PLR0917 - the parts of a dispatch, in the order a host has them
    program: Program,
    kernel: Kernel,
    buffers: Mapping[str, Words],
    uniforms: Mapping[str, int],
    workgroups: Workgroups,
    model: ArithmeticModel = IEEE,
) -> dict[str, Words]:
    """Return the words of the outputs after one dispatch.

    `buffers` has the words (u32, one dimension) of every operand; of an output that the kernel stores to, only the size counts.
    An output that the kernel only loads was written by an earlier dispatch.
    Raises `EvaluationError` where the kernel traps, or never stores a word of an output.
    """
    kernel, functions = model.regroup(scalarise_kernel(ById(kernel))), _functions(program.functions, model)
    linked = link(compiled_kernel(kernel).needs, functions)
    outputs = {operand.name for operand in program.operands if operand.is_output}
    stored = _run(program, kernel, linked, buffers, uniforms, workgroups, model)
    for name in buffers:
        if name in outputs and name not in linked.loads | linked.stores:
            raise EvaluationError("no word is ever stored", kernel=kernel.name, buffer=name, index=0)
    return {name: _whole(kernel.name, name, words, mask) for name, (words, mask) in stored.items()}


def evaluate_program(  # noqa: PLR0917 - the parts of a dispatch, in the order a host has them
    program: Program,
    buffers: Mapping[str, Words],
    output_words: Mapping[str, int],
    uniforms: Mapping[str, int],
    dispatches: Sequence[Workgroups],
    model: ArithmeticModel = IEEE,
) -> dict[str, Words]:
    """Return the words of the outputs after one dispatch a kernel, in order.

    `buffers` has the inputs' words, `output_words` the outputs' sizes. Each kernel may store to some of an output; what a kernel loads
    of an output without storing to it must be whole by then.
    Raises `EvaluationError` as `evaluate_kernel` does, at the end for words never stored.
    """
    functions = _functions(program.functions, model)
    words = {name: np.zeros(size, np.uint32) for name, size in output_words.items()}
    stored = {name: np.zeros(size, np.bool_) for name, size in output_words.items()}
    for text, workgroups in zip(program.kernels, dispatches, strict=True):
        kernel = model.regroup(scalarise_kernel(ById(text)))
        linked = link(compiled_kernel(kernel).needs, functions)
        for name in sorted(((linked.loads - linked.stores) | linked.atomics) & words.keys()):
            _whole(kernel.name, name, words[name], stored[name])
        for name, (new, mask) in _run(program, kernel, linked, {**buffers, **words}, uniforms, workgroups, model).items():
            words[name] = np.where(mask, new, words[name])
            stored[name] |= mask
    return {name: _whole(program.name, name, words[name], stored[name]) for name in words}


def evaluate_function(
    function: Function,
    functions: Sequence[Function] | Mapping[str, Function],
    args: Sequence[Array | Mapping[str, Array]],
    model: ArithmeticModel = IEEE,
) -> FunctionResult:
    """Return the function's value on every lane.

    `functions` are those it may call. An argument is an array in the NumPy type of its parameter (bool, uint32, int32, float32),
    of one dimension, with one element a lane or a single one for all; for a struct, a mapping of them by field.
    Raises `EvaluationError` where it traps.
    """
    function = scalarise_function(ById(function))
    compiled = compiled_function(model.regroup(function))
    linked = link(compiled.needs, _functions(functions.values() if isinstance(functions, Mapping) else functions, model))
    if linked.loads or linked.stores or linked.uniforms:
        raise EvaluationError("a function that loads, stores or reads a uniform", kernel=function.name)
    values = _arguments(function, args)
    sizes = [item.size for value in values for item in (value if isinstance(value, tuple) else (value,))]
    lanes = max((size for size in sizes if size != 1), default=1)
    if any(size not in (1, lanes) for size in sizes) or lanes == 0:
        raise EvaluationError(f"arguments of sizes {sizes}", kernel=function.name)
    machine = Machine(function.name, model, linked.functions)
    with np.errstate(all="ignore"):
        slabs = [_call(compiled, machine, values, np.arange(lo, hi, dtype=np.int64)) for lo, hi in _slabs(lanes)]
    held = np.concatenate([held for _, held in slabs])
    match function.result:
        case Struct(fields=fields):
            columns = zip(*(value for value, _ in slabs), strict=True)
            return FunctionResult({name: np.concatenate(parts) for (name, _), parts in zip(fields, columns, strict=True)}, held)
        case Scalar():
            return FunctionResult(np.concatenate([value[0] for value, _ in slabs]), held)
        case Vector():
            raise InternalError(f"`{function.name}` was not made scalar")


def _functions(functions: Iterable[Function], model: ArithmeticModel) -> dict[str, Function]:
    return {function.name: model.regroup(scalarise_function(ById(function))) for function in functions}


def _call(compiled: CompiledFunction, machine: Machine, values: Sequence[Value], ids: Array) -> tuple[tuple[Array, ...], Bools]:
    def part(item: Array) -> Array:
        return item if item.size == 1 else item[ids]

    frame = Frame(machine, machine.model, ids, [], mask=True)
    result = compiled.call(frame, [tuple(map(part, value)) if isinstance(value, tuple) else part(value) for value in values])
    items = result if isinstance(result, tuple) else (result,)
    return tuple(np.broadcast_to(item, ids.size) for item in items), np.broadcast_to(frame.held, ids.size)


def _arguments(function: Function, args: Sequence[Array | Mapping[str, Array]]) -> list[Value]:
    if len(args) != len(function.params):
        raise EvaluationError(f"{len(args)} arguments for {len(function.params)} parameters", kernel=function.name)
    values: list[Value] = []
    for param, arg in zip(function.params, args, strict=True):
        match param.type:
            case Struct(fields=fields) if isinstance(arg, Mapping):
                values.append(tuple(_argument(function, param.name, type_, arg[name]) for name, type_ in fields))
            case Scalar() as type_ if not isinstance(arg, Mapping):
                values.append(_argument(function, param.name, type_, arg))
            case _:
                raise EvaluationError(f"the argument {param.name} is not of its parameter's type", kernel=function.name)
    return values


def _argument(function: Function, name: str, type_: Scalar, array: Array) -> Array:
    if array.dtype != NUMPY[type_] or array.ndim != 1:
        raise EvaluationError(
            f"the argument {name} is {array.dtype} in {array.ndim} dimensions, not {type_.value} in one", kernel=function.name
        )
    return array


def _slabs(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, SLAB):
        yield start, min(start + SLAB, count)


def _run(  # noqa: PLR0917 - the parts of a dispatch, in the order a host has them
    program: Program,
    kernel: Kernel,
    linked: Linked,
    words: Mapping[str, Words],
    uniforms: Mapping[str, int],
    workgroups: Workgroups,
    model: ArithmeticModel,
) -> dict[str, tuple[Words, Bools]]:
    """Return the buffers that one dispatch stores to, each with which words it stored."""
    if kernel.workgroup_size < 1 or min(workgroups) < 0:
        raise EvaluationError(f"{workgroups} workgroups of {kernel.workgroup_size} invocations", kernel=kernel.name)
    width, height = workgroups[0] * kernel.workgroup_size, workgroups[1]
    bound = _buffers(program, kernel, linked, words)
    owners = {name: np.full(bound[name].size, NOBODY, np.int64) for name in sorted(linked.stores)}
    values = _uniforms(program, kernel, linked.uniforms, uniforms)
    machine = Machine(kernel.name, model, linked.functions, bound, owners, values, width, height)
    entry = compiled_kernel(kernel)
    with np.errstate(all="ignore"):
        for lo, hi in _slabs(width * height * workgroups[2]):
            entry.run(machine, np.arange(lo, hi, dtype=np.int64))
    stored = {name: (bound[name], owner != NOBODY) for name, owner in owners.items()}
    return stored | {name: (bound[name], np.ones(bound[name].size, np.bool_)) for name in sorted(linked.atomics)}


def _buffers(program: Program, kernel: Kernel, linked: Linked, words: Mapping[str, Words]) -> dict[str, Words]:
    outputs = {operand.name: operand.is_output for operand in program.operands}
    buffers = {}
    if linked.atomics & (linked.loads | linked.stores):
        name = min(linked.atomics & (linked.loads | linked.stores))
        raise EvaluationError("a buffer that is changed atomically and otherwise too", kernel=kernel.name, buffer=name)
    for name in sorted(linked.loads | linked.stores | linked.atomics):
        if name not in words or name not in outputs:
            raise EvaluationError("a buffer that is not bound", kernel=kernel.name, buffer=name)
        if words[name].dtype != np.uint32 or words[name].ndim != 1:
            raise EvaluationError(f"words of {words[name].dtype} in {words[name].ndim} dimensions", kernel=kernel.name, buffer=name)
        if name in linked.stores | linked.atomics and not outputs[name]:
            raise EvaluationError("a store to an input", kernel=kernel.name, buffer=name)
        buffers[name] = np.zeros_like(words[name]) if name in linked.stores else words[name]
        if name in linked.atomics:
            buffers[name] = words[name].copy()
    return buffers


def _uniforms(program: Program, kernel: Kernel, needed: Iterable[str], values: Mapping[str, int]) -> dict[str, Array]:
    arrays = {}
    for name in sorted(needed):
        if name not in program.uniforms or name not in values:
            raise EvaluationError(f"the uniform {name} is missing", kernel=kernel.name)
        if not 0 <= values[name] < 1 << 32:
            raise EvaluationError(f"the uniform {name} is {values[name]}, not a u32", kernel=kernel.name)
        arrays[name] = np.array([values[name]], np.uint32)
    return arrays


def _whole(kernel: str, name: str, words: Words, stored: Bools) -> Words:
    """Return the words; raises `EvaluationError` where one was never stored."""
    missing = np.flatnonzero(~stored)
    if missing.size:
        raise EvaluationError(f"{missing.size} of {words.size} words are never stored", kernel=kernel, buffer=name, index=int(missing[0]))
    return words
