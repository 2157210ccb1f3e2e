"""Validation of WGSL by real compilers: `validate_texts` for programs, `qgen.validate.command` for the command line."""

from qgen.validate.engines import validate_texts
from qgen.validate.report import Diagnostic, Report

__all__ = ["Diagnostic", "Report", "validate_texts"]
