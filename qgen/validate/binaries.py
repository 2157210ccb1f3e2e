"""Engines that are programs on PATH: `naga` and `tint`, run on temporary files."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from qgen.errors import QgenError
from qgen.validate.report import Report, Stage, read_dawn, read_naga

BATCH = 200
"""Files handed to one run of a `naga` binary."""


@dataclass(frozen=True, slots=True)
class NagaBinary:
    """The `naga` command line, run on temporary files in bulk; only the files it rejects are run once more for its words."""

    program: str
    name: str = "naga"

    @property
    def version(self) -> str:
        """What `naga --version` prints."""
        return _version_of(self.program)

    def judge(self, texts: Sequence[tuple[str, str]]) -> list[Report]:
        """Return one report for each (label, text), in order."""
        reports: list[Report] = []
        for start in range(0, len(texts), BATCH):
            reports += self._judge_batch(texts[start : start + BATCH])
        return reports

    def _judge_batch(self, texts: Sequence[tuple[str, str]]) -> list[Report]:
        with tempfile.TemporaryDirectory(prefix="qgen-validate-") as folder:
            files = [Path(folder) / f"{index}.wgsl" for index in range(len(texts))]
            for file, (_, wgsl) in zip(files, texts, strict=True):
                file.write_bytes(wgsl.encode())
            bulk = _run([self.program, "--bulk-validate", *map(str, files)])
            if bulk.returncode == 0:
                return [Report(label, self.name, self.version, ok=True, diagnostics=(), raw="", rejected_at=None) for label, _ in texts]
            reports = [self._judge_one(file, label) for file, (label, _) in zip(files, texts, strict=True)]
        if all(report.ok for report in reports):
            message = f"`{self.program}` rejects {len(texts)} texts in bulk (status {bulk.returncode}), and none of them alone"
            raise QgenError("QG703", message, hint="check that this is gfx-rs/naga, or take it off PATH")
        return reports

    def _judge_one(self, file: Path, label: str) -> Report:
        run = _run([self.program, str(file)])
        words = run.stderr.replace(f"{file}:", "wgsl:").replace(f"{file.name}:", "wgsl:")
        stage: Stage
        match run.returncode, words.partition("\n"):
            case 0, _:
                return Report(label, self.name, self.version, ok=True, diagnostics=(), raw="", rejected_at=None)
            case 1, ("Could not parse WGSL:", _, rest):
                stage, words = "parse", rest.removesuffix("\n")
            case 255, (head, _, _) if head.startswith("error: "):
                stage = "validation"
            case _:
                message = f"`{self.program}` ended with status {run.returncode} and no verdict: {run.stderr.strip() or 'no message'}"
                raise QgenError("QG703", message, hint="check that this is gfx-rs/naga, or take it off PATH", place=label)
        return Report(
            label, self.name, self.version, ok=False, diagnostics=read_naga(words, label, self.name), raw=words, rejected_at=stage
        )


@dataclass(frozen=True, slots=True)
class TintBinary:
    """The `tint` command line, one run a text."""

    program: str
    name: str = "tint"

    @property
    def version(self) -> str:
        """What `tint --version` prints, or its path where it prints nothing."""
        return _version_of(self.program)

    def judge(self, texts: Sequence[tuple[str, str]]) -> list[Report]:
        """Return one report for each (label, text), in order."""
        with tempfile.TemporaryDirectory(prefix="qgen-validate-") as folder:
            file = Path(folder) / "text.wgsl"
            reports = []
            for label, wgsl in texts:
                file.write_bytes(wgsl.encode())
                reports.append(self._report(label, _run([self.program, "--format", "none", str(file)])))
            return reports

    def _report(self, label: str, run: subprocess.CompletedProcess[str]) -> Report:
        words = run.stderr
        diagnostics = read_dawn(words, label, self.name) if words.strip() else ()
        has_place = any(one.severity == "error" and one.line is not None for one in diagnostics)
        if run.returncode == 0:
            warnings = tuple(one for one in diagnostics if one.line is not None)
            return Report(label, self.name, self.version, ok=True, diagnostics=warnings, raw=words, rejected_at=None)
        if not has_place:
            message = f"`{self.program}` ended with status {run.returncode} and no verdict: {words.strip() or 'no message'}"
            raise QgenError("QG703", message, hint="check that this is Dawn's tint, or take it off PATH", place=label)
        return Report(label, self.name, self.version, ok=False, diagnostics=diagnostics, raw=words, rejected_at="parse")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - found on PATH; the arguments are files


@cache
def _version_of(program: str) -> str:
    run = _run([program, "--version"])
    words = run.stdout.strip().splitlines()
    return words[0] if run.returncode == 0 and words else program
