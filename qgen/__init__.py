"""qgen compiles what a quantization operator means into WGSL that any WebGPU runtime can embed.

`compile` makes one kernel, `from_onnx` those of a model, `compile_function` functions for a shader of one's own; `pack` and `unpack` go
between logical arrays and packed bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from qgen.api import compile, compile_function, from_onnx  # noqa: A004 - the name users expect, as `re.compile`
    from qgen.arrays import pack, unpack
    from qgen.errors import InternalError, QgenError, UnavailableError
    from qgen.fragment import Fragment
    from qgen.kernel import Kernel
    from qgen.shapes import blocked, per_axis, per_tensor

_HOMES = {
    "Fragment": "qgen.fragment",
    "InternalError": "qgen.errors",
    "Kernel": "qgen.kernel",
    "QgenError": "qgen.errors",
    "UnavailableError": "qgen.errors",
    "blocked": "qgen.shapes",
    "compile": "qgen.api",
    "compile_function": "qgen.api",
    "from_onnx": "qgen.api",
    "pack": "qgen.arrays",
    "per_axis": "qgen.shapes",
    "per_tensor": "qgen.shapes",
    "unpack": "qgen.arrays",
}

__all__ = [
    "Fragment",
    "InternalError",
    "Kernel",
    "QgenError",
    "UnavailableError",
    "__version__",
    "blocked",
    "compile",
    "compile_function",
    "from_onnx",
    "pack",
    "per_axis",
    "per_tensor",
    "unpack",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module holds has no common type
    """Import what is asked for when it is asked for: `qgen --version` shall not wait for numpy."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'qgen' has no attribute '{name}'")
    import importlib  # start-up time

    return getattr(importlib.import_module(home), name)
