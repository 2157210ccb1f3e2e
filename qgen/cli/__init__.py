"""The command line: `command` runs it, `parser` says which commands there are, and each command has a module of its name.

`--help` and `--version` import the standard library alone, so a command imports what it needs inside its `run`.
"""

from qgen.cli.command import main

__all__ = ["main"]
