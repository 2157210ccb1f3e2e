"""Who runs the pieces of a task: this process, several on this machine, or a Dask cluster, which is an extra."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from types import ModuleType
from typing import Final

from qgen.conform.exhaust import Piece, PieceResult, run_piece
from qgen.errors import QgenError, UnavailableError

HERE: Final = "here"


def check_workers(workers: str) -> None:
    """Raise `QgenError` QG872 where `workers` names none, `UnavailableError` QG873 where Dask is asked for and not installed."""
    kind, _, value = workers.partition(":")
    if kind == "dask":
        _import_dask()
    elif workers != HERE and (kind != "processes" or (value and not (value.isdecimal() and int(value) > 0))):
        hint = "take `here`, `processes`, `processes:4`, `dask`, or `dask:tcp://scheduler:8786`"
        raise QgenError("QG872", f"there are no workers `{workers}`", hint=hint)


def run_pieces(pieces: Sequence[Piece], device: str, workers: str = HERE) -> Iterator[PieceResult]:
    """Yield the result of each piece as it is done, in any order.

    `workers` is `here`, `processes` or `processes:N` (as many as there are processors, or N), `dask` (a cluster on this machine) or
    `dask:ADDRESS` (that of a scheduler). Raises as `check_workers` does.
    """
    check_workers(workers)
    kind, _, value = workers.partition(":")
    run = partial(run_piece, device=device)
    match kind:
        case "processes":
            yield from _on_processes(run, pieces, int(value) if value else os.cpu_count() or 1)
        case "dask":
            yield from _on_dask(run, pieces, value or None)
        case _:
            yield from map(run, pieces)


def _on_processes(run: partial[PieceResult], pieces: Iterable[Piece], count: int) -> Iterator[PieceResult]:
    # Started afresh: a device that is open does not live through a fork.
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(run, piece) for piece in pieces]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _on_dask(run: partial[PieceResult], pieces: Sequence[Piece], address: str | None) -> Iterator[PieceResult]:
    distributed = _import_dask()
    # The work holds Python's lock, and a device belongs to a process: one thread each.
    options = {"address": address} if address else {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(**options) as client:
        for future in distributed.as_completed(client.map(run, pieces, pure=False)):
            result: PieceResult = future.result()
            yield result


def _import_dask() -> ModuleType:
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise UnavailableError(
            "QG873", "Dask is not installed here", hint="pip install qgen[dask], or take `--workers processes`"
        ) from error
    return distributed
