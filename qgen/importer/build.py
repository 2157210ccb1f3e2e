"""A model's file to its bundle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qgen.errors import InternalError, QgenError
from qgen.importer.bundle import Bundle, NodeRecord, Reason
from qgen.importer.functions import normal_domain
from qgen.importer.nodes import Choices, find_operands, find_scale, make_node_request
from qgen.importer.read import read_model
from qgen.importer.scales import Scales
from qgen.importer.text import printable
from qgen.importer.walk import Site, Walk
from qgen.kernel import Kernel, compile_request, know_codes
from qgen.request import Request


def build_bundle(path: Path, choices: Choices) -> Bundle:
    """Return the kernels of the model at `path`; raises `QgenError` where the file is at fault."""
    model, scales, warnings = read_model(path, any_scale=choices.any_scale)
    walk = Walk(model)
    kernels: dict[str, Kernel] = {}
    compiled: dict[Request, Kernel] = {}
    nodes = tuple(_import_node(site, choices, scales, kernels, compiled) for site in walk.sites())
    return Bundle(kernels, nodes, (*warnings, *walk.warnings))


def _import_node(site: Site, choices: Choices, scales: Scales, kernels: dict[str, Kernel], compiled: dict[Request, Kernel]) -> NodeRecord:
    operands = find_operands(site)
    domain, op = printable(normal_domain(site.node.domain)), printable(site.node.op_type)
    record = NodeRecord(site.path, site.node.name, domain, op, None, None, operands.names, operands.sources, operands.shapes)
    try:
        request, warnings = make_node_request(site, operands, choices)
        codes = None if choices.any_scale else scales.find(find_scale(operands))
        request = request if codes is None else know_codes(request, codes)
        request = request if choices.profile is None else choices.profile.apply(request)
        kernel = compiled.get(request) or compile_request(request)
    except QgenError as error:
        return replace(record, reason=Reason(error.code, error.message, error.hint))
    compiled[request] = kernel
    same = kernels.setdefault(kernel.name, kernel)
    if (same.wgsl, same.sidecar) != (kernel.wgsl, kernel.sidecar):
        raise InternalError(f"two kernels are called {kernel.name}")
    return replace(record, kernel=kernel.name, warnings=warnings, plain_scale=kernel.request.plain_scale)
