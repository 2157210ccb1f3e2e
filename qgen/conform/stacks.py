"""The stacks that conformance is checked on: the evaluator, under IEEE 754 or under the worst that WGSL allows, and every device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qgen.check import Outcome, check_kernel, check_shapes, check_text
from qgen.check.compare import CheckResult
from qgen.check.shapes import small_shapes
from qgen.conform.tolerance import check_tolerance
from qgen.errors import InternalError, UnavailableError
from qgen.evaluate import EvaluationError
from qgen.evaluate.worst import worst_models
from qgen.kernel import CPU, Kernel
from qgen.runtime import list_devices, open_device
from qgen.runtime.hosted import HOSTS

WORST: Final = "cpu:worst"


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack by its selector, and what runs kernels there, for people."""

    selector: str
    device: str


def find_stacks(selectors: Sequence[str]) -> tuple[Stack, ...]:
    """Return the stacks of `selectors`, each once, every device opened.

    A selector is `cpu`, `cpu:worst`, one of `open_device`, or `all` for whatever is here; without any it is the CPU and the first adapter.
    Raises what `open_device` raises.
    """
    named = [each for selector in selectors or ["cpu", "auto"] for each in _expand(selector.strip().lower())]
    return tuple(_describe(selector) for selector in dict.fromkeys(named))


def _expand(selector: str) -> list[str]:
    match selector:
        case "all":
            return [CPU, WORST, *_adapters(), *filter(_is_here, HOSTS)]
        case "auto":
            return ["gpu"] if list_devices() else []
        case _:
            return [selector]


def _adapters() -> list[str]:
    """Return a selector for each adapter: its name, or its graphics API where another adapter of the stack has the same name."""
    found: list[str] = []
    for info in list_devices():
        stack, api = info.backend.split(":")
        by_name = f"{stack}:{info.name.lower().replace(':', '')}"
        found.append(by_name if by_name not in found else f"{stack}:{api}")
    return found


def _is_here(host: str) -> bool:
    try:
        open_device(host)
    except UnavailableError:
        return False
    return True


def _describe(selector: str) -> Stack:
    if selector == CPU:
        return Stack(selector, "the evaluator, IEEE 754")
    if selector == WORST:
        return Stack(selector, "the evaluator, under every model of the worst that WGSL allows")
    device = open_device(selector)
    return Stack(selector, f"{device.name} ({device.backend})")


def check_on(stack: Stack, kernel: Kernel, seed: int) -> Outcome:
    """Return the outcome of one text on one stack; of the mode `fast`, only what is beyond its stated bound is wrong."""
    if kernel.request.mode != "fast" and stack.selector != WORST:
        return check_text(kernel, stack.selector, seed)
    try:
        result = check_tolerance(kernel, stack.selector, seed) if kernel.request.mode == "fast" else _check_worst(kernel, seed)
    except (InternalError, EvaluationError) as error:
        return Outcome(kernel.name, stack.selector, None, str(error))
    return Outcome(kernel.name, stack.selector, result, None)


def _check_worst(kernel: Kernel, seed: int) -> CheckResult:
    """Check the kernel under each model its mode allows, each time with other inputs, the shapes in turn."""
    mode = "strict" if kernel.request.mode == "strict" else "exact"
    shapes = small_shapes(check_shapes(kernel))
    elements = mismatches = 0
    first = None
    for number, model in enumerate(worst_models(mode)):
        found = check_kernel(kernel, CPU, [shapes[number % len(shapes)]], seed + number, rounds=1, model=model)
        elements, mismatches = elements + found.elements, mismatches + found.mismatches
        first = first or found.first
    return CheckResult(kernel.name, WORST, elements, mismatches, first)
