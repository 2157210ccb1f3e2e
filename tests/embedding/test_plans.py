"""The plans of the glue, in every language, are those of the sidecar: on small tensors and on such as no device binds whole."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from qgen.arrays import numpy_dtype
from qgen.errors import QgenError
from qgen.shapes import Blocked, PerAxis, PerTensor, scale_shape
from qgen.sidecar.plan import DispatchPlan, plan_dispatch, plan_runs
from tests.embedding.cases import CASES, Case, kernel_of
from tests.embedding.compilers import HERE, compile_c, compile_rust, write_c_cases
from tests.embedding.interpreter import plan, some_runs
from tests.embedding.test_python import load_glue

Plan = list[int] | None
COUNT: Final = 1000
NO_LIMIT: Final = (1 << 53) - 1
HUGE_LIMIT: Final = 1 << 50
MOST_RUNS: Final = 500
_NEAR_DIMS: Final = (1, 2, 2, 3, 3, 4, 6, 16, 32, 64, 65)
_DIMS: Final = (0, 1, 1, 1, 2, 3, 5, 8, 31, 32, 64, 100, 256, 1000, 4096, 65536)


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel and shapes of its inputs; a `limit` of 0 is none."""

    case: Case
    shapes: Mapping[str, tuple[int, ...]]
    limit: int


@cache
def jobs() -> tuple[Job, ...]:
    """Return jobs without a limit, as many as COUNT, then as many with one, then as many with right shapes or such as are nearly right.

    The kernels take turns.
    """
    rng = np.random.default_rng(7)
    cases = [CASES[number % len(CASES)] for number in range(COUNT)]
    return (
        *(_job(case, has_limit=False, rng=rng) for case in cases),
        *(_job(case, has_limit=True, rng=rng) for case in cases),
        *(_near_job(case, rng) for case in cases),
    )


