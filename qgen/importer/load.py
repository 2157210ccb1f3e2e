"""The importer's one function. `onnx` is an extra of qgen, and takes a third of a second to import: it enters here, when it is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from qgen.errors import QgenError, UnavailableError
from qgen.importer.bundle import Bundle
from qgen.passes.realise import MODES
from qgen.profile import Profile
from qgen.target import load_target

SHAPES: Final = ("baked", "uniform")


def load_bundle(
    model: str | os.PathLike[str],
    *,
    shapes: str = "baked",
    target: str = "webgpu",
    numerics: str = "exact",
    any_scale: bool = False,
    profile: Profile | None = None,
) -> Bundle:
    """Return the kernels of every QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear node of an ONNX model.

    Nodes of ai.onnx and com.microsoft, in the main graph, in subgraphs, and in model-local functions, once for each call. `shapes` is
    `baked` (uniforms where inference does not know all of x's shape) or `uniform`. Where the model fixes a scale and quick code is right
    with all its values, the kernel relies on that and does not test it, unless it is to take `any_scale`. Kernels that `profile` has a
    schedule for get it. A node that has no kernel is in the bundle with its reason. Nothing is read but the file itself; of external data
    the scales, and of others that they are there.
    Raises `QgenError` QG400 to QG417 where the file is at fault, QG403, QG103, QG104 and QG108 for a choice that there is not, and
    `UnavailableError` QG402 where onnx is not installed.
    """
    if shapes not in SHAPES:
        raise QgenError("QG403", f"shapes are `baked` or `uniform`, not `{shapes}`", hint="leave the choice out for `baked`")
    if numerics not in MODES:
        raise QgenError("QG104", f"there is no numerics mode `{numerics}`", hint=f"modes are {', '.join(MODES)}")
    found = load_target(target)
    if profile is not None:
        profile.hold_target(found)
    try:
        from qgen.importer.build import build_bundle  # onnx is an extra, and slow to import
        from qgen.importer.nodes import Choices  # the same
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise UnavailableError("QG402", "reading a model needs the package onnx", hint="pip install qgen[onnx]") from error
    return build_bundle(Path(model), Choices(shapes, target, numerics, any_scale, profile))
