"""A kernel as a template of ONNX Runtime's WebGPU provider: functions, and the body of the entry point as `$MAIN`.

The provider declares bindings and uniforms, gives `global_idx`, and folds dispatches; so of the text remains what is between.
"""

from __future__ import annotations

import re
from typing import Final

from qgen.errors import InternalError, QgenError
from qgen.glue.host import Host

_ENTRY: Final = re.compile(r"^@compute @workgroup_size\((?P<size>\d+)\)\nfn \w+\([^\n]*\) \{\n(?P<body>.*?)^\}\n", re.MULTILINE | re.DOTALL)
_ARRAY: Final = re.compile(r"var<storage, (\w+)> (\w+): array<(\w+)>")
_UNIT: Final = re.compile(r"let unit = (?:id\.y \* [^;]* \+ )?id\.x;")
_DECLARED: Final = re.compile(r"^(?://[^\n]*\n)*\n(?:@group[^\n]*\n)+(?:\nstruct Params \{\n.*?\}\n)?", re.DOTALL)


def write_ort_template(host: Host, wgsl: str) -> dict[str, str]:
    """Return the template, by file name. Raises `QgenError` QG951 for a kernel of several dispatches: a program has one there."""
    if len(host.passes) != 1:
        message = f"the kernel {host.name} has {len(host.passes)} dispatches, and a template has one"
        raise QgenError("QG951", message, hint="emit glue in another language, or compute the scale apart and quantize with it")
    entry, declared = _ENTRY.search(wgsl), _DECLARED.match(wgsl)
    if entry is None or declared is None:
        raise InternalError(f"the text of {host.name} is not laid out as qgen does")
    body = _UNIT.sub("let unit = global_idx;", entry["body"])
    if re.search(r"\bid\b", body):
        raise InternalError(f"the entry point of {host.name} uses more than its index")
    functions = wgsl[declared.end() : entry.start()].strip("\n") + wgsl[entry.end() :]
    header = [line for line in wgsl[: wgsl.index("\n\n")].split("\n") if not line.startswith("// Dispatch")]
    lines = [*header, *_describe(host, declared[0], int(entry["size"]), body), "", "$MAIN {", body + "}", functions]
    text = re.sub(r"\bparams\.", "uniforms.", "\n".join(lines))
    return {f"{host.name}.wgsl.template": text.rstrip("\n") + "\n"}


def _describe(host: Host, declared: str, workgroup_size: int, body: str) -> list[str]:
    """Return what the operator's program has to declare, in comments, which the tool takes out."""
    bound = [f"{'input' if access == 'read' else 'output'} {name} of {element}" for access, name, element in _ARRAY.findall(declared)]
    fields = [name for uniform in host.uniforms for name, _, _ in uniform.fields if re.search(rf"\bparams\.{name}\b", body)]
    uniforms = f"u32 uniforms, with the values in the sidecar: {', '.join(fields)}" if fields else "no uniforms"
    return [
        "//",
        f"// The program declares, in this order and flat, as arrays of words or of four words: {', '.join(bound)}.",
        f"// And {uniforms}.",
        f"// Workgroups of {workgroup_size}, one invocation for each `unit`, numbered by `global_idx`.",
    ]
