"""Engines that are libraries, each in a helper process of its own: npm's naga-wasm in Node, wgpu-py and wgpudawn in Python."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgen.errors import QgenError
from qgen.validate.hosts import Host, open_host
from qgen.validate.report import Diagnostic, Report, Stage, read_dawn, read_naga

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class NagaWasm:
    """npm's naga-wasm in a Node process."""

    node: str
    package: Path
    parse_only: bool = False
    name: str = "naga-wasm"

    @property
    def version(self) -> str:
        """The package's version and that of the naga inside."""
        hello = self._host().hello
        return f"{hello['package']}, naga {hello['naga']}"

    @property
    def naga_version(self) -> str:
        """The version of the naga inside, as `naga --version` would print it."""
        return str(self._host().hello["naga"])

    def judge(self, texts: Sequence[tuple[str, str]]) -> list[Report]:
        """Return one report for each (label, text), in order; a text on which naga traps is rejected, and the next is judged afresh."""
        return [self._report(label, self._host().ask({"wgsl": wgsl, "parse_only": self.parse_only}, label)) for label, wgsl in texts]

    def _host(self) -> Host:
        return open_host(self.name, (self.node, str(HERE / "naga_host.mjs"), str(self.package)))

    def _report(self, label: str, answer: dict[str, Any]) -> Report:
        words = str(answer["text"])
        stage: Stage
        match answer["outcome"]:
            case "accepted":
                return Report(label, self.name, self.version, ok=True, diagnostics=(), raw="", rejected_at=None)
            case "parse":
                stage = "parse"
            case "validation":
                stage = "validation"
            case "trap":
                stage, words = "validation", f"error: naga trapped ({words}): the text nests too deeply for its stack\n\n"
            case other:
                raise QgenError("QG703", f"naga-wasm answered {other!r}", hint="install naga-wasm 30.1.0", place=label)
        return Report(
            label, self.name, self.version, ok=False, diagnostics=read_naga(words, label, self.name), raw=words, rejected_at=stage
        )


@dataclass(frozen=True, slots=True)
class WebGpu:
    """A WebGPU implementation in a Python process: `tint` is wgpudawn's Null backend, `wgpu` is wgpu-py (naga) on an adapter."""

    name: str

    @property
    def version(self) -> str:
        """The library's version."""
        return str(self._host().hello["version"])

    def why_unavailable(self) -> str | None:
        """Return why the library judges nothing here, or None where it does."""
        reason = self._host().hello.get("unavailable")
        return None if reason is None else str(reason)

    def judge(self, texts: Sequence[tuple[str, str]]) -> list[Report]:
        """Return one report for each (label, text), in order; each compute entry point was made a pipeline with WebGPU's default limits."""
        return [self._report(label, self._host().ask({"wgsl": wgsl}, label)) for label, wgsl in texts]

    def _host(self) -> Host:
        return open_host(self.name, (sys.executable, "-P", str(HERE / "webgpu_host.py"), self.name))

    def _report(self, label: str, answer: dict[str, Any]) -> Report:
        extra = tuple(
            Diagnostic(label, row["line"], row["column"], row["column"] + row["length"], "warning", row["message"], self.name)
            for row in answer["warnings"]
        ) + tuple(Diagnostic(label, None, None, None, "note", text, self.name) for text in answer["notes"])
        words = str(answer["text"])
        if answer["outcome"] == "accepted":
            return Report(label, self.name, self.version, ok=True, diagnostics=extra, raw=words, rejected_at=None)
        stage: Stage = "pipeline" if answer["outcome"] == "pipeline" else "parse"
        if self.name == "tint":
            diagnostics = read_dawn(words, label, self.name)
        else:
            stage, words = naga_words(words, stage)
            diagnostics = read_naga(words, label, self.name)
        return Report(label, self.name, self.version, ok=False, diagnostics=diagnostics + extra, raw=words, rejected_at=stage)


def naga_words(text: str, stage: Stage) -> tuple[Stage, str]:
    """Return the stage and naga's report inside an error of wgpu-py; an error of a pipeline has no place, only a chain of causes."""
    if head := re.search(r"^Shader(?: '.*')? (parsing|validation) error: ", text, re.MULTILINE):
        block = text[head.end() :].split("\n\n", 1)[0]
        return ("parse" if head[1] == "parsing" else "validation"), f"error: {block}\n\n"
    causes = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in causes if line not in {"Validation Error", "Caused by:"} and not line.startswith("In wgpuDevice")]
    return stage, f"error: {': '.join(causes) or text.strip()}\n\n"
