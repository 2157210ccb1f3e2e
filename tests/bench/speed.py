"""How fast the kernels are beside copies of the same bytes: `python -m tests.bench.speed --stack wgpu:llvmpipe --stack dawn:swiftshader`.

Each line is one case: what the kernel takes (ms, median), the share of the twin that it reaches (the twin's time divided by the kernel's;
see `copies.py`), the same of the quickest copy, and the time of `exact` divided by that of `fast`. Ratios are medians over rounds. Results
are compared with the oracle first: a wrong bit of `exact` ends the run.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Final

from tests.bench.cases import CASES, FORMS
from tests.bench.data import KINDS
from tests.bench.device import TimingDevice
from tests.bench.measure import measure_case

_HARNESS: Final = Path(__file__).parents[3] / "shared" / "bench"
_SUFFIXES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def main() -> int:
    """Print a line a case and form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", action="append", help="an adapter: wgpu:llvmpipe, dawn:swiftshader, ...; may be given often")
    parser.add_argument("--case", default="", metavar="REGEX", help="only cases whose name has this")
    parser.add_argument("--size", action="append", type=parse_size, help="elements: 1M, 4M, ...; may be given often")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--mode", action="append", choices=["exact", "fast", "strict"], help="may be given often; exact and fast")
    parser.add_argument("--form", action="append", choices=FORMS, help="what the kernel knows of the shape; may be given often; baked")
    parser.add_argument("--data", action="append", choices=KINDS, help="may be given often; random")
    parser.add_argument("--target", default="webgpu")
    parser.add_argument("--harness", type=Path, default=_HARNESS if _HARNESS.is_dir() else None, help="the folder of page.mjs")
    arguments = parser.parse_args()
    modes = arguments.mode or ["exact", "fast"]
    for selector in arguments.stack or ["wgpu:llvmpipe", "dawn:swiftshader"]:
        device = TimingDevice(selector)
        print(f"{selector}: {device.name} ({device.backend})")
        print(f"  {'ms':>8} {'twin':>5} {'copy':>5} {'/fast':>5} {'compile':>7}")
        for case in CASES:
            if not re.search(arguments.case, case.name):
                continue
            for size in arguments.size or [1 << 20]:
                for form in arguments.form or ["baked"]:
                    for kind in arguments.data or ["random"]:
                        found = measure_case(
                            device, case, form=form, kind=kind, count=size, rounds=arguments.rounds, modes=modes,
                            target=arguments.target, harness=arguments.harness,
                        )  # fmt: skip
                        for mode in modes:
                            result = found[mode]
                            ratio = f"{result.vs_fast:5.2f}" if result.vs_fast else "    -"
                            print(
                                f"  {result.ms:8.2f} {result.vs_twin:5.2f} {result.vs_copy:5.2f} {ratio} {result.compile_ms:7.0f}"
                                f"  {case.name}, {form}, {kind}, {mode}" + (f", {result.wrong} wrong" if result.wrong else ""),
                                flush=True,
                            )
    return 0


def parse_size(text: str) -> int:
    """Return the elements that `4M` means: powers of two."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is no number of elements")
    return int(match[1]) * _SUFFIXES.get(match[2], 1)


if __name__ == "__main__":
    sys.exit(main())
