"""Model-local functions: who calls whom, and the body of a function as a graph of its own for one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from qgen.errors import QgenError
from qgen.importer.text import printable, read_text

FunctionKey: TypeAlias = tuple[str, str, str]
"""Domain, name and overload; the domain of ONNX itself is `ai.onnx`."""

DEEPEST: Final = 64
"""The most functions and subgraphs within one another."""
MOST_NODES: Final = 250_000
"""The most nodes a model may have when every call is replaced by the function's body."""


def normal_domain(domain: str) -> str:
    """Return the domain by its one name: ONNX's own may be left empty."""
    return domain or "ai.onnx"


def function_key(function: FunctionProto) -> FunctionKey:
    """Return what calls name the function by; raises `QgenError` QG417."""
    domain, name, overload = (read_text(text, "a function") for text in (function.domain, function.name, function.overload))
    return normal_domain(domain), name, overload


def call_key(node: NodeProto) -> FunctionKey:
    """Return the function that a node calls, if there is one of this name."""
    return normal_domain(node.domain), node.op_type, node.overload


def functions_by_key(model: ModelProto) -> dict[FunctionKey, FunctionProto]:
    """Return the model's functions; raises `QgenError` QG410 where two have one name."""
    functions: dict[FunctionKey, FunctionProto] = {}
    for function in model.functions:
        key = function_key(function)
        if key in functions:
            hint = "give each function its own name or overload"
            raise QgenError("QG410", "a function is defined twice", hint=hint, place=function_place(key))
        functions[key] = function
    return functions


def function_place(key: FunctionKey) -> str:
    """Return how paths and errors name a function."""
    domain, name, overload = key
    return printable(f"{domain}.{name}:{overload}" if overload else f"{domain}.{name}")


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs that are attributes of a node, each with its name."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for index, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{index}]", graph


def all_nodes(nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    """Yield the nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for _, graph in subgraphs(node):
            yield from all_nodes(graph.node)


def check_calls(model: ModelProto) -> None:
    """Refuse functions that call themselves, that nest too deeply, or that unfold into too many nodes: `QgenError` QG413."""
    functions = functions_by_key(model)
    sizes: dict[FunctionKey, int] = {}
    own = {key: list(all_nodes(function.node)) for key, function in functions.items()}

    def size_of(key: FunctionKey, callers: tuple[FunctionKey, ...]) -> int:
        if key in callers:
            chain = " → ".join(function_place(each) for each in (*callers[callers.index(key) :], key))
            raise QgenError("QG413", f"a function calls itself: {chain}", hint="ONNX allows no recursion", place=function_place(key))
        if len(callers) >= DEEPEST:
            hint = "inline functions with `onnx.inliner.inline_local_functions`"
            raise QgenError("QG413", f"functions call one another more than {DEEPEST} deep", hint=hint, place=function_place(key))
        if key not in sizes:
            sizes[key] = sum(count(node, (*callers, key)) for node in own[key])
        return sizes[key]

    def count(node: NodeProto, callers: tuple[FunctionKey, ...]) -> int:
        key = call_key(node)
        return 1 + size_of(key, callers) if key in functions else 1

    for key in functions:
        size_of(key, ())
    total = sum(count(node, ()) for node in all_nodes(model.graph.node))
    if total > MOST_NODES:
        message = f"with its functions unfolded the model has {total} nodes, and {MOST_NODES} are the most"
        raise QgenError("QG413", message, hint="export the model with fewer nested functions", place="the graph")


def reachable(key: FunctionKey, functions: Mapping[FunctionKey, FunctionProto]) -> dict[FunctionKey, FunctionProto]:
    """Return the functions that a function calls, and those that these call."""
    found: dict[FunctionKey, FunctionProto] = {}
    waiting = [key]
    while waiting:
        for node in all_nodes(functions[waiting.pop()].node):
            called = call_key(node)
            if called in functions and called not in found:
                found[called] = functions[called]
                waiting.append(called)
    return found


def instantiate(
    function: FunctionProto, call: NodeProto, types: Sequence[TypeProto | None], constants: Sequence[TensorProto | None]
) -> GraphProto:
    """Return the function's body as a graph for one call: inputs typed or constant, attributes put in, absent inputs absent."""
    graph = GraphProto(name="body")
    given = {attribute.name: attribute for attribute in function.attribute_proto}
    given |= {attribute.name: attribute for attribute in call.attribute}
    absent = set()
    for index, name in enumerate(function.input):
        if index >= len(call.input) or not call.input[index]:
            absent.add(name)
            continue
        constant, type_ = constants[index], types[index]
        if constant is not None:
            graph.initializer.add().CopyFrom(constant)
            graph.initializer[-1].name = name
        else:
            graph.input.add(name=name)
            if type_ is not None:
                graph.input[-1].type.CopyFrom(type_)
    graph.node.extend(function.node)
    _put_in(graph.node, given, absent)
    graph.value_info.extend(function.value_info)
    for name in function.output:
        graph.output.add(name=name)
    return graph


def _put_in(nodes: Sequence[NodeProto], given: Mapping[str, AttributeProto], absent: set[str]) -> None:
    """Replace, in place, references to the call's attributes, and drop inputs that the call leaves out."""
    for node in nodes:
        for index, name in enumerate(node.input):
            if name in absent:
                node.input[index] = ""
        kept = []
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                kept.append(attribute)
            elif attribute.ref_attr_name in given:
                value = AttributeProto()
                value.CopyFrom(given[attribute.ref_attr_name])
                value.name = attribute.name
                kept.append(value)
        if len(kept) != len(node.attribute) or any(attribute.ref_attr_name for attribute in node.attribute):
            copies = [AttributeProto.FromString(attribute.SerializeToString()) for attribute in kept]
            del node.attribute[:]
            node.attribute.extend(copies)
        for _, graph in subgraphs(node):
            _put_in(graph.node, given, absent)
