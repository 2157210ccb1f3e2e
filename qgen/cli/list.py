"""`qgen list`: what there is, as aligned text or as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from qgen.cli.arguments import one_of

SUMMARY: Final = "print the operators, dtypes, signatures, targets or passes"
USAGE: Final = "qgen list ops|dtypes|signatures|targets|passes [--format text|json]"
DESCRIPTION: Final = """\
Prints what there is. As text, with aligned columns and a line of titles; `signatures` has no titles, so that
each line is a signature of QuantizeLinear or DequantizeLinear: operator, version, types of x, scale and y,
zero point, granularity, precision, and whether an output of float8 does not saturate.
As JSON, an array with one object a line.
"""

Row = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("what", metavar="WHAT", type=one_of(*_TABLES), help="ops, dtypes, signatures, targets or passes")
    parser.add_argument("--format", metavar="F", type=one_of("text", "json"), default="text", help="text (aligned, default) or json")


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    rows = list(_TABLES[arguments.what]())
    if arguments.format == "json":
        print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")
    elif arguments.what == "targets":
        print("\n\n".join(_target_text(row) for row in rows))
    else:
        lines = [[_cell(title, value) for title, value in row.items()] for row in rows]
        print("\n".join(align(lines if arguments.what == "signatures" else [list(rows[0]), *lines])))
    return 0


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines with aligned columns, two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cell(title: str, value: object) -> str:
    match value:
        case None | False | [] | "":
            return "-"
        case True:
            return title
        case list():
            return " ".join(map(str, value))
        case _:
            return str(value)


def _ops() -> Iterable[Row]:
    from qgen.signatures.tables import DYNAMIC, DYNAMIC_ROW, ONNX, TABLES  # start-up time

    for (domain, op), rows in {**TABLES, (ONNX, DYNAMIC): (DYNAMIC_ROW,)}.items():
        yield {
            "operator": op,
            "domain": domain,
            "versions": [row.version for row in rows],
            "attributes": sorted(rows[-1].attributes),
        }


def _dtypes() -> Iterable[Row]:
    from qgen.dtypes import DTYPES  # start-up time
    from qgen.signatures.tables import DEQUANTIZE, ONNX, OPERANDS, QUANTIZE, TABLES  # start-up time

    for dtype in DTYPES.values():
        row: dict[str, Any] = {
            "dtype": dtype.name,
            "short": dtype.short,
            "bits": dtype.bits,
            "class": dtype.family.value,
            "numpy": dtype.numpy,
            "onnx": dtype.onnx,
        }
        for op in (QUANTIZE, DEQUANTIZE):
            newest = TABLES[ONNX, op][-1]
            row[op] = [operand for operand in OPERANDS if dtype in getattr(newest, operand)]
        yield row


def _signatures() -> Iterable[Row]:
    from qgen.signatures import enumerate_signatures  # start-up time

    for signature, kind in enumerate_signatures():
        yield {
            "operator": signature.op,
            "version": signature.version,
            "x": signature.x.name,
            "scale": signature.scale.name,
            "y": signature.y.name,
            "zero_point": signature.zero_point,
            "granularity": kind,
            "precision": signature.precision.name if signature.precision else None,
            "no_saturate": not signature.saturate,
        }


def _targets() -> Iterable[Row]:
    from qgen.target import OPTIONS, load_target, target_names  # start-up time

    for name in target_names():
        target = load_target(name)
        yield {
            "target": name,
            "description": target.description,
            "features": list(target.features),
            "language_features": list(target.language_features),
            "limits": dict(target.limits),
            "options": {option: getattr(target, option) for option in OPTIONS},
        }


def _passes() -> Iterable[Row]:
    from qgen.passes.pipeline import PASSES  # start-up time

    for number, name in enumerate(PASSES):
        yield {"order": number, "pass": name}


_TABLES: Final[dict[str, Callable[[], Iterable[Row]]]] = {
    "ops": _ops,
    "dtypes": _dtypes,
    "signatures": _signatures,
    "targets": _targets,
    "passes": _passes,
}


def _target_text(row: Row) -> str:
    entries = [
        ("features", [" ".join(row["features"]) or "none"]),
        ("language features", [" ".join(row["language_features"]) or "none"]),
        ("limits", [f"{name} = {value}" for name, value in row["limits"].items()]),
        ("options", [f"{name} = {value}" for name, value in row["options"].items()]),
    ]
    lines = [(title if number == 0 else "", text) for title, texts in entries for number, text in enumerate(texts)]
    return "\n".join([f"{row['target']}: {row['description']}", *(f"  {line}" for line in align(lines))])
