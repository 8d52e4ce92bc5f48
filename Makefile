# The commands of this repository. What they do is in scripts/.
.POSIX:
.PHONY: help demo test test-long test-all docs audit faults fuzz bench bench-all clean environment

help:
	@echo "make demo    open the viewer on the sample cohort (no display: saves demo.png)"
	@echo "make test    check formatting, lint, types and import rules, and run the tests"
	@echo "make test-long  run all tests, also those marked as long (half an hour)"
	@echo "make fuzz    feed damaged files to every reader, 200,000 each (hours; Linux)"
	@echo "make docs    build the documentation into site/"
	@echo "make audit   ask whether installed packages have known weaknesses (needs a network)"
	@echo "make test-all  test on every supported Python and Qt, oldest and newest dependencies"
	@echo "make faults  kill the program 200 times each in all it writes, and check what is left"
	@echo "make bench   measure speed beside other packages, in environments of their own"
	@echo "make clean   remove what these commands have made, except the environments"

environment:
	@sh scripts/setup.sh

demo: environment
	@sh scripts/demo.sh

test:
	@sh scripts/setup.sh test
	@sh scripts/test.sh

# The tests that `make test` leaves out are in it.
test-long:
	@sh scripts/setup.sh test
	@sh scripts/test_long.sh

fuzz:
	@sh scripts/setup.sh test
	@.venv/bin/python -m pip install --quiet --group fuzz
	@sh scripts/checked.sh
	@NAPARI_PANOPTIC_CHECKED=1 .venv/bin/python -m fuzz

# In environments of their own, which nox makes; needs the interpreters to be there.
test-all:
	@sh scripts/setup.sh tools
	@sh scripts/test_all.sh

docs:
	@sh scripts/setup.sh tools
	@.venv-tools/bin/nox -f scripts/noxfile.py -s docs
	@echo "The documentation is in site/index.html"

# Not part of the tests: it asks a service that not every machine can reach.
audit:
	@sh scripts/setup.sh tools
	@.venv-tools/bin/nox -f scripts/noxfile.py -s audit

# Ten minutes. The tests do the same a few times each.
faults:
	@sh scripts/setup.sh test
	@.venv/bin/python -m tests.faults.kill --kills 200

bench:
	@sh scripts/setup.sh bench
	@echo "Measuring (some ten minutes) ..."
	@.venv-bench/bin/python -m benchmarks.run

# The same with windows, whole slides and whole cohorts: an hour.
bench-all: environment
	@sh scripts/setup.sh bench
	@.venv-bench/bin/python -m benchmarks.run --all

clean:
	rm -rf build dist site sample-cohort demo.png .fuzz .mypy_cache .ruff_cache .pytest_cache
	rm -rf .hypothesis .import_linter_cache *.egg-info
	find napari_panoptic tests benchmarks fuzz -name __pycache__ -type d -prune -exec rm -rf {} +
