# `make demo` shows the whole on a real model, `make test` is what CI runs. Both set up .venv and node_modules first.
.PHONY: demo test bench setup drivers lint types parsed update-goldens clean

PYTHON_VENV := .venv/bin/python

demo: setup
	@$(PYTHON_VENV) -m tests.demo

test: setup drivers
	@$(MAKE) --no-print-directory lint types
	$(PYTHON_VENV) -m pytest -n 2

# An hour: what the kernels take beside copies, and beside ONNX Runtime; BENCH has further options (`--help` says which).
bench: setup drivers
	@tests/setup/bench.sh
	@$(PYTHON_VENV) -m tests.bench.speed --all --size 1M --size 4M --out bench-out $(BENCH)

setup:
	@tests/setup/environment.sh

drivers: setup
	@tests/setup/drivers.sh

lint: setup
	$(PYTHON_VENV) -m ruff check .
	$(PYTHON_VENV) -m ruff format --check .

types: setup
	$(PYTHON_VENV) -m mypy

parsed: setup
	$(PYTHON_VENV) -m tests.setup.parse_sources

update-goldens: setup drivers
	$(PYTHON_VENV) -m pytest -n 2 --update-goldens

clean:
	rm -rf .venv node_modules .setup demo-out bench-out tests/bench/node_modules dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
