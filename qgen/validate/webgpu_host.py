"""A process that answers validation requests with a WebGPU implementation: `tint` (wgpudawn, Null backend) or `wgpu` (wgpu-py, naga).

It runs on its own, so that a choice of backend, a device and a driver's crash stay away from the caller's process. It reads one JSON
object a line, `{"wgsl": text}`, and writes one a line in the same order: `{"outcome": "accepted" | "module" | "pipeline", "text": the
library's own words, "notes": [...], "warnings": [...]}`. Each compute entry point is also made a pipeline: limits are checked there.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import tempfile
from typing import Any

LIMITS = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffers-per-shader-stage": 12,
    "max-uniform-buffer-binding-size": 65536,
    "max-storage-buffer-binding-size": 134217728,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroups-per-dimension": 65535,
}
"""WebGPU's default limits, asked for by name because wgpu-py otherwise grants all that the adapter has."""

NAME = r"[^\W\d]\w*"
ENTRY_POINT = re.compile(rf"@\s*compute\b(?:(?!\bfn\b).)*?\bfn\s+({NAME})", re.DOTALL)
OPEN_OVERRIDE = re.compile(rf"\boverride\s+({NAME})\s*(?::[^=;]*)?;")


LINE_OR_OPENING = re.compile(r"//[^\n\v\f\r\x85\u2028\u2029]*|/\*")
OPENING_OR_CLOSING = re.compile(r"/\*|\*/")


def strip_comments(wgsl: str) -> str:
    """Return the text with each comment (block comments nest) replaced by a space."""
    kept: list[str] = []
    position = depth = 0
    while token := (OPENING_OR_CLOSING if depth else LINE_OR_OPENING).search(wgsl, position):
        if depth == 0:
            kept += [wgsl[position : token.start()], " "]
        depth += {"/*": 1, "*/": -1}.get(token.group(), 0)
        position = token.end()
    return "".join(kept) if depth else "".join(kept) + wgsl[position:]


class Judge:
    """One device, on which modules and pipelines are created and dropped."""

    def __init__(self, library: str) -> None:
        """Open the device; raises what the library raises where it finds no adapter."""
        self.library = library
        if library == "tint":
            self._open_tint()
        else:
            self._open_wgpu()

    def _open_tint(self) -> None:
        os.environ["WGPU_BACKEND_TYPE"] = "Null"
        import wgpudawn

        logging.getLogger("wgpudawn").setLevel(logging.ERROR)
        adapter = wgpudawn.gpu.request_adapter_sync()
        if adapter.info["backend_type"] != "Null":
            message = f"the Null backend was asked for, the {adapter.info['backend_type']} backend came"
            raise RuntimeError(message)
        features = [name for name in ("shader-f16", "subgroups") if name in adapter.features]
        self.device: Any = adapter.request_device_sync(required_features=features)
        self.rejection: Any = wgpudawn.GPUValidationError
        self.version = f"wgpudawn {wgpudawn.__version__}, Null backend"

    def _open_wgpu(self) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # Mesa complains on stderr without it
        import wgpu
        from wgpu.backends import wgpu_native

        adapter = wgpu.gpu.request_adapter_sync()
        features = [name for name in ("shader-f16", "subgroup") if name in adapter.features]
        limits = {name: min(limit, adapter.limits[name]) for name, limit in LIMITS.items()}
        self.device = adapter.request_device_sync(required_features=features, required_limits=limits)
        self.rejection = wgpu.GPUValidationError
        self.version = f"{wgpu.__version__}, wgpu-native {wgpu_native.__version__}, {adapter.info['device']}"

    def _warnings(self, module: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - the library has no types
        if self.library != "tint":  # naga has none
            return []
        return [
            {"line": message.line_num, "column": message.line_pos, "length": message.length, "message": message.message}
            for message in module.get_compilation_info_sync().messages
            if message.type == "warning"
        ]

    def answer(self, wgsl: str) -> dict[str, Any]:
        """Return the verdict on one text: at `module` or at `pipeline` it was rejected, else `accepted`."""
        if "\0" in wgsl:
            return {"outcome": "module", "text": "the text contains U+0000", "notes": [], "warnings": []}
        outcome = "module"
        notes: list[str] = []
        warnings: list[dict[str, Any]] = []
        try:
            module = self.device.create_shader_module(label="wgsl", code=wgsl)
            outcome = "pipeline"
            warnings = self._warnings(module)
            code = strip_comments(wgsl)
            entry_points = ENTRY_POINT.findall(code)
            if entry_points and (unset := OPEN_OVERRIDE.findall(code)):
                notes = [f"no pipeline was created: override `{unset[0]}` has no value"]
                entry_points = []
            for name in entry_points:
                self.device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": name})
        except self.rejection as error:
            return {"outcome": outcome, "text": error.message, "notes": notes, "warnings": warnings}
        return {"outcome": "accepted", "text": "", "notes": notes, "warnings": warnings}


def main() -> None:
    """Say which library and version judges, or why none can, then answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the library or the driver prints must not land among the answers
    try:
        judge = Judge(sys.argv[1])
    # A library that is absent or does not load, no driver, no adapter: each has a class of its own, and its words are sent.
    except Exception as error:  # noqa: BLE001 - library, driver and adapter fail in classes of their own; sent on
        answers.write(json.dumps({"unavailable": f"{type(error).__name__}: {error}"}) + "\n")
        answers.close()
        return
    answers.write(json.dumps({"version": judge.version}) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(judge.answer(json.loads(line)["wgsl"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
