"""What a host does with one kernel: shapes to extents, extents to sizes, uniforms and dispatches, and the cuts.

A host's program has three straight pieces. `read_shapes` checks the shapes and takes from them the *extents*, the numbers that all else
follows from. `measure` has the counts and sizes of the tensors for some extents, `dispatch` the uniforms and workgroups. Where tensors may
be computed in several runs, the extents of a run have its first element and its count of elements too, and `bind` says what it binds.
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
class Bound:
    """What of a tensor a run binds, in bytes."""

    tensor: str
    offset: Tree
    size: Tree


@dataclass(frozen=True, slots=True)
class Chunks:
    """How tensors are computed in several runs.

    `extents` are those of a run: the shapes', the count and `start`. A run has at most `most` elements, and where not all tensors fit
    `limit`, each but the last has `length`. `count` is the name of the count, which is of the elements of `counted` as a whole.
    """

    extents: tuple[str, ...]
    count: str
    counted: str
    most: int
    length: Tree
    length_lets: tuple[Let, ...]
    bind: tuple[Bound, ...]
    bind_lets: tuple[Let, ...]


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
    chunks: Chunks | None
    on_empty: tuple[tuple[str, int], ...]
    """The words of outputs that have elements where another has none, and nothing is dispatched."""

    @property
    def run_extents(self) -> tuple[str, ...]:
        """What all about one run follows from."""
        return self.extents if self.chunks is None else self.chunks.extents
