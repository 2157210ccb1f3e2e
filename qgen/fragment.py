"""A function instead of a kernel: a request to WGSL that someone pastes into a shader of their own.

formula --check--> CHECKED --passes--> LEGAL, functions alone --emit--> text
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from qgen.compiler import HASH_DIGITS, canonical_request, check_signature, find_assumption
from qgen.emit.fragment import emit_fragment
from qgen.emit.module import ModuleSpec
from qgen.errors import QgenError
from qgen.ir.program import Program
from qgen.numerics.library import is_conditional
from qgen.passes.pipeline import Variant, lower_fragment
from qgen.passes.rename import is_reserved
from qgen.request import Request, readable_name

PREFIX: Final = "dequantize"
"""The prefix where none is given."""

_PREFIX: Final = re.compile(r"(?=.{1,64}\Z)[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Fragment:
    """Functions to paste: `<prefix>_load4`, `<prefix>_at` and `<prefix>_bits`; and the programs they were made from."""

    name: str
    wgsl: str
    prefix: str
    request: Request
    checked: Program
    legal: Program


def compile_fragment(request: Request, prefix: str = PREFIX) -> Fragment:
    """Return the functions of `request`, all names of which begin with `prefix`; its entry point and bind group have no meaning.

    Raises `QgenError` QG960 for another operator than DequantizeLinear, QG961 without a shape, QG962 for a prefix that cannot be one, QG303
    for a tensor larger than a binding.
    """
    request = canonical_request(request)
    signature = request.signature
    if signature.op != "DequantizeLinear":
        hint = "leave out `--form function`: a kernel stores the result of any operator"
        raise QgenError("QG960", f"{signature.op} has no form as a function", hint=hint)
    if request.shape is None:
        raise QgenError("QG961", "a function needs the shape of x", hint="give it, as `--shape 64,100`: all sizes stand in the text")
    if not _PREFIX.fullmatch(prefix) or is_reserved(prefix):
        hint = "use a letter and at most 63 letters, digits and single _ between them, and no reserved word"
        raise QgenError("QG962", f"`{prefix}` cannot be a prefix", hint=hint)
    checked = check_signature(signature)
    variant = Variant(request.mode, request.granularity, request.shape, request.target, request.plain_scale)
    try:
        legal, plan = lower_fragment(checked, variant, prefix)
    except QgenError as error:
        if error.code == "QG303":
            error.hint = "cut the tensor into parts, and make a function for each"
        raise
    uses_native = any(is_conditional(function.name.removeprefix(f"{prefix}__")) for function in legal.functions)
    assumption = find_assumption(request)
    assumes = None if assumption is None else assumption.condition
    spec = ModuleSpec(legal, checked, (plan,), request.shape, request.mode, uses_native, request.target, 0, assumes)
    wgsl = emit_fragment(spec, prefix)
    digest = hashlib.sha256(wgsl.encode()).hexdigest()
    name = request.name or f"{readable_name(request)}_function_{digest[:HASH_DIGITS]}"
    return Fragment(name, wgsl, prefix, request, checked, legal)
