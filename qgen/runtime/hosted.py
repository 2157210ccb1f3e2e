"""WebGPU that lives in JavaScript: npm's `webgpu` in Node, and Chromium; each in a process that is asked over JSON lines.

`jobs.mjs` has what goes over the lines. Layouts are those that the implementation derives from the text, as a host gets that states none.
"""

from __future__ import annotations

import atexit
import json
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final, cast

from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.runtime.device import Adapter
from qgen.runtime.drivers import driver_environment
from qgen.runtime.images import Image
from qgen.runtime.limits import Needs, check_features, choose_limits, native_spelling
from qgen.sidecar.plan import DispatchPlan

HOSTS: Final = {"node": "webgpu", "chromium": "playwright-core"}
"""The selectors, with the npm package that each needs."""

_HERE: Final = Path(__file__).parent
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS: Final = 600.0
"""How long an answer may take."""


def find_hosted(selector: str) -> Adapter:
    """Return the adapter that `node` or `chromium` chooses; `:` and a part of its name may follow.

    Raises `UnavailableError` QG611 where Node, the npm package or a browser is missing, QG610 where the adapter is another one or none.
    """
    host, _, part = selector.partition(":")
    hosted = _Hosted(host, _command(host, part))
    name = str(hosted.hello.get("name", "none"))
    if "error" in hosted.hello or part not in name.lower():
        hosted.close()
        raise UnavailableError("QG610", f"there is no adapter `{selector}` here; there is: {name}", hint="name another device, or `cpu`")
    idle = [hosted]

    def connect(needs: Needs) -> _Hosted:
        process = idle.pop() if idle else _Hosted(host, _command(host, part))
        process.open(needs, name)
        return process

    return Adapter(host, None, lambda: None, name, f"{host}:webgpu", "swiftshader" in name.lower(), connect)


def _command(host: str, part: str) -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise _missing(host, "Node", "install Node 20 or later")
    package = find_package(HOSTS[host])
    if package is None:
        raise _missing(host, f"the npm package {HOSTS[host]}", f"run `npm install {HOSTS[host]}` in the working folder or one above it")
    command = [node, str(_HERE / f"{host}.mjs"), str(package)]
    if host == "chromium":
        browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if browser is None:
            raise _missing(host, "Chromium", f"put one of these on PATH: {', '.join(_BROWSERS)}")
        command += [browser, *(["swiftshader"] if part == "swiftshader" else [])]
    return command


def _missing(host: str, what: str, hint: str) -> UnavailableError:
    return UnavailableError("QG611", f"the device `{host}` needs {what}, which is not installed here", hint=hint)


def find_package(name: str) -> Path | None:
    """Return the folder of an npm package, found from the working folder upward, else beside a checkout of qgen; None where it is not."""
    here = Path.cwd()
    folders = [parent / "node_modules" / name for parent in (here, *here.parents, _HERE.parents[1])]
    return next((folder.resolve() for folder in folders if (folder / "package.json").is_file()), None)


class _Hosted:
    """One process with one device, an `Executor`."""

    def __init__(self, host: str, command: list[str]) -> None:
        self.limits: Mapping[str, int] = {}
        self.is_lost = False
        self._name = host
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        with driver_environment("dawn"):
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words)  # noqa: S603 - qgen's own scripts
        self._input, self._output = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        atexit.register(self.close)
        self.hello = self._next()

    def open(self, needs: Needs, name: str) -> None:
        """Open the device. Raises `UnavailableError` QG613 where the adapter lacks what is needed, QG620 where it opens none."""
        self._name = name
        check_features(needs, self.hello["features"], name)
        offered = {native_spelling(limit): value for limit, value in self.hello["limits"].items()}
        self.limits = choose_limits(needs, offered, name)
        answer = self._ask({"requiredFeatures": needs.features, "requiredLimits": self.limits})
        if "error" in answer:
            raise UnavailableError("QG620", f"`{name}` opens no device: {answer['error']}", hint="name another adapter, or `cpu`")

    def execute(self, wgsl: str, plan: DispatchPlan, images: Mapping[str, Image], read: Iterable[str]) -> dict[str, bytes]:
        """Return the whole of each buffer in `read` after all passes of `plan` ran on buffers that start as `images`."""
        answer = self._ask(_job(wgsl, plan, images, list(read)))
        if "error" not in answer:
            return {name: b64decode(data) for name, data in answer["buffers"].items()}
        if re.search(r"\blost\b", answer["error"], re.IGNORECASE):
            raise self._lost(answer["error"])
        if re.search(r"out of memory", answer["error"], re.IGNORECASE):
            reason = f"`{self._name}` ran out of memory: {answer['error']}"
            raise QgenError("QG618", reason, hint="run a smaller tensor, or on `cpu`")
        raise InternalError(f"`{self._name}` refuses the kernel: {answer['error']}\n{wgsl}")

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._output, self._words):
            stream.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            self._input.write(json.dumps(request).encode() + b"\n")
            self._input.flush()
        except OSError as error:
            raise self._lost(self._last_words()) from error
        return self._next()

    def _read(self) -> None:
        for line in self._output:
            self._lines.put(line)
        self._lines.put(b"")

    def _next(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=_SECONDS)
        except queue.Empty:
            raise self._lost(f"no answer within {_SECONDS:.0f} s") from None
        if not line:
            raise self._lost(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        status = self._process.wait()
        self._words.seek(0)
        lines = [line for line in self._words.read().decode(errors="replace").splitlines() if line.strip()]
        return f"its process ended with status {status}" + "".join(f": {line}" for line in lines[-1:])

    def _lost(self, reason: str) -> UnavailableError:
        self.is_lost = True
        self.close()
        return UnavailableError("QG619", f"`{self._name}` was lost: {reason}", hint="run it again, or on another device")


def _job(wgsl: str, plan: DispatchPlan, images: Mapping[str, Image], read: list[str]) -> dict[str, Any]:
    return {
        "wgsl": wgsl,
        "buffers": {
            name: {
                "data": b64encode(image.data).decode(),
                "offset": image.offset,
                "size": len(image.content),
                "usage": "uniform" if image.role == "uniform" else "storage",
            }
            for name, image in images.items()
        },
        "passes": [
            {
                "entryPoint": step.entry_point,
                "bindings": [{"group": bound.group, "binding": bound.binding, "buffer": bound.buffer} for bound in step.bindings],
                "dispatch": step.dispatch,
            }
            for step in plan.passes
        ],
        "read": read,
    }
