"""`main`: runs one command line, and the one place where a failure becomes a message and an exit code.

Exit codes: 0 done, 1 the input is at fault, 2 usage, 3 nothing on this machine can do it; 70 a bug in qgen; as shells have them, 130 for an
interruption and 141 where whoever read the output has gone.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from qgen.cli.parser import parse_arguments
from qgen.cli.terminal import paint_diagnostic, wants_color
from qgen.errors import InternalError, QgenError, UnavailableError

FAULT: Final = 1
UNAVAILABLE: Final = 3
BUG: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

_FRAMES: Final = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name; that of the process by default) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    color = "auto"
    try:
        if words[:1] == ["validate"]:
            return _validate(words[1:])
        arguments = parse_arguments(words)
        color = arguments.color
        code = _run(arguments)
    except SystemExit as stop:  # argparse's way to end: help, version, and usage errors
        return stop.code if isinstance(stop.code, int) else 0
    except UnavailableError as error:
        _say(str(error), color)
        return UNAVAILABLE
    except QgenError as error:
        _say(str(error), color)
        return FAULT
    except KeyboardInterrupt:
        _say("interrupted", color)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered must go somewhere when Python ends
        return BROKEN_PIPE
    except InternalError as error:
        _say(f"internal error: {error}\n{_REPORT}", color)
        return BUG
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is reported as one, with its place, in place of a traceback
        _say(f"internal error: {type(error).__name__}: {error}\n{_places(error)}\n{_REPORT}", color)
        return BUG
    return code


_REPORT: Final = "  = this is a bug in qgen: please report it with the command line and these lines"


def _run(arguments: argparse.Namespace) -> int:
    code: int = arguments.run(arguments)
    sys.stdout.flush()
    return code


def _validate(words: list[str]) -> int:
    """Hand everything after `validate` through: it speaks naga's command line, which argparse cannot."""
    from qgen.validate.command import main as validate  # start-up time

    code = validate(words)
    sys.stdout.flush()
    return code


def _places(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return "\n".join(f"  --> {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)


def _say(text: str, color: str) -> None:
    painted = paint_diagnostic(text) if wants_color(color, sys.stderr) else text
    print(painted, file=sys.stderr)
