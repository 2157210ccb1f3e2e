# `make demo` shows the whole on a real model, `make test` is what CI runs. Both set up .venv and node_modules first.
.PHONY: demo test setup drivers lint types parsed update-goldens clean

PYTHON_VENV := .venv/bin/python

demo: setup
	@$(PYTHON_VENV) -m tests.demo

test: setup drivers
	@$(MAKE) --no-print-directory lint types
	$(PYTHON_VENV) -m pytest -n 2

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
	rm -rf .venv node_modules .setup demo-out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
