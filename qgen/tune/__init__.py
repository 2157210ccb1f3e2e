"""Finds the schedule of a kernel that is fastest on a user's adapter."""

from qgen.tune.search import Tuned, tune_kernels

__all__ = ["Tuned", "tune_kernels"]