def _job(case: Case, *, has_limit: bool, rng: np.random.Generator) -> Job:
    kernel = kernel_of(case)
    least_rank = 0 if isinstance(kernel.request.granularity, PerTensor) else 2
    baked = kernel.request.shape is not None and rng.integers(4) > 0
    shape = case.shape if baked else tuple(int(dim) for dim in rng.choice(_DIMS, rng.integers(least_rank, 6)))
    most = 1 << (36 if has_limit else 31)
    while math.prod(shape) > most:
        shape = tuple(-(-dim // 3) for dim in shape)
    try:
        groups = scale_shape(kernel.request.granularity, shape)
    except QgenError:
        groups = (1,)
    groups = (*groups, 2) if rng.integers(16) == 0 else groups
    shapes = {name: shape if name == "x" else groups for name in kernel.inputs}
    limit = int(2 ** rng.uniform(8, 30)) if rng.integers(3) else HUGE_LIMIT
    return Job(case, shapes, max(limit, 4 * math.prod(shape) // MOST_RUNS) if has_limit else 0)


def _near_job(case: Case, rng: np.random.Generator) -> Job:
    """Return a job whose shapes are right, or next to that: with dimensions in another order, or grouped in another way."""
    kernel = kernel_of(case)
    shape = case.shape if kernel.request.shape is not None else tuple(int(dim) for dim in rng.choice(_NEAR_DIMS, rng.integers(2, 5)))
    groups = scale_shape(kernel.request.granularity, shape)
    shapes = {name: shape if name == "x" else groups for name in kernel.inputs}
    if rng.integers(3):
        changed = str(rng.choice(kernel.inputs[kernel.request.shape is not None :]))
        shapes[changed] = _change(shapes[changed], rng)
        if changed.endswith("_scale") and rng.integers(2):
            shapes |= {name: shapes[changed] for name in shapes if name.endswith("_zero_point")}
    return Job(case, shapes, 0)


def _change(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    """Return a shape with two dimensions swapped, a factor or a difference of one moved between them, or with another rank."""
    dims = [*shape]
    if len(dims) < 2:
        return ((*dims, 1), (1, *dims), (*dims, 2), (*(dim + 1 for dim in dims),))[rng.integers(4)]
    i, j = (int(place) for place in rng.permutation(len(dims))[:2])
    match rng.integers(6):
        case 0:
            dims[i], dims[j] = dims[j], dims[i]
        case 1 if factor := next((each for each in (2, 3, 5) if dims[i] % each == 0), 0):
            dims[i], dims[j] = dims[i] // factor, dims[j] * factor
        case 2:
            dims[i : i + 1] = [1, dims[i]]
        case 3:
            dims[i] *= dims.pop(j) if j > i else 1
        case 4:
            dims[i] += 1
        case _:
            dims[i], dims[j] = dims[i] + 1, max(dims[j] - 1, 0)
    return tuple(dims)


@cache
def expected() -> tuple[Plan, ...]:
    """Return the plans by the interpreter in Python."""
    return tuple(plan(kernel_of(job.case).sidecar, job.shapes, job.limit or NO_LIMIT) for job in jobs())


def test_the_jobs_have_all_outcomes() -> None:
    outcomes = [None if found is None else min(found[0], 2) for found in expected()]
    for outcome in (None, 0, 1, 2):
        assert outcomes.count(outcome) > 50, outcome
    parted = [job for job, outcome in zip(jobs(), outcomes, strict=True) if outcome == 2]
    assert {job.case for job in parted} == {case for case in CASES if case.large}
    assert sum(math.prod(job.shapes["x"]) > 1 << 32 for job in parted) > 10
    assert sum(job.limit == HUGE_LIMIT for job in parted) > 3


def test_what_is_accepted_is_right_and_what_is_right_is_accepted() -> None:
    """By the law as it is written here: scales of blocks have x's other dimensions; of others, only how many they are matters."""
    outcomes = []
    for job, want in list(zip(jobs(), expected(), strict=True))[2 * COUNT :]:
        kernel = kernel_of(job.case)
        names = [name for name in shape_names(job.case) if name != "x"]
        x = job.shapes["x"]
        is_right = kernel.request.shape in {None, x}
        match kernel.request.granularity:
            case Blocked(axis) | PerAxis(axis) if not -len(x) <= axis < len(x):
                is_right = False
            case Blocked(axis, size):
                dims = [*x]
                dims[axis] = -(-dims[axis] // size)
                is_right &= all([*job.shapes[name]] == dims for name in names)
            case PerAxis(axis):
                is_right &= all(math.prod(job.shapes[name]) == x[axis] for name in names)
            case PerTensor():
                is_right &= all(math.prod(job.shapes[name]) == 1 for name in names)
        assert (want is not None) == is_right, job
        is_blocked = isinstance(kernel.request.granularity, Blocked)
        outcomes.append((is_blocked, is_right))
        arrays = {name: np.zeros(job.shapes[name], numpy_dtype(kernel.compiled.checked.operand(name).dtype)) for name in kernel.inputs}
        try:
            kernel.plan(job.shapes)
        except QgenError as error:
            assert not (is_blocked and is_right), job
            with pytest.raises(QgenError, match=re.escape(error.message)):
                kernel.run(arrays, "cpu")
        else:
            assert is_right, job
    assert all(outcomes.count((is_blocked, is_right)) > 50 for is_blocked in (True, False) for is_right in (True, False))


def test_parts_begin_where_tensors_can_be_bound() -> None:
    for job, numbers in zip(jobs(), expected(), strict=True):
        if numbers is None or numbers[0] < 2:
            continue
        elements = [buffer["element"] for buffer in kernel_of(job.case).sidecar["buffers"] if buffer["role"] not in {"ignored", "uniform"}]
        last = numbers[1 + 2 * len(numbers) // 3 :]
        for element, offset in zip(elements, last, strict=False):
            assert offset % 256 == 0
            assert offset * 8 // element["bits"] % element["period"][0] == 0


def test_the_interpreter_plans_as_qgen_does() -> None:
    for job, want in zip(jobs(), expected(), strict=True):
        sidecar = kernel_of(job.case).sidecar
        if job.limit:
            continue
        try:
            made = plan_dispatch(sidecar, job.shapes)
        except QgenError:
            assert want is None
            continue
        assert want is not None
        assert made.is_empty == (want == [0])
        if made.is_empty:
            continue
        run = numbers_of_run(made, dict.fromkeys(made.sizes, 0))
        assert want == [1, *run, *run, *run]


def test_the_interpreter_parts_as_qgen_does() -> None:
    for job, want in zip(jobs(), expected(), strict=True):
        if not job.limit or math.prod(job.shapes["x"]) > 1 << 32:
            continue
        try:
            runs = plan_runs(kernel_of(job.case).sidecar, job.shapes, job.limit)
        except QgenError:
            assert want is None
            continue
        if kernel_of(job.case).sidecar["chunks"] is None:
            assert runs is None
        elif runs is None:
            assert want is None
        else:
            assert want is not None
            chosen = [runs[index] for index in some_runs(len(runs))] if runs else []
            assert want == [len(runs), *(number for run in chosen for number in numbers_of_run(run.plan, run.offsets))]


def numbers_of_run(plan: DispatchPlan, offsets: Mapping[str, int]) -> list[int]:
    """Return the numbers of one run as the interpreter lists them."""
    tensors = [name for name in plan.sizes if name not in plan.uniforms]
    words = [int(word) for content in plan.uniforms.values() for word in np.frombuffer(content, "<u4")]
    dispatches = [count for step in plan.passes for count in step.dispatch]
    return [*(offsets[name] for name in tensors), *(plan.sizes[name] for name in tensors), *words, *dispatches]


def plan_in_python(folder: Path, _: Path) -> list[Plan]:
    modules = {case: load_glue(folder, case.name) for case in CASES}
    return [_plan_in_python(modules[job.case], job) for job in jobs()]


def _plan_in_python(module: Any, job: Job) -> Plan:  # noqa: ANN401 - glue has no types here
    try:
        made = module.plan(job.shapes, job.limit or NO_LIMIT)
    except ValueError:
        return None
    found = [len(made.runs)]
    for run in [made.runs[index] for index in some_runs(len(made.runs))] if made.runs else []:
        words = (int(word) for content in run.uniforms.values() for word in np.frombuffer(content, "<u4"))
        found += [*run.offsets.values(), *run.sizes.values(), *words, *(count for counts in run.dispatches for count in counts)]
    return found


def plan_in_javascript(folder: Path, _: Path) -> list[Plan]:
    request = json.dumps([{"kernel": job.case.name, "shapes": job.shapes, "limit": job.limit} for job in jobs()])
    done = subprocess.run(["node", HERE / "plans.mjs", folder], input=request, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for job, want, each in zip(jobs(), expected(), found, strict=True):
        assert each["sidecar"] == want, job
    return [each["glue"] for each in found]


def plan_in_c(folder: Path, work: Path) -> list[Plan]:
    write_c_cases(work, folder, "plan.inc", "void")
    compile_c(work, "c11", "plans.c", "-fsanitize=undefined", "-fno-sanitize-recover", "-o", work / "plans")
    return _plan_by_program(work / "plans")


def plan_in_rust(folder: Path, work: Path) -> list[Plan]:
    modules = "".join(f'#[path = "{folder / case.name}.rs"]\npub mod {case.name};\n' for case in CASES)
    (work / "library.rs").write_text("#![no_std]\n" + modules, encoding="utf-8")
    compile_rust(work / "library.rs", "--crate-type", "lib", "--emit", "metadata", "-o", work / "library.rmeta")
    lines = [f'#[path = "{folder / case.name}.rs"]\nmod {case.name};' for case in CASES]
    lines += [_rust_case(case) for case in CASES]
    functions = ", ".join(f"run_{case.name}::run" for case in CASES)
    lines.append(f"const CASES: [fn(&mut dyn Iterator<Item = u64>) -> String; {len(CASES)}] = [{functions}];")
    (work / "cases.rs").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (work / "plans.rs").write_text((HERE / "plans.rs").read_text(encoding="utf-8"), encoding="utf-8")
    compile_rust(work / "plans.rs", "-o", work / "plans")
    return _plan_by_program(work / "plans")


def _rust_case(case: Case) -> str:
    uniforms = any(buffer["role"] == "uniform" for buffer in kernel_of(case).sidecar["buffers"])
    words = "|run| run.params.to_bytes().to_vec()" if uniforms else "|_| Vec::new()"
    return f"mod run_{case.name} {{ case!({case.name}, [{', '.join(shape_names(case))}], {words}); }}"


def shape_names(case: Case) -> tuple[str, ...]:
    """Return the tensors whose shapes the glue takes: the inputs that a pass binds."""
    return tuple(buffer["name"] for buffer in kernel_of(case).sidecar["buffers"] if buffer["role"] == "input")


def _plan_by_program(program: Path) -> list[Plan]:
    lines = []
    for job in jobs():
        numbers = [CASES.index(job.case), job.limit or NO_LIMIT]
        for name in shape_names(job.case):
            numbers += [len(job.shapes[name]), *job.shapes[name]]
        lines.append(" ".join(map(str, numbers)))
    done = subprocess.run([program], input="\n".join([*lines, ""]), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [None if line == "refused" else [int(word) for word in line.split()] for line in done.stdout.splitlines()]


PLANNERS: Final[dict[str, Callable[[Path, Path], list[Plan]]]] = {
    "python": plan_in_python,
    "js": plan_in_javascript,
    "c": plan_in_c,
    "rust": plan_in_rust,
}


@pytest.mark.parametrize("language", PLANNERS)
def test_the_glue_plans_as_the_sidecar_says(language: str, glue_folder: Path, tmp_path: Path) -> None:
    found = PLANNERS[language](glue_folder, tmp_path)
    for job, got, want in zip(jobs(), found, expected(), strict=True):
        assert got == want, job
