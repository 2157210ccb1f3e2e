"""The functions that users call from Python."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from qgen.fragment import PREFIX, Fragment, compile_fragment
from qgen.frontend.check_op import ENTRY_POINT
from qgen.kernel import Kernel, compile_request, know_scale
from qgen.profile import Profile, read_profile
from qgen.request import make_request
from qgen.shapes import Granularity
from qgen.signatures import NEWEST_OPSET

if TYPE_CHECKING:
    from qgen.importer.bundle import Bundle
    from qgen.kernel import Array


def compile(  # noqa: A001 - the name users expect, as `re.compile`; an operator has this many choices
    op: str,
    *,
    x: object,
    scale: object = None,
    y: object = None,
    zero_point: bool = False,
    granularity: Granularity | None = None,
    shape: tuple[int, ...] | None = None,
    opset: int = NEWEST_OPSET,
    precision: object = None,
    saturate: bool = True,
    domain: str = "ai.onnx",
    numerics: str = "exact",
    target: str = "webgpu",
    name: str | None = None,
    entry_point: str = ENTRY_POINT,
    group: int = 0,
    plain_scale: bool = False,
    known_scale: Array | None = None,
    profile: str | os.PathLike[str] | Profile | None = None,
) -> Kernel:
    """Return the kernel of one operator signature.

    `op` is `QuantizeLinear`, `DequantizeLinear` or `DynamicQuantizeLinear` (whose scale and zero point are results); `x`, `scale` and `y`
    are dtypes (ONNX's names, numpy or ml_dtypes types). `scale` defaults to x's type (QuantizeLinear) or y's (DequantizeLinear), `y` to
    uint8 or the scale's type. `granularity` is `per_tensor()`, `per_axis(axis)` or `blocked(axis, block_size)`. With a `shape` (of x) all
    sizes are baked into the text; without one uniforms have them, and one text serves every shape. `opset`, `precision` and `saturate` are
    as in ONNX (operators QuantizeLinear and DequantizeLinear, versions 10 to 28). `name`, `entry_point` and `group` (of the bindings) are
    the host's choice. A `profile`, or the path of one, has the schedules that `qgen tune` found; a kernel that is not in it has the
    target's own.

    An `exact` kernel tests each scale, and has code for those with which native arithmetic may be wrong. Give `known_scale` (an array of
    the scale's dtype and shape) where the scales are known: where all of them pass, the kernel has neither, is shorter and faster, and as
    exact for these and all others that pass; the sidecar says under `assumes` which do, and `Kernel.run` refuses others. `plain_scale`
    says the same of scales that are not at hand. Raises `QgenError`, which says what is allowed.
    """
    request = make_request(
        op,
        x=x,
        scale=scale,
        y=y,
        zero_point=zero_point,
        granularity=granularity,
        shape=shape,
        opset=opset,
        precision=precision,
        saturate=saturate,
        domain=domain,
        numerics=numerics,
        target=target,
        name=name,
        entry_point=entry_point,
        group=group,
        plain_scale=plain_scale,
    )
    request = request if known_scale is None else know_scale(request, known_scale)
    found = _read(profile)
    return compile_request(request if found is None else found.apply(request))


def compile_function(  # an operator has this many choices
    op: str,
    *,
    x: object,
    shape: tuple[int, ...],
    scale: object = None,
    y: object = None,
    zero_point: bool = False,
    granularity: Granularity | None = None,
    opset: int = NEWEST_OPSET,
    domain: str = "ai.onnx",
    numerics: str = "exact",
    target: str = "webgpu",
    name: str | None = None,
    prefix: str = PREFIX,
    plain_scale: bool = False,
    known_scale: Array | None = None,
) -> Fragment:
    """Return functions that dequantize elements of x, to paste into a shader that has entry points and bindings of its own.

    `wgsl` of the result declares `<prefix>_load4(i4)` (elements 4 * i4 to 4 * i4 + 3, as a vec4f), `<prefix>_at(i)` (an f32) and
    `<prefix>_bits(i)` (the element's bits, which are those that a kernel stores); its header says which buffers the shader declares. Every
    name begins with `prefix`, so several fit into one shader. `op` is `DequantizeLinear`, and `shape` that of x; all else is as for
    `compile`. Raises `QgenError`, which says what is allowed.
    """
    request = make_request(
        op,
        x=x,
        scale=scale,
        y=y,
        zero_point=zero_point,
        granularity=granularity,
        shape=shape,
        opset=opset,
        domain=domain,
        numerics=numerics,
        target=target,
        name=name,
        plain_scale=plain_scale,
    )
    return compile_fragment(request if known_scale is None else know_scale(request, known_scale), prefix)


def from_onnx(
    model: str | os.PathLike[str],
    *,
    shapes: str = "baked",
    any_scale: bool = False,
    numerics: str = "exact",
    target: str = "webgpu",
    profile: str | os.PathLike[str] | Profile | None = None,
) -> Bundle:
    """Return the kernels of every QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear node of an ONNX model.

    `shapes` is `baked` (where inference knows them, else uniforms) or `uniform`. A kernel relies on the values of a scale that the model
    fixes, as with `known_scale` of `compile`, unless it is to take `any_scale`. `numerics`, `target` and `profile` are as of `compile`.
    Raises `QgenError` where the file is no model.
    """
    from qgen.importer import load_bundle  # onnx is an extra, and slow to import

    return load_bundle(model, shapes=shapes, any_scale=any_scale, numerics=numerics, target=target, profile=_read(profile))


def _read(profile: str | os.PathLike[str] | Profile | None) -> Profile | None:
    return profile if profile is None or isinstance(profile, Profile) else read_profile(profile)
