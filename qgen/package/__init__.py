"""Kernels in the shapes that other projects take: a package for the Hugging Face hub, a template of ONNX Runtime's, other languages."""

from qgen.package.hub import build_package, write_package

__all__ = ["build_package", "write_package"]
