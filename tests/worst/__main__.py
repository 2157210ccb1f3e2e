"""Every kernel of the matrix, in each bit-exact mode, under all models: `python -m tests.worst [--shard I/N] [--mode M] [--lanes N]`."""

from __future__ import annotations

import argparse
import sys

from qgen.check import parse_shard
from qgen.target import load_target
from tests.worst.sweep import FEW_LANES, MODES, all_cases, check_case

_WIDTH = 40


def main() -> int:
    """Check the shard's kernels, with a bar on standard error and each failure in a line; return 0 where there is none, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.worst", description=__doc__)
    parser.add_argument("--shard", default="1/1", help="part I of N, every N-th kernel")
    parser.add_argument("--mode", choices=MODES, help="one numerics mode; both without it")
    parser.add_argument("--rounds", type=int, default=2, help="inputs for each kernel")
    parser.add_argument("--lanes", type=int, default=FEW_LANES.lanes, help="elements that an invocation owns: fewer of them take less time")
    chosen = parser.parse_args()
    target = load_target(f"webgpu:lanes={chosen.lanes}")
    shard = parse_shard(chosen.shard)
    cases = [case for case in all_cases() if chosen.mode in {None, case[0]}][shard.index - 1 :: shard.count]
    failed = 0
    for done, case in enumerate(cases, 1):
        failures = list(check_case(case, rounds=chosen.rounds, target=target))
        failed += bool(failures)
        for failure in failures:
            sys.stdout.write(f"{failure}\n")
        filled = _WIDTH * done // len(cases)
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{len(cases)} kernels, {failed} failed")
    sys.stderr.write("\n")
    sys.stdout.write(f"{len(cases) - failed} of {len(cases)} kernels give the same bits under every model\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
