"""Which node may stand in which stage."""

from __future__ import annotations

from typing import Final

from qgen.ir import nodes as ir
from qgen.ir.program import Stage

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
KERNEL_NODES: Final = {
    Stage.CHECKED: _CHECKED,
    Stage.REALISED: _MACHINE | {ir.Read, ir.Write, ir.Accumulate},
    Stage.LEGAL: _MACHINE | _WORDS | {ir.Uniform, ir.Invocation, ir.Var, ir.Assign, ir.For, ir.If, ir.Return},
}
"""What an entry point may have, by stage."""
FUNCTION_NODES: Final = {
    Stage.CHECKED: frozenset[type](),
    Stage.REALISED: _MACHINE | {ir.If, ir.Return, ir.Require},
    Stage.LEGAL: _MACHINE | _VECTORS | {ir.If, ir.Return},
}
"""What a function may have, by stage."""
