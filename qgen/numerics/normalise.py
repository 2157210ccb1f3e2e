"""One shape for expressions that mean the same: `is` clauses and programs are brought into it before one is matched against the other.

Every narrow float converts to float32 exactly, so whatever is computed of one value of it is computed of its float32:
`saturate<uint8>(q)` of a float16 q is `saturate<uint8>(convert<float32>(q))`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qgen.dtypes import DTYPES, DType
from qgen.ir import nodes as ir
from qgen.ir.nodes import Op
from qgen.ir.rewrite import map_expr

_FLOAT32: Final = DTYPES["float32"]


def normalise(expr: ir.Expr) -> ir.Expr:
    """Return the CHECKED expression with every narrow float, but for the operands of its own arithmetic, as its float32."""
    return map_expr(expr, _through_float32)


def _through_float32(node: ir.Expr) -> ir.Expr:
    if not isinstance(node, ir.Typed) or node.op not in {Op.SATURATE, Op.ROUND_EVEN, Op.CONVERT} or node.type == _FLOAT32:
        return node
    source = node.args[0].type
    if not isinstance(source, DType) or not source.is_float or source == _FLOAT32:
        return node
    return replace(node, args=(ir.Typed(Op.CONVERT, node.args, _FLOAT32, node.span),))
