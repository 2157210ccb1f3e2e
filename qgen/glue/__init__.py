"""Host glue: what a host needs beside a kernel's text, in the host's own language, written from the sidecar alone."""

from qgen.glue.write import LANGUAGES, save_glue, write_glue

__all__ = ["LANGUAGES", "save_glue", "write_glue"]
