"""What a buffer holds before a run and what it has to hold after it: margins of canary words around the content.

A kernel may write the contents of outputs and scratch buffers and nothing else. Their content starts as garbage, so a word that is never
written is seen, as neither a zero nor what the run before left there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from qgen.errors import InternalError
from qgen.sidecar.plan import DispatchPlan

MARGIN: Final = 256
"""Bytes of canary on either side: the alignment that WebGPU guarantees for the offset of a binding."""

_CANARY: Final = b"\xc5\x5a\xa3\x3c"
_GARBAGE: Final = b"\xad\xde\xef\xbe"


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of one buffer as they are uploaded; `content` is bound, from `offset` on."""

    name: str
    role: str
    content: bytes
    offset: int

    @property
    def has_canaries(self) -> bool:
        """Whether there is something to check beside the outputs' contents."""
        return self.offset > 0

    @property
    def data(self) -> bytes:
        """The whole buffer."""
        margin = _repeat(_CANARY, self.offset)
        return margin + self.content + margin


def build_images(plan: DispatchPlan, roles: Mapping[str, str], inputs: Mapping[str, bytes], *, canaries: bool) -> dict[str, Image]:
    """Return the image of each buffer that `plan` binds; with `canaries`, storage buffers lie between them."""
    bound = dict.fromkeys(binding.buffer for step in plan.passes for binding in step.bindings)
    return {name: _build_image(name, roles[name], plan, inputs, canaries=canaries) for name in bound}


def _build_image(name: str, role: str, plan: DispatchPlan, inputs: Mapping[str, bytes], *, canaries: bool) -> Image:
    margin = MARGIN if canaries else 0
    match role:
        case "uniform":
            return Image(name, role, plan.uniforms[name], 0)
        case "input":
            return Image(name, role, inputs[name], margin)
        case _:
            return Image(name, role, _repeat(_GARBAGE, plan.sizes[name]), margin)


def read_image(image: Image, after: bytes) -> bytes:
    """Return the content of the buffer after the run, `after` being the whole of it.

    Raises `InternalError` where a canary is gone or a buffer that is only read has changed.
    """
    start, end = image.offset, image.offset + len(image.content)
    content = after[start:end]
    for where, found in (("before", after[:start]), ("after", after[end:])):
        if found != _repeat(_CANARY, image.offset):
            raise InternalError(
                f"the kernel wrote {where} the buffer `{image.name}`: {_first_change(_repeat(_CANARY, image.offset), found)}"
            )
    if image.role == "input" and content != image.content:
        raise InternalError(f"the kernel wrote into `{image.name}`, which it only reads: {_first_change(image.content, content)}")
    return content


def _first_change(before: bytes, after: bytes) -> str:
    at = next(index for index, (old, new) in enumerate(zip(before, after, strict=True)) if old != new) // 4 * 4
    return f"the word at byte {at} was 0x{before[at : at + 4][::-1].hex()} and is 0x{after[at : at + 4][::-1].hex()}"


def _repeat(pattern: bytes, nbytes: int) -> bytes:
    return pattern * (nbytes // len(pattern))
