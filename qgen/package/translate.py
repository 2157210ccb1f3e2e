"""A kernel in other shading languages, as naga writes them: a `naga` on PATH, or npm's naga-wasm through Node."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.kernel import Kernel
from qgen.package.bind import bind_text
from qgen.validate.engines import find_naga_package
from qgen.validate.hosts import open_host

LANGUAGES: Final = {"spirv": "spv", "glsl": "comp", "hlsl": "hlsl", "msl": "metal"}
"""Every language by its name on the command line, with the ending of its files."""

_GLSL_PROFILE: Final = "es310"
_SECONDS: Final = 120
_HOST: Final = Path(__file__).parent / "naga_host.mjs"

Writer = Callable[[str, str, str], bytes]
"""Returns what naga writes of a kernel in a language; for GLSL, where one text is one entry point, that of the entry point."""


def parse_targets(text: str) -> tuple[str, ...]:
    """Return the languages of a list as `spirv,glsl`, each once. Raises `QgenError` QG953 for one that naga does not write."""
    languages = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for language in languages:
        if language not in LANGUAGES:
            near = difflib.get_close_matches(language, LANGUAGES, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"languages are {', '.join(LANGUAGES)}"
            raise QgenError("QG953", f"kernels are not translated to `{language}`", hint=hint)
    return languages


def translate_kernel(kernel: Kernel, languages: Iterable[str]) -> dict[str, bytes]:
    """Return the kernel in each of `languages`, by file name; in GLSL, each dispatch of several is a file of its own.

    Every text has the sidecar's binding numbers. Raises `UnavailableError` QG952 where there is no naga, `QgenError` QG954 where what it
    writes cannot be bound by these numbers, `InternalError` where it refuses a kernel of qgen's.
    """
    write = _find_writer()
    found: dict[str, bytes] = {}
    entries = [step["entry_point"] for step in kernel.sidecar["passes"]]
    for language in languages:
        is_parted = language == "glsl" and len(entries) > 1
        for entry in entries if is_parted else entries[:1]:
            name = f"{kernel.name}.{entry}" if is_parted else kernel.name
            data = write(kernel.wgsl, language, entry)
            found[f"{name}.{LANGUAGES[language]}"] = bind_text(kernel, language, entry, data)
    return found


def _find_writer() -> Writer:
    if program := shutil.which("naga"):
        return partial(_write_by_program, program)
    node, package = shutil.which("node"), find_naga_package(None)
    if node is None or package is None:
        hint = "npm install naga-wasm@30.1.0 (with Node 20 or later), or put gfx-rs/naga on PATH"
        raise UnavailableError("QG952", "there is no naga here, which writes other shading languages", hint=hint)
    return partial(_write_by_package, (node, str(_HOST), str(package)))


def _write_by_package(command: tuple[str, ...], wgsl: str, language: str, entry_point: str) -> bytes:
    answer = open_host("naga-wasm", command).ask({"wgsl": wgsl, "language": language, "entry_point": entry_point}, language)
    if "error" in answer:
        raise InternalError(f"naga writes no {language} of this text: {answer['error']}\n{wgsl}")
    return b64decode(answer["data"])


def _write_by_program(program: str, wgsl: str, language: str, entry_point: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="qgen-translate-") as folder:
        source, output = Path(folder) / "kernel.wgsl", Path(folder) / f"kernel.{LANGUAGES[language]}"
        source.write_text(wgsl, encoding="utf-8")
        options = ("--entry-point", entry_point, "--profile", _GLSL_PROFILE) if language == "glsl" else ()
        _run([program, *options, str(source), str(output)], language, wgsl)
        return output.read_bytes()


def _run(command: Sequence[str], language: str, wgsl: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - the naga that was found
    if done.returncode != 0 or not Path(command[-1]).is_file():
        raise InternalError(f"naga writes no {language} of this text: {done.stderr or done.stdout}\n{wgsl}")
