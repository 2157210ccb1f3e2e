"""Long-lived helper processes that speak JSON lines: started on first use, kept for the process, ended with it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from typing import IO, Any, cast

from qgen.errors import QgenError

ANSWER_SECONDS = 120.0
"""How long one text may take; drivers have been seen to compile for minutes."""


class Host:
    """A helper process; `hello` is the object that it sends on starting. A request is answered before the next is sent."""

    def __init__(self, name: str, command: tuple[str, ...]) -> None:
        """Start the process and wait for its hello; raises QG702 when it ends or says nothing."""
        self.name = name
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._last_words: list[str] = []
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)  # noqa: S603 - qgen's own host files
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("IO[bytes]", self._process.stdout)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        atexit.register(self.close)
        self.hello: dict[str, Any] = self._next("start")

    def ask(self, request: dict[str, Any], label: str) -> dict[str, Any]:
        """Return the answer to one request about the text called `label`; raises QG702 when the process dies or falls silent."""
        with self._lock:
            if self._input.closed:
                raise self._death(label)
            try:
                self._input.write(json.dumps(request).encode() + b"\n")
                self._input.flush()
            except OSError as error:
                raise self._death(label) from error
            return self._next(label)

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process, and give back what it held; a forked child leaves it to the process that started it."""
        if os.getpid() != self._owner:
            return
        if self.is_alive():
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._output.close()
        self._errors.close()
        with contextlib.suppress(BrokenPipeError):  # a request that the process did not live to read
            self._input.close()

    def _read(self) -> None:
        for line in self._output:
            self._lines.put(line)
        self._lines.put(b"")

    def _next(self, label: str) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self.close()
            message = f"{self.name} did not answer within {ANSWER_SECONDS:.0f} s ({label})"
            raise QgenError("QG702", message, hint="shorten the text, or judge it with another --engine", place=label) from None
        if not line:
            raise self._death(label)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _death(self, label: str) -> QgenError:
        code = self._process.wait()
        if not self._errors.closed:
            self._errors.seek(0)
            self._last_words = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
        self.close()
        message = ": ".join([f"{self.name} ended with status {code} while judging", *self._last_words])
        return QgenError("QG702", message, hint="judge the text with another --engine; the text itself has no verdict", place=label)


_HOSTS: dict[tuple[int, tuple[str, ...]], Host] = {}
_HOSTS_LOCK = threading.Lock()


def open_host(name: str, command: tuple[str, ...]) -> Host:
    """Return this process's host for the command, started when there is none that lives."""
    key = (os.getpid(), command)
    with _HOSTS_LOCK:
        host = _HOSTS.get(key)
        if host is None or not host.is_alive():
            host = _HOSTS[key] = Host(name, command)
        return host
