"""ONNX's shape inference in a process of its own: what a hostile model does to the native code ends here.

Speaks JSON lines: `{"model": base64}` in, `{"model": base64}` or `{"failed": words}` out. Started by `infer.py`; imports nothing of qgen.
"""

from __future__ import annotations

import base64
import json
import os
import sys

from onnx import shape_inference


def answer(line: bytes) -> dict[str, str]:
    """Return the model of a request with the types and shapes that inference found, or why it found none."""
    model = base64.b64decode(json.loads(line)["model"])
    words = ""
    # Propagating values through shape computations knows more, and fails on more.
    for data_prop in (True, False):
        try:
            inferred = shape_inference.infer_shapes(model, data_prop=data_prop)
            return {"model": base64.b64encode(inferred.SerializeToString()).decode("ascii")}
        # onnx raises its own errors, protobuf's and those of its bindings; none is lost: its words are sent to the importer.
        except Exception as error:  # noqa: BLE001 - onnx, protobuf and bindings have no class in common; the words are sent on
            words = str(error) or type(error).__name__
    return {"failed": words}


def main() -> None:
    """Answer requests until standard input ends; what native code prints goes to standard error, not between the answers."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    output.write(b"{}\n")
    output.flush()
    for line in sys.stdin.buffer:
        output.write(json.dumps(answer(line)).encode() + b"\n")
        output.flush()


if __name__ == "__main__":
    main()
