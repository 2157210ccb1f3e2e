"""Compiles what a quantization operator means into WGSL that any WebGPU runtime can embed."""

__version__ = "0.1.0"
