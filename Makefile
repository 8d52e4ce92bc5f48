# The commands of this repository. What they do is in scripts/.
.POSIX:
.PHONY: help demo test fuzz bench bench-all clean environment

help:
	@echo "make demo    open the viewer on the sample cohort (no display: saves demo.png)"
	@echo "make test    check formatting, lint, types and import rules, and run the tests"
	@echo "make fuzz    feed damaged files to every reader, 200,000 each (hours; Linux)"
	@echo "make bench   measure speed beside other packages, in environments of their own"
	@echo "make clean   remove what these commands have made, except the environments"

environment:
	@sh scripts/setup.sh

demo: environment
	@sh scripts/demo.sh

test:
	@sh scripts/setup.sh test
	@sh scripts/test.sh

fuzz:
	@sh scripts/setup.sh test
	@.venv/bin/python -m pip install --quiet --group fuzz
	@.venv/bin/python -m fuzz

bench:
	@sh scripts/setup.sh bench
	@echo "Measuring (some ten minutes) ..."
	@.venv-bench/bin/python -m benchmarks.run

# The same with windows, whole slides and whole cohorts: an hour.
bench-all: environment
	@sh scripts/setup.sh bench
	@.venv-bench/bin/python -m benchmarks.run --all

clean:
	rm -rf build dist sample-cohort demo.png .fuzz .mypy_cache .ruff_cache .pytest_cache
	rm -rf .hypothesis .import_linter_cache *.egg-info
	find napari_panoptic tests benchmarks fuzz -name __pycache__ -type d -prune -exec rm -rf {} +
