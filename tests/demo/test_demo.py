"""What the demo shows, on both of its models: every node emitted, every text accepted by both compilers, every value right."""

from __future__ import annotations

from pathlib import Path

import pytest

from qgen.importer import load_bundle
from qgen.kernel import CPU
from tests.demo.__main__ import Row, format_table
from tests.demo.judge import Outcome, compute_values, run_nodes, validate_kernels
from tests.demo.model import WEIGHTS, make_models

NODES = 405


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_node_of_the_demo_is_emitted_validated_and_right(name: str, models: dict[str, Path]) -> None:
    baked, uniform = (load_bundle(models[name], shapes=shapes) for shapes in ("baked", "uniform"))
    values = compute_values(models[name], baked.nodes)
    steps: list[None] = []
    for bundle in (baked, uniform):
        reports = validate_kernels(bundle.kernels.values(), lambda: steps.append(None))
        assert {tuple(report.engine for report in pair if report.ok) for pair in reports.values()} == {("naga-wasm", "tint")}
        outcome = run_nodes(bundle, values, CPU, lambda: steps.append(None))
        assert [node.path for node in bundle.nodes if node.kernel is None] == []
        assert (outcome.nodes, outcome.mismatches, outcome.runtime_differs) == (NODES, 0, 0)
        assert outcome.elements > 4_000_000
    assert len(steps) == 2 * NODES + len(baked.kernels) + len(uniform.kernels)
    assert {node.sources["x"] for node in baked.nodes} == {"input", "initializer", "value"}
    weights = {baked.kernels[str(node.kernel)].request.signature.x.name for node in baked.nodes if node.sources["x"] == "initializer"}
    assert weights == {name, "int32", "uint8"}  # channels, biases, and constants of the activations
    assert {kernel.request.granularity.kind for kernel in baked.kernels.values()} == {"per_tensor", "per_axis"}


def test_the_models_are_the_same_in_each_run(models: dict[str, Path], tmp_path: Path) -> None:
    again = make_models(tmp_path)
    assert {name: path.read_bytes() for name, path in again.items()} == {name: path.read_bytes() for name, path in models.items()}


def test_a_row_is_bad_where_anything_is(models: dict[str, Path]) -> None:
    bundle = load_bundle(models["int8"], shapes="uniform")
    count = len(bundle.kernels)
    good = Row("int8", "uniform", bundle, (count, count), Outcome(NODES, 1, 0, 0), 1.0)
    assert good.is_good
    assert not Row("int8", "uniform", bundle, (count, count - 1), Outcome(NODES, 1, 0, 0), 1.0).is_good
    assert not Row("int8", "uniform", bundle, (count, count), Outcome(NODES - 1, 1, 0, 0), 1.0).is_good
    assert not Row("int8", "uniform", bundle, (count, count), Outcome(NODES, 1, 1, 0), 1.0).is_good
    lines = format_table([good]).splitlines()
    assert [len(line) for line in lines] == [len(lines[0])] * 3
