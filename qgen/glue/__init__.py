"""Host glue: what a host needs beside a kernel's text, in the host's own language, written from the sidecar alone."""

from qgen.glue.write import LANGUAGES, parse_languages, write_glue

__all__ = ["LANGUAGES", "parse_languages", "write_glue"]
