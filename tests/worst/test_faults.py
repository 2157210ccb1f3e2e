"""The power of the tests: deliberate faults, rare on random inputs and accepted by both compilers, none of which slips through."""

from __future__ import annotations

import pytest

from qgen.kernel import Kernel, compile_request
from qgen.validate import validate_texts
from tests.worst.broken import compile_broken, uniform_inputs
from tests.worst.faults import FAULTS, Fault
from tests.worst.suite import differing_share, find_fault

RARE = 0.01


def broken(fault: Fault) -> Kernel:
    return compile_broken(fault.request(), fault.made_by)


def title(fault: Fault) -> str:
    return f"{fault.kind}: {fault.title}"


@pytest.mark.parametrize("fault", FAULTS, ids=title)
def test_a_fault_does_not_slip_through(fault: Fault) -> None:
    assert find_fault(broken(fault)) is not None


@pytest.mark.parametrize("fault", FAULTS, ids=title)
def test_a_fault_is_rare_on_uniformly_random_inputs(fault: Fault) -> None:
    kernel = broken(fault)
    assert differing_share(kernel, uniform_inputs(kernel, fault.shape, seed=1)) < RARE


@pytest.mark.parametrize("fault", {str(fault.request()): fault for fault in FAULTS}.values(), ids=title)
def test_nothing_is_found_in_the_kernel_without_the_fault(fault: Fault) -> None:
    assert find_fault(compile_request(fault.request())) is None


def test_both_compilers_accept_every_fault() -> None:
    reports = validate_texts([(title(fault), broken(fault).wgsl) for fault in FAULTS], engine="all")
    assert len(reports) == 2 * len(FAULTS)
    assert [f"{report.engine} on {report.label}: {report.raw}" for report in reports if not report.ok] == []


def test_there_are_enough_faults_of_enough_kinds() -> None:
    assert len({fault.title for fault in FAULTS}) == len(FAULTS) >= 24
    assert len({fault.kind for fault in FAULTS}) >= 10


def test_the_compiler_is_whole_again_after_a_fault() -> None:
    fault = FAULTS[0]
    before = compile_request(fault.request()).wgsl
    assert broken(fault).wgsl != before
    assert compile_request(fault.request()).wgsl == before
