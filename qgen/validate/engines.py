"""The engines that judge WGSL, and which of them this machine has.

naga, in this order: a `naga` on PATH; npm's naga-wasm through Node; wgpu-py where an adapter exists. Tint: wgpudawn's Null backend;
a `tint` on PATH. An engine that ends without a verdict raises QG702 or QG703: no text is passed because nobody judged it.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from qgen.errors import QgenError, UnavailableError
from qgen.validate.binaries import NagaBinary, TintBinary
from qgen.validate.hosted import NagaWasm, WebGpu
from qgen.validate.report import Report

CHECKOUT = Path(__file__).parents[2]
"""Where `node_modules` lies beside a checkout of qgen."""

NAGA_HINT = "npm install naga-wasm@30.1.0 (with Node), or put gfx-rs/naga on PATH, or pip install qgen[gpu] where a driver exists"
TINT_HINT = "pip install qgen[tint]"


class Engine(Protocol):
    """What judges a sequence of texts; `version` is for people."""

    @property
    def name(self) -> str:
        """The engine's name in reports."""

    @property
    def version(self) -> str:
        """The engine's version, with the library that carries it."""

    def judge(self, texts: Sequence[tuple[str, str]]) -> list[Report]:
        """Return one report for each (label, text), in order."""


def find_naga_package(chosen: Path | None) -> Path | None:
    """Return the folder of naga-wasm, or None: `chosen`, else found from the working folder upward, else the checkout's.

    `chosen` is the package itself or a folder whose node_modules has it; raises QG701 where it holds none.
    """
    if chosen is not None:
        for folder in (chosen, chosen / "naga-wasm", chosen / "node_modules" / "naga-wasm"):
            if _is_naga_package(folder):
                return folder.resolve()
        hint = "run `npm install naga-wasm@30.1.0` in a folder, and name that folder"
        raise QgenError("QG701", "the folder holds no naga-wasm package", hint=hint, place=str(chosen))
    here = Path.cwd()
    for parent in (here, *here.parents, CHECKOUT):
        folder = parent / "node_modules" / "naga-wasm"
        if _is_naga_package(folder):
            return folder.resolve()
    return None


def _is_naga_package(folder: Path) -> bool:
    return all((folder / part).is_file() for part in ("package.json", "dist/wasm/naga_bg.wasm", "dist/wasm/naga.js", "dist/version.js"))


def find_naga(naga_wasm: Path | None = None) -> Engine | None:
    """Return the first naga engine of this machine; a named `naga_wasm` goes before a `naga` on PATH, because it was asked for."""
    node = shutil.which("node")
    if naga_wasm is None and (program := shutil.which("naga")):
        return NagaBinary(program)
    package = find_naga_package(naga_wasm)
    if naga_wasm is not None and node is None:
        raise UnavailableError("QG700", "naga-wasm needs Node, and there is no `node` on PATH", hint="install Node 20 or later")
    if package is not None and node is not None:
        return NagaWasm(node, package)
    if importlib.util.find_spec("wgpu") is not None:
        wgpu = WebGpu("wgpu")
        if wgpu.why_unavailable() is None:
            return wgpu
    return None


def find_tint() -> Engine | None:
    """Return the first Tint engine of this machine."""
    if importlib.util.find_spec("wgpudawn") is not None:
        tint = WebGpu("tint")
        if tint.why_unavailable() is None:
            return tint
    program = shutil.which("tint")
    return TintBinary(program) if program else None


def find_engines(choice: str, naga_wasm: Path | None = None) -> tuple[Engine, ...]:
    """Return the engines that must accept a text: one for `auto` (a naga, else Tint), `naga`, `tint`; a naga and Tint for `all`.

    Raises QG700 (`UnavailableError`) where one of them is missing, QG704 for another choice.
    """
    match choice:
        case "auto":
            found = find_naga(naga_wasm) or find_tint()
            return (_present(found, "a WGSL validator", f"{NAGA_HINT}; or {TINT_HINT}"),)
        case "naga":
            return (_present(find_naga(naga_wasm), "a naga engine", NAGA_HINT),)
        case "tint":
            return (_present(find_tint(), "a Tint engine", TINT_HINT),)
        case "all":
            return (_present(find_naga(naga_wasm), "a naga engine", NAGA_HINT), _present(find_tint(), "a Tint engine", TINT_HINT))
        case _:
            raise QgenError("QG704", f"there is no engine `{choice}`", hint="take auto, naga, tint or all")


def _present(engine: Engine | None, what: str, hint: str) -> Engine:
    if engine is None:
        raise UnavailableError("QG700", f"{what} is needed, and none was found here", hint=hint)
    return engine


def validate_texts(texts: Sequence[tuple[str, str]], engine: str = "auto", naga_wasm: Path | None = None) -> list[Report]:
    """Return one report for each engine and each (label, WGSL text): all of the first engine, in order, then all of the second.

    `engine` is `auto` (the first naga, else Tint, which one line on standard error then says), `naga`, `tint`, or `all`. Raises QG700
    (`UnavailableError`) where no such engine exists, QG702 and QG703 where one ends without a verdict.
    """
    engines = find_engines(engine, naga_wasm)
    if engine == "auto":
        announce_tint(engines[0])
    return [report for one in engines for report in one.judge(texts)]


def announce_tint(engine: Engine) -> None:
    """Say on standard error that Tint judges where `auto` found no naga."""
    if engine.name == "tint":
        sys.stderr.write(f"qgen validate: no naga engine was found; Tint judges ({engine.version})\n")
