"""What a host does with one kernel: shapes to extents, extents to sizes, uniforms and dispatches, and the cuts.

A host's program has three straight pieces. `read_shapes` checks the shapes and takes from them the *extents*, the numbers that all else
follows from. `measure` has the counts and sizes of the tensors for some extents, `dispatch` the uniforms and workgroups. A tensor that is
computed part by part is the same program with a lower value for one of the extents.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgen.glue.formula import Tree


@dataclass(frozen=True, slots=True)
class Let:
    """A value with a name; what it uses stands before it."""

    name: str
    value: Tree


@dataclass(frozen=True, slots=True)
class Check:
    """What has to hold, or the kernel is not right for these shapes."""

    condition: Tree


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer that is no uniform; `bits` an element, from the lowest bits of u32 words."""

    name: str
    role: str
    dtype: str
    bits: int
    count: Tree
    size: Tree


@dataclass(frozen=True, slots=True)
class Uniform:
    """A uniform buffer: its u32 fields, by name, offset and value."""

    name: str
    struct: str
    size: int
    fields: tuple[tuple[str, int, Tree], ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding of a pass; `kind` is WebGPU's buffer binding type."""

    number: int
    buffer: str
    kind: str


@dataclass(frozen=True, slots=True)
class Pass:
    """One dispatch."""

    entry_point: str
    bindings: tuple[Binding, ...]
    dispatch: tuple[Tree, Tree, Tree]


@dataclass(frozen=True, slots=True)
class Cut:
    """Tensors that are parted alike; `elements` each in a step, a part beginning at a `multiple` and having at most `most`."""

    tensors: tuple[str, ...]
    elements: Tree
    multiple: int
    most: int


@dataclass(frozen=True, slots=True)
class Way:
    """A way to part the tensors, along one extent, where `when` holds and no way before it did; that of the last is 1.

    `lets` are what `when` and the cuts use beside the extents.
    """

    along: str
    step: int
    when: Tree
    cuts: tuple[Cut, ...]
    lets: tuple[Let, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """The program of one kernel's host. `shapes` are the tensors whose shapes are given; `group` is the bind group."""

    name: str
    title: str
    group: int
    shapes: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    uniforms: tuple[Uniform, ...]
    passes: tuple[Pass, ...]
    extents: tuple[str, ...]
    read_shapes: tuple[Let | Check, ...]
    measure: tuple[Let, ...]
    dispatch: tuple[Let | Check, ...]
    ways: tuple[Way, ...]
    on_empty: tuple[tuple[str, int], ...]
    """The words of outputs that have elements where another has none, and nothing is dispatched."""
