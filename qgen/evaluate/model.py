"""The arithmetic model: what the evaluator's f32 operations give.

The evaluator computes every operation as IEEE 754 does, then lets the model change the result: so a model can use each freedom
that WGSL grants. A freedom that spans several nodes (a fused `a * b + c`, a distributed `(a - b) * s`) is a rewriting of the text
before it is evaluated; the built-in `fma` is there for it.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from qgen.ir.nodes import Expr
from qgen.ir.program import Function, Kernel

Array = npt.NDArray[Any]
"""One element a lane, or a single element that all lanes share; never changed in place."""
Words = npt.NDArray[np.uint32]
Text = TypeVar("Text", Function, Kernel)


class ArithmeticModel(Protocol):
    """What the evaluator asks of a model; each answer may depend only on the arguments, so that slabs and masks do not show."""

    @property
    def name(self) -> str:
        """The model's name in reports."""

    def regroup(self, text: Text) -> Text:
        """Return the function or kernel to evaluate in place of `text`.

        The same object for the same object, for what is compiled is kept by identity; `text` itself where the model changes nothing.
        """
        ...

    def within(self, owner: str) -> ArithmeticModel:
        """Return the model for the text of this function or kernel: equal operations of equal operands may differ from text to text."""
        ...

    def adjust(self, node: Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
        """Return the result of `node`, in the shape and dtype of `ieee`, which is the result by IEEE 754.

        Asked for each f32 `Literal`, and for each `Unary`, `Binary`, `Builtin`, `Convert` and `Bitcast` with an f32 operand or result
        (comparisons included). Where WGSL says nothing, `ieee` is: 0 for NaN as an integer; NaN for `min`, `max` and `clamp` of a NaN.
        Lanes that are masked off are among the elements, with any values. Of one element where all operands are.
        """
        ...

    def load_outside(self, words: Words, index: Words) -> Words | None:
        """Return the words that loads at these indices, all out of bounds, give; None to trap."""
        ...

    def store_outside(self, size: int, index: Words) -> Words | None:
        """Return the indices within `size` that stores at these indices, all out of bounds, write; None to trap."""
        ...


class Ieee:
    """IEEE 754 with subnormals, every operation rounded half to even; accesses out of bounds trap."""

    @property
    def name(self) -> str:
        """Return `ieee`."""
        return "ieee"

    def regroup(self, text: Text) -> Text:
        """Return `text`."""
        return text

    def within(self, owner: str) -> ArithmeticModel:  # noqa: ARG002 - the protocol names it
        """Return the model itself."""
        return self

    def adjust(self, node: Expr, operands: tuple[Array, ...], ieee: Array) -> Array:  # noqa: ARG002 - the protocol names it
        """Return `ieee`."""
        return ieee

    def load_outside(self, words: Words, index: Words) -> Words | None:  # noqa: ARG002 - the protocol names it
        """Trap."""
        return None

    def store_outside(self, size: int, index: Words) -> Words | None:  # noqa: ARG002 - the protocol names it
        """Trap."""
        return None


IEEE: Final[ArithmeticModel] = Ieee()
