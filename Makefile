# Thin names for the scripts; see CONTRIBUTING.md.
.PHONY: check demo bench golden format test-sweep test-real

check:
	./check

demo:
	./demo

bench:
	. tools/venv.sh; venv_with dev; python -m tests.bench

test-sweep:
	. tools/venv.sh; venv_with dev; python -m tests.sweep; pytest -m sweep

test-real:
	. tools/venv.sh; venv_with dev; pytest -m real

golden:
	. tools/venv.sh; venv_with dev; python tests/render/refresh_golden.py

format:
	. tools/venv.sh; venv_with dev; ruff format .; ruff check --fix .
