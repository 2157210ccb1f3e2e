"""`main`: runs one command line, and the one place where a failure becomes a message and an exit code.

Exit codes: 0 done, 1 the input is at fault, 2 usage, 3 nothing on this machine can do it; 70 a bug in qgen; as shells have them, 130 for an
interruption and 141 where whoever read the output has gone.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Final

from qgen import __version__
from qgen.cli.terminal import paint_diagnostic, wants_color, warn
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
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path need not be text, nor the terminal's encoding know every character
    settings = SimpleNamespace(color="auto")
    try:
        return _run(words, settings)
    except SystemExit as stop:  # argparse's way to end: help, version, and usage errors
        return stop.code if isinstance(stop.code, int) else 0
    except UnavailableError as error:
        _say(str(error), settings.color)
        return UNAVAILABLE
    except QgenError as error:
        _say(str(error), settings.color)
        return FAULT
    except KeyboardInterrupt:
        _say("interrupted", settings.color)
        return INTERRUPTED
    except OSError as error:
        return _stop_writing(error, settings.color) if error.filename is None else _report_bug(error, settings.color)
    # What is meant for users was taken above. What is left is a bug, of any class: it is reported and exits as one.
    except Exception as error:  # noqa: BLE001 - a bug may be of any class; it is reported as one, with its exit code
        return _report_bug(error, settings.color)


def _replace_closed_streams() -> None:
    """Give a process without standard output one that fails where something is written, and one without standard error a silent one."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _run(words: list[str], settings: SimpleNamespace) -> int:
    """Return the exit code of a command; `settings.color` is what the command line says of it."""
    code: int
    if words[:1] == ["--version"]:
        print(f"qgen {__version__}")  # asked by scripts again and again: no command is imported to answer it
        code = 0
    elif words[:1] == ["validate"]:
        from qgen.validate.command import main as validate  # start-up time

        code = validate(words[1:])  # it speaks naga's command line, which argparse cannot
    else:
        from qgen.cli.parser import parse_arguments  # start-up time

        arguments = parse_arguments(words)
        settings.color = arguments.color
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_: warn(str(message), arguments.color)
            code = arguments.run(arguments)
    sys.stdout.flush()
    return code


def _stop_writing(error: OSError, color: str) -> int:
    """Return the exit code where standard output takes no more; a file that cannot be written is a `QgenError` before it gets here."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered must go somewhere when Python ends
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    failure = QgenError("QG913", f"cannot write standard output: {error.strerror}", hint="see that there is room where it goes")
    _say(str(failure), color)
    return FAULT


def _report_bug(error: Exception, color: str) -> int:
    import traceback  # start-up time

    lines = [f"internal error: {error}" if isinstance(error, InternalError) else f"internal error: {type(error).__name__}: {error}"]
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    lines += [f"  --> {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    _say("\n".join([*lines, "  = this is a bug in qgen: please report it with the command line and these lines"]), color)
    return BUG


def _say(text: str, color: str) -> None:
    painted = paint_diagnostic(text) if wants_color(color, sys.stderr) else text
    print(painted, file=sys.stderr)
