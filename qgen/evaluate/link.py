"""Compiled texts, kept by identity, and the functions that one refers to.

By identity, because nodes compare equal where a literal is 0.0 in the one and -0.0 in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

from qgen.evaluate.compile_stmt import CompiledFunction, CompiledKernel, compile_function, compile_kernel
from qgen.evaluate.machine import EvaluationError, Frame, Value
from qgen.evaluate.scope import Needs
from qgen.ir.program import Function, Kernel

Text = TypeVar("Text")


class _Same(Generic[Text]):
    """A key by identity, which keeps the object alive."""

    __slots__ = ("text",)

    def __init__(self, text: Text) -> None:
        self.text = text

    def __hash__(self) -> int:
        return id(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.text is self.text


@lru_cache(maxsize=512)
def _compiled_function(key: _Same[Function]) -> CompiledFunction:
    return compile_function(key.text)


@lru_cache(maxsize=64)
def _compiled_kernel(key: _Same[Kernel]) -> CompiledKernel:
    return compile_kernel(key.text)


def compiled_function(function: Function) -> CompiledFunction:
    """Return the function compiled."""
    return _compiled_function(_Same(function))


def compiled_kernel(kernel: Kernel) -> CompiledKernel:
    """Return the entry point compiled."""
    return _compiled_kernel(_Same(kernel))


@dataclass(frozen=True, slots=True)
class Linked:
    """The functions called, directly or not, and what text and functions do to buffers and uniforms."""

    functions: dict[str, Callable[[Frame, list[Value]], Value]] = field(default_factory=dict)
    loads: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)
    atomics: set[str] = field(default_factory=set)
    uniforms: set[str] = field(default_factory=set)


def link(needs: Needs, functions: Mapping[str, Function]) -> Linked:
    """Return what a text needs; raises `EvaluationError` where a function is missing, is called with other types, or calls itself."""
    linked = Linked()
    _visit(needs, functions, linked, ())
    return linked


def _visit(needs: Needs, functions: Mapping[str, Function], linked: Linked, callers: tuple[str, ...]) -> None:
    linked.loads.update(needs.loads)
    linked.stores.update(needs.stores)
    linked.atomics.update(needs.atomics)
    linked.uniforms.update(needs.uniforms)
    for name, types, result in sorted(needs.calls, key=lambda call: call[0]):
        function = functions.get(name)
        if function is None:
            raise EvaluationError(f"a call of {name}, which is missing", kernel=needs.owner)
        if tuple(param.type for param in function.params) != types or function.result != result:
            raise EvaluationError(f"a call of {name} with other types than its own", kernel=needs.owner)
        if name in callers:
            raise EvaluationError(f"{name} calls itself", kernel=needs.owner)
        if name not in linked.functions:
            compiled = compiled_function(function)
            _visit(compiled.needs, functions, linked, (*callers, name))
            linked.functions[name] = compiled.call
