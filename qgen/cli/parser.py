"""The command line as argparse has it: which commands there are, and how their words are read."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Final, NoReturn

from qgen import __version__
from qgen.cli import build, check, conform, emit, exhaust, explain, onnx, package, run, selftest, show, tune
from qgen.cli import list as list_
from qgen.cli.arguments import SIGNED_OPTIONS, one_of

COMMANDS: Final[dict[str, ModuleType]] = {
    "emit": emit,
    "onnx": onnx,
    "build": build,
    "package": package,
    "run": run,
    "check": check,
    "conform": conform,
    "exhaust": exhaust,
    "selftest": selftest,
    "tune": tune,
    "show": show,
    "list": list_,
    "explain": explain,
}
"""Every command but `validate`, which reads its own words."""

_SUMMARIES: Final = {
    **{name: module.SUMMARY for name, module in COMMANDS.items()},
    "validate": "judge WGSL with naga and Tint, by naga's own command line (qgen validate --help)",
}
_ORDER: Final = (
    "emit",
    "onnx",
    "build",
    "package",
    "run",
    "check",
    "conform",
    "exhaust",
    "selftest",
    "tune",
    "validate",
    "show",
    "list",
    "explain",
)
_EPILOG: Final = "\n".join(
    [
        "commands:",
        *(f"  {name:10}{_SUMMARIES[name]}" for name in _ORDER),
        "",
        "`qgen COMMAND --help` says more. Exit codes: 0 done, 1 the input is at fault, 2 usage, 3 nothing on this machine can do it.",
    ]
)
_NEGATIVE: Final = re.compile(r"-\d.*")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of one width, whatever the terminal and the version of Python: what is printed is compared with a text."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=110)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return ", ".join(action.option_strings) or str(action.metavar or action.dest)
        return f"{', '.join(action.option_strings)} {self._format_args(action, action.dest.upper())}"


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that suggests the nearest name for an option it does not know."""

    def error(self, message: str) -> NoReturn:
        """Print usage and the message, and exit with 2."""
        unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        if unknown:
            near = difflib.get_close_matches(unknown[1], list(self._option_string_actions), n=1)
            message += f" (did you mean {near[0]}?)" if near else ""
        super().error(message)


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Return what the words mean, with `run`, `parser` and `color` set; exits as argparse does for help, version and usage errors."""
    top = _parser("qgen", "qgen COMMAND ...", "Compiles quantization operators into WGSL that any WebGPU runtime can embed.", _EPILOG)
    top.add_argument("--version", action="version", version=f"qgen {__version__}", help="print the version and exit")
    if not words or words[0].startswith("-"):
        top.parse_known_args(words)
        if words:
            top.error(f"the command comes first: `{words[0]}` is none")
        top.error(f"no command given; commands are {', '.join(_ORDER)}")
    name = words[0]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, _ORDER, n=1)
        suggestion = f" (did you mean `{near[0]}`?)" if near else f"; commands are {', '.join(_ORDER)}"
        top.error(f"there is no command `{name}`{suggestion}")
    module = COMMANDS[name]
    parser = _parser(f"qgen {name}", module.USAGE, module.DESCRIPTION, getattr(module, "EPILOG", None))
    module.add_arguments(parser)
    parser.add_argument(
        "--color",
        metavar="WHEN",
        type=one_of("auto", "always", "never"),
        default="auto",
        help="colour diagnostics: auto (default: on a terminal where NO_COLOR is not set), always, never",
    )
    parser.set_defaults(run=module.run, parser=parser)
    return parser.parse_args(join_signed(words[1:]))


def join_signed(words: Sequence[str]) -> list[str]:
    """Return the words with `--blocked -1:32` written `--blocked=-1:32`: argparse takes a value with a minus for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in SIGNED_OPTIONS and _NEGATIVE.fullmatch(word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _parser(prog: str, usage: str, description: str, epilog: str | None) -> Parser:
    parser = Parser(
        prog=prog, usage=usage, description=description, epilog=epilog, formatter_class=_Formatter, allow_abbrev=False, add_help=False
    )
    parser.add_argument("-h", "--help", action="help", help="print this and exit")
    return parser
