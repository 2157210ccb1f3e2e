"""A sidecar to the program of its host: formulas under readable names, simplified, each value before what uses it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from qgen.errors import InternalError
from qgen.glue.formula import SHAPE_OPERATIONS, Tree, names_in, rebuild, simplify, substitute, tensors_in, tree, walk
from qgen.glue.host import Binding, Bound, Check, Chunks, Host, Let, Pass, Tensor, Uniform
from qgen.sidecar.plan import FORMAT, FORMAT_VERSION

LONG_NAMES: Final = {
    "N": "count",
    "S": "groups",
    "U": "invocations",
    "G": "workgroups",
    "GX": "workgroups_x",
    "SU": "group_invocations",
    "SG": "group_workgroups",
    "SGX": "group_workgroups_x",
    "RU": "reduce_invocations",
    "RG": "reduce_workgroups",
    "RGX": "reduce_workgroups_x",
}
"""What the short names of qgen's own sidecars mean."""


def read_host(sidecar: Mapping[str, Any]) -> Host:
    """Return the host's program. Raises `InternalError` for a sidecar that no kernel of qgen's has."""
    if sidecar["format"] != FORMAT or sidecar["format_version"] != FORMAT_VERSION:
        raise InternalError(f"not a sidecar of format {FORMAT} {FORMAT_VERSION}")
    if len({entry["wgsl"]["file"] for entry in sidecar["passes"]}) != 1:
        raise InternalError(f"the kernel {sidecar['name']} has several texts")
    groups = {bound["group"] for entry in sidecar["passes"] for bound in entry["bindings"]}
    if len(groups) != 1:
        raise InternalError(f"the kernel {sidecar['name']} binds in several groups")
    return _Reader(sidecar).host(groups.pop())


START: Final = "start"
LIMIT: Final = "limit"
"""What a host gives of a run: its first element, and how many bytes the device binds."""


