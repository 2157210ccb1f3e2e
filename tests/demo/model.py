"""The demo's models: the classifier of text direction in the wheel `rapidocr-onnxruntime`, quantized by ONNX Runtime."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnx.version_converter
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".setup" / "demo"
PACKAGE: Final = "rapidocr-onnxruntime==1.4.4"
MEMBER: Final = "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
SHA256: Final = "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"

OPSET: Final = 21
"""The first with int4."""
SHAPE: Final = (1, 3, 48, 192)
"""What the classifier is fed: one line of text, 48 pixels high."""
WEIGHTS: Final = {"int8": QuantType.QInt8, "int4": QuantType.QInt4}
"""The demo's models, by the type of their weights; activations are uint8."""
_CALIBRATION_RUNS: Final = 4
_SEED: Final = 1


def fetch_classifier() -> bytes:
    """Return the classifier's file, from the cache or from the package index; raises `RuntimeError` where it is another than expected."""
    cached = CACHE / Path(MEMBER).name
    if not cached.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            _download(Path(folder))
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                fresh = Path(folder) / cached.name
                fresh.write_bytes(archive.read(MEMBER))
            fresh.replace(cached)
    data = cached.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise RuntimeError(f"{cached} is not the file that the demo was written for: delete it, and run again")
    return data


def _download(folder: Path) -> None:
    # The package's own dependencies and its bounds on Python are of no matter: only a file in it is wanted.
    options = ["--no-deps", "--ignore-requires-python", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"pip could not fetch {PACKAGE}:\n{done.stdout}{done.stderr}")


def seeded_input(seed: int = _SEED) -> NDArray[np.float32]:
    """Return one input of the classifier, noise between -1 and 1 as its pixels are."""
    return np.random.default_rng(seed).uniform(-1, 1, SHAPE).astype(np.float32)


class _Calibration(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime ships no types
    """A few seeded inputs, the same in each run."""

    def __init__(self, name: str) -> None:
        self._inputs: Iterator[dict[str, NDArray[np.float32]]] = iter([{name: seeded_input(100 + run)} for run in range(_CALIBRATION_RUNS)])

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._inputs, None)


def make_models(folder: Path) -> dict[str, Path]:
    """Write the quantized models into `folder`, and return their paths by the type of the weights: per channel, activations uint8."""
    folder.mkdir(parents=True, exist_ok=True)
    model = onnx.load_model_from_string(fetch_classifier())
    (image,) = model.graph.input
    for dim, size in zip(image.type.tensor_type.shape.dim, SHAPE, strict=True):
        dim.dim_value = size
    converted, prepared = folder / "converted.onnx", folder / "float32.onnx"
    onnx.save(onnx.version_converter.convert_version(model, OPSET), converted)
    with _quiet_logging():
        quant_pre_process(converted, prepared, skip_symbolic_shape=True)
        converted.unlink()
        paths = {}
        for name, weights in WEIGHTS.items():
            paths[name] = folder / f"{name}.onnx"
            options: dict[str, Any] = {"per_channel": True, "activation_type": QuantType.QUInt8, "weight_type": weights}
            quantize_static(prepared, paths[name], _Calibration(image.name), quant_format=QuantFormat.QDQ, **options)
    return paths


@contextmanager
def _quiet_logging() -> Iterator[None]:
    """Hold back ONNX Runtime's advice to preprocess a model, which it logs also where that was done."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
