"""`qgen tune`: the schedule that is fastest on an adapter, written as a profile."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from qgen.cli.arguments import add_quiet

SUMMARY: Final = "find the fastest schedules on an adapter, and write a profile"
USAGE: Final = "qgen tune DIR|KERNEL.json... -o PROFILE.toml [--device D] [--rounds N]"
DESCRIPTION: Final = """\
Times a handful of schedules of each kernel on an adapter: how many elements an invocation computes, and how many
invocations a workgroup has. They take turns, by the adapter's own timestamps, and medians of ratios decide. Each
schedule is held against the oracle before it is timed. Where none is clearly faster the target's own is kept.

`qgen emit --profile PROFILE.toml` and qgen.compile(..., profile=...) take the schedules from the profile; nothing
else ever reads it. A schedule changes no result.
"""
EPILOG: Final = """\
A kernel whose shape is left to uniforms is timed on 1024 x 1024 elements, one with a baked shape on that one.
Devices are auto (the first adapter), gpu, or a part of an adapter's name; those in JavaScript take no times.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("paths", metavar="DIR|KERNEL.json", nargs="+", help="sidecars, and folders of them")
    parser.add_argument("-o", "--output", metavar="PROFILE", required=True, help="the profile to write, a .toml file")
    parser.add_argument("--device", metavar="D", default="gpu", help="the adapter to time on (default: the first)")
    parser.add_argument("--rounds", metavar="N", type=_at_least_one, help="rounds of timing (default: 21)")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    """Time the kernels, say what was found, and write the profile."""
    from qgen.cli.check import find_sidecars  # start-up time
    from qgen.cli.stored import load_kernel  # start-up time
    from qgen.cli.terminal import Progress, count  # start-up time
    from qgen.errors import QgenError  # start-up time
    from qgen.files import write_text  # start-up time
    from qgen.kernel import compile_request  # start-up time
    from qgen.profile import Profile, print_profile  # start-up time
    from qgen.runtime import open_device  # start-up time
    from qgen.tune import tune_kernels  # start-up time
    from qgen.tune.search import ROUNDS  # start-up time

    device = "gpu" if arguments.device == "auto" else arguments.device
    adapter = open_device(device)
    stored = [load_kernel(path) for path in find_sidecars(arguments.paths, arguments.color)]
    kernels = [compile_request(found.kernel.request) for found in stored]
    targets = sorted({kernel.request.target.name for kernel in kernels})
    if len(targets) > 1:
        raise QgenError(
            "QG108", f"the kernels are for several targets: {', '.join(targets)}", hint="tune those of each target by themselves"
        )
    entries, changed = [], 0
    with Progress("rounds", is_quiet=arguments.quiet) as progress:
        for tuned in tune_kernels(kernels, device, arguments.rounds or ROUNDS, progress.show):
            entries.append(tuned.entry)
            changed += not tuned.is_default
            if not arguments.quiet:
                schedule = tuned.entry.schedule
                found = f"lanes {schedule.lanes}, workgroup {schedule.workgroup_size}, {tuned.entry.time:.2f} of the time"
                progress.clear()
                print(f"{tuned.kernel.name}: {'as its target has it' if tuned.is_default else found}")
    write_text(Path(arguments.output), print_profile(Profile(adapter.name, adapter.backend, targets[0], tuple(entries))))
    if not arguments.quiet:
        print(f"{count(len(entries), 'kernel')} on {adapter.name} ({adapter.backend}), {changed} with another schedule: {arguments.output}")
    return 0


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number from 1 on")
    return int(text)
