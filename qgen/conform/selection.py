"""Which kernels of the matrix are meant: `op=QuantizeLinear`, `y=uint4,int4`, `granularity=blocked`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from qgen.dtypes import DType
from qgen.errors import QgenError
from qgen.request import Request


def kernel_fields(request: Request) -> dict[str, str]:
    """Return what makes a kernel before shapes, as words."""
    signature = request.signature
    division = signature.division
    return {
        "op": signature.op,
        "x": signature.x.name,
        "scale": signature.scale.name,
        "y": signature.y.name,
        "zero_point": _yes(signature.zero_point),
        "granularity": request.granularity.kind,
        "division": "none" if division is None else division.name if isinstance(division, DType) else str(division.value),
        "saturate": _yes(signature.saturate),
    }


def _yes(value: bool) -> str:  # noqa: FBT001 - the value is what is spelt
    return "yes" if value else "no"


def select_requests(requests: Sequence[Request], only: Sequence[str]) -> list[tuple[int, Request]]:
    """Return the requests that meet every condition of `only`, each `FIELD=VALUE[,VALUE...]`, with their numbers.

    Raises `QgenError` QG870 for a condition that no kernel meets, or on a field that there is not.
    """
    fields = [kernel_fields(request) for request in requests]
    wanted = [_parse(text, fields) for text in only]
    chosen = [(number, requests[number]) for number, each in enumerate(fields) if all(each[name] in values for name, values in wanted)]
    if not chosen:
        raise QgenError("QG870", f"no kernel has all of {' '.join(only)}", hint="ask for less at once; `qgen list signatures` prints all")
    return chosen


def _parse(text: str, fields: Sequence[dict[str, str]]) -> tuple[str, set[str]]:
    name, _, values = text.partition("=")
    if name not in fields[0]:
        raise _unknown(text, name, list(fields[0]), "write FIELD=VALUE, with a field of ")
    there = {each[name] for each in fields}
    found = set(values.split(","))
    for value in sorted(found - there):
        raise _unknown(text, value, sorted(there), f"{name} is one of ")
    return name, found


def _unknown(text: str, word: str, known: list[str], help_: str) -> QgenError:
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else help_ + ", ".join(known)
    return QgenError("QG870", f"`{text}` selects nothing: there is no `{word}`", hint=hint)
