"""What each command prints, on which stream, and its exit code, against transcripts; files that a failure must not leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.goldens import Goldens

TRANSCRIPTS = {
    "help": "--help",
    "help_emit": "emit --help",
    "help_onnx": "onnx --help",
    "help_build": "build --help",
    "help_run": "run --help",
    "help_check": "check -h",
    "help_show": "show --help",
    "help_selftest": "selftest --help",
    "help_list": "list --help",
    "help_explain": "explain --help",
    "no_command": "",
    "unknown_command": "emti",
    "unknown_command_like_none": "frobnicate",
    "unknown_option": "emit QuantizeLinear --x float32 --zero-points",
    "option_before_command": "--quiet list ops",
    "list_ops": "list ops",
    "list_ops_json": "list ops --format json",
    "list_dtypes": "list dtypes",
    "list_targets": "list targets",
    "list_targets_json": "list targets --format json",
    "list_passes": "list passes",
    "list_unknown": "list dtype",
    "list_nothing": "list",
    "list_bad_format": "list ops --format xml",
    "explain": "explain QG203",
    "explain_number": "explain 203",
    "explain_unknown": "explain QG999",
    "explain_nonsense": "explain error",
    "emit": "emit QuantizeLinear --x float32 --y uint4 --zero-point --blocked -1:32 --shape 4,33 --name kernel -o out/deep",
    "emit_quiet": "emit QuantizeLinear --x float32 --name kernel -q",
    "emit_warning": "emit QuantizeLinear --x float32 --opset 10 --per-axis 1 --name kernel",
    "emit_warning_color": "emit QuantizeLinear --x float32 --opset 10 --per-axis 1 --name kernel --color always",
    "emit_nothing": "emit",
    "emit_no_x": "emit QuantizeLinear",
    "emit_unknown_op": "emit QuantiseLinear --x float32",
    "emit_unknown_dtype": "emit QuantizeLinear --x flaot32",
    "emit_unknown_domain": "emit QuantizeLinear --x float32 --domain com.microsft",
    "emit_unknown_target": "emit QuantizeLinear --x float32 --target webgp",
    "emit_unknown_target_option": "emit QuantizeLinear --x float32 --target webgpu:lanes=4",
    "emit_unknown_numerics": "emit QuantizeLinear --x float32 --numerics exakt",
    "emit_early_opset": "emit QuantizeLinear --x float32 --y uint4 --zero-point --opset 19",
    "emit_no_attribute": "emit QuantizeLinear --x float32 --y int8 --zero-point --opset 13 --no-saturate",
    "emit_axis_out_of_range": "emit QuantizeLinear --x float32 --per-axis -3 --shape 4,33",
    "emit_bad_axis": "emit QuantizeLinear --x float32 --per-axis last",
    "emit_bad_block": "emit QuantizeLinear --x float32 --blocked -1:0",
    "emit_bad_blocked": "emit QuantizeLinear --x float32 --blocked -1",
    "emit_two_granularities": "emit QuantizeLinear --x float32 --blocked -1:32 --per-axis 0",
    "emit_bad_shape": "emit QuantizeLinear --x float32 --shape 2x3",
    "emit_negative_shape": "emit QuantizeLinear --x float32 --shape -2,3",
    "emit_bad_name": "emit QuantizeLinear --x float32 --name ../../kernel",
    "emit_bad_entry_point": "emit QuantizeLinear --x float32 --entry-point while",
    "emit_bad_group": "emit QuantizeLinear --x float32 --group -1",
    "emit_unwritable": "emit QuantizeLinear --x float32 --name kernel -o text.txt",
    "emit_color": "emit QuantiseLinear --x float32 --color always",
    "emit_bad_color": "emit QuantizeLinear --x float32 --color sometimes",
    "emit_all_nowhere": "emit --all",
    "emit_all_to_output": "emit --all -o -",
    "emit_all_with_op": "emit QuantizeLinear --all -o out",
    "emit_all_with_option": "emit --all --zero-point -o out",
    "emit_all_no_jobs": "emit --all --jobs 0 -o out",
    "emit_all_unknown_numerics": "emit --all --numerics loose -o out",
    "emit_all_unknown_target": "emit --all --target webgl -o out",
    "emit_jobs": "emit QuantizeLinear --x float32 --jobs 2",
    "show_check": "show QuantizeLinear --x float32 --zero-point --print-ir-after check",
    "show_unknown_pass": "show QuantizeLinear --x float32 --print-ir-after hoist-group",
    "show_twice": "show QuantizeLinear --x float32 --ir --print-ir-after all",
    "build": "build kernels.toml -o out",
    "build_quiet": "build kernels.toml -o out --quiet",
    "build_check": "build kernels.toml -o out --check",
    "build_nowhere": "build kernels.toml",
    "build_to_output": "build kernels.toml -o -",
    "build_unwritable": "build kernels.toml -o text.txt",
    "build_no_list": "build text.txt -o out",
    "build_missing_list": "build missing.toml -o out",
    "run": "run kernels/blocked.json --in x=x.npy y_scale=scale.npy --in y_zero_point=zero.npy --out y=out/y.npy --device cpu",
    "run_no_output": "run kernels/blocked.json --in x=x.npy",
    "run_no_file": "run kernels/blocked.json --in x --out y=y.npy",
    "run_bad_shape_of": "run kernels/blocked.json --shape-of x=2xx --out y=y.npy",
    "run_missing_input": "run kernels/blocked.json --in x=x.npy y_scale=scale.npy --out y=y.npy --device cpu",
    "run_input_twice": "run kernels/blocked.json --in x=x.npy x=scale.npy --out y=y.npy",
    "run_unknown_input": "run kernels/blocked.json --in x=x.npy scale=scale.npy --out y=y.npy",
    "run_unknown_output": "run kernels/blocked.json --in x=x.npy --out z=y.npy",
    "run_wrong_dtype": "run kernels/blocked.json --in x=half.npy y_scale=scale.npy y_zero_point=zero.npy --out y=y.npy --device cpu",
    "run_untyped_for_float": "run kernels/blocked.json --in x=zero.npy --shape-of x=4,2 --out y=y.npy --device cpu",
    "run_wrong_shape": "run kernels/blocked.json --in x=short.npy y_scale=scale.npy y_zero_point=zero.npy --out y=y.npy --device cpu",
    "run_wrong_scale_shape": "run kernels/blocked.json --in x=x.npy y_scale=short.npy y_zero_point=zero.npy --out y=y.npy --device cpu",
    "run_no_array": "run kernels/blocked.json --in x=text.txt --out y=y.npy --device cpu",
    "run_missing_array": "run kernels/blocked.json --in x=missing.npy --out y=y.npy --device cpu",
    "run_wgsl": "run kernels/blocked.wgsl --out y=y.npy",
    "run_no_sidecar": "run array.json --out y=y.npy",
    "run_other_sidecar": "run other.json --out y=y.npy",
    "run_array_as_sidecar": "run x.npy --out y=y.npy",
    "run_missing_sidecar": "run missing.json --out y=y.npy",
    "run_unwritable": ("run kernels/blocked.json --in x=x.npy y_scale=scale.npy y_zero_point=zero.npy --out y=text.txt/y.npy --device cpu"),
    "check": "check kernels --device cpu",
    "check_one": "check kernels/blocked.json --device cpu",
    "check_quiet": "check kernels --device cpu -q",
    "check_other_files": "check . --device cpu",
    "check_empty_folder": "check empty --device cpu",
    "check_no_sidecar": "check text.txt --device cpu",
    "check_nothing": "check",
    "check_all_and_one": "check --all kernels",
    "check_shard_of_one": "check kernels --shard 1/2",
    "check_bad_shard": "check --all --shard 3/2",
    "check_resume_unreadable": "check --all --device cpu --shard 1/9999 --resume text.txt",
    "selftest": "selftest --device cpu",
    "selftest_quiet": "selftest --device cpu -q",
    "selftest_emit": "selftest --emit out",
    "selftest_unwritable": "selftest --emit text.txt",
    "onnx_dry_run": "onnx model.onnx --dry-run --shapes uniform",
    "onnx_quiet": "onnx model.onnx -o out -q",
    "onnx_nowhere": "onnx model.onnx",
    "onnx_bad_shapes": "onnx model.onnx -o out --shapes bake",
    "onnx_no_model": "onnx text.txt -o out",
    "onnx_missing": "onnx missing.onnx -o out",
    "onnx_unwritable": "onnx model.onnx -o text.txt",
}
"""Arguments by the name of their transcript."""

WRITES = {"emit", "emit_quiet", "emit_warning", "emit_warning_color", "build", "build_quiet", "run", "onnx_quiet", "selftest_emit"}


def list_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts(name: str, folder: Path, command: Command, golden: Goldens) -> None:
    before = list_files(folder)
    run = command(TRANSCRIPTS[name])
    after = list_files(folder)
    assert (after != before) == (name in WRITES)
    assert not [path for path in after if ".qgen-" in path.name]
    golden.check(f"cli/{name}.txt", run.transcript(TRANSCRIPTS[name]))
