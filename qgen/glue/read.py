"""A sidecar to the program of its host: formulas under readable names, simplified, each value before what uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from qgen.errors import InternalError
from qgen.glue.formula import SHAPE_OPERATIONS, Tree, names_in, rebuild, simplify, substitute, tensors_in, tree, walk
from qgen.glue.host import Binding, Check, Cut, Host, Let, Pass, Tensor, Uniform, Way
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


_RawWay: TypeAlias = tuple[str, int, Tree, list[tuple[dict[str, Any], Tree]]]
"""A way as it is read: along, step, when, and each cut with its elements."""


class _Reader:
    """The formulas of one sidecar, under their long names; those in `let` that are a number or another name are put in their place."""

    def __init__(self, sidecar: Mapping[str, Any]) -> None:
        self._sidecar = sidecar
        self._lets: dict[str, Tree] = {}
        self._inlined: dict[str, Tree] = {}
        for name, formula in _in_order({name: tree(formula) for name, formula in sidecar["let"].items()}):
            value = self._formula(formula)
            if isinstance(value, tuple):
                self._lets[LONG_NAMES.get(name, name)] = value
            self._inlined[name] = LONG_NAMES.get(name, name) if isinstance(value, tuple) else value

    def host(self, group: int) -> Host:
        """Return the whole program."""
        shape_checks, run_checks = self._constraints()
        tensors, uniforms, passes = self._tensors(), self._uniforms(), self._passes()
        ways = [
            (along, way["step"], self._lifted(way["when"]), [(part, self._lifted(part["elements"])) for part in way["cut"]])
            for way in self._sidecar["chunks"]
            if isinstance(along := self._formula(way["along"]), str)  # an extent that is always 1 is never cut
        ]
        ways = _possible(ways)
        extents = self._extents()
        measured = [formula for tensor in tensors for formula in (tensor.count, tensor.size)]
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
            dispatch=self._place(run_checks, self._needed(run, extents), extents),
            on_empty=self._on_empty(),
            ways=tuple(self._way(along, step, when, cuts, extents) for along, step, when, cuts in ways),
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
        formulas = [self._formula(constraint) for constraint in sidecar["constraints"]]
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

    def _way(self, along: str, step: int, when: Tree, cuts: list[tuple[dict[str, Any], Tree]], extents: tuple[str, ...]) -> Way:
        if along not in extents:
            raise InternalError(f"{along} is cut, but is no extent of {self._sidecar['name']}")
        parts = tuple(Cut(tuple(part["buffers"]), elements, part["multiple"], part["most"]) for part, elements in cuts)
        needed = self._needed([when, *(part.elements for part in parts)], extents)
        return Way(along, step, when, parts, tuple(Let(name, self._lets[name]) for name in needed))


def _possible(ways: list[_RawWay]) -> list[_RawWay]:
    """Return the ways that may be taken, in their order; the last is for whatever is left."""
    found: list[_RawWay] = []
    for way in ways:
        if way[2] != 0 and not (found and found[-1][2] == 1):
            found.append(way)
    if found and found[-1][2] != 1:
        raise InternalError("some shapes cannot be parted in any way")
    return found


def _kind(bound: Mapping[str, Any]) -> str:
    if bound["address_space"] == "uniform":
        return "uniform"
    return "read-only-storage" if bound["access"] == "read" else "storage"


def _in_order(lets: Mapping[str, Tree]) -> list[tuple[str, Tree]]:
    """Return the names of `let`, each after those it uses."""
    done: dict[str, Tree] = {}

    def visit(name: str) -> None:
        if name not in done:
            for used in sorted(names_in(lets[name])):
                visit(used)
            done[name] = lets[name]

    for name in lets:
        visit(name)
    return list(done.items())
