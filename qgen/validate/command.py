"""`qgen validate`: a drop-in for the `naga` command line on what it validates, with a choice of engine and of JSON lines.

Arguments, messages, streams and exit codes are naga's: 0 valid, 1 a parse error, a usage error or an unreadable input, 255 a validator's
error; 3 is qgen's own, for no engine. A `naga` on PATH is run with the same arguments, unless JSON or another engine was asked for.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace

from qgen.errors import QgenError, UnavailableError
from qgen.validate.arguments import Arguments, UsageError, parse_arguments
from qgen.validate.engines import Engine, announce_tint, find_engines
from qgen.validate.hosted import NagaWasm
from qgen.validate.inputs import Input, InputError, decode, extension_of, file_name_of, read_bytes, read_single
from qgen.validate.report import Report, relabel, render

HELP = """\
Usage: qgen validate [options] FILE
       qgen validate [options] --bulk-validate FILE...
       qgen validate [options] --stdin-file-path PATH < FILE

Judges WGSL with a real compiler, by the command line of gfx-rs/naga.

Options:
  --engine ENGINE         auto (the first naga found, else Tint), naga, tint, or all (a naga and Tint, both of which must accept)
  --format FORMAT         text (naga's own, the default), or json: one object a line with path, line, column, end_column, severity,
                          message, engine
  --naga-wasm DIR         the folder of npm's naga-wasm, or one whose node_modules has it
  -v, --verbose           say on standard error which engine and version judges
  --bulk-validate         every FILE is an input
  --stdin-file-path PATH  judge standard input under this name
  --input-kind wgsl       the kind of input, where the file's extension does not say it
  --validate BITS         naga's validation flags: 63 (all, the default), or 0 to parse only
  --version               print the version of naga
  --help                  print this

naga's other options are accepted and shape only its outputs, which qgen validate does not write.

Exit codes: 0 valid; 1 a parse error, a usage error, or an input that cannot be read; 255 a validator's error; 3 no engine is here.
"""

NEEDS_VALID = {"metal": "metal", "spv": "SPIR-V", "vert": "glsl", "frag": "glsl", "comp": "glsl", "hlsl": "hlsl", "wgsl": "wgsl"}
"""Extensions of outputs that naga makes of valid modules only, and its name for each."""

ALL_FLAGS = 63
REJECTED = 255


def main(argv: list[str]) -> int:
    """Run `qgen validate` and return its exit code."""
    try:
        return run_validation(argv)
    except UsageError as error:
        _say(f"{error}\nRun naga --help for more information.\n")
    except InputError as error:
        _say(f"{error}\n")
    except UnavailableError as error:
        _say(f"{error}\n")
        return 3
    except QgenError as error:
        _say(f"{error}\n")
    return 1


def run_validation(argv: list[str]) -> int:
    """Return naga's exit code, with naga's output written; raises UsageError, InputError and QgenError for `main` to print."""
    read, fault = parse_arguments(argv)
    if read.wants_help and fault is None:
        sys.stdout.write(HELP)
        return 0
    program = _naga_program(read)
    if program is not None and (fault is not None or not _outputs(read)):
        return _hand_over(program, read)
    if fault is not None:
        raise fault
    if read.wants_version:
        engine = find_engines(read.engine, read.naga_wasm)[0]
        sys.stdout.write(f"{engine.naga_version if isinstance(engine, NagaWasm) else engine.version}\n")
        return 0
    if (flags := int(read.naga_options.get("--validate", ALL_FLAGS))) > ALL_FLAGS:
        raise InputError("Invalid validation flags")
    if not read.bulk:
        source, outputs = read_single(read)
        return _judge_single(source, outputs, read, _engines(read, flags))
    return _judge_bulk(read, _engines(read, flags))


def _naga_program(read: Arguments) -> str | None:
    """Return the `naga` on PATH where it is the one to judge and to print."""
    if read.engine not in {"auto", "naga"} or read.format != "text" or read.naga_wasm is not None:
        return None
    return shutil.which("naga")


def _outputs(read: Arguments) -> list[str]:
    if read.bulk or read.wants_version:
        return []
    first = 0 if "--stdin-file-path" in read.naga_options else 1
    dump = read.naga_options.get("--before-compaction")
    return ([dump] if dump else []) + read.files[first:]


def _hand_over(program: str, read: Arguments) -> int:
    if read.verbose:
        _say(f"qgen validate: {program} judges\n")
    status = subprocess.run([program, *read.for_naga], check=False).returncode  # noqa: S603 - the user's own naga
    if status < 0:
        raise QgenError("QG702", f"`{program}` was ended by signal {-status}", hint="judge with another engine, as by --engine tint")
    return status


def _engines(read: Arguments, flags: int) -> tuple[Engine, ...]:
    engines = find_engines(read.engine, read.naga_wasm)
    if read.engine == "auto":
        announce_tint(engines[0])
    if flags != ALL_FLAGS:
        if flags != 0 or not all(isinstance(engine, NagaWasm) for engine in engines):
            hint = "leave --validate out, or put gfx-rs/naga on PATH: it is then handed the arguments"
            raise QgenError("QG706", f"{engines[-1].name} cannot validate with the flags {flags} alone", hint=hint)
        engines = tuple(replace(engine, parse_only=True) for engine in engines if isinstance(engine, NagaWasm))
    if read.verbose:
        for engine in engines:
            _say(f"qgen validate: {engine.name} ({engine.version}) judges\n")
    return engines


def _judge_single(source: Input, outputs: list[str], read: Arguments, engines: Sequence[Engine]) -> int:
    reports = _reports(source, engines)
    for report in reports:
        _show(report, source, read, names_engine=len(engines) > 1)
    code = next((_exit_code(report) for report in reports if not report.ok), 0)
    if code == 1:
        return code
    if code and (read.compact or "--before-compaction" in read.naga_options):
        _say("Skipping compaction due to validation failure.\n")
    if dump := read.naga_options.get("--before-compaction"):
        raise _refusal(dump)
    for output in outputs:
        _refuse(output, is_valid=code == 0)
    if code == 0 and not outputs and read.format == "text":
        sys.stdout.write("Validation successful\n")
    return 0 if outputs else code


def _judge_bulk(read: Arguments, engines: Sequence[Engine]) -> int:
    rejected: list[str] = []
    for path in read.files:
        data = read_bytes(path)
        try:
            source = decode(path, data, read)
        except InputError as error:
            rejected.append(path)
            _say(f"Error validating {path}:\n{error.message}\n")
            continue
        reports = _reports(source, engines)
        bad = not all(report.ok for report in reports)
        if bad:
            rejected.append(path)
            if read.format == "text":
                _say(f"Error validating {path}:\n")
        for report in reports:
            _show(report, source, read, names_engine=len(engines) > 1)
    if rejected and read.format == "text":
        _say("Validation failed for the following inputs:\n" + "".join(f"  {path}\n" for path in rejected) + "\n")
    return 1 if rejected else 0


def _reports(source: Input, engines: Sequence[Engine]) -> list[Report]:
    return [report for engine in engines for report in engine.judge([(source.path, source.wgsl)])]


def _exit_code(report: Report) -> int:
    match report.rejected_at:
        case None:
            return 0
        case "parse":
            return 1
        case "validation" | "pipeline":
            return REJECTED


def _show(report: Report, source: Input, read: Arguments, *, names_engine: bool) -> None:
    if read.format == "json":
        for diagnostic in report.diagnostics:
            sys.stdout.write(json.dumps(asdict(diagnostic)) + "\n")
        return
    if not report.ok and names_engine:
        _say(f"Rejected by {report.engine}:\n")
    if report.ok or report.engine == "tint":
        words = "".join(render(diagnostic, source.path, source.wgsl) for diagnostic in report.diagnostics)
    else:
        words = relabel(report.raw, source.path if report.rejected_at == "parse" else file_name_of(source.path))
    _say(f"Could not parse WGSL:\n{words}\n" if report.rejected_at == "parse" else words)


def _refuse(output: str, *, is_valid: bool) -> None:
    """Do what naga does with an output that it cannot write; refuse one that it would write."""
    extension = extension_of(output)
    if extension is None:
        raise InputError("Output filename has no extension")
    if extension in NEEDS_VALID and not is_valid:
        kind = NEEDS_VALID[extension]
        raise InputError(f"Generating {kind} output requires validation to succeed, and it failed in a previous step")
    if extension in NEEDS_VALID or extension in {"txt", "bin", "dot"}:
        raise _refusal(output)
    sys.stdout.write(f"Unknown output extension: {extension}\n")


def _refusal(output: str) -> QgenError:
    hint = "to validate several files add --bulk-validate; to translate, run naga itself"
    return QgenError("QG705", f"`{output}` would be an output, and qgen validate writes none", hint=hint)


def _say(text: str) -> None:
    sys.stderr.write(text)
