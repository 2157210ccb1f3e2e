"""A file to a model that hangs together: every name is defined once and before it is used, and tensors are what they say they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # protobuf ships no types; onnx raises its error
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from qgen.errors import QgenError
from qgen.importer.functions import all_nodes, check_calls, function_key, subgraphs
from qgen.importer.scales import Scales, scale_names
from qgen.importer.tensors import check_tensor
from qgen.importer.text import printable, read_text

_MOST_BYTES: Final = 1 << 31
_NO_MODEL: Final = "give a file that `onnx.save` wrote; qgen reads the binary form"
_BROKEN_GRAPH: Final = "the model is damaged, or its exporter is at fault: `onnx.checker.check_model` says more"


def read_model(path: Path, *, any_scale: bool = False) -> tuple[ModelProto, Scales, tuple[str, ...]]:
    """Return the model of a file, checked, and without the data of its large tensors; and what the user should hear about it.

    In between are the codes of its scales as far as their tensors lost them, unless `any_scale` says that nobody will ask.

    Raises `QgenError` QG400 where the file is no model, QG401 where it cannot be read, QG410 to QG417 where the model is broken or hostile.
    """
    model = _parse(path)
    folders = (Path(os.path.realpath(path.parent)), Path(os.path.realpath(path)).parent)
    _check_imports(model)
    _check_graph(model.graph, frozenset(), "the graph")
    for function in model.functions:
        domain, name, overload = function_key(function)
        place = printable(f"function {domain}.{name}{':' if overload else ''}{overload}")
        formal = [read_text(name, place) for name in function.input]
        _check_nodes(function.node, _once(formal, place), function.output, place)
    scales = Scales(frozenset() if any_scale else scale_names(model))
    for tensor, name, place in _tensors_of_model(model):
        check_tensor(tensor, folders, place)
        scales.drop_data(tensor, name, folders)
    check_calls(model)
    negative = _clear_negative_dims(_declared(model), "the declared shapes")
    warnings = ("the model declares negative dimensions, which ONNX does not have; they are taken as unknown",) if negative else ()
    return model, scales, warnings


def _parse(path: Path) -> ModelProto:
    name = printable(path.name)
    try:
        if path.stat().st_size >= _MOST_BYTES:
            message = "the file has 2 GiB or more, which no ONNX model has"
            raise QgenError("QG400", message, hint="save the model with external data", place=name)
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        words = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise QgenError(
            "QG401", f"the model cannot be read: {words}", hint="name a file that is there and may be read", place=name
        ) from error
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise QgenError("QG400", "the file is no ONNX model, or is cut short", hint=_NO_MODEL, place=name) from error
    if not model.HasField("graph") or not model.opset_import:
        raise QgenError("QG400", "the file has no graph or imports no operators, so it is no ONNX model", hint=_NO_MODEL, place=name)
    return model


def _check_imports(model: ModelProto) -> None:
    for imports, place in ((model.opset_import, "the opset imports"), *((each.opset_import, "a function") for each in model.functions)):
        seen: dict[str, int] = {}
        for entry in imports:
            domain = read_text(entry.domain, place) or "ai.onnx"
            if seen.setdefault(domain, entry.version) != entry.version:
                message = f"the domain `{printable(domain)}` is imported in versions {seen[domain]} and {entry.version}"
                raise QgenError("QG410", message, hint=_BROKEN_GRAPH, place=place)


def _check_graph(graph: GraphProto, outer: frozenset[str], place: str) -> None:
    inputs = _once([read_text(value.name, place) for value in graph.input], place)
    tensors = [*(tensor.name for tensor in graph.initializer), *(sparse.values.name for sparse in graph.sparse_initializer)]
    initializers = _once([read_text(name, place) for name in tensors], place)
    outputs = [value.name for value in graph.output]
    _check_nodes(graph.node, inputs | initializers, outputs, place, outer)


def _once(names: Sequence[str], place: str) -> frozenset[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise QgenError("QG410", f"the name `{printable(name)}` is given twice", hint=_BROKEN_GRAPH, place=place)
        seen.add(name)
    return frozenset(seen)


def _check_nodes(
    nodes: Sequence[NodeProto], given: frozenset[str], outputs: Sequence[str], place: str, outer: frozenset[str] = frozenset()
) -> None:
    """Hold one list of nodes to single assignment and topological order, and their subgraphs too."""
    later = {read_text(name, place): index for index, node in enumerate(nodes) for name in node.output}
    own = set(given)
    for index, node in enumerate(nodes):
        where = node_place(node, index, place)
        for name in (read_text(name, where) for name in node.input):
            if name and name not in own and name not in outer:
                raise _undefined(name, later.get(name), nodes, where)
        for attribute in node.attribute:
            read_text(attribute.name, where)
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _check_graph(graph, outer | own, f"{where}, {printable(attribute.name)}")
        for name in node.output:
            if name and name in own:
                raise QgenError("QG410", f"the name `{printable(name)}` is given twice", hint=_BROKEN_GRAPH, place=where)
            own.add(name)
    for name in (read_text(name, place) for name in outputs):
        if name and name not in own and name not in outer:
            raise QgenError("QG411", f"the output `{printable(name)}` is computed by no node", hint=_BROKEN_GRAPH, place=place)


def node_place(node: NodeProto, index: int, place: str) -> str:
    """Return how errors name a node; raises `QgenError` QG417 where a part of its name is not UTF-8."""
    name, op, _ = (read_text(text, f"{place}, node {index}") for text in (node.name, node.op_type, node.domain))
    return f"{place}, node {index}, {printable(op)}" + (f" `{printable(name)}`" if name else "")


def _undefined(name: str, index: int | None, nodes: Sequence[NodeProto], where: str) -> QgenError:
    shown = printable(name)
    if index is None:
        message = f"the input `{shown}` is no input of the graph, no initialiser, and no output of another node"
        return QgenError("QG411", message, hint=_BROKEN_GRAPH, place=where)
    if _has_cycle(nodes):
        message = f"the input `{shown}` is computed from the node's own output: the edges make a cycle"
        return QgenError("QG412", message, hint=_BROKEN_GRAPH, place=where)
    message = f"the input `{shown}` is computed only later, by node {index}"
    return QgenError("QG412", message, hint="sort the nodes topologically, as ONNX demands", place=where)


def _has_cycle(nodes: Sequence[NodeProto]) -> bool:
    """Tell whether the nodes cannot be ordered at all (Kahn's algorithm; reads by subgraphs do not count)."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{makers[name] for name in node.input if name in makers} for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for index, before in enumerate(needs):
        for maker in before:
            users[maker].append(index)
    ready = [index for index, before in enumerate(needs) if not before]
    done = 0
    while ready:
        done += 1
        maker = ready.pop()
        for user in users[maker]:
            needs[user].discard(maker)
            if not needs[user]:
                ready.append(user)
    return done < len(nodes)


def _clear_negative_dims(values: Iterable[ValueInfoProto], place: str) -> bool:
    """Make negative dimensions unknown, in place, which is what exporters mean by -1; tell whether there were any."""
    found = False
    for value in values:
        read_text(value.name, place)
        for dim in value.type.tensor_type.shape.dim:
            read_text(dim.dim_param, place)
            if dim.dim_value < 0:
                dim.ClearField("dim_value")
                found = True
    return found


def _declared(model: ModelProto) -> Iterator[ValueInfoProto]:
    graphs = [model.graph, *(graph for node in all_nodes(model.graph.node) for _, graph in subgraphs(node))]
    for function in model.functions:
        yield from function.value_info
        graphs += [graph for node in all_nodes(function.node) for _, graph in subgraphs(node)]
    for graph in graphs:
        yield from (*graph.input, *graph.output, *graph.value_info)


def _tensors_of_model(model: ModelProto) -> Iterator[tuple[TensorProto, str, str]]:
    yield from _tensors_of_graph(model.graph, "the graph")
    for function in model.functions:
        yield from _tensors_of_nodes(function.node, "a function")


def _tensors_of_graph(graph: GraphProto, place: str) -> Iterator[tuple[TensorProto, str, str]]:
    for tensor in graph.initializer:
        yield tensor, tensor.name, f"{place}, initialiser `{printable(tensor.name)}`"
    for sparse in graph.sparse_initializer:
        yield sparse.values, "", f"{place}, sparse initialiser `{printable(sparse.values.name)}`"
    yield from _tensors_of_nodes(graph.node, place)


def _tensors_of_nodes(nodes: Sequence[NodeProto], place: str) -> Iterator[tuple[TensorProto, str, str]]:
    for index, node in enumerate(nodes):
        for attribute in node.attribute:
            where = f"{node_place(node, index, place)}, {printable(attribute.name)}"
            tensors = (*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors)
            name = node.output[0] if node.op_type == "Constant" and node.output else ""
            yield from ((tensor, name, where) for tensor in tensors)
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _tensors_of_graph(graph, where)
