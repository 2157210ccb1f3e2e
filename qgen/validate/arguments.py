"""The command line of `qgen validate`: naga's own, read by the rules of its parser (argh), plus four options of qgen's.

naga's options take their value as the next argument, never after `=`; qgen's take it either way. An option that only shapes naga's output
is accepted, its value checked, and has no further effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Format = Literal["text", "json"]


class UsageError(Exception):
    """The command line cannot be read; the message is naga's."""


@dataclass(slots=True)
class Arguments:
    """The command line, filled in as it is read; `for_naga` is the same arguments without qgen's own."""

    files: list[str] = field(default_factory=list)
    naga_options: dict[str, str] = field(default_factory=dict)
    bulk: bool = False
    compact: bool = False
    wants_help: bool = False
    wants_version: bool = False
    engine: str = "auto"
    format: Format = "text"
    naga_wasm: Path | None = None
    verbose: bool = False
    for_naga: list[str] = field(default_factory=list)


def parse_arguments(argv: list[str]) -> tuple[Arguments, UsageError | None]:
    """Return the command line as read, and what is wrong with it for naga, if anything.

    `for_naga` is complete in either case: a real naga may know what this parser does not. Raises UsageError where one of qgen's own
    options is at fault.
    """
    read = Arguments()
    fault: UsageError | None = None
    rest = list(argv)
    options_ended = False
    while rest:
        argument = rest.pop(0)
        if not options_ended and _take_own(argument, rest, read):
            continue
        read.for_naga.append(argument)
        if options_ended or not (argument.startswith("-") or argument == "help"):
            read.files.append(argument)
        elif argument == "--":
            options_ended = True
        elif argument in {"--help", "help"}:
            read.wants_help = True
        elif fault is None:
            trailing = UsageError("Trailing arguments are not allowed after `help`.")
            fault = trailing if read.wants_help else _take_naga(argument, rest, read)
    return read, fault


def _take_own(argument: str, rest: list[str], read: Arguments) -> bool:
    name, has_value, value = argument.partition("=")
    if argument in {"-v", "--verbose"}:
        read.verbose = True
        return True
    if name not in {"--engine", "--format", "--naga-wasm"}:
        return False
    if not has_value:
        if not rest:
            raise UsageError(f"No value provided for option '{name}'.\n")
        value = rest.pop(0)
    match name, value:
        case "--engine", "auto" | "naga" | "tint" | "all":
            read.engine = value
        case "--format", "text" | "json":
            read.format = "json" if value == "json" else "text"
        case "--naga-wasm", _:
            read.naga_wasm = Path(value)
        case _:
            choices = "auto, naga, tint, all" if name == "--engine" else "text, json"
            raise UsageError(f"Error parsing option '{name}' with value '{value}': take one of {choices}\n")
    return True


def _take_naga(argument: str, rest: list[str], read: Arguments) -> UsageError | None:
    match argument:
        case "--bulk-validate":
            read.bulk = True
        case "--compact":
            read.compact = True
        case "--version":
            read.wants_version = True
        case "--keep-coordinate-space" | "--dot-cfg-only" | "-g" | "--generate-debug-symbols":
            pass
        case _ if argument in VALUES:
            if not rest:
                return UsageError(f"No value provided for option '{argument}'.\n")
            value = rest.pop(0)
            read.for_naga.append(value)
            name = {"-D": "--defines"}.get(argument, argument)
            problem = "duplicate values provided" if name in read.naga_options and name not in REPEATABLE else VALUES[argument](value)
            if problem is not None:
                return UsageError(f"Error parsing option '{argument}' with value '{value}': {problem}\n")
            read.naga_options[name] = value
        case _:
            return UsageError(f"Unrecognized argument: {argument}\n")
    return None


def _any(_value: str) -> None:
    return None


def _one_of(message: str, *choices: str) -> Callable[[str], str | None]:
    return lambda value: None if value.lower() in choices else f"{message}: {value}"


def _byte(value: str) -> str | None:
    if not value:
        return "cannot parse integer from empty string"
    if not re.fullmatch(r"\+?[0-9]+", value):
        return "invalid digit found in string"
    return None if int(value) <= 255 else "number too large to fit in target type"


def _profile(value: str) -> str | None:
    return None if value.startswith(("core", "es")) else f"Unknown profile: {value}"


def _metal_version(value: str) -> str | None:
    parts = value.split(".")
    if len(parts) < 2:
        return f"Invalid value for --metal-version: {value}"
    for part in parts[:2]:
        if problem := _byte(part):
            return f"Invalid value for --metal-version: '{value}': {problem}"
    return None


def _overrides(value: str) -> str | None:
    for pair in value.split(","):
        _, has_value, number = pair.partition("=")
        if not has_value:
            return f'value needs a `=`: "{pair}"'
        text = number.strip()
        if not text:
            return 'cannot parse float from empty string: ""'
        if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf|infinity|nan)", text, re.IGNORECASE):
            return f'invalid float literal: "{text}"'
    return None


_POLICY = _one_of("Invalid value for --index-bounds-check-policy", "restrict", "readzeroskipwrite", "unchecked")
_MODELS = ("50", "51", "60", "61", "62", "63", "64", "65", "66", "67")

VALUES: dict[str, Callable[[str], str | None]] = {
    "--validate": _byte,
    "--index-bounds-check-policy": _POLICY,
    "--buffer-bounds-check-policy": _POLICY,
    "--image-load-bounds-check-policy": _POLICY,
    "--block-ctx-dir": _any,
    "--entry-point": _any,
    "--profile": _profile,
    "--shader-model": _one_of("Invalid value for --shader-model", *_MODELS),
    "--spirv-version": _any,
    "--shader-stage": _one_of("Invalid shader stage", "frag", "fragment", "comp", "compute", "vert", "vertex"),
    "--input-kind": _one_of("Invalid value for --input-kind", "bin", "glsl", "spv", "wgsl"),
    "--metal-version": _metal_version,
    "--stdin-file-path": _any,
    "--before-compaction": _any,
    "--override": _overrides,
    "-D": _any,
    "--defines": _any,
}
"""naga's options with a value, and what is wrong with one."""

REPEATABLE = {"--override", "--defines"}