class _Reader:
    """The formulas of one sidecar, under their long names; those in `let` that are a number or another name are put in their place."""

    def __init__(self, sidecar: Mapping[str, Any]) -> None:
        self._sidecar = sidecar
        self._chunks = sidecar["chunks"]
        self._lets: dict[str, Tree] = {}
        self._inlined: dict[str, Tree] = {}
        # A run has its own count, be it only another name as a whole, so that its formula is never put in its place.
        kept = set() if self._chunks is None else {self._chunks["count"]}
        formulas = sidecar["let"] | ({} if self._chunks is None else self._chunks["let"])
        for name, formula in _in_order({name: tree(formula) for name, formula in formulas.items()}, {START, LIMIT}):
            value = self._formula(formula)
            is_let = isinstance(value, tuple) or name in kept
            if is_let:
                self._lets[LONG_NAMES.get(name, name)] = value
            self._inlined[name] = LONG_NAMES.get(name, name) if is_let else value

    def host(self, group: int) -> Host:
        """Return the whole program."""
        shape_checks, run_checks = self._constraints()
        tensors, uniforms, passes = self._tensors(), self._uniforms(), self._passes()
        length, bounds = self._bounds()
        extents = self._extents()
        measured = [formula for tensor in tensors for formula in (tensor.count, tensor.size)]
        chunks = None if self._chunks is None else self._runs(extents, tensors, length, bounds)
        run_extents = extents if chunks is None else chunks.extents
        run = [
            *(value for uniform in uniforms for _, _, value in uniform.fields),
            *(count for step in passes for count in step.dispatch),
        ]
        return Host(
            name=self._sidecar["name"],
            title=self._sidecar["op"]["type"],
            group=group,
            shapes=self._shapes(shape_checks),
            tensors=tensors,
            uniforms=uniforms,
            passes=passes,
            extents=extents,
            read_shapes=self._place(shape_checks, extents, ()),
            measure=tuple(Let(name, self._lets[name]) for name in self._needed(measured, extents)),
            dispatch=self._place(run_checks, self._needed(run, run_extents), run_extents),
            on_empty=self._on_empty(),
            chunks=chunks,
        )

    def _formula(self, formula: object) -> Tree:
        return simplify(substitute(tree(formula), self._inlined))

    def _lifted(self, formula: object) -> Tree:
        """Return a formula that reads no shape: where it does, `let` gets a name for that."""

        def lift(part: Tree) -> Tree:
            if not isinstance(part, tuple) or part[0] not in SHAPE_OPERATIONS:
                return rebuild(part, lift)
            name = "_".join(str(word) for word in part if isinstance(word, str) or (isinstance(word, int) and word >= 0))
            while self._lets.get(name, part) != part:
                name += "_"
            self._lets[name] = part
            return name

        return lift(self._formula(formula))

    def _constraints(self) -> tuple[list[Tree], list[Tree]]:
        """Return the conditions on the shapes that are given, and those on a run, which a part of a tensor has to meet."""
        sidecar = self._sidecar
        formulas = [formula for constraint in sidecar["constraints"] if (formula := self._formula(constraint)) != 1]
        on_shapes = [formula for formula in formulas if tensors_in(formula)]
        if sidecar["shape"] is not None:
            first = next(buffer["name"] for buffer in sidecar["buffers"] if buffer["role"] == "input")
            dims: list[Tree] = [("eq", ("dim", first, index), dim) for index, dim in enumerate(sidecar["shape"])]
            on_shapes = [("eq", ("rank", first), len(dims)), *dims, *on_shapes]
        return on_shapes, [formula for formula in formulas if not tensors_in(formula)]

    def _tensors(self) -> tuple[Tensor, ...]:
        return tuple(
            Tensor(
                buffer["name"],
                buffer["role"],
                buffer["element"]["dtype"],
                buffer["element"]["bits"],
                self._lifted(buffer["count"]),
                self._lifted(buffer["size_bytes"]),
            )
            for buffer in self._sidecar["buffers"]
            if buffer["role"] not in {"uniform", "ignored"}
        )

    def _on_empty(self) -> tuple[tuple[str, int], ...]:
        elements = {buffer["name"]: buffer["element"] for buffer in self._sidecar["buffers"] if buffer["role"] == "output"}
        return tuple(
            (name, sum(code << bit for bit in range(0, 32 * elements[name]["period"][1], elements[name]["bits"])) & 0xFFFFFFFF)
            for name, code in self._sidecar.get("on_empty", {}).items()
        )

    def _uniforms(self) -> tuple[Uniform, ...]:
        structs = self._sidecar["structs"]
        return tuple(
            Uniform(
                buffer["name"],
                buffer["struct"],
                structs[buffer["struct"]]["size"],
                tuple((field["name"], field["offset"], self._lifted(field["value"])) for field in structs[buffer["struct"]]["fields"]),
            )
            for buffer in self._sidecar["buffers"]
            if buffer["role"] == "uniform"
        )

    def _passes(self) -> tuple[Pass, ...]:
        found = []
        for entry in self._sidecar["passes"]:
            x, y, z = (self._lifted(count) for count in entry["dispatch"])
            bindings = tuple(Binding(bound["binding"], bound["buffer"], _kind(bound)) for bound in entry["bindings"])
            found.append(Pass(entry["entry_point"], bindings, (x, y, z)))
        return tuple(found)

    def _extents(self) -> tuple[str, ...]:
        """Return the names whose formulas read shapes, and those that these use."""
        reading = [name for name, formula in self._lets.items() if tensors_in(formula)]
        used = self._needed([self._lets[name] for name in reading], ())
        return tuple(name for name in self._lets if name in {*reading, *used})

    def _shapes(self, shape_checks: Iterable[Tree]) -> tuple[str, ...]:
        read = {tensor for formula in (*self._lets.values(), *shape_checks) for tensor in tensors_in(formula)}
        return tuple(buffer["name"] for buffer in self._sidecar["buffers"] if buffer["name"] in read)

    def _needed(self, formulas: Iterable[Tree], given: Iterable[str]) -> tuple[str, ...]:
        """Return the names that the formulas use, directly or not, without those that are `given`, each after what it uses."""
        known, found = set(given), list[str]()

        def visit(formula: Tree) -> None:
            for name in (part for part in walk(formula) if isinstance(part, str)):
                if name not in known:
                    known.add(name)
                    visit(self._lets[name])
                    found.append(name)

        for formula in formulas:
            visit(formula)
        return tuple(found)

    def _place(self, checks: Iterable[Tree], wanted: Iterable[str], given: Iterable[str]) -> tuple[Let | Check, ...]:
        """Return the checks in their order, each after the names it uses, then the rest of what is wanted."""
        known, placed = list(given), list[Let | Check]()
        for check in checks:
            for name in self._needed([check], known):
                placed.append(Let(name, self._lets[name]))
                known.append(name)
            placed.append(Check(check))
        placed += [Let(name, self._lets[name]) for name in self._needed(list(wanted), known)]
        return tuple(placed)

    def _bounds(self) -> tuple[Tree, tuple[Bound, ...]]:
        """Return how many elements a run has, and what it binds; nothing where tensors are computed as a whole."""
        if self._chunks is None:
            return 0, ()
        bits = {buffer["name"]: buffer["element"]["bits"] for buffer in self._sidecar["buffers"] if "element" in buffer}
        bounds = []
        for bind in self._chunks["bind"]:
            for name in bind["buffers"]:
                offset = ["floor_div", ["mul", bits[name], bind["first"]], 8]
                size = ["mul", 4, ["ceil_div", ["mul", bits[name], bind["count"]], 32]]
                bounds.append(Bound(name, self._lifted(offset), self._lifted(size)))
        return self._lifted(self._chunks["length"]), tuple(bounds)

    def _runs(self, extents: tuple[str, ...], tensors: tuple[Tensor, ...], length: Tree, bounds: tuple[Bound, ...]) -> Chunks:
        count = LONG_NAMES.get(self._chunks["count"], self._chunks["count"])
        counted = next((tensor.name for tensor in tensors if tensor.count == count), None)
        if counted is None or {bound.tensor for bound in bounds} != {tensor.name for tensor in tensors}:
            raise InternalError(f"a run of {self._sidecar['name']} does not say what it binds of each tensor")
        names = (*dict.fromkeys([*extents, count]), START)
        order = {tensor.name: number for number, tensor in enumerate(tensors)}
        formulas = [formula for bound in bounds for formula in (bound.offset, bound.size)]
        return Chunks(
            extents=names,
            count=count,
            counted=counted,
            most=self._chunks["most"],
            length=length,
            length_lets=tuple(Let(name, self._lets[name]) for name in self._needed([length], (*names, LIMIT))),
            bind=tuple(sorted(bounds, key=lambda bound: order[bound.tensor])),
            bind_lets=tuple(Let(name, self._lets[name]) for name in self._needed(formulas, names)),
        )


def _kind(bound: Mapping[str, Any]) -> str:
    if bound["address_space"] == "uniform":
        return "uniform"
    return "read-only-storage" if bound["access"] == "read" else "storage"


def _in_order(lets: Mapping[str, Tree], given: Collection[str]) -> list[tuple[str, Tree]]:
    """Return the names of `let`, each after those it uses; those that are `given` have no formula."""
    done: dict[str, Tree] = {}

    def visit(name: str) -> None:
        if name not in done and name not in given:
            for used in sorted(names_in(lets[name])):
                visit(used)
            done[name] = lets[name]

    for name in lets:
        visit(name)
    return list(done.items())
